"""The picture of the speedup explorer: what theory promises over the draft length, and what came."""

from __future__ import annotations

from statistics import mean

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specdec_lab.exploration import LONGEST, Setting, Sweep
from specdec_lab.plots.speed import COLOURS, MARKERS, even
from specdec_lab.plots.style import BLUE, ORANGE, finish

TOPS = (2.0, 4.0, 8.0, 20.0)
"""Where the y axis may end. So few, that it stands still while a slider moves."""
FOOT = 0.1
"""The share of the axes' height that words above the x axis need."""
HEADROOM = 1.12
"""Above the highest point, for the words there."""


def speedup_explorer(setting: Setting, sweep: Sweep | None = None, of: str | None = None) -> Figure:
    """Expected speedup over the draft length, the chosen and the best one marked.

    Args:
        setting: alpha, c, gamma and v.
        sweep: its measured points are drawn on top.
        of: the drafter whose points stand out; None for all alike.
    """
    figure, axes = plt.subplots(figsize=(5.6, 4.5 if sweep else 3.9))
    axes.plot(range(LONGEST + 1), setting.speedups, color=BLUE, linewidth=2, label="theory")
    _even(axes, setting)
    if sweep is not None:
        _points(axes, sweep, of)
    top = y_top(setting, sweep)
    _marks(axes, setting, top)
    axes.set_xlim(-0.5, LONGEST + 0.5)
    axes.set_xticks(range(LONGEST + 1))
    axes.set_ylim(0, top)
    axes.set_yticks([top * quarter / 4 for quarter in range(5)])
    axes.set_xlabel("gamma, the draft length")
    axes.set_ylabel("speedup over plain decoding")
    axes.legend(
        frameon=False, fontsize=8, ncols=2, columnspacing=1.0, handletextpad=0.5, borderaxespad=0.2,
        loc="lower left", bbox_to_anchor=(-0.1, 1.0),
    )  # fmt: skip
    return finish(figure, "theory", note(setting, sweep))


def note(setting: Setting, sweep: Sweep | None) -> str:
    """What the line and the points stand on; always of the same length."""
    theory = (
        f"alpha {setting.alpha:.2f} everywhere, c {setting.c:.3f}, "
        f"v(n) = 1 + {setting.v_slope:.3f} (n - 1): a line, assumed"
    )
    points = f". Points, {sweep.kind} on (so many) prompts: {sweep.origin}" if sweep else ""
    return _literal(theory + points)


def _literal(text: str) -> str:
    """Text from a file, of which matplotlib would take what stands between two $ for a formula."""
    return text.replace("$", r"\$")


def y_top(setting: Setting, sweep: Sweep | None) -> float:
    """The first of ``TOPS`` that has room for all."""
    drafters = sweep.drafters if sweep else ()
    measured = [speedup for drafter in drafters for _, speedup in drafter.points]
    highest = max([*setting.speedups, *measured]) * HEADROOM
    return next((top for top in TOPS if top >= highest), highest)


def _points(axes: Axes, sweep: Sweep, of: str | None) -> None:
    for place, drafter in enumerate(sweep.drafters):
        axes.plot(
            [gamma for gamma, _ in drafter.points],
            [speedup for _, speedup in drafter.points],
            MARKERS[place % len(MARKERS)],
            color=COLOURS[place % len(COLOURS)],
            markersize=6 if of in (None, drafter.name) else 4,
            alpha=1.0 if of in (None, drafter.name) else 0.6,
            label=_literal(f"{sweep.kind}: {drafter.name} ({drafter.prompts})"),
        )


def _even(axes: Axes, setting: Setting) -> None:
    """The line at 1; its words are at the right end, on the side where the curve is not."""
    even(axes)
    if 1.0 < mean(setting.speedups[-3:]) < 1.2:
        axes.texts[-1].set(va="top", y=-3)


def _marks(axes: Axes, setting: Setting, top: float) -> None:
    ink = plt.rcParams["text.color"]
    chosen, best = (setting.gamma, setting.speedup), (setting.best, setting.speedups[setting.best])
    axes.vlines(setting.gamma, 0, setting.speedup, colors=ink, linewidth=1, linestyles=":")
    axes.plot(*best, "*", color=ORANGE, markeredgecolor=ink, markersize=13, mew=0.8, zorder=4)
    axes.plot(*chosen, "o", color="none", markeredgecolor=ink, markersize=15, mew=1.6, zorder=5)
    words = best_words(setting)
    if setting.gamma == setting.best:
        words += " (chosen)"
    else:
        _chosen_words(axes, setting, top)
    side = "left" if setting.best < 3 else "right" if setting.best > LONGEST - 3 else "center"
    shift = {"left": -6, "right": 6, "center": 0}[side]
    axes.annotate(
        words, best, xytext=(shift, 13), textcoords="offset points", ha=side, fontsize=9, weight="bold"
    )  # fmt: skip


def best_words(setting: Setting) -> str:
    """The best draft length in words."""
    if setting.best == 0:
        return "best: gamma 0, do not draft"
    return f"best: gamma {setting.best}, {setting.speedups[setting.best]:.2f}×"


def _chosen_words(axes: Axes, setting: Setting, top: float) -> None:
    """The chosen length's speedup, at the foot of its line; beside its point if that is taken."""
    gamma, right = setting.gamma, setting.gamma <= LONGEST - 4
    below = setting.speedups[gamma : gamma + 5] if right else setting.speedups[gamma - 4 : gamma + 1]
    if min(1.0, *below) > FOOT * top:
        place, shift, side = (gamma, 0.0), (4, 4), "left"
    else:
        rising = gamma < setting.best
        place, shift, side = (gamma, setting.speedup), (13, -4) if rising else (8, 12), "left"
    if not right:
        shift, side = (-shift[0], shift[1]), "right"
    axes.annotate(
        f"gamma {gamma}: {setting.speedup:.2f}×", place, xytext=shift,
        textcoords="offset points", ha=side, fontsize=9,
    )  # fmt: skip

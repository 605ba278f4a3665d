"""Pictures of the course's own sweep: what theory promised, what came, and where the time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from specdec_lab.plots.speed import COLOURS, MARKERS, even, powers
from specdec_lab.plots.style import BLUE, GREY, NOTHING_YET, ORANGE, finish, where


def promises(
    result: Mapping[str, Any], expected: Mapping[tuple[str, int], float | None]
) -> Figure | None:
    """Speedup over the draft length, measured, with theory dotted and the prediction marked.

    Args:
        result: of ``bench.lesson.sweep``, with provenance, and ``predicted`` (gamma and speedup).
        expected: (drafter, gamma) -> the speedup that theory promises; None for none.
    """
    if not result:
        print(NOTHING_YET)
        return None
    figure, axes = plt.subplots(figsize=(7.6, 4.4))
    runs = result["runs"]
    for place, drafter in enumerate(dict.fromkeys(run["drafter"] for run in runs)):
        mine = [run for run in runs if run["drafter"] == drafter]
        colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        lengths = [run["gamma"] for run in mine]
        prompts = mine[0]["prompts"]
        label = f"{drafter} ({prompts} prompt{'s' if prompts > 1 else ''})"
        speedups = [run["speedup"] for run in mine]
        axes.plot(lengths, speedups, marker=marker, color=colour, markersize=5, label=label)
        promised = [(gamma, expected.get((drafter, gamma))) for gamma in lengths]
        known = [(gamma, value) for gamma, value in promised if value is not None]
        axes.plot(*zip(*known, strict=True) if known else ([], []), ":", color=colour, linewidth=1.2)
    axes.plot([], [], color=GREY, linestyle=":", label="theory, from alpha, c and v")
    guess = result.get("predicted")
    if guess:
        axes.plot(
            guess["gamma"], guess["speedup"], "x", color=plt.rcParams["text.color"], markersize=10,
            mew=2.5, label="you predicted (draft model)",
        )  # fmt: skip
    even(axes)
    lengths = sorted({run["gamma"] for run in runs})
    powers(axes, lengths)
    axes.set_xlim(right=1.9 * lengths[-1])  # room for the words at the line of 1
    axes.set_xlabel("gamma, the draft length")
    axes.set_ylabel("speedup over plain decoding")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    note = f"greedy, each setting once a prompt; dotted lines are theory; {where(result)}"
    return finish(figure, "measured", note)


def round_split(result: Mapping[str, Any], gamma: int, drafters: Sequence[str]) -> Figure | None:
    """A round's time in plain steps: as it is promised by c and v, and as it was.

    Args:
        result: of ``bench.lesson.sweep``, with provenance.
        gamma: which draft length.
        drafters: which drafters, those without a c left out.
    """
    if not result:
        print(NOTHING_YET)
        return None
    runs = [
        run
        for name in drafters
        for run in result["runs"]
        if (run["drafter"], run["gamma"]) == (name, gamma) and run["c"] is not None
    ]
    figure, axes = plt.subplots(figsize=(7.2, 0.9 + 0.75 * len(runs)))
    for place, run in enumerate(runs):
        promised = (gamma * run["c"], run["v"], 0.0)
        measured = (run["draft"], run["verify"], run["rest"])
        for shift, widths, alpha in ((-0.19, promised, 0.45), (0.19, measured, 1.0)):
            left = 0.0
            for width, colour in zip(widths, (ORANGE, BLUE, GREY), strict=True):
                axes.barh(place + shift, width, 0.34, left=left, color=colour, alpha=alpha)
                left += width
            word = "promised" if shift < 0 else "measured"
            axes.text(left + 0.04, place + shift, word, va="center", fontsize=8, color=GREY)
    parts = ((ORANGE, "drafting"), (BLUE, "verifying"), (GREY, "the rest"))
    handles = [Patch(color=colour, label=label) for colour, label in parts]
    axes.set_yticks(range(len(runs)), [run["drafter"] for run in runs])
    axes.invert_yaxis()
    axes.set_xlim(right=axes.get_xlim()[1] * 1.12)
    axes.set_xlabel(f"time of a round with gamma = {gamma}, in steps of plain decoding")
    axes.legend(
        handles=handles, frameon=False, fontsize=9, ncols=3, loc="lower left", bbox_to_anchor=(0.0, 1.0)
    )
    note = f"saturated bars; pale bars are theory, from c and v timed apart; {where(result)}"
    return finish(figure, "measured", note)

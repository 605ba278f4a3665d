"""Pictures of the speed experiments' results: one or more for each of ``specdec_lab.bench``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, ScalarFormatter

from specdec_lab.bench.compare import OUR_PLAIN
from specdec_lab.bench.groups import (
    by_length,
    chosen_apart,
    groups_of,
    in_steps_of,
    over_plain,
    temperatures_and_kinds,
)
from specdec_lab.bench.results import Result
from specdec_lab.bench.sheets import origin
from specdec_lab.benchmark import Machine, Ratio
from specdec_lab.plots.costs import roofline
from specdec_lab.plots.style import BLUE, GREEN, GREY, ORANGE, PINK, RED, finish
from specdec_lab.roofline import ModelShape, forward_bytes, forward_flops

SKY = "#56B4E9"
COLOURS = (BLUE, ORANGE, GREEN, RED, PINK, SKY, GREY)
MARKERS = "osD^vPX"
DRAFTED = "draft model"
VERIFIED = (4, 16, 64)
"""Tokens of the forwards beside the decoding step on the roofline."""


def _where(result: Result) -> str:
    return origin(result).removeprefix("measured: ")


def even(axes: Axes) -> None:
    """A line at 1: no faster, no slower."""
    axes.axhline(1.0, color=plt.rcParams["text.color"], linewidth=1)
    axes.annotate(
        "plain decoding", (1.0, 1.0), xycoords=("axes fraction", "data"), xytext=(-2, 3),
        textcoords="offset points", ha="right", fontsize=8, color=GREY,
    )  # fmt: skip


def powers(axes: Axes, values: Sequence[int]) -> None:
    """A logarithmic x axis that names exactly these values."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(values)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())


def decode_roofline(result: Result, shape: ModelShape, dtype: str, verify: Result) -> Figure:
    """The machine's roof, one decoding step below it, and forwards over more tokens on their way up.

    Args:
        result: of experiment 1.
        shape: the target's sizes.
        dtype: which of its rows.
        verify: of experiment 2, for the forwards over several tokens.
    """
    row = result.of(key=dtype)[0]
    step = next((one for one in row["steps"] if one["context"] == 128), row["steps"][0])
    points: list[tuple[str, float, float | None]] = [
        ("1 token: a decoding step", step["intensity"], step["flops_per_second"])
    ]
    size = 2 if dtype != "float32" else 4
    seconds, context = verify.of(key=dtype)[0]["seconds"], verify.settings["context"]
    for n in VERIFIED:
        flops = forward_flops(shape, n, context)
        intensity = flops / forward_bytes(shape, n, context, size)
        label = f"{n} tokens: a verifying step" if n == VERIFIED[0] else f"{n} tokens"
        points.append((label, intensity, flops / seconds[str(n)]))
    machine = Machine(row["peak_flops"], row["bandwidth"])
    figure = roofline(machine, points, f"FLOPs and bytes are counted, not measured; {_where(result)}")
    figure.axes[0].set_title(f"One forward pass on this machine's roofline, {dtype}", fontsize=10)
    return figure


def verify_curve(result: Result) -> Figure:
    """v(n) of every dtype, with its interval and its knee."""
    figure, axes = plt.subplots(figsize=(7.0, 3.6))
    for row, colour, marker in zip(result.rows, COLOURS, MARKERS, strict=False):
        lengths = [int(n) for n in row["v"]]
        curve = list(row["v"].values())
        axes.plot(lengths, curve, marker=marker, color=colour, label=row["key"], markersize=5)
        low, high = (list(row[name].values()) for name in ("v_low", "v_high"))
        axes.fill_between(lengths, low, high, color=colour, alpha=0.2, linewidth=0)
        if row["knee"]:
            axes.annotate(
                f"knee: {row['knee']}", (row["knee"], row["v"][str(row["knee"])]), xytext=(4, -14),
                textcoords="offset points", fontsize=8, color=colour,
            )  # fmt: skip
    axes.plot(
        range(1, 9), range(1, 9), color=GREY, linestyle=":", label="n forwards over one token each"
    )
    powers(axes, [1, 2, 4, 8, 16, 32, 64])
    axes.set_ylim(0, max(max(row["v_high"].values()) for row in result.rows) * 1.1)
    axes.set_xlabel("n, tokens verified in one forward")
    axes.set_ylabel("v(n), in one-token forwards")
    axes.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
    return finish(figure, "measured", f"{_where(result)}; shaded: 95 %")


def speedup_by_length(result: Result, temperature: float = 0.0) -> Figure:
    """Speedup over the draft length for every drafter, with what theory promises."""
    groups = [group for group in groups_of(result) if group.temperature == temperature]
    figure, axes = plt.subplots(figsize=(7.6, 4.4))
    for place, drafter in enumerate(dict.fromkeys(group.drafter for group in groups)):
        colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        mine = [group for group in groups if group.drafter == drafter]
        if drafter.endswith("noise"):
            continue  # it drafts anew behind each token that it spoils: its times are its own
        pooled = list(by_length(mine).values())
        lengths = [group.gamma for group in pooled]
        values = [group.speedup for group in pooled]
        axes.errorbar(
            lengths, [one.value for one in values], _whiskers(values),
            marker=marker, color=colour, label=f"{drafter} ({len(pooled[0].runs)})", markersize=5,
            linewidth=1.6, elinewidth=0.8,
        )  # fmt: skip
        promised = [[one.speedup for one in group.predictions] for group in pooled]
        if all(promised):
            axes.plot(lengths, list(map(median, promised)), color=colour, linestyle=":", linewidth=1.2)
    axes.plot([], [], color=GREY, linestyle=":", label="theory, from alpha, c and v")
    even(axes)
    powers(axes, sorted({group.gamma for group in groups}))
    axes.set_xlabel("gamma, the draft length")
    axes.set_ylabel("speedup over plain decoding")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    note = f"medians over (so many) prompts of six kinds, temperature {temperature:g}, 95 % intervals"
    return finish(figure, "measured", f"{note}; {_where(result)}")


def acceptance_by_position(result: Result, temperature: float = 0.0) -> Figure:
    """How often a token is accepted, by its place in the draft, once all before it were."""
    groups = [group for group in groups_of(result) if group.temperature == temperature]
    figure, axes = plt.subplots(figsize=(7.0, 3.6))
    for place, drafter in enumerate(dict.fromkeys(group.drafter for group in groups)):
        longest = max(group.gamma for group in groups if group.drafter == drafter)
        rows = [
            run["judged_at"]
            for group in groups
            if (group.drafter, group.gamma) == (drafter, longest)
            for _, run in group.runs
        ]
        rates = []
        for position in range(8):
            here = [row[position] for row in rows if len(row) > position]
            judged, accepted = sum(one[0] for one in here), sum(one[1] for one in here)
            if judged < 20:
                break
            rates.append(accepted / judged)
        colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        axes.plot(
            range(1, len(rates) + 1), rates, marker=marker, color=colour, label=drafter, markersize=5
        )
    axes.set_ylim(0, 1.03)
    axes.set_xticks(range(1, 9))
    axes.set_xlabel("place in the draft")
    axes.set_ylabel("accepted of those judged there")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    note = f"temperature {temperature:g}; places where at least 20 tokens were judged"
    return finish(figure, "measured", f"{note}; {_where(result)}")


def latency(result: Result, temperature: float = 0.0) -> Figure:
    """How long a reader waits: between two updates of the text, and on average for a token."""
    groups = [group for group in groups_of(result) if group.temperature == temperature]
    wanted = (("draft model", 2), ("draft model", 8), ("n-gram", 8))
    names = ["plain"] + [f"{name}, gamma {gamma}" for name, gamma in wanted]
    found = [[row["plain"] for row in result.of(temperature=temperature)]]
    found += [
        [run for group in groups if (group.drafter, group.gamma) == one for _, run in group.runs]
        for one in wanted
    ]
    figure, axes = plt.subplots(figsize=(7.0, 2.9))
    kept = [(name, rows) for name, rows in zip(names, found, strict=True) if rows]
    for place, (_, rows) in enumerate(kept):
        low, high = (1000 * median(row[name] for row in rows) for name in ("wait_p50", "wait_p95"))
        axes.plot([low, high], [place, place], color=BLUE, linewidth=3, alpha=0.5)
        axes.plot(
            low, place, "o", color=BLUE, label="wait for the next update: p50" if not place else None
        )
        axes.plot(
            high, place, "|", color=BLUE, markersize=14, mew=2, label="p95" if not place else None
        )
        each = 1000 * median(row["seconds_per_token"] for row in rows)
        axes.plot(each, place, "D", color=ORANGE, label="time per token" if not place else None)
    axes.set_yticks(range(len(kept)), [name for name, _ in kept])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("ms")
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    return finish(
        figure, "measured", f"medians over prompts, temperature {temperature:g}; {_where(result)}"
    )


def batch_falloff(result: Result) -> Figure:
    """The speedup over the batch's size, and what the costs of its forwards leave of it."""
    figure, axes = plt.subplots(figsize=(7.0, 3.6))
    rows = [row for row in result.rows if "size" in row]
    sizes = [row["size"] for row in rows]
    for place, gamma in enumerate(result.settings["gammas"]):
        runs = [next(run for run in row["runs"] if run["gamma"] == gamma) for row in rows]
        colour = COLOURS[place]
        axes.plot(
            sizes,
            [run["speedup"] for run in runs],
            marker=MARKERS[place],
            color=colour,
            label=f"gamma {gamma}",
        )
        left = [
            run["tokens_per_round"] / (gamma * row["c"] + row["v"][str(gamma + 1)])
            for run, row in zip(runs, rows, strict=True)
        ]
        axes.plot(sizes, left, color=colour, linestyle=":", linewidth=1.2)
    axes.plot(
        [],
        [],
        color=GREY,
        linestyle=":",
        label="tokens per round / (gamma c + v), from the batch's c and v",
    )
    even(axes)
    powers(axes, sizes)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("sequences decoded together")
    axes.set_ylabel("speedup over plain decoding")
    axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4)
    return finish(figure, "measured", f"drafter: {result.settings['drafter']}; {_where(result)}")


def beside_transformers(result: Result, temperature: float = 0.0) -> Figure:
    """Each at a draft length chosen on the other prompts, by kind of prompt."""
    kinds = [kind for t, kind in temperatures_and_kinds(result) if t == temperature]
    found = {kind: in_steps_of(result, temperature, kind, OUR_PLAIN) for kind in kinds}
    names = found[kinds[0]][0]
    ways = [
        way for way in (DRAFTED, "n-gram") if any(name.startswith(f"ours, {way}") for name in names)
    ]
    figure, grid = plt.subplots(1, len(ways), figsize=(7.8, 3.6), sharey=True, squeeze=False)
    for axes, way in zip(grid[0], ways, strict=True):
        sides = ((-0.19, "ours", "this library", BLUE), (0.19, "theirs", "transformers", ORANGE))
        for shift, who, label, colour in sides:
            steps = [chosen_apart(found[kind], f"{who}, {way}") for kind in kinds]
            ratios = list(map(over_plain, steps))
            places, values = [i + shift for i in range(len(kinds))], [r.value for r in ratios]
            axes.bar(places, values, 0.36, color=colour, label=label)
            axes.errorbar(places, values, _whiskers(ratios), fmt="none", ecolor=GREY, elinewidth=1)
        axes.axhline(1.0, color=plt.rcParams["text.color"], linewidth=1)
        axes.set_xticks(range(len(kinds)), kinds, rotation=35, ha="right", fontsize=8)
        axes.set_title(way if way == DRAFTED else "n-gram (prompt look-up)", fontsize=10)
    grid[0][0].set_ylabel("speedup over our plain decoding")
    grid[0][-1].legend(frameon=False, fontsize=8)
    note = (
        f"each at a draft length chosen on other prompts, temperature {temperature:g}, 95 % intervals"
    )
    return finish(figure, "measured", f"{note}; {_where(result)}")


def _whiskers(ratios: Sequence[Ratio]) -> list[list[float]]:
    """Down to the low ends and up to the high ends; of no length where there is no interval."""
    low = [r.value - (r.value if r.low is None else r.low) for r in ratios]
    high = [(r.value if r.high is None else r.high) - r.value for r in ratios]
    return [low, high]


def adaptive_lengths(result: Result) -> Figure:
    """Fixed and adaptive draft lengths, by kind of prompt: who loses where it does not pay?"""
    labels = temperatures_and_kinds(result)
    found = {label: in_steps_of(result, *label, "plain") for label in labels}
    others = [name for name in found[labels[0]][0] if name != "plain"]
    names = [name for name in others if name.startswith(DRAFTED)] or others
    figure, axes = plt.subplots(figsize=(7.6, 3.6))
    for place, name in enumerate(names):
        for x, label in enumerate(labels):
            ratio = over_plain([steps[name] for steps in found[label]])
            at = x + 0.22 * (place - (len(names) - 1) / 2)
            axes.errorbar(
                at, ratio.value, _whiskers([ratio]), marker=MARKERS[place], color=COLOURS[place],
                markersize=5, elinewidth=1, label=name if x == 0 else None,
            )  # fmt: skip
    even(axes)
    axes.set_xticks(
        range(len(labels)),
        [f"{kind}, T {t:g}" for t, kind in labels],
        rotation=40,
        ha="right",
        fontsize=8,
    )
    axes.set_ylabel("speedup over plain decoding")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
    only = "the draft model's only; " if len(names) < len(others) else ""
    return finish(figure, "measured", f"{only}medians over prompts, 95 % intervals; {_where(result)}")


def predictions(result: Result) -> Figure:
    """Every prompt's speedup beside what theory promised for it."""
    figure, axes = plt.subplots(figsize=(5.2, 4.6))
    groups = groups_of(result)
    top = 1.0
    for place, drafter in enumerate(dict.fromkeys(group.drafter for group in groups)):
        known = [one for group in groups if group.drafter == drafter for one in group.predictions]
        if not known:
            continue
        axes.plot(
            [one.speedup for one in known], [one.speedup_measured for one in known],
            MARKERS[place % len(MARKERS)], color=COLOURS[place % len(COLOURS)], markersize=3, alpha=0.5,
            label=drafter,
        )  # fmt: skip
        top = max(top, *(max(one.speedup, one.speedup_measured) for one in known))
    axes.plot([0, top], [0, top], color=plt.rcParams["text.color"], linewidth=1)
    axes.set_xlabel("predicted from alpha, c and v")
    axes.set_ylabel("measured")
    axes.legend(frameon=False, fontsize=8)
    return finish(figure, "measured", f"a mark is a prompt at a draft length; {_where(result)}")


Draw = Callable[[Result], Figure]
FIGURES: dict[str, dict[str, Draw]] = {
    "verify": {"v": verify_curve},
    "sweep": {
        "speedup": speedup_by_length,
        "predictions": predictions,
        "acceptance": acceptance_by_position,
        "latency": latency,
    },
    "batch": {"batch": batch_falloff},
    "adaptive": {"adaptive": adaptive_lengths},
    "compare": {"transformers": beside_transformers},
}
"""Experiment -> the names of its pictures, and who draws them; the roofline needs two results."""

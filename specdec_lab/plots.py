"""The course's pictures. Each says below it where its numbers come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch

from specdec_lab.benchmark import Machine
from specdec_lab.provenance import Kind
from specdec_lab.records import Generation, Round
from specdec_lab.text import Decode

# Okabe and Ito's palette: told apart by colour-blind readers too.
BLUE, ORANGE, GREEN, RED, GREY, PINK = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#777777", "#CC79A7"
NOTHING_YET = "Nothing is measured yet, so there is nothing to draw."
_FACE = {"accepted": "#CDEBDF", "rejected": "#EEEEEE", "replacement": "#FCE5B5", "bonus": "#C9E3F5"}
_EDGE = {"accepted": GREEN, "rejected": GREY, "replacement": ORANGE, "bonus": BLUE}
_FACE["nothing drafted"], _EDGE["nothing drafted"] = "white", "#444444"


def rounds(generation: Generation, decode: Decode, most: int = 12) -> Figure:
    """Every round as a row of tokens: kept, rejected, replaced, or given as a bonus.

    Args:
        generation: a finished run.
        decode: token ids -> text.
        most: rounds to show at most.
    """
    shown = generation.rounds[:most]
    rows = [_row(one, decode) for one in shown]
    width = max(sum(_box_width(text) for text, _ in row) for row in rows)
    figure, axes = plt.subplots(figsize=(min(11.0, 1.6 + 0.115 * width), 0.9 + 0.42 * len(rows)))
    for index, row in enumerate(rows):
        left = 0.0
        for text, kind in row:
            _box(axes, left, -index, text, kind)
            left += _box_width(text)
        axes.text(-1.0, -index, f"round {index + 1}", ha="right", va="center", color=GREY, fontsize=9)
    axes.set_xlim(-9.0, width + 0.5)
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.axis("off")
    kinds = {kind for row in rows for _, kind in row}
    handles = [
        Patch(facecolor=_FACE[kind], edgecolor=_EDGE[kind], label=kind)
        for kind in _FACE
        if kind in kinds
    ]
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.0, 0.98),
        ncols=len(handles),
        frameon=False,
        fontsize=9,
        handlelength=1.2,
        columnspacing=1.4,
    )
    hidden = len(generation.rounds) - len(shown)
    more = f"; {hidden} more rounds not shown" if hidden else ""
    source: Kind = "simulated" if generation.simulated else "measured"
    made = f"{len(generation.tokens)} tokens in {len(generation.rounds)} target passes{more}"
    return _finish(figure, source, made)


def _row(one: Round, decode: Decode) -> list[tuple[str, str]]:
    row = [
        (_printable(decode([position.token])), "accepted" if position.accepted else "rejected")
        for position in one.positions
    ]
    if one.closing is not None and one.closing_kind is not None:
        kind = "nothing drafted" if one.closing_kind == "plain" else one.closing_kind
        row.append((_printable(decode([one.closing])), kind))
    return row


def _printable(text: str) -> str:
    return text.replace("\n", "⏎").replace("$", r"\$").strip() or "␣"


def _box_width(text: str) -> float:
    return max(2.0, 0.95 * len(text)) + 1.6


def _box(axes: Axes, left: float, middle: float, text: str, kind: str) -> None:
    width = _box_width(text) - 0.5
    axes.add_patch(
        FancyBboxPatch(
            (left, middle - 0.3),
            width,
            0.6,
            boxstyle="round,pad=0,rounding_size=0.25",
            facecolor=_FACE[kind],
            edgecolor=_EDGE[kind],
            linewidth=1.0,
        )
    )
    axes.text(left + width / 2, middle, text, ha="center", va="center", fontsize=9)
    if kind == "rejected":
        axes.plot([left + 0.3, left + width - 0.3], [middle, middle], color=GREY, linewidth=1.0)


def time_per_token(result: Mapping[str, Any]) -> Figure | None:
    """Milliseconds for one more token, by the length of the text, with and without a cache."""
    if not result:
        print(NOTHING_YET)
        return None
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    for key, label, colour in (
        ("without", "without a cache: the whole text is read", RED),
        ("with", "with a cache: one token is read", BLUE),
    ):
        lengths, seconds = zip(*result[key], strict=True)
        axes.plot(lengths, [1000 * s for s in seconds], "o-", color=colour, label=label)
    axes.set_xlabel("tokens in the text so far")
    axes.set_ylabel("ms for one more token")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return _finish(figure, "measured", _where(result))


def roofline(machine: Machine, points: Sequence[tuple[str, float, float | None]]) -> Figure:
    """A machine's roofline, and what forward passes reached below it.

    Args:
        machine: as measured.
        points: (label, FLOPs per byte, FLOP/s measured or None).
    """
    figure, axes = plt.subplots(figsize=(7.0, 4.0))
    lowest = min(intensity for _, intensity, _ in points) / 2
    highest = max(machine.ridge * 8, *(intensity for _, intensity, _ in points))
    axes.plot(
        [lowest, machine.ridge, highest],
        [lowest * machine.bandwidth / 1e9, machine.peak_flops / 1e9, machine.peak_flops / 1e9],
        color="black",
        label="roof: what this machine reached",
    )
    axes.axvline(machine.ridge, color=GREY, linestyle=":", linewidth=1)
    measured = [reached / 1e9 for _, _, reached in points if reached is not None]
    bottom = min([lowest * machine.bandwidth / 1e9, *measured]) / 2
    axes.set_ylim(bottom, machine.peak_flops / 1e9 * 2)
    axes.text(
        machine.ridge, bottom * 1.1, " memory-bound ←│→ compute-bound",
        ha="center", va="bottom", fontsize=8, color=GREY,
    )  # fmt: skip
    for label, intensity, reached in points:
        if reached is not None:
            axes.plot(intensity, reached / 1e9, "o", color=BLUE)
            axes.annotate(
                label,
                (intensity, reached / 1e9),
                textcoords="offset points",
                xytext=(7, -11),
                fontsize=8,
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("arithmetic intensity [FLOP per byte moved]")
    axes.set_ylabel("GFLOP/s")
    axes.legend(frameon=False, loc="upper left")
    return _finish(figure, "measured", "times here and now; FLOPs and bytes are counted, not measured")


def verification_cost(
    result: Mapping[str, Any], theory: Mapping[int, float] | None = None
) -> Figure | None:
    """v(n): how much longer a forward over n tokens takes than a forward over one.

    Args:
        result: ``{"v": [[n, v(n)], ...], "predicted": v(8)}`` with provenance.
        theory: n -> what the roofline says.
    """
    if not result:
        print(NOTHING_YET)
        return None
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    lengths, costs = zip(*sorted(map(tuple, result["v"])), strict=True)
    axes.plot(lengths, lengths, color=GREY, linestyle=":", label="n passes over one token each")
    axes.plot(lengths, costs, "o-", color=BLUE, label="one pass over n tokens: v(n), measured")
    if theory:
        axes.plot(*zip(*sorted(theory.items()), strict=True), color=ORANGE, label="roofline (theory)")
    if result.get("predicted") is not None:
        axes.plot(8, result["predicted"], "x", color=PINK, markersize=9, mew=2, label="you predicted")
    axes.set_xlabel("n, tokens in one forward pass")
    axes.set_ylabel("time, in one-token passes")
    axes.set_ylim(0, max(*costs, 2.0, result.get("predicted") or 0) * 1.2)
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=9)
    return _finish(figure, "measured", _where(result))


def laws(names: Sequence[str], columns: Mapping[str, Sequence[float]], kind: Kind, note: str) -> Figure:
    """Several distributions over the same few tokens, side by side; the first is the target's."""
    figure, axes = plt.subplots(figsize=(6.8, 3.4))
    colours = (GREY, RED, GREEN, BLUE)
    share = 0.8 / len(columns)
    for place, (label, values) in enumerate(columns.items()):
        left = [token - 0.4 + share * (place + 0.5) for token in range(len(values))]
        axes.bar(left, values, share * 0.92, color=colours[place % len(colours)], label=label)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("probability")
    axes.legend(frameon=False, fontsize=9)
    return _finish(figure, kind, note)


def _where(result: Mapping[str, Any]) -> str:
    made = result["provenance"]
    name = made["target"] or "no model"
    return f"{name}, {made['dtype']} on {made['hardware']}, {made['date'][:10]}"


def _finish(figure: Figure, kind: Kind, note: str) -> Figure:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    width = int(figure.get_figwidth() * 15)
    figure.text(0.01, -0.01, fill(f"{kind}: {note}", width), fontsize=8, color=GREY, va="top")
    # The notebook shows what a cell returns; left open, the figure would be shown twice.
    plt.close(figure)
    return figure

"""Pictures of a run: what was drafted, kept and replaced."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch

from specdec_lab.plots.style import BLUE, GREEN, GREY, ORANGE, finish
from specdec_lab.provenance import Kind
from specdec_lab.records import Generation, Round
from specdec_lab.text import Decode

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
    return finish(figure, source, made)


def _row(one: Round, decode: Decode) -> list[tuple[str, str]]:
    row = [
        (printable(decode([position.token])), "accepted" if position.accepted else "rejected")
        for position in one.positions
    ]
    if one.closing is not None and one.closing_kind is not None:
        kind = "nothing drafted" if one.closing_kind == "plain" else one.closing_kind
        row.append((printable(decode([one.closing])), kind))
    return row


def printable(text: str) -> str:
    """A token's text with its white space made visible, safe for matplotlib."""
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

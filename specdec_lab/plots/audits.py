"""Pictures of audits: one step, a whole decoder, the gallery, alpha along a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from specdec_lab.audit.decoder import DecoderAudit, small_number
from specdec_lab.audit.gallery import GalleryAudit
from specdec_lab.audit.step import StepAudit
from specdec_lab.plots.style import BLUE, GREEN, GREY, ORANGE, RED, finish, printable
from specdec_lab.provenance import Kind

EXACT = "enumerated exactly; nothing was sampled"
LONGEST = 14
"""Characters of a token's text below its bar."""
FLOOR = 1e-17
"""Where an error of exactly 0 is drawn on a logarithmic axis."""


def audit_step(
    audit: StepAudit,
    *,
    kind: Kind = "theory",
    note: str | None = None,
    size: tuple[float, float] = (6.8, 3.6),
    top: float | None = None,
) -> Figure:
    """Where each token's final mass comes from: won by acceptance, or restored by the residual.

    Args:
        audit: of one step.
        kind: what kind of numbers its p and q are.
        note: the words below; None is alpha, the rejection mass and the error.
        size: width and height in inches.
        top: where the axis ends, for a row of pictures that must not jump; None leaves it to the bars.
    """
    figure, axes = plt.subplots(figsize=size)
    places = range(len(audit.labels))
    accepted, restored = ([float(x) for x in row] for row in (audit.accepted_mass, audit.restored_mass))
    axes.bar(places, accepted, 0.5, color=BLUE, label="drafted and accepted")
    axes.bar(places, restored, 0.5, bottom=accepted, color=ORANGE, label="restored by the residual")
    left, right = [x - 0.36 for x in places], [x + 0.36 for x in places]
    p, q = ([float(x) for x in row] for row in (audit.p, audit.q))
    lines: dict[str, Any] = {"colors": plt.rcParams["text.color"], "linewidth": 1.6}
    axes.hlines(p, left, right, label="p, the target", **lines)
    axes.hlines(q, left, right, label="q, the draft", linestyles=":", **lines)
    _name_bars(axes, audit.labels, size[0])
    axes.set_ylabel("probability")
    if top is None:
        axes.legend(frameon=False, fontsize=9)
    else:
        axes.set_ylim(0, top)
        above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.15, 1.0), "ncols": 2}
        axes.legend(frameon=False, fontsize=8, handlelength=1.4, columnspacing=1.0, **above)
    error = small_number(float(audit.l1_error))
    alpha, rejected = float(audit.alpha), float(audit.rejection_mass)
    summary = f"alpha {alpha:.3g}, rejection mass {rejected:.3g}; the bars miss p by an L1 of {error}"
    return finish(figure, kind, summary if note is None else note)


def _name_bars(axes: Axes, labels: Sequence[str], inches: float) -> None:
    """The tokens below their bars; slanted where side by side they would run into each other."""
    short = [label if len(label) <= LONGEST else label[: LONGEST - 1] + "…" for label in labels]
    longest = max(map(len, short))
    crowded = 0.09 * longest > 0.8 * inches / len(short)
    slant: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor", "fontsize": 9}
    axes.set_xticks(range(len(short)), list(map(printable, short)), **(slant if crowded else {}))


def audit_decoder(audit: DecoderAudit, most: int = 12) -> Figure:
    """The decoder's law beside the target's, for the likeliest sequences.

    Args:
        audit: of a decoder that has a law.
        most: sequences to show at most.

    Raises:
        ValueError: for a decoder without a law.
    """
    if audit.fault:
        raise ValueError(f"audit: got a decoder with no law ({audit.fault}), expected one to draw")
    law, own = audit.law, audit.target
    weight = {key: max(law.get(key, 0.0), own.get(key, 0.0)) for key in audit.differences}
    shown = sorted(weight, key=lambda key: -weight[key])[:most]
    figure, axes = plt.subplots(figsize=(7.4, 3.6))
    columns = ((own, GREY, "the target alone"), (law, BLUE, audit.name))
    for offset, (masses, colour, label) in zip((-0.2, 0.2), columns, strict=True):
        heights = [masses.get(key, 0.0) for key in shown]
        axes.bar([x + offset for x in range(len(shown))], heights, 0.38, color=colour, label=label)
    axes.set_xticks(
        range(len(shown)), [" ".join(map(str, key)) or "(nothing)" for key in shown], fontsize=8
    )
    axes.tick_params(axis="x", rotation=35)
    axes.set_ylabel("probability")
    axes.legend(frameon=False, fontsize=9)
    hidden = len(weight) - len(shown)
    more = f"; {hidden} more sequences not shown" if hidden else ""
    verdict = f"{audit.verdict}, L1 {small_number(audit.l1_error)}"
    return finish(figure, "theory", f"{verdict}; {EXACT}{more}")


def gallery(audits: GalleryAudit) -> Figure:
    """How far each decoder's law is from the target's, on a logarithmic axis."""
    found = [(member, audit) for member, audit in audits.audits if audit.l1_error is not None]
    found.sort(key=lambda pair: (not pair[0].honest, pair[1].l1_error))
    figure, axes = plt.subplots(figsize=(7.0, 1.6 + 0.19 * len(found)))
    for place, (member, audit) in enumerate(found):
        error = max(audit.l1_error or 0.0, FLOOR)
        colour = GREEN if member.honest else RED
        axes.plot([FLOOR, error], [place, place], color=colour, linewidth=1, alpha=0.5)
        axes.plot(error, place, "o" if member.honest else "D", color=colour, markersize=4.5)
    axes.set_yticks(range(len(found)), [member.name for member, _ in found], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(FLOOR / 2, 4)
    tolerance = 2.0 * found[0][1].tolerance  # of a total variation, which is half of an L1
    axes.axvline(tolerance, color=GREY, linestyle=":", linewidth=1)
    axes.text(
        tolerance, 0.97, "put down to rounding  ",
        transform=axes.get_xaxis_transform(), ha="right", va="top", fontsize=8, color=GREY,
    )  # fmt: skip
    axes.set_xlabel("L1 distance between the decoder's law and the target's")
    axes.legend(
        handles=[Patch(color=GREEN, label="honest"), Patch(color=RED, label="one fault")],
        frameon=False,
        fontsize=9,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=2,
    )
    without = len(audits.audits) - len(found)
    return finish(figure, "theory", f"{EXACT}; {without} more rogues have no law to measure")

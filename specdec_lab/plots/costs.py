"""Pictures of what decoding costs: time per token, the roofline, v(n)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from specdec_lab.benchmark import Machine
from specdec_lab.plots.style import BLUE, GREY, NOTHING_YET, ORANGE, PINK, RED, finish, where


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
    return finish(figure, "measured", where(result))


def roofline(
    machine: Machine,
    points: Sequence[tuple[str, float, float | None]],
    note: str = "times here and now; FLOPs and bytes are counted, not measured",
) -> Figure:
    """A machine's roofline, and what forward passes reached below it.

    Args:
        machine: as measured.
        points: (label, FLOPs per byte, FLOP/s measured or None).
        note: where the times come from.
    """
    figure, axes = plt.subplots(figsize=(7.0, 4.0))
    lowest = min(intensity for _, intensity, _ in points) / 2
    highest = max(machine.ridge * 8, *(intensity for _, intensity, _ in points))
    axes.plot(
        [lowest, machine.ridge, highest],
        [lowest * machine.bandwidth / 1e9, machine.peak_flops / 1e9, machine.peak_flops / 1e9],
        color=plt.rcParams["text.color"],
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
    return finish(figure, "measured", note)


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
    return finish(figure, "measured", where(result))

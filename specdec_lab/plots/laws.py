"""Pictures of distributions and of what audits say about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from specdec_lab.plots.style import BLUE, GREEN, GREY, ORANGE, RED, finish, printable
from specdec_lab.provenance import Kind


def overlap(
    names: Sequence[str], p: Sequence[float], q: Sequence[float], note: str, kind: Kind = "theory"
) -> Figure:
    """Two histograms over the same tokens: what they share, what is thrown away, what is lacking."""
    figure, axes = plt.subplots(figsize=(6.8, 3.4))
    places = range(len(names))
    shared = [min(x, y) for x, y in zip(p, q, strict=True)]
    layers = (
        ([max(0.0, y - x) for x, y in zip(p, q, strict=True)], RED, "only q: thrown away"),
        ([max(0.0, x - y) for x, y in zip(p, q, strict=True)], ORANGE, "only p: restored"),
    )
    axes.bar(places, shared, 0.8, color=BLUE, label="both: kept (their area is alpha)")
    for heights, colour, label in layers:
        axes.bar(places, heights, 0.8, bottom=shared, color=colour, label=label)
    left, right = [x - 0.4 for x in places], [x + 0.4 for x in places]
    axes.hlines(p, left, right, colors=plt.rcParams["text.color"], linewidth=1.6, label="p, the target")
    axes.hlines(
        q,
        left,
        right,
        colors=plt.rcParams["text.color"],
        linewidth=1.6,
        linestyles=":",
        label="q, the draft",
    )
    axes.set_xticks(places, [printable(name) for name in names])
    axes.set_ylabel("probability")
    axes.legend(frameon=False, fontsize=9)
    return finish(figure, kind, note)


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
    return finish(figure, kind, note)

"""Pictures of distributions and of what audits say about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from specdec_lab.plots.style import BLUE, GREEN, GREY, RED, finish
from specdec_lab.provenance import Kind


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

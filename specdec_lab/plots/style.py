"""What all pictures share: the palette, and the line below that says where the numbers come from."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from specdec_lab.provenance import Kind

# Okabe and Ito's palette: told apart by colour-blind readers too.
BLUE, ORANGE, GREEN, RED, GREY, PINK = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#777777", "#CC79A7"
NOTHING_YET = "Nothing is measured yet, so there is nothing to draw."


def where(result: Mapping[str, Any]) -> str:
    """The model, the device and the day of a result."""
    made = result["provenance"]
    name = made["target"] or "no model"
    return f"{name}, {made['dtype']} on {made['hardware']}, {made['date'][:10]}"


def printable(text: str) -> str:
    """A token's text with its white space made visible, safe for matplotlib."""
    return text.replace("\n", "⏎").replace("$", r"\$").strip() or "␣"


def finish(figure: Figure, kind: Kind, note: str) -> Figure:
    """Tidy up, and write the kind of number and a note below."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    width = int(figure.get_figwidth() * 15)
    figure.text(0.01, -0.01, fill(f"{kind}: {note}", width), fontsize=8, color=GREY, va="top")
    # The notebook shows what a cell returns; left open, the figure would be shown twice.
    plt.close(figure)
    return figure

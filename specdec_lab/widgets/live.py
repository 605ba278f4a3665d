"""What all views share: a static face beside the live one, theme-following pictures, shown errors."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import ipywidgets
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from specdec_lab.provenance import Kind

FONT = "font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:14px;line-height:1.5"
"""One type scale: 14 px for reading, 12 px for labels; numbers are tabular."""
SMALL = "font-size:12px;opacity:.8"
LINE = "rgba(128,128,128,.4)"
"""Borders and tints are transparent, and text takes the page's colour, so that one style suits light
and dark themes."""
_INK = "#010203"
"""Stands for the page's text colour while matplotlib draws."""
_NOTE_INCHES = 0.2
_HEAD = re.compile(r"\A.*?<svg", re.DOTALL)
_OPENING = re.compile(
    r'<svg xmlns:xlink="[^"]*" width="[^"]*" height="[^"]*"([^>]*)>.*?<defs>.*?</defs>', re.DOTALL
)
"""The size in points, the metadata, and a style sheet that would hold for the whole page."""


class Live(ipywidgets.VBox):
    """Widgets with a static face.

    Args:
        children: the live parts, from top to bottom.
        static: makes the HTML that is kept in the notebook and shown where widgets do not run.
        plain: makes the text that is shown where HTML is not, either. Both are empty for mere controls.
    """

    def __init__(
        self,
        children: Sequence[ipywidgets.Widget],
        *,
        static: Callable[[], str] = str,
        plain: Callable[[], str] = str,
    ) -> None:
        super().__init__(children, layout=ipywidgets.Layout(max_width="64rem"))
        self._static, self._plain = static, plain

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)
        return bundle | {"text/html": self._static(), "text/plain": self._plain()}

    def __repr__(self) -> str:
        return self._plain()


class Message(ipywidgets.HTML):
    """A line for what goes on and what went wrong; empty most of the time, and always as high."""

    def __init__(self) -> None:
        super().__init__(layout=ipywidgets.Layout(min_height="1.8em"))
        self.say("")

    def say(self, text: str, *, bad: bool = False) -> None:
        """Show ``text``; ``bad`` for a failure, which says so without the colour as well."""
        sign, colour = ("✗ ", "color:#D55E00;font-weight:600") if bad and text else ("", "")
        role = "alert" if bad else "status"
        self.value = f'<div role="{role}" style="{FONT};{colour}">{escape(sign + text)}</div>'

    @contextmanager
    def showing_errors(self) -> Iterator[None]:
        """Whatever is raised inside is said here: in a callback it would end in a silent log."""
        try:
            yield
        except Exception as error:
            self.say(f"{type(error).__name__}: {error}", bad=True)


def badge(kind: Kind, note: str = "") -> str:
    """The label that says what kind of number is shown, and where it comes from."""
    label = (
        f'<span style="border:1px solid {LINE};border-radius:3px;padding:0 .45em;font-weight:600;'
        f'letter-spacing:.02em">{kind}</span>'
    )
    return f'<div style="{FONT};{SMALL}">{label} {escape(note)}</div>'


@contextmanager
def theme_inks() -> Iterator[None]:
    """While this is open, pictures are drawn for ``svg``: text and axes in the page's own colour."""
    inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    settings: dict[Any, Any] = dict.fromkeys(inked, _INK) | {"svg.fonttype": "none"}
    with plt.rc_context(settings):
        yield


def svg(figure: Figure, note_lines: int = 1) -> str:
    """A picture drawn within ``theme_inks``, as SVG that follows the page's theme.

    Args:
        figure: as ``plots`` makes them, with a note below.
        note_lines: room for this many lines of note; the same for each redrawing, or it would jump.
    """
    width, height = figure.get_size_inches()
    box = Bbox([[0.0, -_NOTE_INCHES * (note_lines + 0.5)], [width, height]])
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, bbox_inches=box, metadata={"Date": None})
    drawing = _HEAD.sub("<svg", file.getvalue().replace(_INK, "currentColor"), count=1)
    drawing = _OPENING.sub(r'<svg\1 style="width:100%;height:auto">', drawing, count=1)
    return f'<div style="max-width:{96 * width:.0f}px">{drawing}</div>'


def png(figure: Figure, alt: str) -> str:
    """A picture for a static face: on white, and plain enough to pass every sanitizer.

    Args:
        figure: drawn outside of ``theme_inks``.
        alt: what it shows, in words.
    """
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=96, bbox_inches="tight", facecolor="white")
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{data}">'

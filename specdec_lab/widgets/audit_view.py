"""One step of speculative sampling to play with: edit p and q, and see that p comes out."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets
from matplotlib.figure import Figure
from rich.console import Console

from specdec_lab import plots
from specdec_lab.audit.step import Row
from specdec_lab.widgets.audit_model import (
    DECIMALS,
    MADE_UP,
    Case,
    Desk,
    Look,
    Side,
    given_case,
    position_case,
)
from specdec_lab.widgets.live import FONT, LINE, SMALL, Live, Message, badge, png, svg, theme_inks

if TYPE_CHECKING:
    from specdec_lab.pretrained import Pair

_PICTURE = (3.6, 3.3)
_NOTE = "each bar should end at its solid line"
_CSS = f"""<style>
.specdec-audit .widget-readout {{ box-sizing: border-box; flex: 0 0 auto; min-width: 0; width: 46px;
  padding: 0 3px; margin: 0 0 0 10px; border: 1px solid {LINE}; border-radius: 3px; text-align: right;
  font-variant-numeric: tabular-nums; }}
.specdec-audit table {{ border-collapse: collapse; table-layout: fixed; width: 100%; font-size: 13px; }}
.specdec-audit th, .specdec-audit td {{ padding: .15em .4em; border-bottom: 1px solid {LINE};
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
.specdec-audit th {{ font-weight: 600; }}
</style>"""
"""Only for what is inside this view; ipywidgets gives readouts and tables no style of their own."""
_NUMBERS = f"{FONT};font-variant-numeric:tabular-nums"
_TOKEN, _SLIDER, _SHARE, _LEFT = "76px", "140px", "40px", "456px"
_SIDES: tuple[Side, Side] = ("p", "q")


def audit_view(
    p: Row | None = None,
    q: Row | None = None,
    labels: Sequence[str] | None = None,
    *,
    pair: Pair | None = None,
    prompt: str | None = None,
) -> AuditView:
    """Edit p and q by sliders or by typing, and see live what one step makes of them.

    Args:
        p, q: weights per token to begin with; they are normalised. None is the course's example.
        labels: what to call the tokens; None is their numbers.
        pair: models whose p and q behind ``prompt`` can be chosen too, at temperature 1.
        prompt: text; needs ``pair``.

    Raises:
        ValueError: for weights or labels that do not fit each other, negative, all-zero or too many
            weights, a pair without a draft model, or one of ``pair`` and ``prompt`` without the other.
    """
    if (pair is None) != (prompt is None):
        given, lacking = ("pair", "prompt") if prompt is None else ("prompt", "pair")
        raise ValueError(f"{lacking}: got none beside {given}, expected both or neither")
    own = given_case(p, q, labels)
    real = position_case(pair, prompt) if pair is not None and prompt is not None else None
    return AuditView([case for case in (own, *MADE_UP, real) if case is not None])


class AuditView(Live):
    """The widget face of a ``Desk``.

    Args:
        cases: what the menu offers; the first one is shown.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self.desk = Desk(cases)
        self.menu = ipywidgets.Dropdown(
            options=list(self.desk.cases),
            description="p and q:",
            style={"description_width": "initial"},
            layout={"width": "16em"},
        )
        self.reset = ipywidgets.Button(
            description="Start over", tooltip="Take the chosen p and q anew", layout={"width": "8em"}
        )
        self.rows: list[_TokenRow] = []
        self.about, self.origin, self.figures, self.table, self.below = (
            ipywidgets.HTML(layout={"margin": "0"}) for _ in range(5)
        )
        self.picture = ipywidgets.HTML(
            layout={"flex": "1 1 290px", "min_width": "290px", "margin": "0"}
        )
        self.message = Message()
        self._loading = False
        self._weights = ipywidgets.VBox()
        super().__init__(self._parts(), static=self._static, plain=self._plain)
        self.add_class("specdec-audit")
        self.menu.observe(self._on_choice, "value")
        self.reset.on_click(self._on_choice)
        self._load()

    def _parts(self) -> list[ipywidgets.Widget]:
        left = ipywidgets.VBox(
            [self._weights, self.figures],
            layout={"flex": f"0 0 {_LEFT}", "justify_content": "space-between"},
        )
        return [
            ipywidgets.HTML(_CSS, layout={"display": "none"}),
            ipywidgets.HBox([self.menu, self.reset]),
            self.about,
            self.origin,
            ipywidgets.HBox([left, self.picture], layout={"flex_flow": "row wrap"}),
            self.message,
            self.table,
            self.below,
        ]

    def _on_choice(self, _: Any) -> None:
        with self.message.showing_errors():
            self.desk.choose(self.menu.value)
            self._load()

    def _on_move(self, side: Side, token: int, value: float) -> None:
        if self._loading:
            return
        with self.message.showing_errors():
            self.desk.move(side, token, value)
            self._refresh()

    def _shown(self) -> list[_TokenRow]:
        return self.rows[: len(self.desk.case.labels)]

    def _load(self) -> None:
        """Put the desk's case on the sliders, all of them before anything is drawn."""
        case = self.desk.case
        while len(self.rows) < len(case.labels):
            self.rows.append(_TokenRow(len(self.rows), self._on_move))
        self._loading = True
        try:
            for row, label, p, q in zip(self._shown(), case.labels, case.p, case.q, strict=True):
                row.load(label, p, q)
        finally:
            self._loading = False
        self._weights.children = (_heading(), *(row.box for row in self._shown()))
        self._refresh()

    def _refresh(self) -> None:
        """Everything but the sliders, from the desk."""
        for side in _SIDES:
            for row, share in zip(self._shown(), self.desk.shares(side), strict=True):
                row.shares[side].value = _number(share)
        self.message.say(self.desk.trouble, bad=True)
        if self.desk.trouble:
            return
        with theme_inks(), _any_script():
            self.picture.value = svg(self._draw(), note_lines=1)
        self.about.value = _text(self.desk.case.about)
        self.origin.value = badge(self.desk.look.kind, self.desk.look.origin)
        self.figures.value = _figures_html(self.desk.look)
        self.table.value = f'<div style="{_NUMBERS}">{self.desk.look.sheet._repr_html_()}</div>'
        self.below.value = _text(self.desk.case.below)

    def _draw(self) -> Figure:
        look = self.desk.look
        return plots.audit_step(look.audit, kind=look.kind, note=_NOTE, size=_PICTURE, top=1.0)

    def _static(self) -> str:
        look = self.desk.look
        with _any_script():
            figure = plots.audit_step(look.audit, kind=look.kind)
            picture = png(
                figure, "Bars: of each token, what is accepted and what the residual restores"
            )
        sheet = look.audit.sheet()._repr_html_()
        about, below = _text(self.desk.case.about), _text(self.desk.case.below)
        return f"{about}{badge(look.kind, look.origin)}{picture}{sheet}{below}"

    def _plain(self) -> str:
        look = self.desk.look
        text = io.StringIO()
        console = Console(file=text, width=100, color_system=None, force_jupyter=False)
        console.print(look.audit.sheet(), f"{look.kind}: {look.origin}", markup=False)
        return text.getvalue()


class _TokenRow:
    """A token's name, and for p and for q a slider with a number to type and what it comes to."""

    def __init__(self, token: int, on_move: Callable[[Side, int, float], None]) -> None:
        self.name = ipywidgets.HTML(layout={"width": _TOKEN, "overflow": "hidden"})
        self.sliders = {side: _slider(side) for side in _SIDES}
        self.shares = {side: ipywidgets.HTML(layout={"width": _SHARE}) for side in _SIDES}
        parts = [part for side in _SIDES for part in (self.sliders[side], self.shares[side])]
        self.box = ipywidgets.HBox([self.name, *parts], layout={"align_items": "center"})
        for side, slider in self.sliders.items():
            slider.observe(partial(_moved, on_move, side, token), "value")

    def load(self, label: str, p: float, q: float) -> None:
        """Another token, with its weights."""
        name = escape(label)
        cut = "font-size:13px;width:76px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap"
        self.name.value = f'<div style="{FONT};{cut}" title="{name}"><bdi>{name}</bdi></div>'
        for side, weight in zip(_SIDES, (p, q), strict=True):
            self.sliders[side].tooltip = f"weight of {label} in {side}"
            self.sliders[side].value = round(weight, DECIMALS)


def _moved(on_move: Callable[[Side, int, float], None], side: Side, token: int, change: Any) -> None:
    on_move(side, token, change["new"])


def _slider(side: Side) -> Any:
    return ipywidgets.FloatSlider(
        description=side,
        min=0.0,
        max=1.0,
        step=10.0**-DECIMALS,
        readout_format=f".{DECIMALS}f",
        style={"description_width": ".7em"},
        layout={"width": _SLIDER},
    )


def _heading() -> ipywidgets.HTML:
    columns = (
        f"grid-template-columns:{_TOKEN} {_SLIDER} {_SHARE} {_SLIDER} {_SHARE};gap:4px;text-align:right"
    )
    cells = "<span style='text-align:left'>token</span>" + 2 * "<span>weight</span><span>share</span>"
    return ipywidgets.HTML(f'<div style="{FONT};{SMALL};display:grid;{columns}">{cells}</div>')


def _text(text: str) -> str:
    return f'<div style="{FONT};min-height:1.5em">{escape(text)}</div>'


def _number(text: str) -> str:
    return f'<div style="{_NUMBERS};text-align:right;white-space:nowrap">{escape(text)}</div>'


def _figures_html(look: Look) -> str:
    tiles = "".join(
        f'<div style="flex:1 1 0"><div style="{SMALL}">{escape(name)}</div>'
        f'<div style="font-size:20px;font-weight:600">{escape(value)}</div>'
        f'<div style="{SMALL};min-height:2.6em">{escape(meaning)}</div></div>'
        for name, value, meaning in look.figures
    )
    return f'<div style="{_NUMBERS};display:flex;gap:1em;padding-top:.6em">{tiles}</div>'


@contextmanager
def _any_script() -> Iterator[None]:
    """Tokens come in any script; matplotlib's font lacks some, which is no news for the reader."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*Glyph .* missing from")
        yield

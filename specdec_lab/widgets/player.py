"""The stream player's page: a static face in plain HTML, over which a small script lays the live one.

Everything is in one piece of HTML, so the player works wherever a notebook's output is shown with its
scripts (JupyterLab, Notebook, VS Code, an exported page), without a kernel. Where scripts are taken out
(GitHub) or nothing but text is shown (a terminal), the static face remains.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from specdec_lab.widgets.live import FONT, LINE, SMALL, badge
from specdec_lab.widgets.stream import Origin, Span, Stream

TINT: dict[Origin, str] = {
    "accepted": "rgba(0,158,115,.28)",
    "replacement": "rgba(230,159,0,.38)",
    "bonus": "rgba(0,114,178,.32)",
}
LEGEND: tuple[tuple[Origin, str], ...] = (
    ("accepted", "accepted draft"),
    ("rejected", "rejected"),
    ("never judged", "drafted, never judged"),
    ("replacement", "replacement"),
    ("bonus", "bonus"),
    ("plain", "target alone"),
)
STARRED = "* tokens out per target forward, the bonus or replacement token included"
_RICH: dict[Origin, str] = {
    "accepted": "green",
    "rejected": "strike red",
    "never judged": "strike dim",
    "replacement": "bold yellow",
    "bonus": "bold cyan",
    "plain": "default",
}


@dataclass(frozen=True)
class Player:
    """A run to look at: shows itself in a notebook, on a page and in a terminal."""

    stream: Stream

    def _repr_html_(self) -> str:
        # In a script, "<" could end it: a token may well be "</script>".
        data = json.dumps(self.stream.to_json() | _look(), ensure_ascii=True).replace("<", "\\u003c")
        return (
            f'<div data-lm-suppress-shortcuts="true" style="{FONT}">{static_face(self.stream)}</div>'
            f"<script>({_asset('player.js')})"
            f"(document.currentScript.previousElementSibling, {data});</script>"
        )

    def __rich__(self) -> Group:
        table = Table("round", "drafted", "then", title=self.stream.kind)
        for index in range(len(self.stream.rounds)):
            drafted, closing = _split(self.stream, index)
            table.add_row(
                str(index + 1), Text().join(map(_rich, drafted)), Text().join(map(_rich, closing))
            )
        ends = "  ".join(f"{name} {value}" for name, value in self.stream.counts[-1])
        return Group(table, Text(ends), Text(STARRED), *map(Text, self.stream.remarks))

    def __repr__(self) -> str:
        lines = [f"{self.stream.kind}: {self.stream.note}", *self.stream.rounds]
        lines += [", ".join(f"{name} {value}" for name, value in self.stream.counts[-1])]
        return "\n".join([*lines, STARRED, *self.stream.remarks])


def static_face(stream: Stream) -> str:
    """The whole run at once: the text, each round's draft, the counts."""
    text = "".join(_html(span) for span in stream.spans if span.emitted)
    rows = "".join(_row(stream, index) for index in range(len(stream.rounds)))
    counts = " · ".join(f"{escape(name)} <b>{escape(value)}</b>" for name, value in stream.counts[-1])
    legend = " ".join(
        _html(Span(label, origin, 0, "")) for origin, label in LEGEND if _occurs(stream, origin)
    )
    remarks = "".join(f"<p>{escape(remark)}</p>" for remark in stream.remarks)
    return (
        f"{badge(stream.kind, stream.note)}"
        f'<p style="{SMALL}"><bdi>{escape(stream.prompt)}</bdi></p>'
        f'<p style="white-space:pre-wrap;line-height:1.8">{text}</p>'
        f'<p style="{SMALL}">{legend}</p><p>{counts}</p><p style="{SMALL}">{STARRED}</p>{remarks}'
        f"<details><summary>every round</summary><table><tbody>{rows}</tbody></table></details>"
    )


def _row(stream: Stream, index: int) -> str:
    drafted, closing = (" ".join(map(_html, part)) for part in _split(stream, index))
    said = stream.rounds[index]
    return (
        f'<tr><td style="text-align:left">{escape(said)}</td>'
        f'<td style="text-align:left;white-space:pre-wrap">{drafted} {closing}</td></tr>'
    )


def _split(stream: Stream, index: int) -> tuple[list[Span], list[Span]]:
    """A round's drafted tokens, and its closing one."""
    mine = [span for span in stream.spans if span.round == index]
    drafted = [span for span in mine if span.origin in ("accepted", "rejected", "never judged")]
    return drafted, mine[len(drafted) :]


def _occurs(stream: Stream, origin: Origin) -> bool:
    return any(span.origin == origin for span in stream.spans)


def _html(span: Span) -> str:
    """A token with its sign, its tint and its reason; every character of it escaped."""
    shown = f"<bdi>{escape(span.signed)}</bdi>"
    if span.origin in ("rejected", "never judged"):
        return f'<s style="opacity:.7" title="{escape(span.why)}">{shown}</s>'
    tint = TINT.get(span.origin, "transparent")
    style = f"background:{tint};border-bottom:2px solid {tint if span.origin in TINT else LINE}"
    return f'<span style="{style}" title="{escape(span.why)}">{shown}</span>'


def _rich(span: Span) -> Text:
    return Text(span.signed, _RICH[span.origin])


def _look() -> dict[str, Any]:
    """What the script needs to look the same."""
    legend = [(origin, Span(label, origin, 0, "").signed) for origin, label in LEGEND]
    return {"css": _asset("player.css"), "legend": legend, "starred": STARRED}


@cache
def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8").strip()

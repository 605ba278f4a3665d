"""A table described once, and shown by rich in a terminal, as HTML in a notebook, and as Markdown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

Tone = Literal["plain", "good", "bad", "unsure"]
_RICH = {"plain": "", "good": "green", "bad": "bold red", "unsure": "yellow"}
_CSS = {
    "plain": "",
    "good": "color:#0a8f5c",
    "bad": "color:#c8501e;font-weight:bold",
    "unsure": "color:#a07814",
}


@dataclass(frozen=True)
class Toned:
    """A cell's or a note's text with what it means; the colour never says more than the words."""

    text: str
    tone: Tone = "plain"


Cell = str | Toned


@dataclass(frozen=True)
class Sheet:
    """A table with a title above it and notes below it. Columns but the first few words are numbers.

    Args:
        title: one line.
        columns: the headings.
        rows: one cell per column.
        notes: sentences below the table.
        text_columns: indices of the columns that hold words, set to the left; the others to the right.

    Raises:
        ValueError: for a row with more or fewer cells than columns.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[Cell, ...] = ()
    text_columns: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"rows: got one of {len(row)} cells, expected {len(self.columns)}")

    def __rich__(self) -> Group:
        title = Text(self.title, "bold")
        if not self.rows:
            return Group(title, *map(_rich, self.notes))
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for index, column in enumerate(self.columns):
            table.add_column(column, justify="left" if index in self.text_columns else "right")
        for row in self.rows:
            table.add_row(*map(_rich, row))
        return Group(title, table, *map(_rich, self.notes))

    def _repr_html_(self) -> str:
        head = "".join(self._cell("th", index, name) for index, name in enumerate(self.columns))
        body = "".join(
            "<tr>" + "".join(self._cell("td", index, cell) for index, cell in enumerate(row)) + "</tr>"
            for row in self.rows
        )
        table = (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if self.rows else ""
        )
        notes = "".join(
            f'<div style="{_CSS[_toned(note).tone]}">{_html(note)}</div>' for note in self.notes
        )
        return f"<div><b>{escape(self.title)}</b></div>{table}{notes}"

    def markdown(self) -> str:
        """The table in GitHub's Markdown: its title in bold above it, its notes below, no colours."""
        sides = (":--" if i in self.text_columns else "--:" for i in range(len(self.columns)))
        rows = (tuple(_toned(cell).text for cell in row) for row in self.rows)
        lines = [f"| {' | '.join(row)} |" for row in (self.columns, tuple(sides), *rows)]
        notes = "  \n".join(_toned(note).text for note in self.notes)
        return "\n\n".join(part for part in (f"**{self.title}**", "\n".join(lines), notes) if part)

    def _cell(self, tag: str, index: int, cell: Cell) -> str:
        side = "left" if index in self.text_columns else "right"
        return f'<{tag} style="text-align:{side};{_CSS[_toned(cell).tone]}">{_html(cell)}</{tag}>'


class Shown(ABC):
    """A report that shows itself as its sheet, in a terminal and in a notebook."""

    @abstractmethod
    def sheet(self) -> Sheet:
        """The report as a table."""

    def __rich__(self) -> Group:
        return self.sheet().__rich__()

    def _repr_html_(self) -> str:
        return self.sheet()._repr_html_()


def _toned(cell: Cell) -> Toned:
    return cell if isinstance(cell, Toned) else Toned(cell)


def _rich(cell: Cell) -> Text:
    toned = _toned(cell)
    return Text(toned.text, _RICH[toned.tone])


def _html(cell: Cell) -> str:
    return escape(_toned(cell).text)

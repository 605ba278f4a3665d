"""Autograding, first: a submission is brought back into the form of the release."""

from __future__ import annotations

import ast
import re
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

from specdec_lab.course.cells import BEGIN_HIDDEN, grade_id_of

Resources = dict[str, Any]


class RestoreCells(NbGraderPreprocessor):
    """Bring a submission back into the form of the release, as far as nbgrader needs it.

    Each cell of the release is looked for in the submission: by grade id, by cell id, then by what it
    says or defines. Its metadata and type are set right, and a missing one is put back behind its
    predecessor. All other metadata goes: among it could be a tag that keeps a check from running.
    nbgrader's ``OverwriteCells``, next in line, then restores the text of locked cells.

    Copies of a cell all run where they stand, as they do for the learner; of a check the last counts.
    """

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        where = resources["nbgrader"]
        with Gradebook(where["db_url"]) as gradebook:
            notebook = gradebook.find_notebook(where["notebook"], where["assignment"])
            points = {cell.name: cell.max_score for cell in notebook.grade_cells}
            wanted = [
                _Wanted(
                    cell.name,
                    cell.cell_type,
                    cell.source,
                    cell.checksum,
                    cell.locked,
                    points.get(cell.name),
                )
                for cell in notebook.source_cells
            ]
        return self._restore(nb, wanted), resources

    def _restore(self, nb: NotebookNode, wanted: list[_Wanted]) -> NotebookNode:
        found: dict[str, NotebookNode] = {}
        free = {id(cell): cell for cell in nb.cells}
        for one in wanted:
            cell = one.find(list(free.values()), [other.name for other in wanted])
            if cell is not None:
                found[one.name] = free.pop(id(cell))
        for cell in nb.cells:
            cell.metadata = NotebookNode()
        place = 0
        for one in wanted:
            cell = found.get(one.name)
            if cell is None:
                self.log.warning("Cell %s is missing; it is put back", one.name)
                nb.cells.insert(place, one.new(one.text_if_missing(nb.cells)))
                place += 1
                continue
            place = next(i for i, other in enumerate(nb.cells) if other is cell) + 1
            if cell.cell_type != one.cell_type:
                self.log.warning("Cell %s has become %s", one.name, cell.cell_type)
                nb.cells[place - 1] = one.new(cell.source)
            one.mark(nb.cells[place - 1])
        return nb


class _Wanted:
    """A cell of the release, as the gradebook knows it."""

    def __init__(
        self,
        name: str,
        cell_type: str,
        source: str,
        checksum: str,
        locked: bool,
        points: float | None,
    ) -> None:
        self.name = name
        self.cell_type = cell_type
        self._source = source
        self._checksum = checksum
        self._locked = locked
        self._points = points
        self._names = set() if locked or cell_type != "code" else _defined(source)
        """The functions and variables that a solution cell defines."""

    def find(self, cells: list[NotebookNode], names: list[str]) -> NotebookNode | None:
        """The submitted cell that this one has become; ``names`` are those of all cells released."""
        others = [name for name in names if name != self.name]
        marked = [cell for cell in cells if grade_id_of(cell) == self.name]
        ways = [
            [cell for cell in marked if cell.get("id") not in others],
            [cell for cell in cells if cell.get("id") == self.name],
            marked,
            [cell for cell in cells if grade_id_of(cell) not in names and self._says_the_same(cell)],
        ]
        return next((self._best(candidates) for candidates in ways if candidates), None)

    def _says_the_same(self, cell: NotebookNode) -> bool:
        if self._locked:
            return bool(cell.source.strip() == self._source.partition(BEGIN_HIDDEN)[0].strip())
        return bool(self._names) and cell.cell_type == "code" and self._names <= _defined(cell.source)

    def _best(self, candidates: list[NotebookNode]) -> NotebookNode:
        """The last of them: it is what ran last. A text that was left as released is no answer."""
        candidates = [c for c in candidates if c.cell_type == self.cell_type] or candidates
        if self.cell_type == "markdown":
            candidates = [c for c in candidates if c.source != self._source] or candidates
        return candidates[-1]

    def text_if_missing(self, cells: list[NotebookNode]) -> str:
        """What to put back: the cell as released, but over nothing that may be the learner's answer."""
        if self._locked:
            return self._source
        if self.cell_type == "markdown":
            return "*This answer's cell is missing. Its text may be elsewhere in the notebook.*"
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        elsewhere = any(_may_define(name, text) for name in self._names for text in code)
        return "" if elsewhere else self._source

    def new(self, source: str) -> NotebookNode:
        """A cell of the right type and id."""
        make: Any = new_code_cell if self.cell_type == "code" else new_markdown_cell
        cell = make(source, id=self.name)
        self.mark(cell)
        return cell

    def mark(self, cell: NotebookNode) -> None:
        """Give a cell the metadata it was released with."""
        graded = self._points is not None
        cell.metadata = NotebookNode()
        cell.metadata["nbgrader"] = NotebookNode(
            checksum=self._checksum,
            cell_type=self.cell_type,
            grade=graded,
            grade_id=self.name,
            locked=self._locked,
            schema_version=3,
            solution=not self._locked,
            task=False,
            **({"points": self._points} if graded else {}),
        )


def _defined(source: str) -> set[str]:
    """The functions and variables that code defines at its top level."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set(re.findall(r"^def (\w+)", source, re.MULTILINE))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _may_define(name: str, source: str) -> bool:
    """Whether code may define a name at any depth; it need not even be valid."""
    return bool(re.search(rf"\b(?:def|as)\s+{name}\b|\b{name}\s*(?::[^=\n]+)?=(?!=)", source))

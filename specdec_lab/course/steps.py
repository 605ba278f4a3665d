"""The small steps of the course in nbgrader's pipelines: blank solutions, bonus, odd submissions.

The larger ones are ``restoring.py`` and ``running.py``. All are ordinary nbgrader preprocessors, so
nbgrader's own commands and the Formgrader use them, too. ``settings.py`` puts them in their places.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import ClearSolutions, NbGraderPreprocessor

from specdec_lab.course.cells import BEGIN_SOLUTION, BONUS, grade_id_of
from specdec_lab.course.folder import CourseError

Resources = dict[str, Any]

NOT_COPIED = ".not-copied"
"""How the name of what cannot be copied ends from then on."""


class ClearSolutionRegions(ClearSolutions):
    """nbgrader's own step, but a value that is asked for is left blank instead of raising.

    A function's body becomes ``raise NotImplementedError``. A region at the top level would raise while
    the notebook runs, and a learner who skips one exercise could not run the rest.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: Resources, index: int
    ) -> tuple[NotebookNode, Resources]:
        usual: dict[str, str] = self.code_stub  # type: ignore[has-type]
        if any(line.startswith(BEGIN_SOLUTION) for line in cell.source.split("\n")):
            self.code_stub = usual | {"python": "# YOUR ANSWER HERE (change the line above)"}
        try:
            return super().preprocess_cell(cell, resources, index)
        finally:
            self.code_stub = usual


class SaveBonus(NbGraderPreprocessor):
    """Book a passed bonus check as nbgrader's extra credit, on top of the total."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        where = resources["nbgrader"]
        with Gradebook(where["db_url"]) as gradebook:
            for cell in nb.cells:
                name, mark, points = (grade_id_of(cell) or "").partition(BONUS)
                if mark and utils.is_grade(cell):
                    grade = gradebook.find_grade(
                        f"{name}{mark}{points}",
                        where["notebook"],
                        where["assignment"],
                        where["student"],
                    )
                    grade.extra_credit = 0.0 if utils.has_failed(cell) else float(points)
            gradebook.db.commit()
        return nb, resources


def make_gradable(assignment: str, student: str, notebooks: list[str]) -> None:
    """nbgrader's hook before autograding: what would stop it from grading a submission is put right.

    The only notebook is graded whatever its name: saved as ``01_x-Copy1.ipynb`` it would be skipped
    without a word, and score nothing. And what cannot be copied is renamed, so that it is left out.
    """
    if notebooks:
        folder = Path(notebooks[0]).parent
        for path in [*folder.rglob("*")]:
            if not path.is_dir() and not can_be_copied(path):
                with suppress(OSError):
                    path.rename(path.with_name(path.name + NOT_COPIED))
        _adopt_renamed_notebook(folder, notebooks)


def can_be_copied(path: Path) -> bool:
    """Whether it is a folder or a file that can be read; neither a link to nowhere, nor a pipe."""
    if path.is_dir():
        return not path.is_symlink()
    return path.is_file() and os.access(path, os.R_OK)


def _adopt_renamed_notebook(folder: Path, notebooks: list[str]) -> None:
    paths = [Path(notebook) for notebook in notebooks]
    expected = folder / f"{folder.name}.ipynb"
    if expected in paths:
        return
    if len(paths) > 1:
        raise CourseError(f"{folder}: none of {len(paths)} notebooks is called {expected.name}")
    expected.write_bytes(paths[0].read_bytes())
    notebooks[:] = [str(expected)]

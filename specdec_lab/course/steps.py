"""The small steps of the course in nbgrader's pipelines: blank solutions, bonus, renamed notebooks.

The larger ones are ``restoring.py`` and ``running.py``. All are ordinary nbgrader preprocessors, so
nbgrader's own commands and the Formgrader use them, too. ``settings.py`` puts them in their places.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import ClearSolutions, NbGraderPreprocessor

from specdec_lab.course.cells import BEGIN_SOLUTION, BONUS, grade_id_of
from specdec_lab.course.folder import CourseError

Resources = dict[str, Any]


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


def adopt_renamed_notebook(assignment: str, student: str, notebooks: list[str]) -> None:
    """nbgrader's hook before autograding: a submission's only notebook is graded whatever its name.

    Saved as ``01_x-Copy1.ipynb`` it would be skipped without a word, and score nothing.
    """
    paths = [Path(notebook) for notebook in notebooks]
    if not paths:
        return
    folder = paths[0].parent
    expected = folder / f"{folder.name}.ipynb"
    if expected in paths:
        return
    if len(paths) > 1:
        raise CourseError(f"{folder}: none of {len(paths)} notebooks is called {expected.name}")
    expected.write_bytes(paths[0].read_bytes())
    notebooks[:] = [str(expected)]

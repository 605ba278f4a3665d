"""Grade: a working copy through nbgrader in a throw-away gradebook, or a class in the real one."""

from __future__ import annotations

import csv
import os
import re
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode
from nbgrader.api import Grade, Gradebook, MissingEntry
from nbgrader.apps import NbGraderAPI

from specdec_lab.course.build import call, must_succeed, nbgrader_api, throwaway_course
from specdec_lab.course.cells import BONUS, HIDDEN, WRITTEN, exercise_of
from specdec_lab.course.folder import Course, CourseError
from specdec_lab.course.steps import can_be_copied
from specdec_lab.files import replacing

LEARNER = "you"
_LONGEST_REASON = 500


@dataclass(frozen=True)
class Item:
    """One graded cell.

    Args:
        grade_id: nbgrader's.
        points: earned; None for an answer that a person still has to read.
        worth: what it is worth.
        message: why points are missing; empty if none are.
    """

    grade_id: str
    points: float | None
    worth: float
    message: str = ""

    @property
    def exercise(self) -> str:
        """The exercise it belongs to."""
        return exercise_of(self.grade_id) or self.grade_id

    @property
    def hidden(self) -> bool:
        """Whether it is a hidden check."""
        return self.grade_id.endswith(HIDDEN)

    @property
    def bonus(self) -> bool:
        """Whether its points come on top."""
        return BONUS in self.grade_id


@dataclass(frozen=True)
class Report:
    """What came of grading one submission of one assignment.

    Args:
        assignment: its name.
        student: whose.
        items: one per graded cell, in the notebook's order.
        problem: why it could not be graded at all; empty if it could.
        feedback: the page with the graded notebook.
        hidden_checks: False where the instructor's files are missing.
    """

    assignment: str
    student: str
    items: list[Item] = field(default_factory=list)
    problem: str = ""
    feedback: Path | None = None
    hidden_checks: bool = True

    @property
    def points(self) -> float:
        """Earned so far, bonus left out."""
        return sum(item.points or 0.0 for item in self.items if not item.bonus)

    @property
    def worth(self) -> float:
        """What can be earned without a person's grading, bonus left out."""
        return sum(item.worth for item in self.items if not item.bonus and item.points is not None)

    @property
    def bonus(self) -> float:
        """Earned on top."""
        return sum(item.points or 0.0 for item in self.items if item.bonus)

    @property
    def to_read(self) -> float:
        """Points that a person has yet to give."""
        return sum(item.worth for item in self.items if item.points is None)


def grade_working_copy(course: Course, name: str) -> Report:
    """Grade ``work/NAME`` as an instructor would, and leave no trace but the feedback page.

    Without ``solutions/`` the released notebook stands in for the answer key. It has no hidden checks.

    Raises:
        CourseError: if there is no working copy, or nbgrader itself fails.
    """
    folder = course.work / name
    if not list(folder.glob("*.ipynb")):
        raise CourseError(f"no notebook in {folder}; expected a copy made by: specdec-lab start {name}")
    with throwaway_course(course) as (root, api):
        hidden_checks = course.key(name).is_file()
        source = course.key(name) if hidden_checks else course.release(name)
        (root / "solutions" / name).mkdir(parents=True)
        shutil.copyfile(source, root / "solutions" / name / f"{name}.ipynb")
        shutil.copytree(folder, root / "submitted" / LEARNER / name, ignore=_left_out)
        must_succeed(call(api.generate_assignment, name), f"cannot prepare {name}")
        page = course.work / "feedback" / f"{name}.html"
        return grade_submission(api, root, name, LEARNER, page, hidden_checks)


def _left_out(folder: str, names: list[str]) -> list[str]:
    """All else is graded with the notebook: ``results/``, and ``answers.json`` of the quiz."""
    paths = [Path(folder, name) for name in names]
    return [p.name for p in paths if p.name == ".ipynb_checkpoints" or not can_be_copied(p)]


def grade_class(course: Course, names: list[str], *, again: bool = False) -> Iterator[Report]:
    """Autograde the submissions in ``submitted/``, in the course's own gradebook, one after the other.

    A submission that cannot be graded gives a report that says why; the others go on.

    Args:
        course: where.
        names: the assignments.
        again: also those that have not changed since they were graded; their marks are only read else.

    Raises:
        CourseError: without the instructor's files.
    """
    course.require_solutions()
    api = nbgrader_api(course)
    for name in names:
        must_succeed(call(api.generate_assignment, name), f"cannot prepare {name}")
        folders = sorted((course.root / "submitted").glob(f"*/{name}"))
        for folder in folders:
            student = folder.parent.name
            page = course.root / "feedback" / student / name / f"{name}.html"
            if not again and _is_graded(course, name, student):
                yield Report(name, student, read_items(api, course.root, name, student), feedback=page)
            else:
                yield grade_submission(api, course.root, name, student, page)


def _is_graded(course: Course, name: str, student: str) -> bool:
    """Whether a submission was graded after it was put here, and after the answer key was built.

    By the time of the last change on this disk: an archive may give a new file an old date.
    """
    graded = course.root / "autograded" / student / name / f"{name}.ipynb"
    if not graded.is_file():
        return False
    folder = course.root / "submitted" / student / name
    inputs = [folder, *folder.rglob("*"), course.key(name)]
    return max(path.lstat().st_ctime for path in inputs) < graded.stat().st_ctime


def grade_submission(
    api: NbGraderAPI,
    root: Path,
    name: str,
    student: str,
    page: Path,
    hidden_checks: bool = True,
) -> Report:
    """Autograde one submission and make its feedback page.

    One that cannot be graded has no points in the gradebook: an earlier hand-in's may not stay.
    """
    problem = _unfit(root / "submitted" / student / name, name)
    if not problem:
        result = call(api.autograde, name, student)
        problem = "" if result["success"] else _reason(result)
    if problem:
        _book_nothing(api, name, student)
        return Report(name, student, problem=problem)
    items = read_items(api, root, name, student, hidden_checks)
    feedback = call(api.generate_feedback, name, student)
    made = root / "feedback" / student / name / f"{name}.html"
    if not feedback["success"] or not made.is_file():
        return Report(name, student, items, hidden_checks=hidden_checks)
    if page != made:
        page.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, page)
    return Report(name, student, items, feedback=page, hidden_checks=hidden_checks)


def _unfit(folder: Path, name: str) -> str:
    """What nbgrader would not say clearly: that there is no notebook, or none that could be meant."""
    notebooks = [file.name for file in folder.glob("*.ipynb") if not file.name.startswith(".")]
    if not notebooks:
        return "no notebook was handed in"
    if len(notebooks) > 1 and f"{name}.ipynb" not in notebooks:
        return f"none of the {len(notebooks)} notebooks handed in is called {name}.ipynb"
    if f"{name}.ipynb" not in notebooks and not os.access(folder, os.W_OK):
        return f"{notebooks[0]} cannot be graded as {name}.ipynb: its folder may not be written to"
    return ""


def _book_nothing(api: NbGraderAPI, name: str, student: str) -> None:
    with warnings.catch_warnings(), api.gradebook as gradebook:
        warnings.simplefilter("ignore")  # from nbgrader's own code
        gradebook.update_or_create_student(student)
        submission = gradebook.update_or_create_submission(name, student)
        for notebook in submission.notebooks:
            for grade in notebook.grades:
                grade.auto_score, grade.extra_credit = 0.0, 0.0
                grade.manual_score, grade.needs_manual_grade = None, False
        gradebook.db.commit()


def _reason(result: dict[str, Any]) -> str:
    """The line of nbgrader's log that says what went wrong.

    Raises:
        KeyboardInterrupt: if somebody at the keyboard did. nbgrader would go on to the next submission.
    """
    if str(result.get("error")).rstrip().endswith("\nKeyboardInterrupt"):
        raise KeyboardInterrupt
    lines = [line.strip() for line in str(result.get("log") or "").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line and not line.startswith(('File "', "["))]
    return (errors or lines or ["nbgrader gives no reason"])[-1][:_LONGEST_REASON]


def read_items(
    api: NbGraderAPI, root: Path, name: str, student: str, hidden_checks: bool = True
) -> list[Item]:
    """The graded cells of an autograded submission, with their messages."""
    file = root / "autograded" / student / name / f"{name}.ipynb"
    cells = nbformat.read(file, as_version=4).cells
    messages = {
        cell.metadata.get("nbgrader", {}).get("grade_id"): _message(cell, cells[:place])
        for place, cell in enumerate(cells)
    }
    with api.gradebook as gradebook:
        grades = {
            grade.name: grade
            for grade in gradebook.find_submission_notebook(name, name, student).grades
        }
        order = [cell.name for cell in gradebook.find_notebook(name, name).source_cells]
        return [
            _item(grades[grade_id], messages.get(grade_id, ""))
            for grade_id in order
            if grade_id in grades and (hidden_checks or not grade_id.endswith(HIDDEN))
        ]


def _item(grade: Grade, message: str) -> Item:
    _, bonus, worth = grade.name.partition(BONUS)
    points: float | None
    if bonus:
        points, total = grade.extra_credit or 0.0, float(worth)
    else:
        points, total = None if grade.needs_manual_grade else grade.score, grade.max_score
    missing = points is not None and points < total
    if grade.name.endswith(WRITTEN):
        message = "no answer yet; a person grades it."
    return Item(grade.name, points, total, message if missing else "")


def _message(cell: NotebookNode, before: list[NotebookNode]) -> str:
    """What a graded cell says: its error, else what it printed."""
    error = _error_of(cell)
    missing = re.match(r"NameError: name '(\w+)' is not defined", error)
    if missing:
        return error + _why_missing(missing[1], before)
    if error:
        return error
    printed = (output.text for output in cell.get("outputs", []) if output.output_type == "stream")
    return "".join(printed).strip()


def _error_of(cell: NotebookNode) -> str:
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            name = "" if output.ename == "CheckFailed" else f"{output.ename}: "
            return strip_ansi(name + output.evalue)
    return ""


def _why_missing(name: str, before: list[NotebookNode]) -> str:
    """What became of the cell that was to define a name: the reason is not in the check's own error."""
    for cell in reversed(before):
        if cell.metadata.get("nbgrader", {}).get("grade") or cell.cell_type != "code":
            continue
        error = _error_of(cell)
        if error and re.search(rf"\b{name}\b", cell.source):
            return f"\nThe cell with `{name}` did not run to its end. {error}"
    return ""


def export_grades(course: Course, file: Path) -> int:
    """All marks as a CSV for a learning platform: student, one column per assignment, bonus, total.

    Returns:
        The number of students.
    """
    api = nbgrader_api(course)
    with api.gradebook as gradebook:
        names = [one.name for one in gradebook.assignments if one.max_score]
        rows = []
        for student in gradebook.students:
            marks = [_marks(gradebook, name, student.id) for name in names]
            points = [mark[0] for mark in marks]
            bonus = sum(mark[1] for mark in marks)
            rows.append([student.id, *points, bonus, sum(points) + bonus])
    with replacing(file) as part, part.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["student", *names, "bonus", "total"])
        writer.writerows(rows)
    return len(rows)


def _marks(gradebook: Gradebook, name: str, student: str) -> tuple[float, float]:
    """(points, bonus) of a student in an assignment."""
    try:
        submission = gradebook.find_submission(name, student)
    except MissingEntry:
        return 0.0, 0.0
    bonus = sum(
        grade.extra_credit or 0.0 for notebook in submission.notebooks for grade in notebook.grades
    )
    return submission.score - bonus, bonus

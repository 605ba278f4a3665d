"""The notation of ``solutions/NAME/NAME.py``, and the notebook cells that it expands to.

A source is a Python file in percent format; each cell starts with ``# %% [role] NAME key=value``.

=================  ==========================================================================
``# %%``           a code cell, the same for everyone
``[markdown]``     text, one comment line per line
``[task] N``       text that introduces exercise N; ``title="..." difficulty=1..3 minutes=M``.
                   The heading with number, minutes and points is made from these.
``[exercise] N``   the learner's code cell. What stands between ``### BEGIN SOLUTION`` and
                   ``### END SOLUTION`` is in the answer key only.
``[check] N``      ``points=P``: the visible check of N, ``check.N(N)``; no body needed
``[hidden check]`` ``points=P seed=S``: the same check on other inputs, drawn from S
``[bonus check]``  ``points=P``: like a check, but its points come on top of the total
``[written] N``    ``points=P``: a markdown answer that a person grades; the text outside the
                   solution region stays
``[quiz]``         ``points=P``: questions as ``# 1. text``, options below them as
                   ``# - text | why it is wrong`` and ``# + text | why it is right``
=================  ==========================================================================

A task comes before its exercise, an exercise before its checks. Anything else is an error that names
the file and the line.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from specdec_lab.checks.quiz import LETTERS, Question, seal

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
KEEP_RUNNING = "raises-exception"
"""With this tag JupyterLab's *Run All* goes on behind a check that fails."""
CHECK, HIDDEN, WRITTEN = "_check", "_hidden", "_written"
"""How the grade ids of an exercise's graded cells end."""
QUIZ = f"quiz{CHECK}"
"""The grade id of the quiz."""
BONUS = "_bonus_"
"""``NAME_bonus_2`` is the grade id of a bonus check worth 2 points."""

_HOW_TO_ANSWER = (
    "Run the next cell and click an answer to each question, or type letters into the cell below it; "
    "what you click is saved in `answers.json` beside this notebook, and both are handed in."
)
_GRADED_ID = re.compile(rf"(.+?)(?:{CHECK}|{HIDDEN}|{WRITTEN}|{BONUS}.+)")
_HEADER = re.compile(r"# %%(?:\s*\[(?P<role>[^\]]*)\])?(?P<rest>.*)")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "": (),
    "markdown": (),
    "task": ("title", "difficulty", "minutes"),
    "exercise": (),
    "check": ("points",),
    "hidden check": ("points", "seed"),
    "bonus check": ("points",),
    "written": ("points",),
    "quiz": ("points",),
}
_NAMED = ("task", "exercise", "check", "hidden check", "bonus check", "written")
_CHECKS = ("check", "hidden check", "bonus check")
_GRADED = (*_CHECKS, "written")


class SourceError(ValueError):
    """A source file breaks the notation; the message starts with file and line."""

    def __init__(self, file: Path, line: int, problem: str) -> None:
        super().__init__(f"{file.name}:{line}: {problem}")


@dataclass(frozen=True)
class Cell:
    """One cell of a source."""

    line: int
    role: str
    name: str
    options: dict[str, str]
    body: list[str]


@dataclass(frozen=True)
class Source:
    """A parsed source; ``name`` is the assignment's."""

    file: Path
    name: str
    cells: list[Cell]
    questions: list[Question] = field(default_factory=list)

    @property
    def module(self) -> str:
        """The module of ``specdec_lab.checks`` with this assignment's checks."""
        return self.name.partition("_")[2]

    def points(self, exercise: str) -> float:
        """What an exercise is worth, its bonus left out."""
        return sum(
            float(cell.options["points"])
            for cell in self.cells
            if cell.name == exercise and cell.role in _GRADED and cell.role != "bonus check"
        )


def parse(file: Path) -> Source:
    """Read a source and check it.

    Raises:
        SourceError: for anything outside the notation.
    """
    cells = _split(file)
    _check_order(file, cells)
    quiz = [cell for cell in cells if cell.role == "quiz"]
    if len(quiz) > 1:
        raise SourceError(file, quiz[1].line, "a second quiz; expected at most one")
    return Source(file, file.stem, cells, _questions(file, quiz[0]) if quiz else [])


def _split(file: Path) -> list[Cell]:
    cells: list[Cell] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            cells.append(_header(file, number, header["role"] or "", header["rest"]))
        elif cells:
            cells[-1].body.append(line)
        elif line.strip():
            raise SourceError(file, number, "text before the first cell; expected a line '# %%'")
    for cell in cells:
        while cell.body and not cell.body[-1].strip():
            cell.body.pop()
        while cell.body and not cell.body[0].strip():
            cell.body.pop(0)
        _check_body(file, cell)
    return cells


def _header(file: Path, line: int, role: str, rest: str) -> Cell:
    if role not in _OPTIONS:
        known = ", ".join(f"[{known}]" for known in _OPTIONS if known)
        raise SourceError(file, line, f"unknown role [{role}]; expected {known}")
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise SourceError(file, line, f"cannot read the options: {error}") from error
    names = [word for word in words if "=" not in word]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    if len(names) != (role in _NAMED):
        raise SourceError(file, line, f"[{role}]: got names {names}, expected {int(role in _NAMED)}")
    if names and not names[0].isidentifier():
        raise SourceError(file, line, f"[{role}]: got {names[0]!r}, expected a Python name")
    if set(options) != set(_OPTIONS[role]):
        expected = ", ".join(_OPTIONS[role]) or "no options"
        raise SourceError(file, line, f"[{role}]: got options {sorted(options)}, expected {expected}")
    for key in set(options) - {"title"}:
        if not re.fullmatch(r"\d+(\.5)?" if key == "points" else r"\d+", options[key]):
            raise SourceError(file, line, f"[{role}]: {key}={options[key]}, expected a number")
    if options.get("difficulty", "1") not in "123":
        raise SourceError(file, line, f"difficulty={options['difficulty']}, expected 1, 2 or 3")
    return Cell(line, role, names[0] if names else "", options, [])


def _check_body(file: Path, cell: Cell) -> None:
    comments = cell.role in ("markdown", "task", "written", "quiz")
    for offset, line in enumerate(cell.body):
        if comments and line.strip() and not line.startswith("#"):
            raise SourceError(file, cell.line + 1 + offset, f"[{cell.role}]: expected a comment line")
    if cell.role in _CHECKS and cell.body:
        raise SourceError(file, cell.line, f"[{cell.role}]: got a body; it is made from the name")
    text = "\n".join(cell.body)
    marks = [text.count(mark) for mark in (BEGIN_SOLUTION, END_SOLUTION)]
    if marks[0] != marks[1]:
        raise SourceError(file, cell.line, f"{marks[0]} times BEGIN and {marks[1]} times END SOLUTION")
    if (marks[0] > 0) != (cell.role in ("exercise", "written")):
        expected = "none" if marks[0] else "one"
        raise SourceError(file, cell.line, f"[{cell.role}]: expected {expected} solution region")


def _check_order(file: Path, cells: list[Cell]) -> None:
    seen: dict[tuple[str, str], int] = {}
    for cell in cells:
        if cell.role not in _NAMED:
            continue
        key = (cell.role, cell.name)
        if key in seen:
            raise SourceError(file, cell.line, f"[{cell.role}] {cell.name}: also in line {seen[key]}")
        seen[key] = cell.line
        before = {"exercise": "task", "written": "task"}.get(cell.role, "exercise")
        if cell.role != "task" and (before, cell.name) not in seen:
            raise SourceError(
                file, cell.line, f"[{cell.role}] {cell.name}: no [{before}] {cell.name} before it"
            )
    for (role, name), line in seen.items():
        if role == "exercise" and not {("check", name), ("bonus check", name)} & set(seen):
            raise SourceError(file, line, f"[exercise] {name}: expected a [check] {name}")
        if role == "task" and not {("exercise", name), ("written", name)} & set(seen):
            raise SourceError(file, line, f"[task] {name}: expected an [exercise] or [written] {name}")


def _questions(file: Path, cell: Cell) -> list[Question]:
    questions: list[Question] = []
    for offset, line in enumerate(_uncommented(cell.body)):
        number = cell.line + 1 + offset
        asked = re.match(r"(\d+)\. (.+)", line)
        option = re.match(r"([-+]) ([^|]+) \| (.+)", line)
        if asked:
            if int(asked[1]) != len(questions) + 1:
                raise SourceError(file, number, f"question {asked[1]}: expected {len(questions) + 1}")
            questions.append(Question(asked[2], [], [], -1))
        elif option and questions:
            if option[1] == "+":
                if questions[-1].right >= 0:
                    raise SourceError(file, number, "a second option with '+'; expected one")
                questions[-1].right = len(questions[-1].options)
            questions[-1].options.append(option[2])
            questions[-1].explanations.append(option[3])
        elif line.strip():
            raise SourceError(file, number, "expected '1. question' or '- option | explanation'")
    for place, question in enumerate(questions, start=1):
        if question.right < 0 or len(question.options) < 3:
            problem = f"question {place}: expected 3 options or more, one of them with '+'"
            raise SourceError(file, cell.line, problem)
    if not questions:
        raise SourceError(file, cell.line, "[quiz]: got no questions")
    return questions


def _uncommented(lines: list[str]) -> list[str]:
    return [re.sub(r"^# ?", "", line) for line in lines]


def key_notebook(source: Source) -> NotebookNode:
    """The answer key, not yet executed: every cell, with nbgrader's metadata."""
    cells: list[NotebookNode] = []
    number = 0
    for cell in source.cells:
        number += cell.role == "task"
        cells += _expand(source, cell, number)
    notebook = new_notebook(cells=cells)
    notebook.nbformat_minor = 5
    notebook.metadata = NotebookNode(
        kernelspec=NotebookNode(display_name="Python 3 (ipykernel)", language="python", name="python3"),
        language_info=NotebookNode(name="python"),
    )
    _give_ids(notebook)
    return notebook


def _expand(source: Source, cell: Cell, number: int) -> list[NotebookNode]:
    text = "\n".join(cell.body)
    if cell.role == "":
        return [new_code_cell(text)]
    if cell.role == "markdown":
        return [new_markdown_cell("\n".join(_uncommented(cell.body)))]
    if cell.role == "task":
        return [new_markdown_cell(_task_text(source, cell, number))]
    if cell.role == "exercise":
        return [_graded(new_code_cell(text), cell.name, solution=True)]
    if cell.role == "written":
        answer = "\n".join(_uncommented_but_marks(cell.body))
        points = float(cell.options["points"])
        written = new_markdown_cell(answer)
        return [_graded(written, f"{cell.name}{WRITTEN}", solution=True, points=points)]
    if cell.role == "quiz":
        return _quiz_cells(source, cell)
    return [_check_cell(source, cell)]


def _uncommented_but_marks(lines: list[str]) -> list[str]:
    return [line if line.startswith("###") else re.sub(r"^# ?", "", line) for line in lines]


def _task_text(source: Source, cell: Cell, number: int) -> str:
    chapter = source.name.partition("_")[0].lstrip("0") or "0"
    difficulty = int(cell.options["difficulty"])
    points = source.points(cell.name)
    bonus = any(other.role == "bonus check" and other.name == cell.name for other in source.cells)
    worth = "optional, for a bonus" if bonus else f"{points:g} point{'s' * (points != 1)}"
    dots = "●" * difficulty + "○" * (3 - difficulty)
    line = f"*{dots} · about {cell.options['minutes']} minutes · {worth}*"
    title = f"## Exercise {chapter}.{number}: {cell.options['title']}"
    return "\n".join([title, "", line, "", *_uncommented(cell.body)])


def _check_cell(source: Source, cell: Cell) -> NotebookNode:
    points = float(cell.options["points"])
    if cell.role == "hidden check":
        lines = [
            f"# {cell.name}, on inputs that are not shown. There is nothing to do here.",
            BEGIN_HIDDEN,
            "from specdec_lab.checks import afresh",
            f'afresh("{source.module}").{cell.name}({cell.name}, seed={cell.options["seed"]})',
            END_HIDDEN,
        ]
        return _graded(new_code_cell("\n".join(lines)), f"{cell.name}{HIDDEN}", points=points)
    lines = [
        f"from specdec_lab.checks import {source.module} as check",
        f"check.{cell.name}({cell.name})",
    ]
    if cell.role == "bonus check":
        return _graded(new_code_cell("\n".join(lines)), f"{cell.name}{BONUS}{points:g}", points=0.0)
    return _graded(new_code_cell("\n".join(lines)), f"{cell.name}{CHECK}", points=points)


def _quiz_cells(source: Source, cell: Cell) -> list[NotebookNode]:
    points = float(cell.options["points"])
    right = {place: LETTERS[question.right] for place, question in enumerate(source.questions, start=1)}
    view = ["from specdec_lab import widgets", "", f'widgets.quiz("{source.name}")']
    code = [
        '# A letter here, for example 1: "b", wins over what you chose above; "" leaves it at that.',
        f"answers = {_pairs(dict.fromkeys(right, ''))}",
        BEGIN_SOLUTION,
        f"answers = {_pairs(right)}",
        END_SOLUTION,
    ]
    check = [
        "from specdec_lab.checks import quiz",
        f'quiz.grade("{source.name}", answers, points={points:g})',
    ]
    answer_cell, check_cell = new_code_cell("\n".join(code)), new_code_cell("\n".join(check))
    return [
        new_markdown_cell("\n".join(_quiz_text(source.questions))),
        new_code_cell("\n".join(view)),
        _graded(answer_cell, "quiz_answers", solution=True),
        _graded(check_cell, QUIZ, points=points) if points > 0 else _keep_running(check_cell),
    ]


def _quiz_text(questions: list[Question]) -> list[str]:
    """The heading, how to answer, and the questions for whoever reads without running anything."""
    text = ["## Quiz", "", _HOW_TO_ANSWER, "", "<details><summary>The questions as text</summary>", ""]
    for place, question in enumerate(questions, start=1):
        text += [f"**{place}.** {question.text}", ""]
        text += [
            f"- **{letter}** {option}"
            for letter, option in zip(LETTERS, question.options, strict=False)
        ]
        text.append("")
    return [*text, "</details>"]


def _pairs(letters: dict[int, str]) -> str:
    return "{" + ", ".join(f'{place}: "{letter}"' for place, letter in letters.items()) + "}"


def _graded(
    cell: NotebookNode, grade_id: str, *, solution: bool = False, points: float | None = None
) -> NotebookNode:
    """Add nbgrader's metadata: a solution, a graded check, or (with both) a written answer."""
    metadata: dict[str, Any] = {
        "grade": points is not None,
        "grade_id": grade_id,
        "locked": not solution,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    if points is not None:
        metadata["points"] = int(points) if points == int(points) else points
    cell.metadata["nbgrader"] = NotebookNode(metadata)
    return cell if solution else _keep_running(cell)


def _keep_running(cell: NotebookNode) -> NotebookNode:
    cell.metadata["tags"] = [KEEP_RUNNING]
    return cell


def _give_ids(notebook: NotebookNode) -> None:
    """Ids that do not change from build to build: the grade id, or a hash of type and source."""
    taken: set[str] = set()
    for cell in notebook.cells:
        wanted = cell.metadata.get("nbgrader", {}).get("grade_id")
        if wanted is None:
            digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
            wanted, copies = digest, 1
            while wanted in taken:
                copies += 1
                wanted = f"{digest}-{copies}"
        cell.id = wanted
        taken.add(wanted)


def sealed_quiz(source: Source) -> dict[str, Any]:
    """The quiz as it is shipped: no readable answers."""
    return seal(source.name, source.questions)


def grade_id_of(cell: NotebookNode) -> str | None:
    """A cell's grade id, if it has a sound one."""
    metadata = cell.get("metadata")
    data = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = data.get("grade_id") if isinstance(data, dict) else None
    return grade_id if isinstance(grade_id, str) else None


def exercise_of(grade_id: str) -> str | None:
    """The exercise that a graded cell belongs to; None if the id is not a graded cell's."""
    graded = _GRADED_ID.fullmatch(grade_id)
    return graded[1] if graded else None

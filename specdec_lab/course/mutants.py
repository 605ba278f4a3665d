"""Try the checks: every wrong implementation has to fail with a fitting message, every right one pass.

``tests/mutants/MODULE/EXERCISE.py`` holds plain functions (or values) marked by what they are:

    @wrong("reads the whole text again at each step", says="reads the text again")
    def rereads(model, prompt, max_new_tokens): ...

    @right("keeps tensors, not numbers")
    def with_tensors(model, prompt, max_new_tokens): ...

    wrong_value("no number", "soon", says="expected a number")
"""

from __future__ import annotations

import importlib.util
import io
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from rich.table import Table
from tqdm.auto import tqdm

from specdec_lab.checks.failure import CheckFailed
from specdec_lab.course.folder import Course, CourseError

HIDDEN_SEEDS = (1, 2, 3)
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Mutant:
    """An implementation and what the check should make of it.

    Args:
        what: in which way it is wrong, or right.
        answer: the function or value.
        says: a regular expression that the failure's message has to contain; None for a right one.
    """

    what: str
    answer: object
    says: str | None


@dataclass(frozen=True)
class Judged:
    """What the check made of one mutant; ``message`` is empty if it passed."""

    assignment: str
    exercise: str
    mutant: Mutant
    message: str

    @property
    def as_it_should(self) -> bool:
        """A right one passes; a wrong one fails for the right reason."""
        if self.mutant.says is None:
            return not self.message
        return bool(self.message) and re.search(self.mutant.says, self.message) is not None


_collected: list[Mutant] = []


def wrong(what: str, *, says: str) -> Callable[[Function], Function]:
    """Mark a wrong implementation; ``says`` is what the message has to contain."""

    def mark(function: Function) -> Function:
        _collected.append(Mutant(what, function, says))
        return function

    return mark


def right(what: str) -> Callable[[Function], Function]:
    """Mark a right implementation in another style than the reference."""

    def mark(function: Function) -> Function:
        _collected.append(Mutant(what, function, None))
        return function

    return mark


def wrong_value(what: str, value: object, *, says: str) -> None:
    """A wrong answer to an exercise that asks for a value."""
    _collected.append(Mutant(what, value, says))


def right_value(what: str, value: object) -> None:
    """A right answer to an exercise that asks for a value."""
    _collected.append(Mutant(what, value, None))


def collect(file: Path) -> list[Mutant]:
    """The mutants in a file."""
    _collected.clear()
    spec = importlib.util.spec_from_file_location(f"mutants_{file.parent.name}_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise CourseError(f"cannot load {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return list(_collected)


def judge(module: str, exercise: str, mutant: Mutant) -> str:
    """The message of the first check that fails, visible or hidden; empty if all pass."""
    check = getattr(import_module(f"specdec_lab.checks.{module}"), exercise)
    try:
        with redirect_stdout(io.StringIO()):
            check(mutant.answer)
            for seed in HIDDEN_SEEDS:
                check(mutant.answer, seed=seed)
    except CheckFailed as failure:
        return str(failure)
    return ""


def judge_all(course: Course, names: list[str]) -> list[Judged]:
    """Every mutant of the assignments."""
    found = [
        (name, file.stem, mutant)
        for name in names
        for file in sorted((course.root / "tests" / "mutants" / _module(name)).glob("*.py"))
        for mutant in collect(file)
    ]
    bar = tqdm(found, desc="mutants", leave=False)
    return [Judged(*one, judge(_module(one[0]), *one[1:])) for one in bar]


def _module(name: str) -> str:
    """Of an assignment's checks and mutants."""
    return name.partition("_")[2]


def mutants_table(judged: list[Judged]) -> Table:
    """Caught and falsely accused, by exercise, with every miss spelt out."""
    table = Table(title="mutants", title_justify="left")
    table.add_column("exercise", no_wrap=True)
    table.add_column("wrong: caught", no_wrap=True)
    table.add_column("right: passed", no_wrap=True)
    table.add_column("misses")
    for assignment in dict.fromkeys(one.assignment for one in judged):
        table.add_section()
        for exercise in dict.fromkeys(one.exercise for one in judged if one.assignment == assignment):
            here = [one for one in judged if (one.assignment, one.exercise) == (assignment, exercise)]
            misses = "\n".join(_miss(one) for one in here if not one.as_it_should)
            table.add_row(exercise, _share(here, wrong=True), _share(here, wrong=False), misses)
    wrongs = [one for one in judged if one.mutant.says is not None]
    caught = sum(one.as_it_should for one in wrongs)
    false_alarms = sum(not one.as_it_should for one in judged if one.mutant.says is None)
    table.caption = f"{caught} of {len(wrongs)} wrong ones caught; {false_alarms} false alarms"
    return table


def _share(judged: list[Judged], *, wrong: bool) -> str:
    of_kind = [one for one in judged if (one.mutant.says is not None) == wrong]
    return f"{sum(one.as_it_should for one in of_kind)} of {len(of_kind)}"


def _miss(one: Judged) -> str:
    if one.mutant.says is None:
        return f"false alarm: {one.mutant.what}: {one.message.splitlines()[0]}"
    if not one.message:
        return f"not caught: {one.mutant.what}"
    return f"other message: {one.mutant.what}: {one.message.splitlines()[0]}"

"""Which misconception is it? One that explains the answers to all cases, not only to the first."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from specdec_lab.checks.failure import CheckFailed
from specdec_lab.checks.harness import Attempt

Case = TypeVar("Case")
Answer = TypeVar("Answer")


def first_wrong(
    cases: Sequence[Case],
    ask: Callable[[Case], Answer],
    truth: Callable[[Case], Answer],
    suspects: Callable[[Case], Mapping[str, Answer | None]],
    same: Callable[[Answer, Answer], bool],
) -> tuple[Case, str | None] | None:
    """The first case that is answered wrongly, and what explains every answer; None if all are right.

    Args:
        cases: what to ask.
        ask: calls the learner's code; it may fail.
        truth: the right answer.
        suspects: misconception -> the answer that it gives; None if it has none, or any.
        same: whether two answers are the same.
    """
    for i, case in enumerate(cases):
        yours = ask(case)
        if same(yours, truth(case)):
            continue
        answers = [*((right, truth(right)) for right in cases[:i]), (case, yours)]
        for other in cases[i + 1 :]:
            with contextlib.suppress(CheckFailed):  # the first failure is the one to tell
                answers.append((other, ask(other)))
        ask(case)  # once more, for the failure to show this case
        return case, _explanation(answers, truth, suspects, same)
    return None


def _explanation(
    answers: Sequence[tuple[Case, Answer]],
    truth: Callable[[Case], Answer],
    suspects: Callable[[Case], Mapping[str, Answer | None]],
    same: Callable[[Answer, Answer], bool],
) -> str | None:
    left = list(suspects(answers[0][0]))
    explained: set[str] = set()
    for case, answer in answers:
        given, wrong = suspects(case), not same(answer, truth(case))
        left = [name for name in left if (gives := given[name]) is None or same(answer, gives)]
        explained |= {name for name in left if wrong and given[name] is not None}
    return next((name for name in left if name in explained), None)


def same_row(one: Tensor, other: Tensor) -> bool:
    """Whether two rows of probabilities are the same, up to rounding; NaN is like nothing at all."""
    if bool(other.isnan().any()):
        return bool(one.isnan().any()) or float(one.sum()) == 0.0
    return torch.allclose(one.double(), other.double(), atol=1e-5)


def same_number(one: float, other: float) -> bool:
    """Whether two numbers are the same, up to rounding."""
    return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-12)


def fail_row(attempt: Attempt, name: str | None, yours: Tensor, expected: Tensor) -> None:
    """Fail for a wrong row of probabilities, by the misconception's name if it has one."""
    if name:
        attempt.fail(name, yours=_text(yours), expected=_text(expected))
    attempt.same_distribution(yours, expected)


def _text(row: Tensor) -> str:
    return "[" + ", ".join(f"{entry:.6g}" for entry in row.tolist()) + "]"

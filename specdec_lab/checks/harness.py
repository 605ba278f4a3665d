"""How a check calls a learner's code and says what is wrong with what came back.

A check is a function that takes an ``Attempt`` and calls it like the learner's function:

    @check(read="With a cache", closed=(decoding,), reference=references.cached_decode)
    def cached_decode(attempt, seed):
        yours = attempt(model, prompt, 4)
        attempt.same_tokens(yours, truth, suspects={"the prompt is in the answer": prompt + truth})

``seed`` is None for the visible check, whose inputs never change, and a number for the hidden one.
"""

from __future__ import annotations

import copy
import linecache
import math
import sysconfig
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn, TypeVar

import numpy as np
import torch
from torch import Tensor

from specdec_lab.checks.failure import CheckFailed
from specdec_lab.checks.guard import (
    ReferenceCalled,
    closed_books,
    codes_of,
    silence,
)
from specdec_lab.enumeration import Misconduct
from specdec_lab.limits import OutOfTime, time_limit

SECONDS = 20.0
"""The most that one check may take. The references need far less than one."""

_LIBRARY = str(Path(__file__).parents[1])
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
_INTEGERS = (int, np.integer)
_SHOWN_ITEMS = 16


class Attempt:
    """A learner's function or value, while a check looks at it."""

    def __init__(self, name: str, yours: object, read: str, closed: frozenset[CodeType]) -> None:
        self.name = name
        self.value = yours
        self._read = read
        self._closed = closed
        self._case: list[tuple[str, str]] = []
        self._printed = ""

    def __call__(
        self, *arguments: Any, shown: Mapping[str, Any] | None = None, may_be_none: bool = False
    ) -> Any:
        """Call the learner's function; whatever it raises becomes a readable failure.

        Args:
            arguments: what to pass.
            shown: name -> value, how to show the call; text is a description. None shows the
                arguments themselves.
            may_be_none: None is an answer here, not a forgotten ``return``.
        """
        if not callable(self.value):
            self.fail(f"`{self.name}` is {_kind(self.value)}, expected your function")
        given = shown if shown is not None else dict(enumerate(arguments))
        text = ", ".join(
            _show(value)
            if type(name) is int
            else f"{name}={value if isinstance(value, str) else _show(value)}"
            for name, value in given.items()
        )
        self._case = [("called", f"{self.name}({text})")]
        self._printed = ""
        before = [_kept(argument) for argument in arguments]
        with silence() as printed, closed_books(self._closed) as called:
            try:
                result = self.value(*arguments)
            except (CheckFailed, KeyboardInterrupt):
                raise
            except ReferenceCalled:
                result = None
            except BaseException as error:
                self._printed = printed.getvalue()
                self._explain(error)
            self._printed = printed.getvalue()
        if called:
            self.fail(f"it calls the library's `{called[0]}`, which does what you are asked to write")
        if result is None and not may_be_none:
            self.fail("it returned None. Is there a `return` at its end?")
        for original, argument in zip(before, arguments, strict=True):
            if _changed(original, argument):
                self.fail(
                    "your code changes what it was given; the caller still needs that. Work on a copy.",
                    before=_show(original),
                    after=_show(argument),
                )
        return result

    def fail(self, problem: str, **details: str) -> NoReturn:
        """Give up with what is wrong; ``details`` are shown line by line below it."""
        printed = [("printed", self._printed.strip()[:300])] if self._printed.strip() else []
        lines = [*self._case, *details.items(), *printed]
        raise CheckFailed(self.name, problem, lines, self._read)

    def require(self, truth: bool, problem: str, **details: str) -> None:
        """Fail with ``problem`` unless ``truth``."""
        if not truth:
            self.fail(problem, **details)

    def same_tokens(
        self,
        yours: object,
        expected: Sequence[int],
        problem: str = "these are not the right tokens.",
        suspects: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        """Compare token ids. ``suspects`` maps a misconception to what it would have given."""
        tokens = self.tokens(yours)
        if tokens == list(expected):
            return
        problem = _named(suspects, lambda wrong: tokens == list(wrong)) or problem
        self.fail(problem, yours=_show(tokens), expected=_show(list(expected)))

    def same_number(
        self,
        yours: object,
        expected: float,
        problem: str = "this is not the right number.",
        suspects: Mapping[str, float] | None = None,
        relative: float = 1e-5,
    ) -> None:
        """Compare numbers, up to rounding."""
        number = self.number(yours)
        if math.isclose(number, expected, rel_tol=relative, abs_tol=1e-12):
            return
        problem = (
            _named(suspects, lambda wrong: math.isclose(number, wrong, rel_tol=relative)) or problem
        )
        self.fail(problem, yours=_show(number), expected=_show(float(expected)))

    def same_distribution(
        self,
        yours: object,
        expected: Tensor,
        problem: str = "these are not the right probabilities.",
        suspects: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Compare probabilities ``[vocab]``, up to rounding."""
        row = self.row(yours, len(expected))
        if torch.allclose(row, expected, atol=1e-5):
            return
        if torch.allclose(row, expected, atol=0.02):
            problem = "close, but not equal. Work the probabilities out, without drawing samples."
        together = float(row.sum())
        if math.isfinite(together) and abs(together - 1.0) > 1e-4:
            problem = f"these sum to {together:.4g}; probabilities sum to 1."
        problem = _named(suspects, lambda wrong: torch.allclose(row, wrong, atol=1e-5)) or problem
        self.fail(problem, yours=_show(row), expected=_show(expected))

    def number(self, value: object) -> float:
        """A plain float from any kind of real number; anything else fails."""
        if isinstance(value, Tensor | np.ndarray) and value.ndim == 0:
            value = value.item()
        if type(value) is bool or not isinstance(value, int | float | np.integer | np.floating):
            self.fail(f"it gave {_kind(value)}, expected a number", yours=_show(value))
        number = float(value)
        self.require(math.isfinite(number), f"it gave {number}, expected a finite number")
        return number

    def whole_number(self, value: object) -> int:
        """A plain int from any kind of integer; a float fails, even one without a fraction."""
        if isinstance(value, Tensor | np.ndarray) and value.ndim == 0:
            value = value.item()
        if type(value) is bool or not isinstance(value, _INTEGERS):
            self.fail(f"it gave {_kind(value)}, expected a whole number", yours=_show(value))
        return int(value)

    def tokens(self, value: object) -> list[int]:
        """Plain token ids from a list, tuple, one-dimensional tensor or array; anything else fails."""
        if isinstance(value, Tensor | np.ndarray):
            if value.ndim != 1:
                self.fail(f"it gave {_kind(value)}, expected one row of token ids", yours=_show(value))
            value = value.tolist()
        if not isinstance(value, list | tuple):
            self.fail(f"it gave {_kind(value)}, expected a list of token ids", yours=_show(value))
        return [self.whole_number(token) for token in value]

    def row(self, value: object, length: int) -> Tensor:
        """A float64 tensor ``[length]`` from a tensor, array, list or tuple of numbers."""
        if isinstance(value, list | tuple):
            value = torch.tensor([self.number(entry) for entry in value], dtype=torch.float64)
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
            value = torch.from_numpy(value)
        if not isinstance(value, Tensor) or tuple(value.shape) != (length,):
            self.fail(f"it gave {_kind(value)}, expected {length} numbers", yours=_show(value))
        return value.detach().to("cpu", torch.float64)

    def _explain(self, error: BaseException) -> NoReturn:
        """Turn an exception out of the learner's code into a failure that shows their line."""
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_theirs(frame)]
        where = {"line": f"{frames[-1].lineno}: {_source(frames[-1])}"} if frames else {}
        last = traceback.extract_tb(error.__traceback__)[-1]
        if isinstance(error, NotImplementedError) and _is_theirs(last):
            self._case = []
            self.fail("not implemented yet.")
        if isinstance(error, OutOfTime):
            self.fail(
                f"not finished after {SECONDS:g} seconds. A loop that never ends, or far too much "
                "work?",
                **where,
            )
        if isinstance(error, Misconduct):  # the words of an auditor's chooser
            self.fail(f"{error}.", **where)
        if isinstance(error, TypeError) and not frames:
            self.fail(f"it cannot be called like this: {error}")
        message = f": {error}" if str(error) else ""
        self.fail(f"your code raised {type(error).__name__}{message}", **where)


Wrong = TypeVar("Wrong")
Body = Callable[[Attempt, int | None], None]


class Check:
    """A check as notebooks see it: call it with the learner's answer."""

    def __init__(
        self, body: Body, read: str, closed: tuple[Any, ...], reference: Callable[..., Any] | None
    ) -> None:
        self.name = body.__name__
        self.reference = reference
        self.__doc__ = body.__doc__
        self._body = body
        self._read = read
        self._closed = codes_of(*closed, reference)

    def __call__(self, yours: object, *, seed: int | None = None) -> None:
        """Pass silently but for one line, or fail.

        Args:
            yours: the learner's function or value.
            seed: None for the visible inputs; a number draws others.

        Raises:
            CheckFailed: with what is wrong.
        """
        if yours is None or yours is Ellipsis:
            raise CheckFailed(self.name, f"not implemented yet: `{self.name}` is still {yours}.")
        attempt = Attempt(self.name, yours, self._read, self._closed)
        try:
            with time_limit(SECONDS):
                self._body(attempt, seed)
        except OutOfTime:
            attempt.fail(
                f"not finished after {SECONDS:g} seconds. A loop that never ends, or far too much work?"
            )
        print(f"✓ {self.name}" + ("" if seed is None else ", on other inputs"))

    def passes(self, yours: object) -> bool:
        """Whether the visible check passes, without a word."""
        try:
            with silence():
                self(yours)
        except CheckFailed:
            return False
        return True


def check(
    *,
    read: str,
    closed: tuple[Any, ...] = (),
    reference: Callable[..., Any] | None = None,
) -> Callable[[Body], Check]:
    """Make a check of a function ``(attempt, seed)``.

    Args:
        read: the notebook's section to point to on failure.
        closed: functions, classes and modules that the learner's code must not call meanwhile.
        reference: a right implementation, which the notebook falls back on; it is closed, too.
    """
    return lambda body: Check(body, read, closed, reference)


def _named(suspects: Mapping[str, Wrong] | None, gives: Callable[[Wrong], bool]) -> str | None:
    """The first misconception whose result is the learner's."""
    return next((name for name, wrong in (suspects or {}).items() if gives(wrong)), None)


def _kept(argument: object) -> object:
    """A copy of an argument that a careless function may change; None for any other."""
    if isinstance(argument, Tensor):
        return argument.clone()
    return copy.copy(argument) if isinstance(argument, list | set) else None


def _changed(original: object, argument: object) -> bool:
    if isinstance(original, Tensor) and isinstance(argument, Tensor):
        return not torch.equal(original, argument)
    if isinstance(original, list) and isinstance(argument, list):
        return [id(item) for item in original] != [id(item) for item in argument]
    return original is not None and original != argument


def _is_theirs(frame: traceback.FrameSummary) -> bool:
    """Whether a frame is in the notebook (or a learner's file), not in a library."""
    library = frame.filename.startswith((_LIBRARY, _STANDARD_LIBRARY, "<frozen"))
    return not library and "site-packages" not in frame.filename


def _source(frame: traceback.FrameSummary) -> str:
    return (frame.line or linecache.getline(frame.filename, frame.lineno or 0)).strip()


def _kind(value: object) -> str:
    """What something is, in words."""
    if isinstance(value, Tensor):
        return (
            f"a tensor of shape {list(value.shape)} and dtype {str(value.dtype).removeprefix('torch.')}"
        )
    if isinstance(value, np.ndarray):
        return f"an array of shape {list(value.shape)} and dtype {value.dtype}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a value of type {type(value).__name__}"


def _show(value: object) -> str:
    """A value in one line, short enough to read."""
    if hasattr(value, "shown"):
        return str(value.shown)
    if isinstance(value, Tensor | np.ndarray):
        if value.ndim == 2:
            return f"<rows {list(value.shape)}>"
        return _show(value.tolist())
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1e5 else f"{value:.6g}"
    if isinstance(value, list | tuple):
        items = [_show(item) for item in value[:_SHOWN_ITEMS]]
        more = ", ..." if len(value) > _SHOWN_ITEMS else ""
        return "[" + ", ".join(items) + more + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_show(k)}: {_show(v)}" for k, v in value.items()) + "}"
    if callable(value):
        return f"<{getattr(value, '__name__', 'function')}>"
    return f"{value!r:.120}"

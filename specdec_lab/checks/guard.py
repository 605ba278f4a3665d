"""What surrounds a learner's code while a check calls it: silence and closed books."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import warnings
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

PRINTED_AT_MOST = 2000
"""Characters of a learner's own output that are kept."""


_alive: list[io.StringIO] = []
"""Every stand-in for stdout so far: a thread may still be printing to one that is put away."""


class ReferenceCalled(BaseException):
    """The learner's code called the very thing that it is asked to write."""


class _Capped(io.StringIO):
    """Keeps the first characters written and drops the flood behind them."""

    def write(self, text: str) -> int:
        room = PRINTED_AT_MOST - self.tell()
        if room > 0:
            super().write(text[:room])
        return len(text)


@contextlib.contextmanager
def silence() -> Iterator[_Capped]:
    """Keep everything printed, warned or logged off the cell; nbgrader scores any stderr with 0."""
    printed = _Capped()
    _alive.append(printed)
    logging_was_off_below = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield printed
    finally:
        logging.disable(logging_was_off_below)


@contextlib.contextmanager
def closed_books(codes: frozenset[CodeType]) -> Iterator[list[str]]:
    """Raise ``ReferenceCalled`` in whatever calls a function with one of ``codes``, by any name.

    Yields:
        The names of the functions that were called: they tell even when the exception was caught.
    """
    called: list[str] = []

    def watch(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code in codes:
            called.append(frame.f_code.co_qualname)
            raise ReferenceCalled(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(watch if codes else before)
    try:
        yield called
    finally:
        sys.setprofile(before)


def codes_of(*things: Any) -> frozenset[CodeType]:
    """The code of functions, of the methods of classes, and of all that modules define."""
    codes: set[CodeType] = set()
    for thing in things:
        if isinstance(thing, FunctionType):
            codes.add(thing.__code__)
        elif isinstance(thing, type | ModuleType):
            home = thing.__module__ if isinstance(thing, type) else thing.__name__
            members = [
                member for member in vars(thing).values() if getattr(member, "__module__", None) == home
            ]
            codes |= codes_of(*members)
    return frozenset(codes)

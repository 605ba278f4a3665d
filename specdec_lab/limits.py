"""A time limit on code that may never come back."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType


class OutOfTime(BaseException):
    """The time limit has passed. Not an ``Exception``, so that the limited code does not catch it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``OutOfTime`` in the running code after ``seconds``, and again each second until it ends.

    Limits can be nested; the outer one then rings late by at most the inner one's seconds. Needs the
    main thread and an alarm clock (not on Windows); elsewhere nothing is limited.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    outer_left, outer_again = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    started = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if outer_left > 0.0:
            left = outer_left - (time.monotonic() - started)
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3), outer_again)

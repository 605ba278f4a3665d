"""Runs in a kernel before anything of the submission: limits for memory and text, and no exit."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn


class OutputFlood(RuntimeError):
    """A cell has written more than it may."""


def limit(shell: Any, memory: int, characters: int) -> None:
    """Put the limits on this kernel.

    Args:
        shell: IPython's.
        memory: bytes that may be allocated; 0 is no limit. Where the system has no such limit, none.
        characters: what one cell may print.
    """
    _limit_memory(memory)
    _limit_text(shell, characters)
    shell.ask_exit = _refuse_to_exit


def _limit_memory(memory: int) -> None:
    try:
        import resource

        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    except (ImportError, ValueError, OSError):
        pass


def _limit_text(shell: Any, characters: int) -> None:
    streams = sys.stdout, sys.stderr
    written = {"cell": 0, "threads": 0}
    told: set[threading.Thread] = set()
    writers: dict[Any, Callable[..., int]] = {}
    before_message = shell.kernel.pre_handler_hook

    def begin() -> None:
        # While a cell runs, IPython has a `write` of its own in place; so this happens between cells.
        before_message()
        written["cell"] = 0
        sys.stdout, sys.stderr = streams
        for stream in streams:
            writers.setdefault(stream, limited(stream.write))
            stream.write = writers[stream]  # type: ignore[method-assign]

    def limited(write: Callable[..., int]) -> Callable[..., int]:
        def write_some(string: str, *rest: Any) -> int:
            # Who writes too much is stopped, be it the cell or a thread that it has left behind.
            thread = threading.current_thread()
            in_cell = thread is threading.main_thread()
            who = "cell" if in_cell else "threads"
            written[who] += len(string)
            if written[who] <= characters:
                return write(string, *rest)
            if in_cell:
                raise OutputFlood(f"this cell wrote more than {characters} characters; it was stopped.")
            if thread in told:
                threading.Event().wait()
            told.add(thread)
            raise SystemExit

        return write_some

    shell.kernel.pre_handler_hook = begin


def _refuse_to_exit(*_: object) -> NoReturn:
    raise SystemError("exit() ends the kernel; it is left out here")

"""The one exception that a failed check raises."""

from __future__ import annotations

from collections.abc import Sequence

_WIDTH = 9


class CheckFailed(Exception):
    """Something is wrong with a learner's answer.

    Args:
        exercise: its name.
        problem: what is wrong, in a sentence or two.
        details: lines of (label, text), such as ("yours", "[1, 2]").
        read: where in the notebook to read about it.
    """

    def __init__(
        self,
        exercise: str,
        problem: str,
        details: Sequence[tuple[str, str]] = (),
        read: str | None = None,
    ) -> None:
        self.exercise = exercise
        self.problem = problem
        self.details = [*details, *([("read", read)] if read else [])]
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [f"✗ {self.exercise}: {self.problem}"]
        for label, text in self.details:
            first, *more = text.splitlines() or [""]
            lines.append(f"  {label:<{_WIDTH}} {first}")
            lines += [f"  {'':<{_WIDTH}} {line}" for line in more]
        return "\n".join(lines)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the message. A stack through the check's own code would help nobody."""
        return str(self).splitlines()

"""Autograding, second: a submission is run within limits, and always to an end."""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from math import ceil
from subprocess import DEVNULL
from time import monotonic
from typing import Any

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader import utils
from nbgrader.preprocessors import Execute
from traitlets import Enum, Integer

from specdec_lab.course.cells import QUIZ, exercise_of, grade_id_of
from specdec_lab.small import SMALL

Resources = dict[str, Any]


class ExecuteWithLimits(Execute):
    """Run a submission so that it always comes to an end, with a reason for whatever did not run.

    A cell that ends the kernel, uses up its memory or cannot even be interrupted is left out of another
    run from the top; everything else is graded. What a check cell prints costs no points: it counts
    whether it raised.
    """

    timeout = Integer(60, allow_none=True, help="Seconds for one cell.").tag(config=True)
    seconds_in_all = Integer(240, help="Seconds for one run of the notebook.").tag(config=True)
    iopub_timeout = Integer(10, help="Seconds for an interrupted cell to stop.").tag(config=True)
    memory_gib = Integer(8, help="Memory that the kernel may allocate; 0 is no limit.").tag(config=True)
    output_bytes = Integer(200_000, help="Text that one cell may print.").tag(config=True)
    restarts = Integer(2, help="Exercises that may be left out for ending the kernel.").tag(config=True)
    shutdown_kernel = Enum(["graceful", "immediate"], default_value="immediate").tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: Resources, km: Any = None
    ) -> tuple[NotebookNode, Resources]:
        self._left_out: dict[int, str] = {}
        self._running = 0
        # The state of widgets that the learner saw; those made now have other ids.
        nb.metadata.pop("widgets", None)
        for _ in range(self.restarts + 1):
            # Each run has its own time: the cells behind one that hangs are not to pay for it.
            self._deadline = monotonic() + self.seconds_in_all
            try:
                return super().preprocess(nb, resources, km)
            except DeadKernelError:
                self._leave_out(nb, "the kernel died in this cell. Too much memory, or an exit?")
            except CellTimeoutError:
                self._leave_out(nb, "this cell ran out of time and could not be interrupted.")
            except _OutOfMemory:
                self._leave_out(nb, f"this cell used up the kernel's {self.memory_gib} GiB of memory.")
        for index in range(self._running, len(nb.cells)):
            if nb.cells[index].cell_type == "code":
                why = self._left_out.get(index, "not run: too many cells before it ended the kernel.")
                _say(nb.cells[index], "LeftOut", why)
        return nb, resources

    def preprocess_cell(
        self, cell: NotebookNode, resources: Resources, index: int
    ) -> tuple[NotebookNode, Resources]:
        if cell.cell_type != "code":
            return cell, resources
        self._running, self._written = index, 0
        if index in self._left_out:
            _say(cell, "LeftOut", self._left_out[index])
        elif monotonic() > self._deadline:
            spent = f"the notebook's {self.seconds_in_all} seconds were used up before."
            _say(cell, "OutOfTime", spent)
        else:
            cell, resources = super().preprocess_cell(cell, resources, index)
            self._after(cell)
        return cell, resources

    def _leave_out(self, nb: NotebookNode, why: str) -> None:
        """Leave out the cell that ran last, and the checks behind it that would call the same code."""
        self.log.warning("Cell %d: %s", self._running, why)
        self._left_out[self._running] = why
        exercise = exercise_of(grade_id_of(nb.cells[self._running]) or "")
        for index in range(self._running + 1, len(nb.cells)):
            if exercise and exercise_of(grade_id_of(nb.cells[index]) or "") == exercise:
                self._left_out[index] = why

    def _get_timeout(self, cell: NotebookNode | None) -> int | None:
        left = max(1, ceil(self._deadline - monotonic()))
        usual = super()._get_timeout(cell)
        self._allowed = left if usual is None else min(usual, left)
        return self._allowed

    def output(self, outs: list[NotebookNode], msg: Any, display_id: str, cell_index: int) -> Any:
        """Drop what is shown past any measure. The kernel limits text; pictures may be larger."""
        self._written += len(str(msg["content"]))
        if msg["msg_type"] == "error" or self._written <= _PICTURES * self.output_bytes:
            return super().output(outs, msg, display_id, cell_index)
        # Whatever floods a check, the check itself is not to blame: its own words are few.
        of_check = utils.is_grade(self.nb.cells[cell_index])
        if not of_check and not any(out.get("ename") == "OutputFlood" for out in outs):
            problem = f"this cell showed more than {_PICTURES * self.output_bytes} bytes."
            outs.append(_error("OutputFlood", problem))
            self._interrupt()
        return None

    def _interrupt(self) -> None:
        """Interrupt the kernel now; nbclient's own way has to be awaited."""
        process = getattr(getattr(self.km, "provisioner", None), "process", None)
        if process is not None:
            process.send_signal(signal.SIGINT)

    def _after(self, cell: NotebookNode) -> None:
        """Put a cell's output right, in which nbgrader then looks for errors and for points."""
        cell.outputs = static_faces(cell.outputs)
        errors = [output for output in cell.outputs if output.output_type == "error"]
        for error in errors:
            error.evalue = error.evalue[:_LONGEST]
            error.traceback = [line[:_LONGEST] for line in error.traceback]
        if any(error.ename == "CellTimeoutError" for error in errors):
            for error in errors:
                error.ename = "OutOfTime"
                error.evalue = f"this cell did not finish in the {self._allowed} seconds that it had."
        if utils.is_grade(cell):
            _only_errors_count(cell)
        if any(_MEMORY.search(f"{error.ename}: {error.evalue}") for error in errors):
            # What filled the memory may still be there; the cells behind are not to pay for it.
            raise _OutOfMemory

    def start_new_kernel(self, **options: Any) -> None:
        """Start a kernel with limits, at the small size of experiments, apart from this terminal."""
        limits = f"{self.memory_gib * 2**30}, {self.output_bytes}"
        code = f"from specdec_lab.course.kernel_start import limit; limit(get_ipython(), {limits})"
        line = f"--IPKernelApp.exec_lines=exec({code!r}, {{}})"
        given: list[str] = list(self.extra_arguments)  # type: ignore[has-type]
        self.extra_arguments = [*given, line]
        environment = os.environ | {SMALL: "1", "HF_HUB_OFFLINE": "1"}
        try:
            super().start_new_kernel(env=environment, stdout=DEVNULL, stderr=DEVNULL, **options)
        finally:
            self.extra_arguments = given

    def _cleanup_kernel(self) -> None:
        """End the kernel, and the processes that it started even if it is dead itself."""
        group = getattr(getattr(self.km, "provisioner", None), "pgid", None)
        super()._cleanup_kernel()
        if group and group != os.getpgrp():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)


def static_faces(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs without widgets, which do not outlive the kernel.

    A view with a static face is that face from now on; one without, such as a progress bar, goes.
    """
    kept = []
    for output in outputs:
        data = output.get("data", {})
        widget = data.pop(_WIDGET, None)
        if widget is None or data.get("text/html"):
            kept.append(output)
    return kept


class _OutOfMemory(Exception):
    """A cell has raised for lack of memory."""


_WIDGET = "application/vnd.jupyter.widget-view+json"
_PICTURES = 10
"""All output of a cell may be this many times as much as its text."""
_LONGEST = 5000
"""Characters of an error's message, and of a line of its traceback."""
_MEMORY = re.compile(r"MemoryError|can't allocate memory|can't start new thread")


def _only_errors_count(cell: NotebookNode) -> None:
    """Keep nbgrader from reading more than errors out of a check cell's output.

    Anything on stderr would cost all points. And a check returns nothing: what looks like its result is
    a learner's doing, but nbgrader would take a number for the points that were earned. Only the quiz
    returns its points.
    """
    for output in cell.outputs:
        if output.output_type == "stream":
            output.name = "stdout"
        elif output.output_type == "execute_result" and grade_id_of(cell) != QUIZ:
            output.output_type = "display_data"
            del output["execution_count"]


def _say(cell: NotebookNode, name: str, why: str) -> None:
    cell.outputs = [_error(name, why)]
    cell.execution_count = None


def _error(name: str, why: str) -> NotebookNode:
    return new_output("error", ename=name, evalue=why, traceback=[f"{name}: {why}"])

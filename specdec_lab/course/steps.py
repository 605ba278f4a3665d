"""The course's own steps in nbgrader's pipelines; ``nbgrader_config.py`` puts them in their places.

Releasing: ``ClearSolutionRegions``. Autograding: ``RestoreCells``, then ``ExecuteWithLimits``, then
``SaveBonus``. They are ordinary nbgrader preprocessors, so nbgrader's own commands and the Formgrader
use them, too.
"""

from __future__ import annotations

import ast
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
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import ClearSolutions, Execute, NbGraderPreprocessor
from traitlets import Enum, Integer

from specdec_lab.course.cells import BEGIN_HIDDEN, BEGIN_SOLUTION, BONUS, QUIZ
from specdec_lab.small import SMALL

Resources = dict[str, Any]


class ClearSolutionRegions(ClearSolutions):
    """nbgrader's own step, but a value that is asked for is left blank instead of raising.

    A function's body becomes ``raise NotImplementedError``. A region at the top level would raise while
    the notebook runs, and a learner who skips one exercise could not run the rest.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: Resources, index: int
    ) -> tuple[NotebookNode, Resources]:
        usual: dict[str, str] = self.code_stub  # type: ignore[has-type]
        if any(line.startswith(BEGIN_SOLUTION) for line in cell.source.split("\n")):
            self.code_stub = usual | {"python": "# YOUR ANSWER HERE (change the line above)"}
        try:
            return super().preprocess_cell(cell, resources, index)
        finally:
            self.code_stub = usual


class RestoreCells(NbGraderPreprocessor):
    """Bring a submission back into the form of the release, as far as nbgrader needs it.

    Each cell of the release is looked for in the submission: by grade id, by cell id, then by what it
    says or defines. Its metadata and type are set right, and a missing one is put back behind its
    predecessor. All other metadata goes: among it could be a tag that keeps a check from running.
    nbgrader's ``OverwriteCells``, next in line, then restores the text of locked cells.

    Copies of a cell all run where they stand, as they do for the learner; of a check the last counts.
    """

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        where = resources["nbgrader"]
        with Gradebook(where["db_url"]) as gradebook:
            notebook = gradebook.find_notebook(where["notebook"], where["assignment"])
            points = {cell.name: cell.max_score for cell in notebook.grade_cells}
            wanted = [
                _Wanted(
                    cell.name,
                    cell.cell_type,
                    cell.source,
                    cell.checksum,
                    cell.locked,
                    points.get(cell.name),
                )
                for cell in notebook.source_cells
            ]
        return self._restore(nb, wanted), resources

    def _restore(self, nb: NotebookNode, wanted: list[_Wanted]) -> NotebookNode:
        found: dict[str, NotebookNode] = {}
        free = {id(cell): cell for cell in nb.cells}
        for one in wanted:
            cell = one.find(list(free.values()), [other.name for other in wanted])
            if cell is not None:
                found[one.name] = free.pop(id(cell))
        for cell in nb.cells:
            cell.metadata = NotebookNode()
        place = 0
        for one in wanted:
            cell = found.get(one.name)
            if cell is None:
                self.log.warning("Cell %s is missing; it is put back", one.name)
                nb.cells.insert(place, one.new(one.text_if_missing(nb.cells)))
                place += 1
                continue
            place = next(i for i, other in enumerate(nb.cells) if other is cell) + 1
            if cell.cell_type != one.cell_type:
                self.log.warning("Cell %s has become %s", one.name, cell.cell_type)
                nb.cells[place - 1] = one.new(cell.source)
            one.mark(nb.cells[place - 1])
        return nb


class _Wanted:
    """A cell of the release, as the gradebook knows it."""

    def __init__(
        self,
        name: str,
        cell_type: str,
        source: str,
        checksum: str,
        locked: bool,
        points: float | None,
    ) -> None:
        self.name = name
        self.cell_type = cell_type
        self._source = source
        self._checksum = checksum
        self._locked = locked
        self._points = points
        self._names = set() if locked or cell_type != "code" else _defined(source)
        """The functions and variables that a solution cell defines."""

    def find(self, cells: list[NotebookNode], names: list[str]) -> NotebookNode | None:
        """The submitted cell that this one has become; ``names`` are those of all cells released."""
        others = [name for name in names if name != self.name]
        marked = [cell for cell in cells if _grade_id(cell) == self.name]
        ways = [
            [cell for cell in marked if cell.get("id") not in others],
            [cell for cell in cells if cell.get("id") == self.name],
            marked,
            [cell for cell in cells if _grade_id(cell) not in names and self._says_the_same(cell)],
        ]
        return next((self._best(candidates) for candidates in ways if candidates), None)

    def _says_the_same(self, cell: NotebookNode) -> bool:
        if self._locked:
            return bool(cell.source.strip() == self._source.partition(BEGIN_HIDDEN)[0].strip())
        return bool(self._names) and cell.cell_type == "code" and self._names <= _defined(cell.source)

    def _best(self, candidates: list[NotebookNode]) -> NotebookNode:
        """The last of them: it is what ran last. A text that was left as released is no answer."""
        candidates = [c for c in candidates if c.cell_type == self.cell_type] or candidates
        if self.cell_type == "markdown":
            candidates = [c for c in candidates if c.source != self._source] or candidates
        return candidates[-1]

    def text_if_missing(self, cells: list[NotebookNode]) -> str:
        """What to put back: the cell as released, but over nothing that may be the learner's answer."""
        if self._locked:
            return self._source
        if self.cell_type == "markdown":
            return "*This answer's cell is missing. Its text may be elsewhere in the notebook.*"
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        elsewhere = any(_may_define(name, text) for name in self._names for text in code)
        return "" if elsewhere else self._source

    def new(self, source: str) -> NotebookNode:
        """A cell of the right type and id."""
        make: Any = new_code_cell if self.cell_type == "code" else new_markdown_cell
        cell = make(source, id=self.name)
        self.mark(cell)
        return cell

    def mark(self, cell: NotebookNode) -> None:
        """Give a cell the metadata it was released with."""
        graded = self._points is not None
        cell.metadata = NotebookNode()
        cell.metadata["nbgrader"] = NotebookNode(
            checksum=self._checksum,
            cell_type=self.cell_type,
            grade=graded,
            grade_id=self.name,
            locked=self._locked,
            schema_version=3,
            solution=not self._locked,
            task=False,
            **({"points": self._points} if graded else {}),
        )


def _grade_id(cell: NotebookNode) -> str | None:
    metadata = cell.get("metadata")
    data = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = data.get("grade_id") if isinstance(data, dict) else None
    return grade_id if isinstance(grade_id, str) else None


def _defined(source: str) -> set[str]:
    """The functions and variables that code defines at its top level."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set(re.findall(r"^def (\w+)", source, re.MULTILINE))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _may_define(name: str, source: str) -> bool:
    """Whether code may define a name at any depth; it need not even be valid."""
    return bool(re.search(rf"\b(?:def|as)\s+{name}\b|\b{name}\s*(?::[^=\n]+)?=(?!=)", source))


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
        exercise = _exercise(nb.cells[self._running])
        for index in range(self._running + 1, len(nb.cells)):
            if exercise and _exercise(nb.cells[index]) == exercise:
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
        line = f"--IPKernelApp.exec_lines=exec({self._start_code()!r}, {{}})"
        given: list[str] = list(self.extra_arguments)  # type: ignore[has-type]
        self.extra_arguments = [*given, line]
        environment = os.environ | {SMALL: "1", "HF_HUB_OFFLINE": "1"}
        try:
            super().start_new_kernel(env=environment, stdout=DEVNULL, stderr=DEVNULL, **options)
        finally:
            self.extra_arguments = given

    def _start_code(self) -> str:
        limits = f"memory, text = {self.memory_gib * 2**30}, {self.output_bytes}\n"
        return limits + _AT_START

    def _cleanup_kernel(self) -> None:
        """End the kernel, and the processes that it started even if it is dead itself."""
        group = getattr(getattr(self.km, "provisioner", None), "pgid", None)
        super()._cleanup_kernel()
        if group and group != os.getpgrp():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)


class _OutOfMemory(Exception):
    """A cell has raised for lack of memory."""


_PICTURES = 10
"""All output of a cell may be this many times as much as its text."""
_LONGEST = 5000
"""Characters of an error's message, and of a line of its traceback."""
_MEMORY = re.compile(r"MemoryError|can't allocate memory|can't start new thread")
_CHECK = re.compile(rf"(.+?)(?:_check|_hidden|{BONUS}.+)")

_AT_START = """
import sys
import threading

try:
    import resource

    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
except (ImportError, ValueError, OSError):
    pass

shell = get_ipython()
streams = sys.stdout, sys.stderr
writers = {}
written = {"cell": 0, "threads": 0}
told = set()
before_message = shell.kernel.pre_handler_hook


class OutputFlood(RuntimeError):
    pass


def begin():
    # IPython puts a `write` of its own in place while a cell runs; between cells is the time for this.
    before_message()
    written["cell"] = 0
    sys.stdout, sys.stderr = streams
    for stream in streams:
        writers.setdefault(stream, limited(stream.write))
        stream.write = writers[stream]


def limited(write):
    def write_some(string, *rest):
        # Who writes too much is stopped, be it the cell or a thread that it has left behind.
        thread = threading.current_thread()
        in_cell = thread is threading.main_thread()
        who = "cell" if in_cell else "threads"
        written[who] += len(string)
        if written[who] <= text:
            return write(string, *rest)
        if in_cell:
            raise OutputFlood(f"this cell wrote more than {text} characters; it was stopped.")
        if thread in told:
            threading.Event().wait()
        told.add(thread)
        raise SystemExit

    return write_some


def ask_exit(*_):
    raise SystemError("exit() ends the kernel; it is left out here")


shell.kernel.pre_handler_hook = begin
shell.ask_exit = ask_exit
"""
"""Runs in a kernel before anything else: the memory limit, the limit for text, no ``exit``."""


def _exercise(cell: NotebookNode) -> str | None:
    """The exercise that a check cell checks."""
    check = _CHECK.fullmatch(_grade_id(cell) or "")
    return check[1] if check else None


def _only_errors_count(cell: NotebookNode) -> None:
    """Keep nbgrader from reading more than errors out of a check cell's output.

    Anything on stderr would cost all points. And a check returns nothing: what looks like its result is
    a learner's doing, but nbgrader would take a number for the points that were earned. Only the quiz
    returns its points.
    """
    for output in cell.outputs:
        if output.output_type == "stream":
            output.name = "stdout"
        elif output.output_type == "execute_result" and _grade_id(cell) != QUIZ:
            output.output_type = "display_data"
            del output["execution_count"]


def _say(cell: NotebookNode, name: str, why: str) -> None:
    cell.outputs = [_error(name, why)]
    cell.execution_count = None


def _error(name: str, why: str) -> NotebookNode:
    return new_output("error", ename=name, evalue=why, traceback=[f"{name}: {why}"])


class SaveBonus(NbGraderPreprocessor):
    """Book a passed bonus check as nbgrader's extra credit, on top of the total."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        where = resources["nbgrader"]
        with Gradebook(where["db_url"]) as gradebook:
            for cell in nb.cells:
                name, mark, points = (_grade_id(cell) or "").partition(BONUS)
                if mark and utils.is_grade(cell):
                    grade = gradebook.find_grade(
                        f"{name}{mark}{points}",
                        where["notebook"],
                        where["assignment"],
                        where["student"],
                    )
                    grade.extra_credit = 0.0 if utils.has_failed(cell) else float(points)
            gradebook.db.commit()
        return nb, resources


def adopt_renamed_notebook(assignment: str, student: str, notebooks: list[str]) -> None:
    """nbgrader's hook before autograding: a submission's only notebook is graded whatever its name.

    Saved as ``01_x-Copy1.ipynb`` it would be skipped without a word, and score nothing.
    """
    from pathlib import Path

    from specdec_lab.course.folder import CourseError

    paths = [Path(notebook) for notebook in notebooks]
    if not paths:
        return
    folder = paths[0].parent
    expected = folder / f"{folder.name}.ipynb"
    if expected in paths:
        return
    if len(paths) > 1:
        raise CourseError(f"{folder}: none of {len(paths)} notebooks is called {expected.name}")
    expected.write_bytes(paths[0].read_bytes())
    notebooks[:] = [str(expected)]

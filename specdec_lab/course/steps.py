"""The course's own steps in nbgrader's pipelines; ``nbgrader_config.py`` puts them in their places.

Releasing: ``ClearSolutionRegions``. Autograding: ``RestoreCells``, then ``ExecuteWithLimits``, then
``SaveBonus``. They are ordinary nbgrader preprocessors, so nbgrader's own commands and the Formgrader
use them, too.
"""

from __future__ import annotations

import ast
import re
from time import monotonic
from typing import Any

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import ClearSolutions, Execute, NbGraderPreprocessor
from traitlets import Integer

from specdec_lab.course.cells import BEGIN_SOLUTION, BONUS
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

    Each cell of the release is looked for in the submission: by grade id, then by cell id, then by what
    it says or defines. Its metadata and type are set right, a duplicate loses its metadata, and a
    missing one is put back behind its predecessor: a check as released, a solution empty. nbgrader's
    ``OverwriteCells``, next in line, then restores the text of locked cells.
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
        found = {cell.name: _find(nb.cells, cell) for cell in wanted}
        kept = {id(cell) for cell in found.values() if cell is not None}
        for cell in nb.cells:
            if id(cell) not in kept:
                cell.metadata.pop("nbgrader", None)
        place = 0
        for one in wanted:
            cell = found[one.name]
            if cell is None:
                self.log.warning("Cell %s is missing; it is put back", one.name)
                nb.cells.insert(place, one.new())
                place += 1
            else:
                place = next(i for i, other in enumerate(nb.cells) if other is cell) + 1
                if cell.cell_type != one.cell_type:
                    self.log.warning("Cell %s has become %s", one.name, cell.cell_type)
                    nb.cells[place - 1] = one.new(cell.source)
                else:
                    one.mark(cell)
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
        self.source = source
        self._checksum = checksum
        self._locked = locked
        self._points = points

    @property
    def is_solution(self) -> bool:
        return not self._locked

    def new(self, source: str | None = None) -> NotebookNode:
        """A fresh cell; a solution that is missing is empty."""
        make: Any = new_code_cell if self.cell_type == "code" else new_markdown_cell
        text = source if source is not None else "" if self.is_solution else self.source
        cell = make(text, id=self.name)
        self.mark(cell)
        return cell

    def mark(self, cell: NotebookNode) -> None:
        """Give a cell the metadata it was released with."""
        graded = self._points is not None
        cell.metadata["nbgrader"] = NotebookNode(
            checksum=self._checksum,
            cell_type=self.cell_type,
            grade=graded,
            grade_id=self.name,
            locked=self._locked,
            schema_version=3,
            solution=self.is_solution,
            task=False,
            **({"points": self._points} if graded else {}),
        )

    def defines(self) -> set[str]:
        """The functions and variables that the released cell defines at its top level."""
        return _defined(self.source)


def _find(cells: list[NotebookNode], wanted: _Wanted) -> NotebookNode | None:
    """The submitted cell that ``wanted`` has become. Of several the last: it is what ran last."""
    by_grade_id = [c for c in cells if _grade_id(c) == wanted.name]
    by_id = [c for c in cells if c.get("id") == wanted.name and _grade_id(c) is None]
    if wanted.is_solution:
        names = wanted.defines()
        by_content = [
            c
            for c in cells
            if names and c.cell_type == "code" and _grade_id(c) is None and names <= _defined(c.source)
        ]
    else:
        visible = wanted.source.partition("### BEGIN HIDDEN")[0].strip()
        by_content = [c for c in cells if _grade_id(c) is None and c.source.strip() == visible]
    for candidates in (by_grade_id, by_id, by_content):
        if candidates:
            return candidates[-1]
    return None


def _grade_id(cell: NotebookNode) -> str | None:
    data = cell.metadata.get("nbgrader")
    grade_id = data.get("grade_id") if isinstance(data, dict) else None
    return grade_id if isinstance(grade_id, str) else None


def _defined(source: str) -> set[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set(re.findall(r"^def (\w+)", source, re.MULTILINE))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


class ExecuteWithLimits(Execute):
    """Run a submission so that it always comes to an end, with a reason for whatever did not run.

    A cell that kills the kernel, or cannot even be interrupted, is left out of a second run from the
    top; everything else is graded. Output beyond a limit is dropped and stops the cell. A cell's
    standard error does not cost points: what counts is whether a check raised.
    """

    timeout = Integer(60, allow_none=True, help="Seconds for one cell.").tag(config=True)
    seconds_in_all = Integer(240, help="Seconds for the whole notebook.").tag(config=True)
    memory_gib = Integer(8, help="Memory that the kernel may allocate; 0 is no limit.").tag(config=True)
    output_bytes = Integer(200_000, help="Output that one cell may make.").tag(config=True)
    restarts = Integer(2, help="Cells that may be left out for killing the kernel.").tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: Resources, km: Any = None
    ) -> tuple[NotebookNode, Resources]:
        self._deadline = monotonic() + self.seconds_in_all
        self._left_out: dict[int, str] = {}
        self._running = 0
        given: list[str] = list(self.extra_arguments)  # type: ignore[has-type]
        with utils.setenv(**{SMALL: "1", "HF_HUB_OFFLINE": "1"}):
            while True:
                self.extra_arguments = [*given, *self._kernel_arguments()]
                try:
                    return super().preprocess(nb, resources, km)
                except DeadKernelError:
                    self._leave_out(nb, "the kernel died in this cell. Too much memory, or an exit?")
                except CellTimeoutError:
                    self._leave_out(nb, "this cell ran out of time and could not be interrupted.")
                finally:
                    self.extra_arguments = given

    def preprocess_cell(
        self, cell: NotebookNode, resources: Resources, index: int
    ) -> tuple[NotebookNode, Resources]:
        if cell.cell_type != "code":
            return cell, resources
        self._running, self._written = index, 0
        if index in self._left_out:
            _say(cell, "LeftOut", self._left_out[index])
        elif monotonic() > self._deadline:
            _say(
                cell, "OutOfTime", f"the notebook's {self.seconds_in_all} seconds were used up before."
            )
        else:
            cell, resources = super().preprocess_cell(cell, resources, index)
            self._after(cell)
        return cell, resources

    def _leave_out(self, nb: NotebookNode, why: str) -> None:
        self.log.warning("Cell %d: %s", self._running, why)
        self._left_out[self._running] = why
        if len(self._left_out) > self.restarts:
            for index in range(self._running + 1, len(nb.cells)):
                self._left_out[index] = "not run: too many cells before it killed the kernel."

    def _get_timeout(self, cell: NotebookNode | None) -> int | None:
        left = max(1, int(self._deadline - monotonic()))
        usual = super()._get_timeout(cell)
        return left if usual is None else min(usual, left)

    def output(self, outs: list[NotebookNode], msg: Any, display_id: str, cell_index: int) -> Any:
        self._written += len(str(msg["content"]))
        if self._written > self.output_bytes:
            if not any(out.get("ename") == "OutputFlood" for out in outs):
                problem = f"this cell wrote more than {self.output_bytes} bytes; it was stopped."
                outs.append(_error("OutputFlood", problem))
                if self.km is not None:
                    # The control channel's interrupt is asynchronous; a signal does not wait.
                    self._interrupt()
            return None
        return super().output(outs, msg, display_id, cell_index)

    def _interrupt(self) -> None:
        provisioner = getattr(self.km, "provisioner", None)
        process = getattr(provisioner, "process", None)
        if process is not None:
            import signal

            process.send_signal(signal.SIGINT)

    def _after(self, cell: NotebookNode) -> None:
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr" and utils.is_grade(cell):
                output.name = "stdout"
            if output.get("ename") == "CellTimeoutError":
                output.evalue = f"this cell did not finish in {self.timeout} seconds."
                output.traceback = [f"OutOfTime: {output.evalue}"]

    def _kernel_arguments(self) -> list[str]:
        """Code for the kernel's start: the memory limit, and an ``exit`` that only complains."""
        return [f"--IPKernelApp.exec_lines={line}" for line in (self._limit_code(), _NO_EXIT)]

    def _limit_code(self) -> str:
        if not self.memory_gib:
            return "pass"
        limit = self.memory_gib * 2**30
        return (
            "exec('try:\\n import resource as _r\\n"
            f" _r.setrlimit(_r.RLIMIT_DATA, ({limit}, {limit}))\\n"
            " del _r\\nexcept (ImportError, ValueError, OSError): pass')"
        )


_NO_EXIT = (
    'exec(\'def _no_exit(*_):\\n raise SystemError("exit() ends the kernel; it is left out here")\\n'
    "get_ipython().user_ns.update(exit=_no_exit, quit=_no_exit)')"
)


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

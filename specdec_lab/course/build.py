"""Build: from ``solutions/NAME/NAME.py`` to the answer key, the quiz and the learners' notebook."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from specdec_lab.course.cells import Source, key_notebook, parse, sealed_quiz
from specdec_lab.course.folder import MARK, Course, CourseError
from specdec_lab.course.running import static_faces
from specdec_lab.course.settings import configure
from specdec_lab.files import replacing

SECONDS_PER_CELL = 300


def build(course: Course, name: str, *, execute: bool = True) -> list[Path]:
    """Make everything that follows from one source.

    The notebooks are written only if all of it worked; the quiz before, since the answer key reads it.

    Args:
        course: where.
        name: the assignment's.
        execute: run the answer key (minutes); if not, outputs of unchanged cells are kept.

    Returns:
        The files whose content changed.

    Raises:
        SourceError: for a source outside the notation.
        CourseError: if a cell of the answer key raises, or nbgrader cannot make the release.
    """
    source = parse(course.source(name))
    quiz = _quiz_text(source)
    key = key_notebook(source)
    release = release_text(name, key)
    if quiz is not None:
        _write(course.quizzes / f"{name}.json", quiz)
    if execute:
        _execute(key, name)
    else:
        _keep_outputs(key, course.key(name))
    written = {course.key(name): _text(key), course.release(name): release}
    return [file for file, text in written.items() if _write(file, text)]


def build_page(source: Path) -> NotebookNode:
    """A page of the documentation, written as the notebooks are, and executed like an answer key.

    Raises:
        SourceError: for a source outside the notation.
        CourseError: if one of its cells raises.
    """
    page = key_notebook(parse(source))
    _execute(page, source.stem)
    return page


def out_of_step(course: Course, name: str) -> list[str]:
    """What ``build`` would change, apart from the key's outputs; empty if all is in step."""
    source = parse(course.source(name))
    key = key_notebook(source)
    problems = []
    quiz = _quiz_text(source)
    if quiz is not None and _read(course.quizzes / f"{name}.json") != quiz:
        problems.append(f"specdec_lab/checks/quizzes/{name}.json")
    if _read(course.release(name)) != release_text(name, key):
        problems.append(f"notebooks/{name}/{name}.ipynb")
    if _stripped(course.key(name)) != _text(key):
        problems.append(f"solutions/{name}/{name}.ipynb")
    return problems


def release_text(name: str, key: NotebookNode) -> str:
    """What nbgrader makes of the answer key for learners, as the text of a notebook."""
    with throwaway_course() as (root, api):
        place = root / "solutions" / name / f"{name}.ipynb"
        place.parent.mkdir(parents=True)
        place.write_text(_text(key), encoding="utf-8")
        must_succeed(call(api.generate_assignment, name), f"cannot release {name}")
        return (root / "notebooks" / name / f"{name}.ipynb").read_text(encoding="utf-8")


@contextmanager
def throwaway_course(course: Course | None = None) -> Iterator[tuple[Path, NbGraderAPI]]:
    """An empty nbgrader course, with the settings of ``course`` if one is given; it goes away again."""
    folder = tempfile.mkdtemp(prefix="specdec-lab-")
    try:
        root = Path(folder).resolve()
        yield root, NbGraderAPI(config=settings_for(root, course))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def settings_for(root: Path, course: Course | None = None) -> Config:
    """nbgrader's settings for work in ``root``.

    Args:
        root: where nbgrader's folders and its gradebook are.
        course: take over what its ``nbgrader_config.py`` says, its gradebook only if it lies there.
    """
    if course is None:
        config = Config()
        configure(config, root)
    else:
        config = PyFileConfigLoader(MARK, path=str(course.root)).load_config()
    if course is None or root != course.root:
        config.CourseDirectory.root = str(root)
        config.CourseDirectory.db_url = f"sqlite:///{root / 'gradebook.db'}"
    # Progress goes to the caller's own table; nbgrader's log is kept in the result of each call.
    config.NbGraderAPI.log_level = "ERROR"
    return config


def nbgrader_api(course: Course) -> NbGraderAPI:
    """nbgrader on the course itself: its submissions and its gradebook."""
    return NbGraderAPI(config=settings_for(course.root, course))


def call(method: Callable[..., dict[str, Any]], *arguments: str) -> dict[str, Any]:
    """Call one of nbgrader's methods without the warnings that its own code causes (SQLAlchemy 2.1)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(*arguments)


def must_succeed(result: dict[str, Any], what: str) -> None:
    """Turn nbgrader's report of a failure into an exception with the lines that say why."""
    if result.get("success"):
        return
    log = str(result.get("log") or result.get("error") or "")
    why = [line for line in log.splitlines() if "Error" in line or "ERROR" in line] or log.splitlines()
    raise CourseError(f"{what}: " + " ".join(why[-3:] or ["nbgrader gives no reason"]))


def _execute(key: NotebookNode, name: str) -> None:
    """Run the answer key from top to bottom in an empty folder, as a learner's notebook would run."""
    with tempfile.TemporaryDirectory(prefix="specdec-lab-") as folder:
        place = Path(folder) / name
        place.mkdir()
        client = NotebookClient(
            key,
            timeout=SECONDS_PER_CELL,
            kernel_name="python3",
            resources={"metadata": {"path": str(place)}},
            config=settings_for(Path(folder)),
            # A failing check may not pass unnoticed in the answer key.
            force_raise_errors=True,
        )
        try:
            client.execute(env=os.environ | {"HF_HUB_OFFLINE": "1"})
        except CellExecutionError as error:
            raise CourseError(f"{name}: the answer key does not run: {error}") from error
    _tidy(key)


def _tidy(key: NotebookNode) -> None:
    """Leave out what is of one run only: timings, progress bars, live widgets, kernel versions."""
    key.metadata.pop("widgets", None)
    key.metadata.language_info = NotebookNode(name="python")
    for cell in key.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [
                output
                for output in static_faces(cell.outputs)
                if not (output.output_type == "stream" and output.name == "stderr")
            ]


def _keep_outputs(key: NotebookNode, file: Path) -> None:
    if not file.is_file():
        return
    before = {cell.id: cell for cell in nbformat.read(file, as_version=4).cells}
    for cell in key.cells:
        old = before.get(cell.id)
        if cell.cell_type == "code" and old is not None and old.source == cell.source:
            cell.outputs, cell.execution_count = old.outputs, old.execution_count


def _stripped(file: Path) -> str | None:
    if not file.is_file():
        return None
    notebook = nbformat.read(file, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return _text(notebook)


def _quiz_text(source: Source) -> str | None:
    if not source.questions:
        return None
    return json.dumps(sealed_quiz(source), indent=1, ensure_ascii=False) + "\n"


def _text(notebook: NotebookNode) -> str:
    return nbformat.writes(notebook, version=4) + "\n"


def _read(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _write(file: Path, text: str) -> bool:
    """Write a file, unless it says that already; whether it changed."""
    if _read(file) == text:
        return False
    with replacing(file) as part:
        part.write_text(text, encoding="utf-8")
    return True

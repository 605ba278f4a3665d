"""Whatever is handed in, grading ends with a known result and says why, and the others are graded."""

import copy
import csv
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat import NotebookNode
from nbgrader.apps import NbGraderAPI
from nbgrader.preprocessors import Execute
from submissions import CASES, NAME, WORTH, Files, first, source
from traitlets.config import Config

from specdec_lab.course import grade
from specdec_lab.course.build import call, must_succeed, settings_for, throwaway_course
from specdec_lab.course.cells import key_notebook, parse
from specdec_lab.course.folder import MARK, Course
from specdec_lab.course.grade import Report, export_grades, grade_class, grade_submission
from specdec_lab.course.running import ExecuteWithLimits
from specdec_lab.small import SMALL

pytestmark = pytest.mark.slow

LIMITS = {
    name: getattr(ExecuteWithLimits(), name)
    for name in ("timeout_func", "seconds_in_all", "iopub_timeout", "memory_gib", "restarts")
}


MATHJAX = "https://cdnjs.cloudflare.com/ajax/libs/mathjax/2.7.7/latest.js"
"""The one program that nbgrader's feedback pages fetch."""


@dataclass
class SmallCourse:
    """An nbgrader course with the small assignment, and its answer key."""

    root: Path
    api: NbGraderAPI
    key: NotebookNode
    release: NotebookNode
    reports: dict[str, Report] = field(default_factory=dict)

    def hand_in(self, student: str, files: Files) -> Path:
        folder = self.root / "submitted" / student / NAME
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, content in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        return folder

    def grade(self, name: str) -> Report:
        """Grade a case as a student of that name, if it is not graded yet."""
        if name not in self.reports:
            self.hand_in(name, CASES[name].files(self.key, self.release))
            self.api.update_config(Config(ExecuteWithLimits=LIMITS | CASES[name].limits))
            page = self.root / "pages" / f"{name}.html"
            self.reports[name] = grade_submission(self.api, self.root, NAME, name, page)
        return self.reports[name]


@pytest.fixture(scope="module")
def course() -> Iterator[SmallCourse]:
    with throwaway_course() as (root, api), pytest.MonkeyPatch.context() as patch:
        # ipykernel behaves otherwise under pytest: it leaves file descriptors alone.
        patch.delenv("PYTEST_CURRENT_TEST", raising=False)
        key = _write_key(root, root / "source" / f"{NAME}.py")
        must_succeed(call(api.generate_assignment, NAME), "cannot release")
        release = nbformat.read(root / "notebooks" / NAME / f"{NAME}.ipynb", as_version=4)
        yield SmallCourse(root, api, key, release)


def _write_key(root: Path, file: Path) -> NotebookNode:
    file.parent.mkdir(parents=True)
    file.write_text(source(), encoding="utf-8")
    key = key_notebook(parse(file))
    place = root / "solutions" / NAME / f"{NAME}.ipynb"
    place.parent.mkdir(parents=True)
    nbformat.write(key, place)
    return key


def _kernels() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [child for child in children if child.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("name", CASES)
def test_a_submission_comes_to_a_known_end(course, name):
    case = CASES[name]
    report = course.grade(name)
    assert _kernels() == []
    if case.problem:
        assert case.problem in report.problem
        assert report.items == []
        return
    assert report.problem == ""
    assert {item.grade_id: item.worth for item in report.items} == WORTH
    for item in report.items:
        phrase = case.phrase(item.grade_id)
        full = None if item.grade_id.endswith("_written") else item.worth
        assert (item.grade_id, item.points) == (item.grade_id, full if phrase is None else 0), item
        assert (phrase or "") in item.message
        assert len(item.message) < 10_000
    assert report.feedback is not None
    assert report.feedback.stat().st_size < 3e6


def test_a_process_does_not_outlive_a_kernel_that_died(course):
    name = "kernel_killed_again_and_again"
    course.grade(name)
    child = course.root / "autograded" / name / NAME / "child"
    with suppress(psutil.NoSuchProcess):
        assert psutil.Process(int(child.read_text())).status() == psutil.STATUS_ZOMBIE


def test_one_broken_submission_leaves_the_class_its_marks(tmp_path, course):
    """The worst are among the others; a student handed in something broken after a good one."""
    everybody = {
        "ada": "right",
        "bob": "no_notebook",
        "cyd": "not_json",
        "dan": "kernel_killed_again_and_again",
        "eve": "right",
    }
    _write_key(tmp_path, tmp_path / "source" / f"{NAME}.py")
    shutil.copyfile(Path(__file__).parents[1] / MARK, tmp_path / MARK)
    small = SmallCourse(tmp_path, course.api, course.key, course.release)
    before = dict(os.environ)
    small.hand_in("cyd", CASES["right"].files(course.key, course.release))
    reports = list(grade_class(Course(tmp_path), [NAME]))
    assert [report.points for report in reports] == [18]

    for student, name in everybody.items():
        small.hand_in(student, CASES[name].files(course.key, course.release))
    reports = list(grade_class(Course(tmp_path), [NAME]))
    assert [report.student for report in reports] == list(everybody)
    assert [bool(report.problem) for report in reports] == [False, True, True, False, False]
    assert SMALL not in os.environ
    assert os.environ.get("HF_HUB_OFFLINE") == before.get("HF_HUB_OFFLINE")

    assert export_grades(Course(tmp_path), tmp_path / "grades.csv") == len(everybody)
    rows = csv.DictReader((tmp_path / "grades.csv").read_text().splitlines())
    totals = {row["student"]: float(row["total"]) for row in rows}
    assert totals == {"ada": 20, "bob": 0, "cyd": 0, "dan": 3, "eve": 20}


def test_what_cannot_be_copied_is_left_out_and_the_rest_is_graded(tmp_path, course):
    """A link to nowhere and a pipe in the place of the choices; the marks can be read again, too."""
    _write_key(tmp_path, tmp_path / "source" / f"{NAME}.py")
    shutil.copyfile(Path(__file__).parents[1] / MARK, tmp_path / MARK)
    small = SmallCourse(tmp_path, course.api, course.key, course.release)
    folder = small.hand_in("ada", CASES["quiz_clicked"].files(course.key, course.release))
    (folder / "answers.json").unlink()
    (folder / "answers.json").symlink_to("nowhere")
    (folder / "results").mkdir()
    os.mkfifo(folder / "results" / "pipe")
    for _ in range(2):
        (report,) = grade_class(Course(tmp_path), [NAME])
        assert report.problem == ""
        lost = {item.grade_id: item.message for item in report.items if item.points == 0}
        assert [*lost] == ["quiz_check"]
        assert lost["quiz_check"].startswith("✗ quiz: not implemented yet")
    assert (folder / "answers.json.not-copied").is_symlink()
    assert [path.name for path in (folder / "results").iterdir()] == ["pipe.not-copied"]


def test_feedback_shows_the_static_face_of_a_view_and_fetches_no_widgets(course):
    """Nor does the state that the learner's JupyterLab saved with the notebook get in the way."""
    code = """
    import ipywidgets
    from specdec_lab.widgets.live import Live

    face = "<b>the " + "face</b>"
    display(Live([ipywidgets.IntSlider()], static=lambda: face, plain=lambda: "text"))
    """
    files = {}
    for state in ("", "broken"):
        notebook = first(copy.deepcopy(course.key), code, "import ipywidgets\nipywidgets.IntSlider()")
        if state:
            notebook.metadata.widgets = {"application/vnd.jupyter.widget-state+json": state}
        files[f"widgets{state}"] = {f"{NAME}.ipynb": json.dumps(notebook)}
    for student, handed_in in files.items():
        course.hand_in(student, handed_in)
        page = course.root / "pages" / f"{student}.html"
        report = grade_submission(course.api, course.root, NAME, student, page)
        assert report.points == 18
        html = page.read_text()
        assert html.count("<b>the face</b>") == 1
        for word in ("widget-view+json", "widget-state+json", "html-manager", "embed-amd", "unpkg"):
            assert word not in html, word
        assert set(re.findall(r"https?://[^\"' ]+\.js", html)) == {MATHJAX}
        graded = nbformat.read(
            course.root / "autograded" / student / NAME / f"{NAME}.ipynb", as_version=4
        )
        assert "widgets" not in graded.metadata


def test_whoever_interrupts_grading_interrupts_all_of_it(course, monkeypatch):
    """nbgrader catches everything, the keyboard's interrupt, too."""
    stopped = {"success": False, "error": "Traceback ...\nKeyboardInterrupt\n"}
    monkeypatch.setattr(grade, "call", lambda *_: stopped)
    course.hand_in("interrupted", CASES["right"].files(course.key, course.release))
    with pytest.raises(KeyboardInterrupt):
        grade_submission(course.api, course.root, NAME, "interrupted", course.root / "page.html")


def test_grading_has_its_own_limit_for_a_cell(tmp_path):
    settings = settings_for(tmp_path)
    assert ExecuteWithLimits(config=settings).timeout == 60
    assert Execute(config=settings).timeout == 300

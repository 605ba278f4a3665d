"""A learner's and an instructor's clicks in a real JupyterLab, in headless Chromium."""

import shutil
from pathlib import Path

import nbformat
import pytest
from browsing import MARKS, TOKEN, chromium_page, jupyterlab, keep, open_notebook, run_all

from specdec_lab.course.folder import Course
from specdec_lab.course.start import start

pytestmark = MARKS
ROOT = Path(__file__).parents[1]
NAME = "02_greedy_draft_verify"
NOTEBOOK = f"work/{NAME}/{NAME}.ipynb"


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Course:
    """The course in a folder of its own, with one working copy in which only one exercise is solved."""
    root = tmp_path_factory.mktemp("course")
    for part in ("solutions", "notebooks", "docs"):
        shutil.copytree(ROOT / part, root / part)
    shutil.copyfile(ROOT / "nbgrader_config.py", root / "nbgrader_config.py")
    course = Course(root)
    file = start(course, NAME).file
    notebook = nbformat.read(file, as_version=4)
    answers = {cell.id: cell.source for cell in nbformat.read(course.key(NAME), as_version=4).cells}
    for cell in notebook.cells:
        if cell.id == "by_hand":
            cell.source = answers["by_hand"]
    nbformat.write(notebook, file)
    return course


@pytest.fixture(scope="module")
def server(course):
    with jupyterlab(course.root) as address:
        yield address


@pytest.fixture
def page():
    with chromium_page() as page:
        yield page


def test_run_all_goes_on_behind_a_failed_check(page, server):
    open_notebook(page, server, NOTEBOOK)
    run_all(page)
    page.wait_for_selector("text=not implemented yet: choose an answer for each question")
    keep(page, "run-all")
    errors = page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr']")
    shown = page.locator(".jp-Notebook").inner_text()
    assert "Traceback (most recent call last)" not in shown
    assert "✗ quiz: not implemented yet" in shown
    assert errors.count() > 0


def test_validate_lists_what_is_not_solved_yet(page, server):
    open_notebook(page, server, NOTEBOOK)
    page.get_by_text("Validate", exact=True).first.click()
    dialog = page.locator(".jp-Dialog")
    dialog.get_by_text("Validation Results").wait_for()
    keep(page, "validate")
    text = dialog.inner_text()
    assert "check.verify(verify)" in text
    assert "✗ verify: not implemented yet." in text
    assert "check.by_hand(by_hand)" not in text


def test_the_formgrader_lists_the_assignments(page, server, course):
    page.goto(f"{server}/formgrader?token={TOKEN}")
    page.get_by_text(NAME).first.wait_for()
    keep(page, "formgrader")
    shown = page.inner_text("body")
    assert all(name in shown for name in course.written())

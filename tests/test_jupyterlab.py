"""A learner's and an instructor's clicks in a real JupyterLab, in headless Chromium.

Skipped where there is no Chromium. With SPECDEC_LAB_SCREENSHOTS=FOLDER the pages are kept as pictures.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest

from specdec_lab.course.folder import Course
from specdec_lab.course.start import start

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]
ROOT = Path(__file__).parents[1]
NAME = "02_greedy_draft_verify"
TOKEN = "a-token-for-testing"
PATIENCE = 120_000  # milliseconds
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]


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
    """JupyterLab as ``make lab`` starts it; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
    command += [f"--port={port}", f"--ServerApp.root_dir={course.root}"]
    command += [f"--IdentityProvider.token={TOKEN}"]
    log = course.root / "lab.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            cwd=course.root,
            env=os.environ
            | {"SPECDEC_LAB_SMALL": "1", "JUPYTER_CONFIG_DIR": str(course.root / ".jupyter")},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            if _answers(f"{address}/api?token={TOKEN}"):
                break
            assert process.poll() is None, log.read_text()
            time.sleep(0.5)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture
def page():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 1200, "height": 1000})
        page.set_default_timeout(PATIENCE)
        yield page
        browser.close()


def keep(page, name: str) -> None:
    folder = os.environ.get("SPECDEC_LAB_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def open_notebook(page, server) -> None:
    page.goto(f"{server}/lab/tree/work/{NAME}/{NAME}.ipynb?token={TOKEN}")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")


def test_run_all_goes_on_behind_a_failed_check(page, server):
    open_notebook(page, server)
    page.get_by_text("Run", exact=True).first.click()
    page.get_by_text("Run All Cells", exact=True).first.click()
    page.wait_for_selector("text=not implemented yet: choose an answer for each question")
    keep(page, "run-all")
    errors = page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr']")
    shown = page.locator(".jp-Notebook").inner_text()
    assert "Traceback (most recent call last)" not in shown
    assert "✗ quiz: not implemented yet" in shown
    assert errors.count() > 0


def test_validate_lists_what_is_not_solved_yet(page, server):
    open_notebook(page, server)
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

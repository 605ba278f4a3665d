"""A real JupyterLab and a headless Chromium, for the tests that click.

With SPECDEC_LAB_SCREENSHOTS=FOLDER the pages are kept as pictures.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MARKS = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]
TOKEN = "a-token-for-testing"
PATIENCE = 120_000  # milliseconds
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]


@contextmanager
def jupyterlab(root: Path, theme: str = "JupyterLab Light"):
    """JupyterLab on a folder, as ``make lab`` starts it, with experiments at their small size."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = root / ".settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "themes.jupyterlab-settings").write_text(json.dumps({"theme": theme}))
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
    command += [f"--port={port}", f"--ServerApp.root_dir={root}", f"--IdentityProvider.token={TOKEN}"]
    surroundings = os.environ | {
        "SPECDEC_LAB_SMALL": "1",
        "JUPYTER_CONFIG_DIR": str(root / ".jupyter"),
        "JUPYTERLAB_SETTINGS_DIR": str(root / ".settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(root / ".workspaces"),
    }
    log = root / "lab.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=root, env=surroundings, stdout=out, stderr=subprocess.STDOUT
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


@contextmanager
def chromium_page(width: int = 1200, height: int = 1000):
    """An empty page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(PATIENCE)
        yield page
        browser.close()


def open_notebook(page, address: str, path: str) -> None:
    """Open a notebook and wait for its kernel."""
    page.goto(f"{address}/lab/tree/{path}?token={TOKEN}")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    wait_for_kernel(page)


def wait_for_kernel(page) -> None:
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")


def run_all(page) -> None:
    page.get_by_text("Run", exact=True).first.click()
    page.get_by_text("Run All Cells", exact=True).first.click()


def keep(page, name: str) -> None:
    """Keep a picture of the page, or of a part of it, if somebody wants to look."""
    folder = os.environ.get("SPECDEC_LAB_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"))

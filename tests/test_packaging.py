"""The files that describe the project agree with each other, and what is installed works elsewhere."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from specdec_lab import __version__
from specdec_lab.draft_model import stored_drafts

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIREMENTS = [
    Requirement(line) for lines in (PROJECT["dependencies"], *EXTRAS.values()) for line in lines
]
PINS = {
    canonicalize_name(pin.name): Version(next(iter(pin.specifier)).version)
    for pin in map(Requirement, re.findall(r"^[^#\n].*$", (ROOT / "constraints.txt").read_text(), re.M))
}
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_every_requirement_is_pinned_to_a_version_in_its_range(requirement):
    pin = PINS[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pin)
    assert any(clause.operator == ">=" for clause in requirement.specifier)


def test_the_installed_versions_are_the_pinned_ones():
    from importlib.metadata import version

    installed = {r.name: Version(version(r.name)) for r in REQUIREMENTS}
    pinned = {r.name: PINS[canonicalize_name(r.name)] for r in REQUIREMENTS}
    assert {name: v.public for name, v in installed.items()} == {n: v.public for n, v in pinned.items()}


def test_conda_users_get_the_same_python_packages_and_pins():
    conda = [Requirement(entry) for entry in ENVIRONMENT if isinstance(entry, str)]
    python = next(entry for entry in conda if entry.name == "python")
    assert str(python.specifier) == PROJECT["requires-python"]
    (pip,) = [entry["pip"] for entry in ENVIRONMENT if isinstance(entry, dict)]
    assert pip[0] == "-c constraints.txt"
    (extras,) = re.findall(r"^-e \.\[(.*)\]$", pip[1])
    assert set(extras.split(",")) == set(EXTRAS)


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_readme_names_real_files_and_commands():
    readme = (ROOT / "README.md").read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = re.findall(r"(?:^|`)make ([a-z-]+)", readme, re.MULTILINE)
    assert {"lab", "test", "demo"} <= set(named) <= targets
    for name in re.findall(r"`(\w+\.py)`", readme):
        assert (ROOT / "specdec_lab" / name).is_file(), name


def test_notebooks_are_committed_without_outputs():
    for file in (ROOT / "notebooks").glob("*/*.ipynb"):
        cells = json.loads(file.read_text())["cells"]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
        assert len({cell["id"] for cell in cells}) == len(cells)


@pytest.mark.slow
def test_a_wheel_works_outside_the_checkout(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = [
        *pip,
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(build, check=True, capture_output=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "specdec_lab/py.typed" in names
    assert {"specdec_lab/widgets/player.js", "specdec_lab/widgets/player.css"} <= set(names)
    shipped = {"drafts.json", "MODEL_CARD.md", "curve.svg"} | {d.file for d in stored_drafts().values()}
    assert {name.rpartition("/")[2] for name in names if "/draft/" in name} == shipped
    quizzes = {name for name in names if name.startswith("specdec_lab/checks/quizzes/")}
    assert len(quizzes) == len(list((ROOT / "solutions").glob("*/*.py")))
    assert any(name.endswith("licenses/NOTICE") for name in names)
    installed = tmp_path / "installed"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(installed), str(wheel)], check=True)
    code = (
        f"import sys; sys.path.insert(0, {str(installed)!r})\n"
        "import specdec_lab, specdec_lab.cli\n"
        "print(specdec_lab.__file__)\n"
        "sys.exit(specdec_lab.cli.main(['demo', '--drafter', 'scripted']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout.startswith(str(installed))
    assert "SIMULATED" in done.stdout


@pytest.mark.slow
def test_the_first_notebook_runs_from_top_to_bottom():
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(ROOT / "notebooks/00_start_here/00_start_here.ipynb", as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    text = json.dumps(notebook)
    assert "simulated: scripted" in text
    assert "Greedy: the same tokens as the target alone gave just now" in text
    assert "yes, token for token" in text

"""What the guides show is run: their code, and the numbers beside it."""

import json
import re
from pathlib import Path

import nbformat
import pytest
from test_cli import run

from benchmarks.audit import BEGIN, END, RESULTS, table
from specdec_lab.course.cells import key_notebook, parse

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")


def python_blocks(text):
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_audit_guides_code_runs_and_prints_what_it_says(capsys):
    namespace = {}
    for block in python_blocks(GUIDE):
        exec(compile(block, "docs/audit.md", "exec"), namespace)
    assert namespace["audit"].verdict == "exact"
    assert namespace["audit"].output.paths == 135
    out = capsys.readouterr().out
    assert out.startswith("exact ")
    assert out.endswith("no bias found\n")


def test_the_audit_guides_decoder_is_cleared_from_the_command_line(capsys, tmp_path, monkeypatch):
    (tmp_path / "my_module_of_the_guide.py").write_text(python_blocks(GUIDE)[0])
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "audit", "--decoder", "my_module_of_the_guide:my_decoder")
    assert code == 0
    assert out.count("exact: every sequence") == 5


def test_the_audit_guides_costs_are_the_measured_ones():
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert table(results) in GUIDE[GUIDE.index(BEGIN) : GUIDE.index(END)]
    assert results["provenance"]["kind"] == "measured"
    for one in results["runs"]:
        assert one["verdict"] == "exact"
        assert one["l1_error"] < 1e-12


@pytest.mark.parametrize("name", ["README.md", "docs/audit.md", "docs/instructor.md"])
def test_every_picture_and_page_that_is_linked_is_there(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", text)
    assert all(((ROOT / name).parent / link).exists() for link in links)


def test_the_page_of_views_is_in_step_and_was_run_whole():
    page = nbformat.read(ROOT / "docs" / "views.ipynb", as_version=4)
    source = key_notebook(parse(ROOT / "docs" / "views.py"))
    assert [cell.source for cell in page.cells] == [cell.source for cell in source.cells]
    shown = [cell for cell in page.cells if cell.cell_type == "code" and "widgets." in cell.source]
    assert len(shown) == 8
    for cell in shown:
        (output,) = cell.outputs
        assert set(output.data) == {"text/html", "text/plain"}  # no widget that has no kernel any more
    assert "widgets" not in page.metadata

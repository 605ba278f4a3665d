"""The committed page of results: complete, made from the JSON files, and told truly by the README."""

import re

from benchmarks import report
from specdec_lab.bench.sheets import SHEETS

ROOT = report.HERE.parent
THEMES = ("light", "dark")


def test_every_experiment_has_a_committed_measurement():
    found = report.results()
    assert set(found) == set(SHEETS)
    for result in found.values():
        assert result.settings["quick"] is False
        assert {row["kind"] for row in result.rows} == {"measured"}


def test_the_page_is_the_one_that_the_results_make():
    page = report.page(report.results())
    assert "{{" not in page
    assert report.PAGE.read_text(encoding="utf-8") == page


def test_every_picture_can_be_drawn_and_is_there_for_light_and_dark_pages(tmp_path, monkeypatch):
    found, committed = report.results(), report.PICTURES
    monkeypatch.setattr(report, "PICTURES", tmp_path)
    report.draw(found)
    expected = {f"{name}-{theme}.svg" for name in report.pictures(found) for theme in THEMES}
    assert {file.name for file in tmp_path.iterdir()} == expected
    assert {file.name for file in committed.iterdir()} == expected


def test_the_readmes_figures_of_the_experiments_stand_in_the_page():
    readme, page = (path.read_text("utf-8") for path in (ROOT / "README.md", report.PAGE))
    told = re.search(r"<!-- from RESULTS.md -->(.*?)<!-- end -->", readme, re.DOTALL).group(1)
    figures, measured = (set(re.findall(r"\d+\.\d+", text)) for text in (told, page))
    assert figures
    assert figures - measured == set()

"""Every view in a real JupyterLab, in headless Chromium: run, step, click, slide, answer."""

import json
import re
from pathlib import Path

import nbformat
import pytest
from browsing import (
    MARKS,
    chromium_page,
    jupyterlab,
    keep,
    open_notebook,
    run_all,
    wait_for_kernel,
)

from specdec_lab.course.cells import key_notebook, parse

pytestmark = MARKS
ROOT = Path(__file__).parents[1]
LIGHT, DARK = "JupyterLab Light", "JupyterLab Dark"
READABLE = 4.5
"""The contrast that WCAG 2.2 asks of text (success criterion 1.4.3)."""


def test_what_was_committed_shows_its_static_faces(tmp_path):
    """Opened by somebody else, a notebook is not trusted: no script runs, and everything is told."""
    (tmp_path / "views.ipynb").write_bytes((ROOT / "docs" / "views.ipynb").read_bytes())
    with jupyterlab(tmp_path) as address, chromium_page() as page:
        open_notebook(page, address, "views.ipynb")
        for words, told in (
            ("widgets.watch()", "speedup, counted 2.81x"),
            ("temperature=0.8", "speedup, measured"),
            ("widgets.audit_view", "L1"),
            ("widgets.explore()", "1.73"),
            ("widgets.quiz", "What does the target do with a draft of four tokens?"),
        ):
            output = output_of(page, words)
            assert told in output.inner_text()
            assert output.locator(".jupyter-widgets, script").count() == 0


@pytest.fixture(scope="module", params=[LIGHT, DARK])
def views(request, tmp_path_factory):
    """The page of views, opened and run; then the folder that it is in."""
    root = tmp_path_factory.mktemp("views")
    nbformat.write(key_notebook(parse(ROOT / "docs" / "views.py")), root / "views.ipynb")
    problems = []
    with jupyterlab(root, request.param) as address, chromium_page(1100, 1000) as page:
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on("pageerror", lambda error: problems.append(str(error)))
        open_notebook(page, address, "views.ipynb")
        page.keyboard.press("Control+b")  # the file browser goes away
        run_all(page)
        output_of(page, "widgets.quiz").get_by_role("radio").first.wait_for()
        wait_for_kernel(page)
        page.theme = request.param.split()[-1].lower()
        yield page, root
    assert not problems


def cell_of(page, words):
    """The code cell with some words in it, scrolled to: JupyterLab draws only what is in sight."""
    cell = page.locator(".jp-CodeCell").filter(has_text=words).first
    page.locator(".jp-WindowedPanel-outer").evaluate("panel => panel.scrollTo(0, 0)")
    for _ in range(60):
        if cell.count():
            break
        page.locator(".jp-WindowedPanel-outer").evaluate("panel => panel.scrollBy(0, 500)")
        page.wait_for_timeout(100)
    cell.scroll_into_view_if_needed()
    return cell


def output_of(page, words):
    """What a cell shows, once it is drawn."""
    output = cell_of(page, words).locator(".jp-Cell-outputArea")
    output.evaluate("output => output.scrollIntoView({block: 'start'})")
    drawn = "output => output.innerText || output.querySelector('img')"
    page.wait_for_function(drawn, arg=output.element_handle())
    return output


def handle(output, label):
    """What is moved of one of ipywidgets' sliders; it has no name of its own."""
    return output.locator(".widget-slider").filter(has_text=label).locator("[role=slider]")


def counts(output):
    words = output.get_by_label("counts so far").inner_text().split("\n")
    return dict(zip(words[::2], words[1::2], strict=True))


def picture(page, output, name):
    output.scroll_into_view_if_needed()
    keep(output, f"view-{name}-{page.theme}")


def test_the_script_is_stepped_through(views):
    page, _ = views
    output = output_of(page, "widgets.watch()")
    assert counts(output) == {
        "tokens out": "9",
        "target forwards": "2",
        "drafted": "8",
        "accepted": "7",
        "acceptance rate": "88%",
        "block efficiency*": "4.50",
        "speedup, counted": "2.81x",
    }
    output.get_by_role("button", name="to the start").click()
    assert counts(output)["tokens out"] == "0"
    output.get_by_role("button", name="one round on").click()
    assert counts(output)["tokens out"] == "5"
    shown = output.get_by_label("the text so far").locator(".token:not(.future)")
    assert shown.all_inner_texts() == [" of", " France", " is", " Paris", "+."]
    output.get_by_role("button", name="play or pause").click()
    output.get_by_text("round 2 of 2", exact=True).wait_for()
    assert output.get_by_text("simulated", exact=True).count() >= 2
    picture(page, output, "scripted")


def test_the_scripts_slider_plays_another_one(views):
    page, _ = views
    output = output_of(page, "widgets.watch()")
    handle(output, "gamma").focus()
    page.keyboard.press("ArrowLeft")
    output.get_by_text("g = 3, c = 0.15").last.wait_for()
    page.keyboard.press("ArrowRight")
    output.get_by_text("g = 4, c = 0.15").last.wait_for()


def test_a_token_says_where_it_came_from(views):
    page, _ = views
    output = output_of(page, "temperature=0.8")
    back = output.get_by_role("button", name="one round back")
    rejected = output.locator(".round .rejected")
    for _ in range(8):
        if rejected.count():
            break
        back.click()
    assert rejected.count(), "no draft is rejected in this run"
    rejected.first.click()
    detail = output.locator(".detail")
    assert re.search(r"Drafted and rejected: u = .* is not below min\(1, p/q\) = ", detail.inner_text())
    for words in ("p(x)", "q(x)", "accept with", "u drawn", "the residual"):
        assert words in detail.inner_text()
    place = detail.bounding_box()["y"]
    explained = detail.inner_text()
    page.keyboard.press("ArrowRight")  # to the next token, not the next cell
    assert detail.inner_text() != explained
    assert detail.bounding_box()["y"] == place
    assert output.locator(".badge").inner_text() == "measured"
    picture(page, output, "player")


def test_the_keyboard_steps_and_the_notebook_stays_where_it_is(views):
    page, _ = views
    output = output_of(page, "temperature=0.8")
    output.get_by_role("button", name="one round on").focus()
    for key, words in (("Home", "start, "), ("ArrowRight", "round 1 of"), ("ArrowLeft", "start, ")):
        page.keyboard.press(key)
        assert output.locator(".bar output").inner_text().startswith(words)
    assert page.locator(".jp-CodeCell").count()  # "d d" and the like were never commands
    page.keyboard.press("End")


def test_a_run_is_made_again_and_cancelled(views):
    page, _ = views
    output = output_of(page, "temperature=0.8")
    handle(output, "gamma").focus()
    page.keyboard.press("ArrowLeft")
    output.get_by_role("button", name="Run again").click()
    output.get_by_text("Done: model, gamma 3").wait_for()
    output.get_by_role("button", name="to the start").click()
    output.get_by_role("button", name="one round on").click()
    assert output.locator(".round").inner_text().split("\n")[-1].startswith("round 1: 3 drafted")
    handle(output, "new tokens").focus()
    page.keyboard.press("End")
    output.get_by_role("button", name="Run again").click()
    output.get_by_role("button", name="Cancel").click()
    output.get_by_text("Cancelled. The player below still shows the run before.").wait_for()
    output.get_by_role("textbox", name="prompt").fill("  ")
    output.get_by_role("button", name="Run again").click()
    output.get_by_text("✗ ValueError: prompt: got").wait_for()


def test_the_acceptance_map_and_the_timeline_are_there(views):
    page, _ = views
    output = output_of(page, "widgets.acceptance_map(positions)")
    assert "mean alpha" in output.inner_text()
    picture(page, output, "map")
    drawn = output_of(page, "plots.timeline")
    assert drawn.locator("img").count() == 1
    picture(page, drawn, "timeline")


def test_p_is_moved_and_still_comes_out(views):
    page, _ = views
    output = output_of(page, "widgets.audit_view")
    before = output.inner_text()
    assert "p comes out, up to rounding" in before
    output.locator(".noUi-handle").first.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    output.get_by_text("edited").first.wait_for()
    assert "p comes out, up to rounding" in output.inner_text()
    assert output.inner_text() != before
    picture(page, output, "audit")


def test_the_explorer_follows_its_sliders(views):
    page, _ = views
    output = output_of(page, "widgets.explore()")
    assert "1.73×" in output.inner_text()
    handle(output, "alpha").focus()
    page.keyboard.press("ArrowRight")
    output.get_by_text("0.71").first.wait_for()
    page.wait_for_function(
        "output => !output.innerText.includes('= 1.73×')", arg=output.element_handle()
    )
    assert output.get_by_text("theory", exact=True).count() >= 1
    picture(page, output, "explorer")


def test_a_choice_is_explained_and_kept(views):
    page, root = views
    output = output_of(page, "widgets.quiz")
    output.get_by_role("radio").nth(0).click()
    output.get_by_text("a is not right.").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    output.get_by_text("b is right.").wait_for()
    output.get_by_text("1 of 5 answered, 1 right so far; saved in answers.json").wait_for()
    kept = json.loads((root / "answers.json").read_text(encoding="utf-8"))
    assert kept == {"quiz": "00_start_here", "answers": {"1": "b"}}
    picture(page, output, "quiz")


CONTRAST = """element => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const over = (top, below) => {
    const [r, g, b, alpha = 1] = top;
    return [r, g, b].map((value, i) => alpha * value + (1 - alpha) * below[i]);
  };
  const layers = [];
  for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
    layers.unshift(channels(getComputedStyle(at).backgroundColor));
  }
  const ground = layers.reduce((below, top) => over(top, below), [255, 255, 255]);
  const ink = over(channels(getComputedStyle(element).color), ground);
  const light = (colour) => {
    const [r, g, b] = colour.map((value) => value / 255).map(
      (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [low, high] = [light(ink), light(ground)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}"""


@pytest.mark.parametrize(
    "part",
    [".token.accepted", ".token.replacement", "dd", ".bar .play", ".detail p", ".entry .value"],
)
def test_the_player_is_readable_in_either_theme(views, part):
    page, _ = views
    output = output_of(page, "temperature=0.8")
    assert output.locator(part).first.evaluate(CONTRAST) >= READABLE

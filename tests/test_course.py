"""The course as learners and instructors get it: built, released, started, graded, archived."""

import json
import os
import re
import shutil
import time
import zipfile
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from nbgrader.validator import Validator

from specdec_lab.checks.quiz import LETTERS
from specdec_lab.cli import main
from specdec_lab.course.build import _tidy, build, out_of_step, settings_for
from specdec_lab.course.cells import parse
from specdec_lab.course.folder import Course, CourseError, find_course
from specdec_lab.course.grade import _is_graded, grade_working_copy
from specdec_lab.course.mutants import Mutant, judge_all
from specdec_lab.course.release import LEFT_OUT, archive
from specdec_lab.course.start import start

ROOT = Path(__file__).parents[1]
COURSE = Course(ROOT)
NAMES = COURSE.written()
GRADED = [name for name in NAMES if not name.startswith("00")]


@pytest.fixture
def course(tmp_path) -> Course:
    """A copy of the course's files, to start and grade in."""
    for part in ("solutions", "notebooks", "nbgrader_config.py"):
        source = ROOT / part
        copy = shutil.copytree if source.is_dir() else shutil.copyfile
        copy(source, tmp_path / part)
    return Course(tmp_path)


@pytest.fixture
def inside(course, monkeypatch) -> Course:
    """The same, with the current folder inside it."""
    monkeypatch.chdir(course.root)
    return course


def cells_of(file: Path):
    return nbformat.read(file, as_version=4).cells


# --- what is committed -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_built_files_are_in_step_with_their_source(name):
    assert out_of_step(COURSE, name) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_key_was_run_to_the_end_without_an_error(name):
    code = [cell for cell in cells_of(COURSE.key(name)) if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    assert not [o for cell in code for o in cell.outputs if o.output_type == "error"]


@pytest.mark.parametrize("name", NAMES)
def test_no_path_or_warning_of_the_builders_computer_is_in_the_answer_key(name):
    text = COURSE.key(name).read_text()
    assert not re.findall(r"/(?:root|home|work|tmp|usr)/\w+|site-packages|Warning", text)


@pytest.mark.parametrize("name", NAMES)
def test_the_release_holds_no_solution_and_no_hidden_check(name):
    release = COURSE.release(name).read_text()
    assert not re.findall(r"(BEGIN|END) (SOLUTION|HIDDEN)|afresh|seed=\d{4}|Rubric", release)
    regions = re.findall(
        r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", COURSE.source(name).read_text(), re.DOTALL
    )
    lines = {line.strip(" #") for region in regions for line in region.splitlines()}
    released = "\n".join(cell.source for cell in cells_of(COURSE.release(name)))
    tell_tale = {line for line in lines if len(line) > 24}
    assert tell_tale or not regions
    assert not [line for line in tell_tale if line in released]
    for question in json.loads((COURSE.quizzes / f"{name}.json").read_text())["questions"]:
        assert set(question) == {"question", "options", "salt", "answer", "explanations"}


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_opens_and_closes_as_promised(name):
    text = "\n".join(cell.source for cell in cells_of(COURSE.release(name)))
    for part in ("**Time:**", "**The question:**", "## The key insight", "## Quiz", "glossary.md"):
        assert part in text, part
    for part in ("## What was claimed here", "Verified 20", "next review 20", "arxiv.org"):
        assert part in text, part
    assert len(parse(COURSE.source(name)).questions) == 5


@pytest.mark.parametrize("name", GRADED)
def test_the_minutes_of_the_exercises_fit_into_the_promised_time(name):
    source = parse(COURSE.source(name))
    minutes = sum(int(cell.options["minutes"]) for cell in source.cells if cell.role == "task")
    promised = int(re.search(r"\*\*Time:\*\* about (\d+) minutes", COURSE.source(name).read_text())[1])
    assert minutes < promised <= minutes * 1.6


def test_the_whole_course_is_worth_a_hundred_points():
    graded = [cell for name in NAMES for cell in cells_of(COURSE.key(name)) if _has_points(cell)]
    assert sum(cell.metadata.nbgrader.points for cell in graded) == 100
    written = [cell for cell in graded if cell.id.endswith("_written")]
    assert sum(cell.metadata.nbgrader.points for cell in written) == 5


@pytest.mark.parametrize("name", GRADED)
def test_sections_that_a_failed_check_points_to_exist(name):
    from importlib import import_module

    from specdec_lab.checks.harness import Check

    text = "\n".join(cell.source for cell in cells_of(COURSE.release(name)))
    checks = vars(import_module(f"specdec_lab.checks.{parse(COURSE.source(name)).module}"))
    sections = {one._read for one in checks.values() if isinstance(one, Check)}
    headings = re.findall(r"^#+ (?:Exercise \d+\.\d+: )?(.+)$", text, re.MULTILINE)
    assert sections <= set(headings)


def test_links_between_notebooks_lead_somewhere():
    for name in NAMES:
        text = COURSE.source(name).read_text()
        for link in re.findall(r"\]\((\.\.[^)]+)\)", text):
            assert (COURSE.notebooks / name / link).resolve().exists(), link


# --- build -------------------------------------------------------------------------------------


def test_building_again_changes_nothing(course):
    name = NAMES[1]
    assert build(course, name, execute=False) == []
    course.release(name).write_text("{}")
    assert build(course, name, execute=False) == [course.release(name)]
    assert course.release(name).read_bytes() == COURSE.release(name).read_bytes()


def test_a_changed_source_is_noticed_and_a_changed_cell_loses_its_output(course):
    name = NAMES[1]
    source = course.source(name)
    source.write_text(source.read_text().replace("import time\n", "import time  # a clock\n", 1))
    stale = out_of_step(course, name)
    assert [Path(file).parts[0] for file in stale] == ["notebooks", "solutions"]
    build(course, name, execute=False)
    assert out_of_step(course, name) == []
    first = next(cell for cell in cells_of(course.key(name)) if cell.cell_type == "code")
    assert first.outputs == []


def test_an_answer_key_that_fails_its_own_check_is_not_written(course):
    name = "01_memory_bound_decoding"
    before = course.key(name).read_bytes()
    cells = "# %% [markdown]\n# Text.\n\n# %%\nraise KeyError('here')\n"
    course.source(name).write_text(cells)
    with pytest.raises(CourseError, match=r"the answer key does not run: (.|\n)*KeyError"):
        build(course, name)
    assert course.key(name).read_bytes() == before


def test_a_view_stays_as_its_static_face_and_a_progress_bar_goes():
    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "7", "version_major": 2}}
    outputs = [
        new_output("display_data", view | {"text/html": "<b>face</b>", "text/plain": "face"}),
        new_output("display_data", view | {"text/plain": "0%"}),
        new_output("stream", name="stderr", text="warning"),
        new_output("stream", name="stdout", text="said"),
        new_output("execute_result", {"text/plain": "3"}, execution_count=1),
    ]
    key = new_notebook(cells=[new_code_cell("1 + 2", outputs=outputs)])
    key.metadata.widgets = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    _tidy(key)
    assert "widgets" not in key.metadata
    first, *others = key.cells[0].outputs
    assert first.data == {"text/html": "<b>face</b>", "text/plain": "face"}
    assert [output.output_type for output in others] == ["stream", "execute_result"]
    assert others[0].text == "said"


def test_nbgraders_own_command_makes_the_same_release(course, monkeypatch):
    from nbgrader.apps import NbGraderAPI

    from specdec_lab.course.build import call

    name = NAMES[1]
    shutil.rmtree(course.notebooks / name)
    monkeypatch.chdir(course.root)
    result = call(NbGraderAPI(config=settings_for(course.root)).generate_assignment, name)
    assert result["success"], result["log"]
    assert [file.name for file in (course.notebooks / name).iterdir()] == [f"{name}.ipynb"]
    assert course.release(name).read_bytes() == COURSE.release(name).read_bytes()


# --- start -------------------------------------------------------------------------------------


def test_a_working_copy_is_made_once_and_never_overwritten(course):
    name = NAMES[1]
    started = start(course, name)
    assert started.new
    assert started.file.read_bytes() == course.release(name).read_bytes()
    started.file.write_text("my work")
    assert not start(course, name).new
    assert started.file.read_text() == "my work"


def test_a_fresh_copy_keeps_the_old_one_aside(course):
    name = NAMES[1]
    start(course, name).file.write_text("my work")
    started = start(course, name, fresh=True)
    assert started.new
    assert started.kept_aside is not None
    assert (started.kept_aside / f"{name}.ipynb").read_text() == "my work"
    assert started.file.read_bytes() == course.release(name).read_bytes()


def test_a_fresh_copy_starts_without_the_choices_made_in_the_quiz(course):
    name = NAMES[1]
    file = start(course, name).file
    (file.parent / "answers.json").write_text("{}")
    started = start(course, name, fresh=True)
    assert [path.name for path in started.file.parent.iterdir()] == [f"{name}.ipynb"]
    assert started.kept_aside is not None
    assert (started.kept_aside / "answers.json").read_text() == "{}"


def test_results_beside_a_lost_notebook_are_kept(course):
    name = NAMES[1]
    file = start(course, name).file
    (file.parent / "results").mkdir()
    (file.parent / "results" / "x.json").write_text("{}")
    file.unlink()
    assert start(course, name).new
    assert (file.parent / "results" / "x.json").exists()


def test_start_on_the_command_line(inside, capsys):
    assert main(["start", "01"]) == 0
    assert capsys.readouterr().out == f"new         work/{NAMES[1]}/{NAMES[1]}.ipynb\n"
    assert main(["start"]) == 0
    assert f"kept as is  work/{NAMES[1]}" in capsys.readouterr().out
    assert main(["start", "77"]) == 1
    assert "NAME: got '77', expected one of 00_start_here" in capsys.readouterr().err


def test_the_course_is_found_from_inside_and_from_elsewhere(course, tmp_path, monkeypatch):
    (course.root / "work" / "deep").mkdir(parents=True)
    assert find_course(course.root / "work" / "deep").root == course.root
    assert find_course(Path("/")).root == ROOT


# --- grade -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", GRADED)
def test_the_answer_key_earns_every_automatic_point(course, name):
    shutil.copyfile(course.key(name), start(course, name).file)
    report = grade_working_copy(course, name)
    assert report.problem == ""
    assert [item.grade_id for item in report.items if item.points not in (None, item.worth)] == []
    expected = {cell.id for cell in cells_of(course.key(name)) if _has_points(cell)}
    assert {item.grade_id for item in report.items} == expected
    assert report.feedback is not None
    exercise = report.items[0].grade_id.rpartition("_")[0]
    assert exercise in report.feedback.read_text()


def _has_points(cell) -> bool:
    return cell.metadata.get("nbgrader", {}).get("grade", False)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRADED)
def test_the_release_earns_nothing_and_says_why(course, name):
    start(course, name)
    report = grade_working_copy(course, name)
    assert report.problem == ""
    assert report.points == report.bonus == 0
    for item in report.items:
        if item.grade_id.endswith("_written"):
            assert item.message == "no answer yet; a person grades it."
        else:
            assert "not implemented yet" in item.message.splitlines()[0]
    assert not list(course.working_copy(name).parent.glob("results"))


@pytest.mark.slow
def test_choices_beside_a_working_copy_are_graded_with_it(course):
    """And what cannot be copied with them stops nothing."""
    name = GRADED[0]
    file = start(course, name).file
    letters = parse(course.source(name)).questions
    answers = {str(place): LETTERS[one.right] for place, one in enumerate(letters, start=1)}
    choices = json.dumps({"quiz": name, "answers": answers | {"2": LETTERS[letters[1].right - 1]}})
    (file.parent / "answers.json").write_text(choices)
    (file.parent / "link").symlink_to("nowhere")
    (file.parent / "around").symlink_to(".")
    os.mkfifo(file.parent / "pipe")
    report = grade_working_copy(course, name)
    assert report.problem == ""
    points = {item.grade_id: item.points for item in report.items if item.points}
    assert points == {"quiz_check": 4}
    assert (file.parent / "answers.json").read_text() == choices


@pytest.mark.slow
def test_learners_without_the_answer_keys_are_graded_on_the_visible_checks(inside, capsys):
    name = "01_memory_bound_decoding"
    shutil.copyfile(inside.key(name), start(inside, name).file)
    shutil.rmtree(inside.solutions)
    assert main(["grade", "01"]) == 0
    shown = capsys.readouterr().out
    assert "Without the instructor's files only the visible checks could be graded." in shown
    assert "other inputs" not in shown
    assert main(["grade", "00"]) == 1
    assert "no notebook in" in capsys.readouterr().err


def test_commands_that_need_the_answer_keys_say_so(inside, capsys):
    shutil.rmtree(inside.solutions)
    for command in (["build"], ["release"], ["grade-class"]):
        assert main(command) == 1
        assert "expected the instructor's files" in capsys.readouterr().err


def test_grading_without_a_working_copy_says_how_to_get_one(inside, capsys):
    assert main(["grade"]) == 1
    assert "begin with: specdec-lab start" in capsys.readouterr().err


def test_only_what_is_new_or_changed_is_graded_by_default(course):
    name = NAMES[1]
    handed_in = course.root / "submitted" / "ada" / name / f"{name}.ipynb"
    graded = course.root / "autograded" / "ada" / name / f"{name}.ipynb"
    for file in (handed_in, graded):
        file.parent.mkdir(parents=True)
    handed_in.write_text("{}")
    assert not _is_graded_after(course, name, graded, missing=True)
    assert _is_graded_after(course, name, graded)
    time.sleep(0.02)
    handed_in.write_text("{} ")
    os.utime(handed_in, (0, 0))  # an archive may give a new file an old date
    assert not _is_graded(course, name, "ada")
    assert _is_graded_after(course, name, graded)
    time.sleep(0.02)
    (handed_in.parent / "answers.json").symlink_to("nowhere")
    assert not _is_graded(course, name, "ada")
    assert _is_graded_after(course, name, graded)
    time.sleep(0.02)
    course.key(name).write_text("{}")
    assert not _is_graded(course, name, "ada")


def _is_graded_after(course, name, graded, *, missing=False) -> bool:
    if not missing:
        time.sleep(0.02)
        graded.write_text("{}")
    return _is_graded(course, name, "ada")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_skipped_exercise_stops_nothing_else(course, name, monkeypatch):
    """The release, run from top to bottom: only the checks raise."""
    from nbclient import NotebookClient

    monkeypatch.setenv("SPECDEC_LAB_SMALL", "1")
    notebook = nbformat.read(start(course, name).file, as_version=4)
    place = {"metadata": {"path": str(course.working_copy(name).parent)}}
    client = NotebookClient(
        notebook, timeout=200, kernel_name="python3", resources=place, config=settings_for(course.root)
    )
    client.execute()
    raised = {
        cell.id
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    }
    checks = {cell.id for cell in notebook.cells if "raises-exception" in cell.metadata.get("tags", [])}
    assert raised == {name for name in checks if not name.endswith("_hidden")}
    assert raised


@pytest.mark.slow
def test_nbgraders_validator_finds_nothing_wrong_with_the_answer_key(course, monkeypatch):
    monkeypatch.setenv("SPECDEC_LAB_SMALL", "1")
    name = "02_greedy_draft_verify"
    file = start(course, name).file
    answers = {cell.id: cell.source for cell in cells_of(course.key(name))}
    notebook = nbformat.read(file, as_version=4)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = answers[cell.id]
    nbformat.write(notebook, file)
    result = Validator(config=settings_for(course.root)).validate(str(file))
    assert result == {}


# --- archive, mutants ----------------------------------------------------------------------------


def test_the_learners_archive_has_no_answer_key_and_is_always_the_same(tmp_path):
    first, second = (archive(COURSE, tmp_path / f"{n}.zip") for n in "ab")
    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    inside = {name.split("/")[1] for name in names}
    assert not inside & set(LEFT_OUT)
    assert {"notebooks", "specdec_lab", "Makefile", "nbgrader_config.py"} <= inside
    assert not [name for name in names if "__pycache__" in name or "BEGIN SOLUTION" in name]


@pytest.mark.slow
def test_every_coding_exercise_has_wrong_and_right_implementations_and_all_are_told_apart():
    judged = judge_all(COURSE, NAMES)
    assert [one for one in judged if not one.as_it_should] == []
    for name in GRADED:
        for cell in parse(COURSE.source(name)).cells:
            if cell.role != "exercise":
                continue
            mine = [one.mutant for one in judged if one.exercise == cell.name]
            is_function = f"def {cell.name}" in "\n".join(cell.body)
            assert sum(one.says is not None for one in mine) >= (4 if is_function else 1), cell.name
            assert sum(one.says is None for one in mine) >= (2 if is_function else 1), cell.name


def test_a_mutant_that_slips_through_is_a_miss(inside, capsys):
    folder = inside.root / "tests" / "mutants" / "memory_bound_decoding"
    folder.mkdir(parents=True)
    (folder / "attainable_flops.py").write_text(
        "from specdec_lab.course.mutants import right, wrong\n"
        "@wrong('is right', says='.')\n"
        "def good(intensity, peak, bandwidth):\n    return min(peak, intensity * bandwidth)\n"
        "@right('is wrong')\n"
        "def bad(intensity, peak, bandwidth):\n    return peak\n"
        "@wrong('has another message', says='no such words')\n"
        "def other(intensity, peak, bandwidth):\n    return peak\n"
    )
    assert main(["mutants", "01"]) == 1
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "0 of 2 wrong ones caught; 1 false alarms" in shown
    assert isinstance(judge_all(inside, [NAMES[1]])[0].mutant, Mutant)

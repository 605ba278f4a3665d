"""The notation of the course's sources: what it expands to, and what it refuses."""

import json
import re

import pytest

from specdec_lab.checks import quiz
from specdec_lab.course.cells import SourceError, key_notebook, parse, sealed_quiz

SOURCE = '''\
# %% [markdown]
# # Title
#
# Text.

# %%
import math

# %% [task] area title="An area" difficulty=2 minutes=5
# Compute it.

# %% [exercise] area
def area(r):
    """Of a circle."""
    ### BEGIN SOLUTION
    return math.pi * r**2
    ### END SOLUTION

# %% [check] area points=2

# %% [hidden check] area points=1 seed=7

# %% [bonus check] area points=3

# %% [task] why title="Why?" difficulty=1 minutes=2
# Say why.

# %% [written] why points=2.5
# Because:
### BEGIN SOLUTION
# it is so.
### END SOLUTION

# %% [quiz] points=4
# 1. Which?
# - one | no
# + two | yes
# - three | no
'''


REGION = "    ### BEGIN SOLUTION\n    return math.pi * r**2\n    ### END SOLUTION\n"


@pytest.fixture
def write(tmp_path):
    def write(text: str):
        file = tmp_path / "03_shapes_of_things.py"
        file.write_text(text)
        return file

    return write


def test_every_role_expands_to_nbgraders_metadata(write):
    notebook = key_notebook(parse(write(SOURCE)))
    marks = {
        cell.id: (m["grade"], m["solution"], m["locked"], m.get("points"))
        for cell in notebook.cells
        if (m := cell.metadata.get("nbgrader"))
    }
    assert marks == {
        "area": (False, True, False, None),
        "area_check": (True, False, True, 2),
        "area_hidden": (True, False, True, 1),
        "area_bonus_3": (True, False, True, 0),
        "why_written": (True, True, False, 2.5),
        "quiz_answers": (False, True, False, None),
        "quiz_check": (True, False, True, 4),
    }
    assert all(
        cell.metadata.tags == ["raises-exception"]
        for cell in notebook.cells
        if cell.id.endswith(("_check", "_hidden", "_bonus_3"))
    )


def test_checks_and_headings_are_made_from_the_name(write):
    cells = {cell.id: cell.source for cell in key_notebook(parse(write(SOURCE))).cells}
    assert cells["area_check"].endswith("check.area(area)")
    assert "from specdec_lab.checks import shapes_of_things as check" in cells["area_check"]
    hidden = cells["area_hidden"].split("### BEGIN HIDDEN TESTS")[1]
    assert 'afresh("shapes_of_things").area(area, seed=7)' in hidden
    text = "\n".join(cells.values())
    assert "## Exercise 3.1: An area\n\n*●●○ · about 5 minutes · optional, for a bonus*" in text
    assert "## Exercise 3.2: Why?\n\n*●○○ · about 2 minutes · 2.5 points*" in text
    assert cells["why_written"].startswith("Because:\n### BEGIN SOLUTION\nit is so.")


def test_a_quiz_is_asked_by_a_view_answered_in_a_cell_and_graded(write):
    text, view, answers, check = key_notebook(parse(write(SOURCE))).cells[-4:]
    assert text.source.startswith("## Quiz\n\nRun the next cell and click an answer")
    folded = text.source.partition("<details><summary>The questions as text</summary>\n\n")[2]
    assert folded == "**1.** Which?\n\n- **a** one\n- **b** two\n- **c** three\n\n</details>"
    assert view.source == 'from specdec_lab import widgets\n\nwidgets.quiz("03_shapes_of_things")'
    assert view.metadata == {}
    assert re.fullmatch(r"[0-9a-f]{12}", view.id)
    comment, blank, *solution = answers.source.splitlines()
    assert comment.startswith("# ")
    assert blank == 'answers = {1: ""}'
    assert solution == ["### BEGIN SOLUTION", 'answers = {1: "b"}', "### END SOLUTION"]
    assert check.source.endswith('quiz.grade("03_shapes_of_things", answers, points=4)')


def test_ids_are_the_same_from_build_to_build_and_unique(write):
    repeated = SOURCE + "\n# %%\nimport math\n"
    first, second = (key_notebook(parse(write(repeated))) for _ in range(2))
    ids = [cell.id for cell in first.cells]
    assert ids == [cell.id for cell in second.cells]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("[markdown]", "[text]", 1, "unknown role [text]"),
        ("[exercise] area", "[exercise]", 12, "got names []"),
        ("[exercise] area", "[exercise] an area", 12, "got names ['an', 'area']"),
        ("[exercise] area", "[exercise] 2area", 12, "expected a Python name"),
        ("points=2\n", "\n", 19, "got options []"),
        ("points=2\n", "points=two\n", 19, "points=two, expected a number"),
        ("points=2\n", "points=2 seed=1\n", 19, "got options ['points', 'seed']"),
        ("difficulty=2", "difficulty=4", 9, "expected 1, 2 or 3"),
        ('title="An area"', 'title="An area', 9, "cannot read the options"),
        ("    ### END SOLUTION\n", "", 12, "1 times BEGIN and 0 times END SOLUTION"),
        (
            "    ### BEGIN SOLUTION\n    return math.pi * r**2\n    ### END SOLUTION\n",
            "",
            12,
            "expected one",
        ),
        ("import math\n", "### BEGIN SOLUTION\n### END SOLUTION\n", 6, "expected none"),
        ("# Compute it.", "Compute it.", 10, "expected a comment line"),
        ("[check] area points=2\n", "[check] area points=2\narea(1)\n", 19, "got a body"),
        ("[check] area points=2", "[check] other points=2", 19, "no [exercise] other before it"),
        ("[task] area ", "[task] volume ", 12, "no [task] area before it"),
        ("[bonus check] area points=3", "[check] area points=3", 23, "also in line 19"),
        ("# - one | no", "# - one", 36, "expected '1. question'"),
        ("# + two | yes", "# - two | yes", 34, "3 options or more, one of them"),
        ("# - three | no", "# + three | no", 38, "a second option with '+'"),
        ("# - three | no", "", 34, "3 options or more"),
        ("# 1. Which?", "# 2. Which?", 35, "question 2: expected 1"),
    ],
)
def test_a_malformed_source_is_refused_with_file_and_line(write, old, new, line, problem):
    assert SOURCE.count(old) >= 1
    file = write(SOURCE.replace(old, new, 1))
    with pytest.raises(SourceError, match=rf"^{file.name}:{line}: .*{re.escape(problem)}"):
        parse(file)


def test_text_before_the_first_cell_is_refused(write):
    with pytest.raises(SourceError, match=r":1: text before the first cell"):
        parse(write("import math\n" + SOURCE))


def test_a_second_quiz_is_refused(write):
    with pytest.raises(SourceError, match="a second quiz"):
        parse(write(SOURCE + "\n# %% [quiz] points=1\n# 1. a\n# - b | c\n# + d | e\n# - f | g\n"))


def test_the_shipped_quiz_names_neither_answers_nor_explanations(write, tmp_path, monkeypatch, capsys):
    source = parse(write(SOURCE.replace("| yes", "| because of this").replace("| no", "| never")))
    sealed = json.dumps(sealed_quiz(source))
    assert "because of this" not in sealed
    assert "never" not in sealed
    (tmp_path / "q.json").write_text(sealed)
    monkeypatch.setattr(quiz, "FOLDER", tmp_path)
    assert quiz.grade("q", {1: "b"}, points=4) == 4
    assert quiz.grade("q", {1: " A "}, points=4) == 0
    assert quiz.grade("q", {1: "b"}, points=0) is None
    shown = capsys.readouterr().out
    assert "1. ✓ b: because of this" in shown
    assert "1. ✗ a: never" in shown


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({1: ""}, "not implemented yet"),
        ({}, "not implemented yet"),
        ({"1": "b"}, "answers has the keys ['1'], expected the numbers 1 to 1"),
        ("b", "answers is str, expected a dict"),
    ],
)
def test_quiz_answers_in_another_form_are_explained(write, tmp_path, monkeypatch, answers, says):
    (tmp_path / "q.json").write_text(json.dumps(sealed_quiz(parse(write(SOURCE)))))
    monkeypatch.setattr(quiz, "FOLDER", tmp_path)
    with pytest.raises(quiz.CheckFailed, match=re.escape(says)):
        quiz.grade("q", answers, points=4)


def test_a_slip_in_one_quiz_answer_costs_only_that_one(write, tmp_path, monkeypatch, capsys):
    two = SOURCE + "# 2. And?\n# - one | no\n# + two | yes\n# - three | no\n"
    (tmp_path / "q.json").write_text(json.dumps(sealed_quiz(parse(write(two)))))
    monkeypatch.setattr(quiz, "FOLDER", tmp_path)
    for slip, shown in (("z", "'z'"), (2, "2"), (["b"], "['b']")):
        assert quiz.grade("q", {1: slip, 2: "b"}, points=4) == 2
        assert f"1.    got {shown}, expected a letter from a to c" in capsys.readouterr().out

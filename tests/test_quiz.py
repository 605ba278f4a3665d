"""The quiz: what is typed or clicked, what is kept of it beside the notebook, and what counts."""

import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_lab.checks import chosen, quiz
from specdec_lab.checks.quiz import Question, seal
from specdec_lab.widgets.asking import Answering, ask, marked, plain_text, static_face

NAME = "q"
QUESTIONS = [
    Question("What is `p`, *really*?", ["the draft", "the target"], ["No.", "Yes: `p`."], 1),
    Question("And <b>q</b>?", ["<script>alert(1)</script>", "שלום & co", "a\nb"], ["*a*", "b", "c"], 0),
    Question("Long?", ["short", "long " * 50, "none"], ["why " * 60, "no", "no"], 2),
]
ALLOWED = {1: "ab", 2: "abc", 3: "abc"}
RIGHT = {1: "b", 2: "a", 3: "c"}


@contextmanager
def installed(place: Path) -> Iterator[Path]:
    """The notebook's folder, which is the current one; the quiz is elsewhere."""
    quizzes, work = place / "quizzes", place / "work"
    quizzes.mkdir()
    work.mkdir()
    (quizzes / f"{NAME}.json").write_text(json.dumps(seal(NAME, QUESTIONS)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quiz, "FOLDER", quizzes)
        patch.chdir(work)
        yield work


@pytest.fixture
def folder(tmp_path) -> Iterator[Path]:
    with installed(tmp_path) as work:
        yield work


def keep(folder: Path, answers: object, name: object = NAME) -> None:
    (folder / "answers.json").write_text(json.dumps({"quiz": name, "answers": answers}))


def kept(folder: Path) -> dict[str, str]:
    data = json.loads((folder / "answers.json").read_text())
    assert data["quiz"] == NAME
    return data["answers"]


# --- answers.json -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{'1': ", "Expecting property name"),
        (b"\xff\xfe\0", "can't decode"),
        (b"", "Expecting value"),
        (b"[" * 90_000, "nested too deeply"),
        (b" " * 200_000, "longer than 100000 bytes"),
        (b"9" * 90_000, "integer"),
        (b"[]", 'expected {"quiz"'),
        (b'{"quiz": "q", "answers": {}, "more": 1}', 'expected {"quiz"'),
        (b'{"quiz": "other", "answers": {"1": "a"}}', "it is for the quiz 'other', expected 'q'"),
        (b'{"quiz": ["q"], "answers": {"1": "a"}}', "it is for the quiz a list"),
        (b'{"quiz": "q", "answers": ["a"]}', "its answers are a list"),
    ],
)
def test_a_file_that_is_none_of_ours_counts_for_nothing_and_says_why(folder, content, says):
    (folder / "answers.json").write_bytes(content)
    read = chosen.read(folder, NAME, ALLOWED)
    assert read.letters == {}
    assert says in read.problem
    assert len(read.problem) < 200
    assert quiz.grade(NAME, {1: "b"}, points=3) == 1
    with pytest.raises(quiz.CheckFailed, match="not implemented yet: choose an answer") as error:
        quiz.grade(NAME, {}, points=3)
    assert says in str(error.value)


def test_what_is_no_file_counts_for_nothing_and_is_kept_aside(folder):
    file, elsewhere = folder / "answers.json", folder / "elsewhere"
    elsewhere.write_text(json.dumps({"quiz": NAME, "answers": {"1": "b"}}))
    makers = [
        lambda: file.mkdir(),
        lambda: file.symlink_to("nowhere"),
        lambda: file.symlink_to(elsewhere),
        lambda: os.mkfifo(file),
    ]
    for number, make in enumerate(makers, start=1):
        make()
        answering = Answering(NAME, folder)
        assert "a link or a folder" in answering.notice
        answering.choose(2, "a")
        assert kept(folder) == {"2": "a"}
        assert len(list(folder.glob("answers.json.bak*"))) == number
        file.unlink()
    assert elsewhere.exists()


@pytest.mark.parametrize(
    ("answers", "letters", "says"),
    [
        ({"1": "b", "2": ""}, {1: "b"}, ""),
        ({"1": " B ", "2": "d"}, {1: "b"}, "'2': 'd'"),
        ({"1": "b", "4": "a"}, {1: "b"}, "'4': 'a'"),
        ({"1": "b", "01": "a", "x": ""}, {1: "b"}, "'x': ''"),
        ({"1": "b", "2": [["a"]], "3": None}, {1: "b"}, "'3': a NoneType"),
        ({"1": "ab", "2": 1.5, "3": "\ud800" * 99}, {}, "'3': '"),
    ],
)
def test_an_odd_answer_costs_only_itself(folder, answers, letters, says, capsys):
    keep(folder, answers)
    read = chosen.read(folder, NAME, ALLOWED)
    assert read.letters == letters
    assert says in read.problem
    assert bool(says) == bool(read.problem)
    read.problem.encode()
    if letters:
        assert quiz.grade(NAME, {}, points=3) == 1
        assert says in capsys.readouterr().out


@given(
    st.recursive(
        st.none() | st.text() | st.floats() | st.integers(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["quiz", "answers", "1", "2", "9"]), inner)
        ),
    )
)
def test_no_content_raises(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("any")
    for data in (content, {"quiz": NAME, "answers": content}):
        (folder / "answers.json").write_text(json.dumps(data))
        read = chosen.read(folder, NAME, ALLOWED)
        assert all(letter in ALLOWED[number] for number, letter in read.letters.items())


# --- what counts ------------------------------------------------------------------------------------


def test_a_typed_letter_wins_over_a_chosen_one_and_that_over_nothing(folder, capsys):
    keep(folder, {"1": "a", "2": "a"})
    assert quiz.grade(NAME, {1: "b", 2: "", 3: ""}, points=3) == 2
    assert capsys.readouterr().out.splitlines() == [
        "from answers.json, chosen in the quiz above: 2",
        "1. ✓ b: Yes: `p`.",
        "2. ✓ a: *a*",
        "3.    no answer yet",
        "",
        "2 of 3 right",
    ]
    assert quiz.grade(NAME, {}, points=3) == 1
    assert "from answers.json, chosen in the quiz above: 1, 2\n" in capsys.readouterr().out
    assert quiz.grade(NAME, {1: "b", 2: "b"}, points=3) == 1
    assert "answers.json" not in capsys.readouterr().out


def test_typed_slips_leave_the_chosen_letter(folder, capsys):
    keep(folder, {"1": "b", "2": "a"})
    assert quiz.grade(NAME, {1: "z", "2": "b"}, points=3) == 2
    shown = capsys.readouterr().out
    assert "1.    got 'z', expected a letter from a to b" in shown
    assert "answers has the keys ['2'], expected the numbers 1 to 3" in shown


def test_without_any_answer_the_check_says_both_ways(folder):
    with pytest.raises(quiz.CheckFailed) as error:
        quiz.grade(NAME, {1: "", 2: "", 3: ""}, points=3)
    assert str(error.value) == (
        "✗ quiz: not implemented yet: choose an answer for each question above, "
        "or put letters in the cell above"
    )


# --- the view's model -------------------------------------------------------------------------------


def test_choices_are_judged_saved_and_there_again(folder):
    answering = Answering(NAME, folder)
    assert answering.summary == "0 of 3 answered, 0 right so far"
    assert not (folder / "answers.json").exists()
    answering.choose(1, "a")
    answering.choose(3, "c")
    answering.choose(1, "b")
    assert answering.summary == "2 of 3 answered, 2 right so far; saved in answers.json"
    assert kept(folder) == {"1": "b", "3": "c"}
    assert [path.name for path in folder.iterdir()] == ["answers.json"]
    again = Answering(NAME, folder)
    assert again.asked == answering.asked
    assert [one.letter for one in again.asked] == ["b", "", "c"]
    assert again.asked[0].verdict == quiz.Verdict(True, "Yes: `p`.")
    assert again.asked[1].verdict is None
    assert again.asked[2].longest == 240
    assert again.notice == again.trouble == ""


@given(st.lists(st.sampled_from([(n, letter) for n, some in ALLOWED.items() for letter in some])))
def test_the_last_choices_are_what_is_kept_and_graded(choices):
    with TemporaryDirectory() as place, installed(Path(place)) as work:
        views = [Answering(NAME, work) for _ in range(2)]
        for turn, (number, letter) in enumerate(choices):
            views[turn % 2].choose(number, letter)
        last = dict(choices)
        assert chosen.read(work, NAME, ALLOWED) == chosen.Chosen(last)
        if choices:
            right = sum(last.get(number) == letter for number, letter in RIGHT.items())
            assert quiz.grade(NAME, {}, points=3) == right
            shown = views[(len(choices) - 1) % 2].summary
            assert shown == f"{len(last)} of 3 answered, {right} right so far; saved in answers.json"


def test_another_file_is_kept_aside_and_no_older_one_is_lost(folder):
    for number, old in enumerate(("{broken", '{"quiz": "other", "answers": {}}', "[]"), start=1):
        (folder / "answers.json").write_text(old)
        answering = Answering(NAME, folder)
        before = answering.notice
        assert before.startswith("answers.json is not used: ")
        assert (folder / "answers.json").read_text() == old
        aside = f"answers.json.bak{number if number > 1 else ''}"
        answering.choose(1, "b")
        assert answering.notice == f"{before}; it is now {aside}"
        assert (folder / aside).read_text() == old
        assert kept(folder) == {"1": "b"}


def test_what_cannot_be_written_is_said_and_saved_with_the_next_choice(folder, monkeypatch):
    keep(folder, {"3": "c"})
    answering = Answering(NAME, folder)

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(chosen, "keep", full)
        answering.choose(1, "b")
    assert answering.summary == (
        "2 of 3 answered, 2 right so far; NOT saved in answers.json: No space left on device"
    )
    assert [one.letter for one in answering.asked] == ["b", "", "c"]
    assert kept(folder) == {"3": "c"}
    answering.choose(2, "b")
    assert answering.summary == "3 of 3 answered, 2 right so far; saved in answers.json"
    assert kept(folder) == {"1": "b", "2": "b", "3": "c"}


@pytest.mark.parametrize(
    ("place", "saved"),
    [
        ("solutions/q", False),
        ("notebooks/q", False),
        ("submitted/ada/q", False),
        ("autograded/ada/q", False),
        ("work/q", True),
        ("elsewhere", True),
    ],
)
def test_nothing_is_written_beside_answer_keys_and_submissions(folder, place, saved):
    (folder / "nbgrader_config.py").touch()
    where = folder / place
    where.mkdir(parents=True)
    answering = Answering(NAME, where)
    answering.choose(1, "b")
    assert (where / "answers.json").exists() == saved
    not_saved = f"NOT saved in answers.json: {place.split('/')[0]}/ is not a place to work in"
    assert answering.summary.endswith("; saved in answers.json" if saved else not_saved)
    assert answering.asked[0].verdict.right


@pytest.mark.parametrize(("number", "letter"), [(0, "a"), (4, "a"), (1, "c"), (1, ""), (1, "ab")])
def test_choosing_what_is_not_there_is_refused(folder, number, letter):
    with pytest.raises(ValueError, match="number, letter: got"):
        Answering(NAME, folder).choose(number, letter)
    assert not (folder / "answers.json").exists()


def test_marks_become_html_and_everything_else_is_text():
    assert marked("`p < q` is *so* & <b>") == "<code>p &lt; q</code> is <em>so</em> &amp; &lt;b&gt;"
    assert marked("2 * 3 * 4, `a*b*c`, a ` b") == "2 * 3 * 4, <code>a*b*c</code>, a ` b"


@given(st.text(alphabet="<>&\"'`*x \n"))
def test_no_text_makes_another_tag(text):
    html = marked(text)
    for tag in ("code", "em"):
        html = html.replace(f"<{tag}>", "").replace(f"</{tag}>", "")
    assert "<" not in html
    assert ">" not in html


# --- the view ---------------------------------------------------------------------------------------


def cards(view):
    return view.children[2:-1]


def test_a_click_shows_the_verdict_and_counts(folder):
    view = ask(NAME)
    first, second, _ = cards(view)
    assert [card.radio.value for card in cards(view)] == [None] * 3
    assert {card.verdict.value for card in cards(view)} == {""}
    room = [card.verdict.layout.min_height for card in cards(view)]
    first.radio.value = "a"
    assert "✗ a is not right.</b> No." in first.verdict.value
    first.radio.value = "b"
    assert "✓ b is right.</b> Yes: <code>p</code>." in first.verdict.value
    second.radio.index = 0
    assert "2 of 3 answered, 2 right so far; saved in answers.json" in view.children[-1].value
    assert [card.verdict.layout.min_height for card in cards(view)] == room
    assert int(room[2][:-2]) > int(room[0][:-2]) >= 21
    assert kept(folder) == {"1": "b", "2": "a"}
    again = ask(NAME)
    assert [card.radio.value for card in cards(again)] == ["b", "a", None]
    assert kept(folder) == {"1": "b", "2": "a"}


def test_a_second_view_takes_over_what_was_chosen_in_the_first(folder):
    one, other = ask(NAME), ask(NAME)
    cards(one)[0].radio.value = "b"
    cards(other)[2].radio.value = "a"
    assert kept(folder) == {"1": "b", "3": "a"}
    assert cards(other)[0].radio.value == "b"
    assert "2 of 3 answered, 1 right" in other.children[-1].value


def test_a_broken_file_and_a_failure_are_said_in_the_view(folder, monkeypatch):
    keep(folder, {}, name="<i>")
    view = ask(NAME)
    assert (
        "✗ answers.json is not used: it is for the quiz &#x27;&lt;i&gt;&#x27;" in view.children[1].value
    )
    cards(view)[0].radio.value = "a"
    assert "it is now answers.json.bak" in view.children[1].value

    def fails(*_args, **_options):
        raise RuntimeError("<b>unforeseen</b>")

    monkeypatch.setattr(chosen, "keep", fails)
    cards(view)[0].radio.value = "b"
    assert "✗ RuntimeError: &lt;b&gt;unforeseen&lt;/b&gt;" in view.children[-1].value


def test_options_are_text_with_their_letters_and_the_question_is_their_label(folder):
    second = cards(ask(NAME))[1].radio
    assert [label for label, _ in second.options] == [
        "a)\u2002<script>alert(1)</script>",
        "b)\u2002שלום & co",
        "c)\u2002a\nb",
    ]
    assert "<b>2.</b> And &lt;b&gt;q&lt;/b&gt;?" in second.description
    assert second.tooltip == "Question 2"


def test_without_widgets_the_quiz_is_read_as_it_stands(folder):
    keep(folder, {"1": "b", "2": "b"})
    view = ask(NAME)
    bundle = view._repr_mimebundle_()
    html = bundle["text/html"]
    assert html == static_face(Answering(NAME, folder))
    assert "○ a)&ensp;&lt;script&gt;alert(1)&lt;/script&gt;</li>" in html
    assert "● b)&ensp;שלום &amp; co</li>" in html
    assert "✓ b is right." in html
    assert "<script" not in html
    assert "No." not in html  # why the option that was not chosen is wrong
    assert bundle["text/plain"] == repr(view) == plain_text(Answering(NAME, folder))
    assert repr(view).splitlines()[:4] == [
        "1. What is `p`, *really*?",
        "   ( ) a) the draft",
        "   (x) b) the target",
        "   ✓ b is right. Yes: `p`.",
    ]
    assert repr(view).endswith("\n2 of 3 answered, 1 right so far; saved in answers.json")


@pytest.mark.parametrize("name", ["other", "../work/answers", "", None, 3])
def test_a_quiz_that_is_not_there_is_refused(folder, name):
    with pytest.raises(ValueError, match=r"^name: got .*, expected one of q$"):
        ask(name)


def test_the_courses_own_quizzes_open_and_take_every_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(1)
    for name in quiz.names():
        view = ask(name)
        for card in cards(view):
            card.radio.index = draw.randrange(len(card.radio.options))
            assert "is right." in card.verdict.value or "is not right." in card.verdict.value
        assert f"{len(cards(view))} of {len(cards(view))} answered" in view.children[-1].value
    assert len(list(tmp_path.iterdir())) == len(quiz.names())

"""The checks of ``04_speed_experiments`` beside their mutants: untouched stubs, and the saved sweep."""

import json

import pytest

from specdec_lab.checks import CheckFailed, speed_experiments
from specdec_lab.checks.speed_experiments import answers
from specdec_lab.checks.speed_experiments.race import FakeRace, Track

NUMBERS = {
    "drafter": "draft model",
    "gamma": 2,
    "alpha": 0.5,
    "c": 0.1,
    "v": 1.2,
    "predicted": 1.25,
    "plain_ms": 60.0,
    "drafted_ms": 50.0,
    "speedup": 1.2,
}


def message(check_, answer) -> str:
    with pytest.raises(CheckFailed) as failure:
        check_(answer)
    return str(failure.value)


# --- stubs -------------------------------------------------------------------------------------


def stub(*arguments):
    raise NotImplementedError


UNTOUCHED = {
    "predictions": {"gamma": None, "speedup": None},
    "slower": {"setting": None, "speedup": None, "because": None},
    "my_numbers": dict.fromkeys(NUMBERS),
}


@pytest.mark.parametrize("name", speed_experiments.__all__)
def test_what_is_untouched_is_not_implemented_yet(name):
    check = getattr(speed_experiments, name)
    assert "not implemented yet" in message(check, UNTOUCHED.get(name, stub)).splitlines()[0]


@pytest.mark.parametrize("name", sorted(set(speed_experiments.__all__) - set(UNTOUCHED)))
def test_a_function_has_a_reference_to_fall_back_on(name):
    check = getattr(speed_experiments, name)
    assert check.reference is getattr(answers, name)


# --- my_numbers and the sweep that was saved -----------------------------------------------------


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Writes results/sweep.json where the check looks for it, or another file beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()

    def write(content: object, name: str = "sweep.json") -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / "results" / name).write_text(text, encoding="utf-8")

    return write


def a_run(drafter="draft model", gamma=2, speedup=1.21) -> dict[str, object]:
    return {"drafter": drafter, "gamma": gamma, "speedup": speedup}


def test_numbers_that_fit_the_saved_run_pass(sweep):
    sweep({"runs": [a_run(gamma=1, speedup=0.9), a_run()], "provenance": {}})
    speed_experiments.my_numbers(NUMBERS)


def test_one_of_several_saved_runs_is_enough(sweep):
    sweep({"runs": [a_run(speedup=0.9), a_run()]})
    speed_experiments.my_numbers(NUMBERS)


def test_numbers_that_contradict_the_saved_run(sweep):
    sweep({"runs": [a_run(speedup=1.4)]})
    text = message(speed_experiments.my_numbers, NUMBERS)
    assert "your saved measurement says 1.4 for" in text
    assert "yours     1.2" in text


def test_numbers_of_the_measurement_before_the_last_one_pass(sweep):
    sweep({"runs": [a_run(speedup=1.4)]})
    sweep({"runs": [a_run()]}, "sweep.before.json")
    speed_experiments.my_numbers(NUMBERS)


def test_a_draft_length_that_was_not_saved(sweep):
    sweep({"runs": [a_run(gamma=1), a_run(gamma=4), a_run("n-gram", 8), a_run(gamma=4, speedup=1.3)]})
    text = message(speed_experiments.my_numbers, NUMBERS)
    assert "your saved measurement has no run of this drafter with this gamma" in text
    assert "saved     gamma 1, 4\n" in text


def test_a_drafter_that_was_not_saved(sweep):
    sweep({"runs": [a_run(), a_run("n-gram", 4), a_run("n-gram", 8)]})
    text = message(speed_experiments.my_numbers, NUMBERS | {"drafter": "the draft"})
    assert "your saved measurement knows no such drafter" in text
    assert "saved     draft model, n-gram\n" in text


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        {},
        {"runs": None},
        {"runs": []},
        {"runs": 3},
        {"runs": {"drafter": "n-gram"}},
        {"runs": [None, 3, "text", [], {}]},
        {
            "runs": [
                a_run(gamma=None),
                a_run(speedup="fast"),
                a_run(speedup=float("nan")),
                a_run(gamma=float("inf")),
            ]
        },
        "\x00",
    ],
    ids=repr,
)
def test_a_garbled_sweep_is_ignored(sweep, content):
    sweep(content)
    speed_experiments.my_numbers(NUMBERS)


def test_bytes_that_are_no_text_are_ignored(sweep, tmp_path):
    (tmp_path / "results" / "sweep.json").write_bytes(b"\xff\xfe{")
    speed_experiments.my_numbers(NUMBERS)


def test_no_sweep_at_all_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    speed_experiments.my_numbers(NUMBERS)
    assert "There is no results/sweep.json to compare them with" in capsys.readouterr().out


# --- the race ------------------------------------------------------------------------------------

TRACK = Track(
    {"plain": [(1, 0.5), (1, 0.04), (1, 0.04)], "drafted": [(2, 0.7), (3, 0.06)]},
    [1.0, 5.0],
    [1.0, 0.5],
)


def test_a_race_gives_the_docstrings_speedups():
    race = FakeRace(TRACK)
    speedup = answers.paired_speedup(race.plain, race.drafted, 2, race.clock, race.synchronize)
    assert speedup == pytest.approx((2.0 + 4.0) / 2, rel=1e-3)
    assert [run.name for run in race.order] == ["plain", "drafted"] * 3
    assert race.read_behind.total() == 0


def test_a_race_is_behind_the_programs_back():
    race = FakeRace(TRACK)
    started = race.clock()
    rounds = race.plain()
    assert [next(rounds), *rounds] == [1, 1, 1]
    assert race.clock() - started < 1e-4
    race.synchronize()
    assert race.clock() - started == pytest.approx(3.0 * 0.58, rel=1e-3)
    assert dict(race.read_behind) == {"later": 1}

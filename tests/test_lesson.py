"""The sweep of notebook 04, its pictures, the picture of alpha, and what the notebooks call besides."""

import pytest
from test_bench_experiments import pair  # noqa: F401
from test_measuring import texts

from specdec_lab import lab, plots
from specdec_lab.bench import lesson
from specdec_lab.bench.results import committed
from specdec_lab.bench.sweep import costs, drafters_of
from specdec_lab.language_model import RandomLM
from specdec_lab.provenance import provenance


@pytest.fixture(scope="module")
def swept(pair):  # noqa: F811
    timed = costs(pair.target, drafters_of(pair), (1, 2), 2)
    found = lesson.sweep(pair, {"one": "w1 w2", "other": "w3"}, (1, 2), 8, timed)
    return found | {"provenance": provenance(pair.target, None)}


def test_a_runs_numbers_agree_with_each_other(swept):
    assert {run["gamma"] for run in swept["runs"]} == {1, 2}
    for run in swept["runs"]:
        assert run["speedup"] == pytest.approx(run["plain_ms"] / run["drafted_ms"])
        assert 1.0 <= run["tokens_per_round"] <= run["gamma"] + 1
        assert run["v"] == swept["costs"]["v"][str(run["gamma"] + 1)]
        assert run["prompts"] == (1 if run["drafter"] in lesson.HOPELESS else 2)
        assert run["alpha"] is None or 0.0 <= run["alpha"] <= 1.0


def test_alpha_is_accepted_over_judged_of_all_prompts(swept):
    run = next(run for run in swept["runs"] if run["drafter"] == "draft model" and run["gamma"] == 2)
    judged = accepted = 0
    for row in swept["prompts"]:
        for one in row["runs"]:
            if (one["drafter"], one["gamma"]) == ("draft model", 2):
                judged += sum(here[0] for here in one["judged_at"])
                accepted += sum(here[1] for here in one["judged_at"])
    assert run["alpha"] == accepted / judged


def test_a_round_in_plain_steps_accounts_for_the_time_of_its_tokens(swept):
    """On one prompt, where pooling changes nothing: tokens a round * time a token = its three parts."""
    for run in swept["runs"]:
        if run["prompts"] == 1:
            steps = run["draft"] + run["verify"] + run["rest"]
            assert steps == pytest.approx(run["tokens_per_round"] / run["speedup"], rel=1e-6)


def test_a_drafter_without_a_cost_of_its_own_has_no_c(swept):
    c = {run["drafter"]: run["c"] for run in swept["runs"]}
    assert c["n-gram"] == 0.0
    assert c["draft model, 50% noise"] is None
    assert c["the target itself"] > 0.0


def test_the_sweep_drawn_with_theory_and_the_prediction(swept):
    shown = swept | {"predicted": {"gamma": 2, "speedup": 1.5}}
    figure = plots.promises(shown, {("draft model", 1): 1.1, ("draft model", 2): 1.2})
    dotted = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    assert [1.1, 1.2] in [list(line.get_ydata()) for line in dotted]
    assert "you predicted (draft model)" in texts(figure)
    assert "measured: greedy" in texts(figure)
    split = plots.round_split(swept, 2, ["n-gram", "draft model", "draft model, 50% noise"])
    assert "promised" in texts(split)
    labels = [label.get_text() for label in split.axes[0].get_yticklabels()]
    assert labels == ["n-gram", "draft model"]


def test_the_waits_of_each_way_in_each_turn(pair):  # noqa: F811
    settings = [("draft model", 2), ("n-gram", 1)]
    ways = lesson.waits(pair, [1, 2, 3], settings, budget=6, turns=2)["ways"]
    assert list(ways) == ["plain", "draft model, gamma 2", "n-gram, gamma 1"]
    assert [len(runs) for runs in ways.values()] == [4, 2, 2]  # plain comes first and last in a turn
    for runs in ways.values():
        for run in runs:
            assert sum(tokens for tokens, _ in run) == 6
            assert all(seconds > 0.0 for _, seconds in run)
    assert [tokens for tokens, _ in ways["plain"][0]] == [1] * 6


def test_without_a_measurement_nothing_is_drawn(capsys):
    assert plots.promises({}, {}) is None
    assert plots.round_split({}, 2, ["n-gram"]) is None
    assert capsys.readouterr().out.count("Nothing is measured yet") == 2


def test_the_area_that_two_histograms_share_is_alpha():
    p, q = [0.35, 0.40, 0.20, 0.05], [0.55, 0.25, 0.15, 0.05]
    figure = plots.overlap(["A", "B", "C", "$x"], p, q, "made up")
    shared, thrown_away, restored = (
        sum(bar.get_height() for bar in one) for one in figure.axes[0].containers[:3]
    )
    assert shared == pytest.approx(0.8)
    assert thrown_away == pytest.approx(restored) == pytest.approx(0.2)
    assert "theory: made up" in texts(figure)


def test_an_answer_with_a_gap_is_not_filled():
    assert lab.filled({"gamma": 2, "speedup": None}) is None
    assert lab.filled({"gamma": 2, "speedup": 0.0}) == {"gamma": 2, "speedup": 0.0}


def test_counted_passes_of_a_model_that_is_rewound():
    model = RandomLM(3, 1)
    counting = lab.CountPasses(model)
    counting.extend([0, 1, 2], rows=1)
    assert counting.rewind_to_match([0, 1, 1, 0]) == [1, 0]
    assert (counting.length, counting.passes) == (2, 1)
    counting.reset()
    assert (model.length, counting.passes) == (0, 1)


def test_the_committed_results_are_found_and_others_are_not():
    assert committed("sweep").provenance["kind"] == "measured"
    with pytest.raises(ValueError, match=r"nothing\.json: not found"):
        committed("nothing")

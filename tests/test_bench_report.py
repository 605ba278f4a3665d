"""From rows to tables, pictures and the page: nothing typed, nothing lost."""

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from helpers import tiny_lm

from benchmarks import report
from specdec_lab.adaptive import Costs
from specdec_lab.bench.groups import best_length, groups_of, shortest_way
from specdec_lab.bench.prediction import predict
from specdec_lab.bench.results import SCHEMA, Result
from specdec_lab.bench.sheets import SHEETS
from specdec_lab.bench.sweep import look_up_limit
from specdec_lab.decoding import generate
from specdec_lab.drafters import NGramDrafter
from specdec_lab.provenance import provenance
from specdec_lab.sheet import Sheet, Toned
from specdec_lab.theory import expected_speedup, expected_tokens_per_round

ROOT = Path(__file__).parents[1]
COSTS = Costs(0.1, {1: 1.0, 3: 1.2})


def run_of(seconds=1.0, **changes):
    """A run of 10 rounds with two drafted tokens that went exactly as theory has it at alpha 0.5."""
    row = {
        "drafter": "draft model",
        "gamma": 2,
        "alpha": 0.5,
        "rounds": 10,
        "drafted": {"2": 10},
        "tokens_per_round": expected_tokens_per_round(0.5, 2),
        "draft_seconds": 0.2,
        "verify_seconds": 1.2,
        "rest_seconds": 0.0,
        "seconds_per_token": seconds,
    }
    return row | changes


def test_a_run_as_theory_has_it_is_predicted_exactly():
    found = predict(run_of(), {"seconds_per_token": 1.0}, COSTS)
    assert found.speedup == pytest.approx(expected_speedup(0.5, 2, 0.1, 1.2))
    assert found.miss == pytest.approx(1.0)
    assert predict(run_of(alpha=None), {"seconds_per_token": 1.0}, COSTS) is None


def test_a_miss_is_that_of_the_tokens_times_that_of_the_time():
    slow = run_of(verify_seconds=1.5, rest_seconds=0.1, tokens_per_round=2.0)
    found = predict(slow, {"seconds_per_token": 1.0}, COSTS)
    time = (0.2 + 1.2) / (0.2 + 1.5 + 0.1)
    assert found.miss == pytest.approx(found.miss_of_tokens * time)
    assert found.miss_of_tokens == pytest.approx(2.0 / 1.75)


def test_rounds_that_drafted_less_are_predicted_as_what_they_were():
    found = predict(run_of(drafted={"0": 5, "2": 5}), {"seconds_per_token": 1.0}, COSTS)
    assert found.tokens == pytest.approx((1.0 + expected_tokens_per_round(0.5, 2)) / 2)
    assert found.draft == pytest.approx(0.1)
    assert found.verify == pytest.approx((1.0 + 1.2) / 2)


def sweep_of(*runs):
    costs = {"key": "costs", "kind": "measured", "v": COSTS.v, "c": {"draft model": 0.1}}
    prompts = [
        {
            "key": str(number),
            "kind": "measured",
            "prompt_kind": "conversation",
            "temperature": 0.0,
            "plain": {"seconds_per_token": 2.0},
            "runs": [one],
        }
        for number, one in enumerate(runs)
    ]
    return Result("sweep", provenance(None, None), {}, [costs, *prompts])


def test_prompts_of_a_kind_are_gathered_and_the_best_length_is_that_of_the_best_median():
    runs = [run_of(s, gamma=gamma) for gamma, s in ((2, 1.0), (2, 0.5), (2, 4.0), (4, 1.6), (4, 1.6))]
    result = sweep_of(*runs)
    two, four = groups_of(result)
    assert (two.speedup.value, four.speedup.value) == (2.0, 1.25)
    assert len(two.runs) == 3
    assert best_length(result, 0.0, "draft model") == 2
    assert best_length(result, 0.0, "nobody") is None
    assert two.costs.c == 0.1


def test_the_best_of_several_ways_is_that_with_the_lowest_median():
    times = [{"ours, a, 1": 3.0, "ours, a, 2": 2.0, "theirs": 1.0}] * 3
    assert shortest_way(times, "ours, a") == "ours, a, 2"
    assert shortest_way(times, "nobody") is None


@pytest.mark.parametrize("seed", range(6))
def test_no_look_up_takes_fewer_rounds_than_the_limit(seed):
    target = tiny_lm(seed)
    options = {"max_new_tokens": 60, "end_ids": []}
    plain = generate(target, [1, 2, 3, 1, 2], **options)
    fewest = (len(plain.tokens) - 1) / look_up_limit(plain)
    for longest in (1, 3):
        drafter = NGramDrafter(target.vocab_size, longest)
        made = generate(target, [1, 2, 3, 1, 2], drafter=drafter, **options)
        assert made.tokens == plain.tokens
        assert fewest <= len(made.rounds)
    assert fewest < 60


def test_the_look_up_limit_by_hand():
    plain = generate(tiny_lm(), [1], max_new_tokens=2, end_ids=[])
    # 5 is new; then 1 2 3 stands in the prompt and 9 closes the round; then 8 is new.
    by_hand = replace(plain, prompt_tokens=[1, 2, 3, 4], tokens=[5, 1, 2, 3, 9, 8])
    assert look_up_limit(by_hand) == 5 / 2
    assert look_up_limit(replace(plain, prompt_tokens=[1], tokens=[5])) == 1.0


def test_a_sheet_in_markdown():
    sheet = Sheet("Title", ("name", "n"), (("a", Toned("1.0", "good")),), ("note", "more"))
    assert sheet.markdown() == ("**Title**\n\n| name | n |\n| :-- | --: |\n| a | 1.0 |\n\nnote  \nmore")


def committed():
    return report.results()


def test_every_experiment_has_a_committed_result_that_keeps_to_the_schema():
    assert set(committed()) == set(SHEETS)
    for file in report.SPEED.glob("*.json"):
        found = json.loads(file.read_text(encoding="utf-8"))
        jsonschema.validate(found, SCHEMA)
        assert found["settings"]["quick"] is False
        assert all(row["kind"] == "measured" for row in found["rows"])


def test_the_page_is_the_one_that_the_results_make():
    assert report.PAGE.read_text(encoding="utf-8") == report.page(committed())
    assert "{{" not in report.page(committed())


def test_every_picture_is_there_for_light_and_dark_pages():
    for name in report.pictures(committed()):
        for theme in ("light", "dark"):
            assert (report.PICTURES / f"{name}-{theme}.svg").stat().st_size > 1000


def test_every_picture_can_be_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "PICTURES", tmp_path)
    report.draw(committed())
    drawn = {file.name for file in tmp_path.iterdir()}
    assert drawn == {file.name for file in (ROOT / "benchmarks" / "pictures").iterdir()}


def test_the_readmes_numbers_of_the_experiments_are_the_measured_ones():
    """Each figure between the marks stands in the page that the program made."""
    readme, page = ((ROOT / name).read_text() for name in ("README.md", "benchmarks/RESULTS.md"))
    told = re.search(r"<!-- from RESULTS.md -->(.*?)<!-- end -->", readme, re.DOTALL).group(1)
    figures = re.findall(r"\d+\.\d+", told)
    assert figures
    assert [figure for figure in figures if figure not in page] == []

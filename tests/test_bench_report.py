"""From rows to tables, pictures and the page: nothing typed, nothing lost."""

import json
from dataclasses import replace

import jsonschema
import pytest
from helpers import tiny_lm

from benchmarks import report
from specdec_lab.adaptive import Costs
from specdec_lab.bench.groups import by_length, chosen_apart, groups_of, quickest
from specdec_lab.bench.prediction import predict
from specdec_lab.bench.results import SCHEMA, Result
from specdec_lab.bench.sheets import SHEETS
from specdec_lab.bench.sweep import look_up_limit
from specdec_lab.decoding import generate
from specdec_lab.drafters import NGramDrafter
from specdec_lab.provenance import provenance
from specdec_lab.sheet import Sheet, Toned
from specdec_lab.theory import expected_speedup, expected_tokens_per_round

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


def test_prompts_of_a_kind_are_gathered_by_length():
    runs = [run_of(s, gamma=gamma) for gamma, s in ((2, 1.0), (2, 0.5), (2, 4.0), (4, 1.6), (4, 1.6))]
    result = sweep_of(*runs)
    two, four = groups_of(result)
    assert (two.speedup.value, four.speedup.value) == (2.0, 1.25)
    assert len(two.runs) == 3
    assert two.steps == [0.5, 0.25, 2.0]
    assert two.costs.c == 0.1
    pooled = by_length([two, four, four])
    assert [len(group.runs) for group in pooled.values()] == [3, 4]


def test_the_quickest_of_several_ways_is_that_with_the_lowest_median():
    times = [{"ours, a, 1": 3.0, "ours, a, 2": 2.0, "theirs": 1.0}] * 3
    assert quickest(times, "ours, a") == "ours, a, 2"
    assert quickest(times, "nobody") is None
    with pytest.raises(
        ValueError, match="start: got 'nobody', expected the start of one of ours, a, 1"
    ):
        chosen_apart(times, "nobody")


def test_only_what_every_prompt_has_is_chosen_from():
    times = [{"a": 1.0, "b": 2.0}, {"b": 2.0}]
    assert (quickest(times, ""), chosen_apart(times, "")) == ("b", [2.0, 2.0])


def test_a_dtype_is_held_beside_the_first_one_and_beside_its_own_plain_decoding():
    seconds = {"float32, plain": 2.0, "bfloat16, plain": 4.0, "bfloat16, draft model": 1.0}
    row = {"key": "a", "kind": "measured", "prompt": "?", "prompt_kind": "x", "temperature": 0.0}
    made = provenance(None, None)
    result = Result("dtypes", made, {"plain": "float32, plain"}, [row | {"seconds_per_token": seconds}])
    (sheet,) = SHEETS["dtypes"](result)
    assert [[getattr(cell, "text", cell) for cell in row] for row in sheet.rows] == [
        ["float32, plain", "-", "-"],
        ["bfloat16, plain", "0.50", "-"],
        ["bfloat16, draft model", "2.00", "4.00"],
    ]


def test_a_length_is_chosen_by_other_prompts_than_it_is_judged_by():
    times = [{"a": 1.0, "b": 5.0}, {"a": 4.0, "b": 2.0}, {"a": 4.0, "b": 2.0}]
    # The first is judged by b, which wins on the other two, though a would have been its own choice.
    assert chosen_apart(times, "")[0] == 5.0
    assert chosen_apart(times[:1], "") == [1.0]
    # Both together would choose a; each is judged by what the other one chooses.
    assert chosen_apart([{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 1.5}], "") == [2.0, 2.0]


def test_choosing_apart_does_not_flatter_noise():
    """Ten ways that are all alike: chosen by the same times one looks 10 % faster, apart none does."""
    import numpy as np

    noise = np.random.default_rng(0).lognormal(0.0, 0.2, size=(60, 10))
    times = [{str(way): value for way, value in enumerate(row)} for row in noise.tolist()]
    best_of_each = np.mean([min(one.values()) for one in times])
    apart = np.mean(chosen_apart(times, ""))
    assert best_of_each < 0.85
    assert apart == pytest.approx(1.0, abs=0.08)


@pytest.mark.parametrize("seed", range(6))
def test_no_look_up_takes_fewer_rounds_than_the_limit(seed):
    target = tiny_lm(seed)
    options = {"max_new_tokens": 60, "end_ids": []}
    plain = generate(target, [1, 2, 3, 1, 2], **options)
    limit = look_up_limit(plain)
    for longest in (1, 3):
        drafter = NGramDrafter(target.vocab_size, longest)
        made = generate(target, [1, 2, 3, 1, 2], drafter=drafter, **options)
        assert made.tokens == plain.tokens
        assert made.metrics.block_efficiency <= limit
    assert limit > 1.0


def test_the_look_up_limit_by_hand():
    plain = generate(tiny_lm(), [1], max_new_tokens=2, end_ids=[])
    # 5 is new; then 1 2 3 stands in the prompt and 9 closes the round; then 8 is new.
    by_hand = replace(plain, prompt_tokens=[1, 2, 3, 4], tokens=[5, 1, 2, 3, 9, 8])
    assert look_up_limit(by_hand) == 6 / 3
    assert look_up_limit(replace(plain, prompt_tokens=[1], tokens=[5])) == 1.0


def test_a_sheet_in_markdown():
    sheet = Sheet("Title", ("name", "n"), (("a", Toned("1.0", "good")),), ("note", "more"))
    assert sheet.markdown() == ("**Title**\n\n| name | n |\n| :-- | --: |\n| a | 1.0 |\n\nnote  \nmore")


def test_every_row_of_a_sheet_has_a_cell_for_each_column():
    with pytest.raises(ValueError, match="rows: got one of 3 cells, expected 2"):
        Sheet("Title", ("a", "b"), (("1", "2", "3"),))


def test_committed_results_keep_to_the_schema_and_are_complete():
    files = sorted(report.SPEED.glob("*.json"))
    assert files
    for file in files:
        jsonschema.validate(json.loads(file.read_text(encoding="utf-8")), SCHEMA)
        result = Result.load(file)
        assert (file.stem, result.settings["quick"], result.missing) == (result.experiment, False, [])
        assert SHEETS[file.stem](result)

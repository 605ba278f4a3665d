"""The harness of the speed experiments: turns, ratios, results that survive an interruption."""

import json

import jsonschema
import pytest

from specdec_lab.bench.results import SCHEMA, Ledger, Result
from specdec_lab.bench.runs import decode_in_turns
from specdec_lab.benchmark import paired_ratio, take_turns
from specdec_lab.checks.toys import FakeDevice
from specdec_lab.provenance import provenance


def test_contenders_take_turns_forwards_and_backwards_after_a_warm_up():
    order, turns = [], []
    take_turns(
        {name: lambda name=name: order.append(name) for name in "abc"},
        turns=2,
        warmup=1,
        on_turn=lambda: turns.append(len(order)),
    )
    assert "".join(order) == "cba" + "abc" + "cba"
    assert turns == [3, 6, 9]


def test_the_clock_is_read_when_the_device_has_finished():
    device = FakeDevice([9.0, 1.0, 5.0])
    seconds = take_turns({"a": device.run}, 2, 1, device.clock, device.synchronize)
    assert seconds["a"] == pytest.approx([1.0, 5.0], abs=1e-3)
    with pytest.raises(ValueError, match="turns: got 0"):
        take_turns({}, 0)


def test_a_ratio_is_the_median_over_turns_and_lies_in_its_interval():
    ratio = paired_ratio([2.0, 30.0, 4.0] * 2, [1.0, 10.0, 2.0] * 2)
    assert ratio.value == 2.0
    assert (ratio.low, ratio.high) == (2.0, 3.0)
    assert str(ratio) == "2.00 (2.00 to 3.00)"
    assert paired_ratio([3.0], [2.0]) == paired_ratio([6.0], [4.0])


def test_from_few_ratios_no_interval_is_told():
    few = paired_ratio([2.0, 3.0, 4.0, 5.0, 6.0], [1.0] * 5)
    assert (few.value, few.low, few.high, str(few)) == (4.0, None, None, "4.00")
    assert paired_ratio([2.0] * 6, [1.0] * 6).low == 2.0


def test_the_smallest_sample_with_an_interval_is_covered_often_enough():
    """Of 400 samples of 6 ratios, 95 % intervals hold the truth in 97 % or a bit less (seeded)."""
    import numpy as np

    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        found = paired_ratio(np.exp(generator.standard_normal(6)).tolist(), [1.0] * 6, resamples=400)
        covered += found.low <= 1.0 <= found.high
    assert covered >= 360


def test_contenders_and_the_plain_run_between_them_go_backwards_when_told():
    order = []
    contenders = {name: lambda name=name: order.append(name) for name in ("plain", *"abcd")}
    decode_in_turns(contenders, between=3)
    assert order == ["plain", "a", "b", "c", "plain", "d", "plain"]
    forwards, order[:] = order[:], []
    decode_in_turns(contenders, between=3, backwards=True)
    assert order == forwards[::-1]
    order.clear()
    made = decode_in_turns(contenders, turns=2, between=3)
    assert order == forwards + forwards[::-1]
    assert len(made["plain"]) == 6
    with pytest.raises(ValueError, match="got 1 and 2 times"):
        paired_ratio([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="got 0 and 0 times"):
        paired_ratio([], [])
    with pytest.raises(ValueError, match=r"faster: got 0\.0 s among its times, expected all above 0"):
        paired_ratio([1.0], [0.0])


def test_the_interval_covers_what_it_says():
    """Of 200 samples of 15 ratios around 1.5, most of the 95 % intervals hold 1.5 (seeded)."""
    import numpy as np

    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        ratios = 1.5 * np.exp(0.1 * generator.standard_normal(15))
        found = paired_ratio(ratios.tolist(), [1.0] * 15, resamples=400)
        covered += found.low <= 1.5 <= found.high
    assert 180 <= covered <= 200


def started(**settings):
    return Result("toy", provenance(None, None), {"repeats": 3, "keys": ("x", "y")} | settings)


def test_rows_are_kept_as_they_come_and_a_second_run_goes_on(tmp_path):
    file = tmp_path / "results" / "toy.json"
    ledger = Ledger(file, started())
    assert ledger.missing == ["x", "y"]
    ledger.add("x", {"seconds": 1.5})
    again = Ledger(file, started())
    assert again.missing == ["y"]
    again.add("y", {"speedup": 2.0}, kind="theory")
    result = Result.load(file)
    assert result.of(kind="theory") == [{"key": "y", "kind": "theory", "speedup": 2.0}]
    assert result.of(key="x", seconds=1.5) == result.rows[:1]
    jsonschema.validate(json.loads(file.read_text()), SCHEMA)


def test_rows_of_another_measurement_are_neither_mixed_in_nor_overwritten(tmp_path):
    file = tmp_path / "toy.json"
    Ledger(file, started()).add("x", {"seconds": 1.5})
    before = file.read_text()
    with pytest.raises(ValueError, match=r"toy.json: got a result with settings .*--out"):
        Ledger(file, started(repeats=5))
    other = started()
    other.provenance["threads"] += 1
    with pytest.raises(ValueError, match="with threads"):
        Ledger(file, other)
    assert file.read_text() == before


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 99}', '{"version": 1, "rows": 3}'])
def test_a_file_with_something_else_in_it_is_named(tmp_path, content):
    file = tmp_path / "other.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"other.json: got no result"):
        Result.load(file)


@pytest.mark.parametrize(
    "broken",
    [
        {"version": 2},
        {"settings": {}},
        {"rows": [{"key": "x"}]},
        {"rows": [{"key": "x", "kind": "guessed"}]},
        {"more": 1},
    ],
)
def test_the_schema_refuses(broken):
    whole = json.loads(json.dumps(vars(started())))
    jsonschema.validate(whole, SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(whole | broken, SCHEMA)

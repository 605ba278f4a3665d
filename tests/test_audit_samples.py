"""The audit of black boxes: its numbers are checked by exact sums, not by more sampling."""

import io
import json
from math import comb, exp, lgamma, log

import numpy as np
import pytest
from rich.console import Console

from specdec_lab.audit.samples import (
    _chi_square_tail,
    _shifted_tail,
    audit_samples,
    detectable_bias,
)

LAW = {"a": 0.5, "b": 0.3, "c": 0.2}


def binomial(n, k, p):
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log(1 - p))


def test_the_statistic_by_hand():
    audit = audit_samples({"a": 60, "b": 25, "c": 15}, LAW)
    by_hand = 2 * (60 * log(60 / 50) + 25 * log(25 / 30) + 15 * log(15 / 20))
    assert audit.g == pytest.approx(by_hand)
    assert (audit.samples, audit.degrees) == (100, 2)
    assert audit.verdict == "no bias found"


@pytest.mark.parametrize(
    ("x", "degrees", "tail"), [(3.841459, 1, 0.05), (5.991465, 2, 0.05), (20.515, 5, 0.001)]
)
def test_the_tail_is_the_one_of_the_tables(x, degrees, tail):
    assert _chi_square_tail(x, degrees) == pytest.approx(tail, rel=1e-3)


def test_the_shifted_tail_has_the_textbook_power():
    # A two-sided z-test at 5 % has 80 % power at a shift of 2.80158 standard errors.
    assert _shifted_tail(3.841459, 1, 2.80158**2) == pytest.approx(0.8, abs=1e-4)
    assert _shifted_tail(7.0, 4, 0.0) == pytest.approx(_chi_square_tail(7.0, 4))


def test_the_exact_p_value_is_a_sum_over_all_tables():
    # Two cells, so the tables are 0 to 12 hits: those at least as far off by G as 10 hits.
    audit = audit_samples({"x": 10, "y": 2}, {"x": 0.5, "y": 0.5})
    expected = sum(binomial(12, k, 0.5) for k in (0, 1, 2, 10, 11, 12))
    assert audit.test == "exact multinomial"
    assert audit.p_value == pytest.approx(expected)


def test_the_exact_test_keeps_its_false_alarm():
    # Every table of 30 hits in 3 cells, weighted with its probability under the law itself.
    condemned = 0.0
    for a in range(31):
        for b in range(31 - a):
            counts = {"a": a, "b": b, "c": 30 - a - b}
            if audit_samples(counts, LAW, false_alarm=0.01).verdict != "no bias found":
                mass = comb(30, a) * comb(30 - a, b) * 0.5**a * 0.3**b * 0.2 ** (30 - a - b)
                condemned += mass
    assert 0.005 < condemned <= 0.01


@pytest.mark.parametrize("direction", [1.0, -1.0])
@pytest.mark.parametrize("p", [0.5, 0.1])
def test_the_stated_bias_is_found_with_the_stated_power(p, direction):
    # Two cells: the power is a sum over the binomial law under the bias, no sampling in it.
    samples, false_alarm = 1000, 1e-3
    bias = detectable_bias(samples, 1, false_alarm)
    power = 0.0
    for hits in range(samples + 1):
        mass = binomial(samples, hits, p + direction * bias) if p + direction * bias > 0 else 0.0
        if mass > 1e-9:
            audit = audit_samples(
                {"x": hits, "y": samples - hits}, {"x": p, "y": 1 - p}, false_alarm=false_alarm
            )
            power += mass * (audit.verdict == "not exact")
    # The statement rests on the chi-square approximation; here it is off by 1e-5.
    assert power > 0.9899


def test_more_samples_find_less_and_more_cells_need_more():
    assert detectable_bias(4000, 3, 1e-6) == pytest.approx(detectable_bias(1000, 3, 1e-6) / 2)
    assert detectable_bias(1000, 20, 1e-6) > detectable_bias(1000, 3, 1e-6)
    assert detectable_bias(5, 3, 1e-6) == 1.0


def test_a_single_impossible_outcome_is_a_leak():
    audit = audit_samples(["a"] * 50 + ["b"] * 30 + ["c"] * 20 + ["z"], LAW)
    assert audit.verdict == "leak"
    assert audit.leaks == {"z": 1}
    no_hit = audit_samples({"a": 50, "b": 30, "c": 20, "z": 0}, LAW)
    assert (no_hit.verdict, no_hit.leaks) == ("no bias found", {})
    zero = audit_samples(["a", "d"], {"a": 1.0, "d": 0.0})
    assert zero.verdict == "leak"


def test_a_gross_bias_is_condemned():
    assert audit_samples({"a": 350, "b": 350, "c": 300}, LAW).verdict == "not exact"
    assert audit_samples({"a": 10}, {"a": 0.01, "b": 0.99}).verdict == "not exact"


def test_rare_outcomes_are_pooled_and_a_certain_one_needs_no_test():
    law = dict.fromkeys(range(400), 1 / 400)
    audit = audit_samples(dict.fromkeys(range(400), 3), law)  # expected 3 each: all pooled
    assert audit.test == "G-test"
    assert audit.degrees == 0
    assert audit.p_value == 1.0
    tail = {0: 0.9, **dict.fromkeys(range(1, 201), 0.1 / 200)}
    assert audit_samples({0: 1800, 1: 200}, tail).degrees == 1
    assert audit_samples(["a"], {"a": 1.0}).p_value == 1.0


def test_a_pool_is_named_because_it_hides_what_is_in_it():
    law = {"x": 0.5} | dict.fromkeys(range(5000), 0.0001)
    audit = audit_samples({"x": 5000, 0: 5000}, law)
    assert audit.verdict == "no bias found"
    assert audit.pooled == (5000, pytest.approx(0.5))
    assert "Not seen: a bias among the 5,000 rarest outcomes" in audit.sheet().notes[-1].text
    assert audit.to_json()["pooled_probability"] == pytest.approx(0.5)


def test_very_many_outcomes_take_more_hits_each():
    cells = 60_000  # 5 hits expected in each: too few for so many cells, so they are pooled
    assert audit_samples({0: 5 * cells}, dict.fromkeys(range(cells), 1 / cells)).degrees == 0


def test_a_few_samples_of_many_outcomes_do_not_fill_the_memory():
    law = dict.fromkeys(range(100000), 1e-05)
    assert audit_samples([0], law).test == "G-test"


def test_numbers_of_numpy_are_numbers():
    audit = audit_samples({"a": np.int64(60), "b": np.int64(25), "c": np.int64(15)}, LAW)
    assert json.loads(json.dumps(audit.to_json()))["samples"] == 100


def test_a_pool_keeps_cells_apart_that_are_hit_often_enough():
    law = {0: 0.6, 1: 0.39, 2: 0.004, 3: 0.003, 4: 0.003}
    counts = {0: 600_000, 1: 390_000, 2: 4000, 3: 3000, 4: 3000}
    assert audit_samples(counts, law).degrees == 4
    assert audit_samples({0: 120, 1: 78, 2: 2}, law | {5: 0.0}).degrees in (1, 2, 4)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (([], LAW), "samples: got none"),
        (({"a": 0}, LAW), "samples: got something else"),
        (({"a": -5, "b": 15}, LAW), "samples: got something else"),
        (({"a": 2.5}, LAW), "samples: got something else"),
        ((["a"], {"a": 0.7}), "expected_law: got probabilities that sum to 0.7"),
        ((["a"], {"a": 1.5, "b": -0.5}), "smallest -0.5"),
        ((["a"], {}), "sum to 0"),
    ],
)
def test_bad_input_is_named(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        audit_samples(*arguments)


def test_a_false_alarm_is_a_probability():
    with pytest.raises(ValueError, match="false_alarm: got 1"):
        audit_samples(["a"], {"a": 1.0}, false_alarm=1.5)


def test_the_report_states_what_would_have_been_found():
    console = Console(file=io.StringIO(), width=120, color_system=None)
    audit = audit_samples({(0, 1): 520, (1, 0): 480}, {(0, 1): 0.5, (1, 0): 0.5})
    console.print(audit)
    text = " ".join(console.file.getvalue().split())
    assert "no bias found: exact multinomial, G = 1.6 over 2 cells" in text
    assert "condemned with a probability of at most 1e-06" in text
    assert f"total variation {audit.detectable:.3f} or more" in text
    assert audit.to_json()["detectable_total_variation"] == audit.detectable
    assert "0 1" in audit._repr_html_()

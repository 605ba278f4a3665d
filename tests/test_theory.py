"""The formulas, against hand-made values and against the rounds they describe."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from specdec_lab.simulation import CONTINUATION, simulate
from specdec_lab.theory import (
    best_gamma,
    expected_accepted,
    expected_speedup,
    expected_tokens_per_round,
    least_alpha,
)


def test_expected_tokens_by_hand():
    assert expected_tokens_per_round(0.8, 0) == 1.0
    assert expected_tokens_per_round(0.8, 3) == pytest.approx((1 - 0.8**4) / 0.2)
    assert expected_tokens_per_round(1.0, 5) == 6.0
    assert expected_tokens_per_round(0.0, 5) == 1.0
    assert expected_accepted(0.5, 2) == pytest.approx(0.75)


def test_expected_tokens_are_the_mean_over_independent_rounds():
    alpha, gamma = 0.7, 4
    stops = [alpha**k * (1 - alpha) for k in range(gamma)] + [alpha**gamma]
    mean = sum((accepted + 1) * chance for accepted, chance in enumerate(stops))
    assert expected_tokens_per_round(alpha, gamma) == pytest.approx(mean)


def test_speedup_and_its_break_even():
    assert expected_speedup(0.875, 4, 0.15) == pytest.approx(2.4355, abs=1e-4)
    assert expected_speedup(0.9, 4, 0.0, v=2.0) == expected_tokens_per_round(0.9, 4) / 2.0
    assert expected_speedup(0.3, 4, 0.4) < 1.0


def test_the_best_draft_length_grows_with_agreement_and_can_be_none():
    assert best_gamma(0.9, 0.05) > best_gamma(0.6, 0.05) > 0
    assert best_gamma(0.3, 0.4) == 0


def test_a_cost_of_verifying_shortens_the_best_draft():
    def v(n):
        return 1.0 + 0.2 * (n - 1)

    assert best_gamma(0.9, 0.05, v=v) < best_gamma(0.9, 0.05)
    assert best_gamma(0.9, 0.05, v=lambda n: 1.0) == best_gamma(0.9, 0.05)
    assert best_gamma(0.5, 0.0, v=lambda n: float(n)) == 0
    assert best_gamma(0.8, 0.0, 8, v=lambda n: 1.0 if n in (1, 4) else 9.0) == 3


def test_the_least_alpha_by_hand():
    assert least_alpha(1, 0.1, 1.2) == pytest.approx(0.3, abs=1e-12)
    assert least_alpha(2, 0.375) == pytest.approx(0.5, abs=1e-12)  # 0.5 + 0.5^2 is 2 * 0.375
    assert least_alpha(4, 0.0) == 0.0
    assert least_alpha(0, 0.5) == 0.0
    assert least_alpha(1, 1.0) == pytest.approx(1.0)
    assert least_alpha(1, 1.0, 1.01) is None
    assert least_alpha(0, 0.0, 2.0) is None


@given(st.integers(1, 16), st.floats(0.0, 1.2), st.floats(0.5, 4.0))
def test_drafting_pays_from_the_least_alpha_on_and_not_below(gamma, c, v):
    least = least_alpha(gamma, c, v)
    if least is None:
        assert expected_speedup(1.0, gamma, c, v) < 1.0
        return
    assert expected_speedup(least, gamma, c, v) >= 1.0
    assume(least > 1e-6)
    assert expected_speedup(least - 1e-6, gamma, c, v) < 1.0


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((1.1, 2, 0.1), "alpha"), ((0.5, -1, 0.1), "gamma"), ((0.5, 2, -0.1), "c, v")],
)
def test_values_out_of_range_are_refused_by_name(arguments, name):
    with pytest.raises(ValueError, match=f"^{name}: got"):
        expected_speedup(*arguments)


def test_costs_out_of_range_are_refused_whoever_asks():
    with pytest.raises(ValueError, match=r"^c, v: got -1"):
        least_alpha(2, -1.0)
    with pytest.raises(ValueError, match=r"^gamma: got -1"):
        least_alpha(-1, 0.1)
    with pytest.raises(ValueError, match=r"^c, v: got 0\.1 and 0\.0"):
        best_gamma(0.5, 0.1, v=lambda n: 0.0)


def test_the_scripted_run_is_the_documented_one():
    simulation = simulate()
    metrics = simulation.generation.metrics
    assert (
        simulation.generation.text == "".join(CONTINUATION) == " of France is Paris. It is beautiful."
    )
    assert (metrics.new_tokens, metrics.target_forwards) == (9, 2)
    assert (metrics.drafted, metrics.accepted) == (8, 7)
    assert simulation.counted_speedup == pytest.approx(9 / (2 * (1 + 4 * 0.15)))
    assert simulation.expected_speedup == pytest.approx(2.44, abs=0.005)
    assert simulation.generation.simulated
    assert simulation.generation.provenance["kind"] == "simulated"


@pytest.mark.parametrize("gamma", [1, 2, 3, 6, 9, 20])
def test_the_script_plays_at_any_draft_length(gamma):
    simulation = simulate(gamma)
    metrics = simulation.generation.metrics
    assert simulation.generation.text == "".join(CONTINUATION)
    cost = metrics.target_forwards + 0.15 * metrics.drafted
    assert simulation.counted_speedup == pytest.approx(9 / cost)


def test_a_script_without_drafts_is_refused():
    with pytest.raises(ValueError, match="gamma: got 0, expected 1 or more"):
        simulate(0)

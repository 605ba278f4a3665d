"""The one-step audit: the worked example, exact fractions, and what the two rules are there for."""

import math
import re
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from specdec_lab.audit.step import audit_step, worked_example
from specdec_lab.distributions import alpha, total_variation

WEIGHT = st.one_of(st.sampled_from([0.0, 1.0, 1.0, 1e-9]), st.floats(0.0, 1.0))


@st.composite
def pairs(draw):
    """p and q over 2 to 6 tokens: with zeros, ties, nearly equal, or nothing in common."""
    size = draw(st.integers(2, 6))
    row = st.lists(WEIGHT, min_size=size, max_size=size).filter(lambda weights: sum(weights) > 1e-6)
    p, q = draw(row), draw(row)
    how = draw(st.sampled_from(["any", "equal", "nearly equal", "disjoint"]))
    if how == "equal":
        q = p
    elif how == "nearly equal":
        q = [math.nextafter(weight, 2.0) for weight in p]
    elif how == "disjoint":
        split = draw(st.integers(1, size - 1))
        p = [1.0] * split + [0.0] * (size - split)
        q = [0.0] * split + [1.0] * (size - split)
    return [x / sum(p) for x in p], [x / sum(q) for x in q]


def test_the_worked_example():
    audit = worked_example()
    assert audit.acceptance == pytest.approx((0.35 / 0.55, 1.0, 1.0, 1.0))
    assert f"{audit.acceptance[0]:.0%}" == "64%"
    assert audit.residual == pytest.approx((0.0, 0.75, 0.25, 0.0))
    assert audit.rejection_mass == pytest.approx(0.2)
    assert audit.alpha == pytest.approx(0.8)
    assert audit.final_mass == pytest.approx((0.35, 0.40, 0.20, 0.05))
    assert 0.0 <= audit.l1_error < 1e-15


def test_in_fractions_the_error_is_exactly_zero():
    audit = worked_example(rational=True)
    assert audit.l1_error == 0
    assert audit.acceptance == (Fraction(7, 11), 1, 1, 1)
    assert audit.residual == (0, Fraction(3, 4), Fraction(1, 4), 0)
    assert audit.rejection_mass == Fraction(1, 5)
    assert audit.final_mass == audit.p
    assert all(isinstance(mass, Fraction) for mass in audit.final_mass)


@given(pairs())
def test_what_comes_out_is_p(pair):
    p, q = pair
    audit = audit_step(p, q)
    assert audit.l1_error < 1e-12
    assert sum(audit.final_mass) == pytest.approx(1.0, abs=1e-12)


@given(pairs())
def test_alpha_is_one_less_the_total_variation(pair):
    p, q = (torch.tensor(row, dtype=torch.float64) for row in pair)
    audit = audit_step(*pair)
    assert audit.alpha == pytest.approx(1.0 - total_variation(p, q), abs=1e-12)
    assert audit.alpha == pytest.approx(alpha(p, q), abs=1e-12)
    assert audit.rejection_mass == pytest.approx(total_variation(p, q), abs=1e-12)


@given(pairs())
def test_what_is_rejected_is_what_the_residual_restores(pair):
    p, q = pair
    audit = audit_step(p, q)
    missing = sum(max(0.0, x - y) for x, y in zip(p, q, strict=True))
    assert audit.rejection_mass == pytest.approx(missing, abs=1e-12)
    assert sum(audit.restored_mass) == pytest.approx(audit.rejection_mass, abs=1e-12)


FRACTION_WEIGHTS = st.lists(st.integers(0, 12), min_size=4, max_size=4).filter(any)


@given(FRACTION_WEIGHTS, FRACTION_WEIGHTS)
def test_rational_and_float_arithmetic_agree(p_weights, q_weights):
    p = [Fraction(weight, sum(p_weights)) for weight in p_weights]
    q = [Fraction(weight, sum(q_weights)) for weight in q_weights]
    exact, rounded = audit_step(p, q), audit_step([*map(float, p)], [*map(float, q)])
    assert exact.l1_error == 0
    assert exact.alpha == 1 - sum(abs(x - y) for x, y in zip(p, q, strict=True)) / 2
    assert rounded.final_mass == pytest.approx([float(mass) for mass in exact.final_mass], abs=1e-12)
    for ours, theirs in zip(rounded.acceptance, exact.acceptance, strict=True):
        assert ours is theirs is None or ours == pytest.approx(float(theirs))


def test_a_token_that_is_never_drafted_has_no_acceptance_and_is_restored():
    audit = audit_step([0.5, 0.5, 0.0], [0.0, 0.0, 1.0])
    assert audit.acceptance == (None, None, 0.0)
    assert audit.restored_mass == pytest.approx((0.5, 0.5, 0.0))
    assert audit.rejection_mass == 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"acceptance": lambda p, q: min(1.0, q / p)},
        {"acceptance": lambda p, q: p},
        {"residual": lambda p, q: p},
        {"residual": lambda p, q: (p - q).abs() / (p - q).abs().sum()},
        {"residual": lambda p, q: (p - q).clamp(min=0.0)},
    ],
)
def test_a_wrong_rule_does_not_give_p(wrong):
    audit = audit_step([0.35, 0.40, 0.20, 0.05], [0.55, 0.25, 0.15, 0.05], **wrong)
    assert audit.l1_error > 0.05


def test_an_acceptance_above_one_is_one_and_hides_nothing():
    p, q = [0.5, 0.5], [0.8, 0.2]
    assert audit_step(p, q, acceptance=lambda p, q: p / q) == audit_step(p, q)
    wrong = audit_step(p, q, acceptance=lambda p, q: p / q, residual=lambda p, q: p)
    assert wrong.l1_error == pytest.approx(0.3)


@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_an_acceptance_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match="acceptance: got"):
        audit_step([0.5, 0.5], [0.8, 0.2], acceptance=lambda p, q: value)


def test_a_residual_that_is_never_drawn_from_may_be_anything():
    def textbook(p, q):
        rest = (p - q).clamp(min=0.0)
        return rest / rest.sum()  # 0/0 where p = q

    assert audit_step([0.5, 0.5], [0.5, 0.5], residual=textbook).l1_error == 0.0


def test_whole_numbers_are_of_either_kind():
    assert audit_step([0.5, 0.5], [1, 0]).l1_error == 0.0
    assert audit_step([Fraction(1, 2)] * 2, [1, 0]).rational


def test_tensors_and_plain_numbers_are_the_same():
    p, q = torch.tensor([0.25, 0.75]), torch.tensor([0.5, 0.5])
    assert audit_step(p, q) == audit_step([0.25, 0.75], [0.5, 0.5])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (([], []), "p: got no entries"),
        (([0.5, 0.6], [0.5, 0.5]), "p: got entries that sum to 1.1"),
        (([0.5, 0.5], [1.5, -0.5]), "q: got entries that sum to 1 with smallest -0.5"),
        (([0.5, 0.5], [1.0]), "p, q, labels: got 2, 1 and 2 entries"),
        (([0.5, 0.5], [0.5, 0.5], ["A"]), "p, q, labels: got 2, 2 and 1 entries"),
        (([Fraction(1, 2)] * 2, [0.5, 0.5]), "p, q: got fractions and floats"),
        (([Fraction(33333, 100000)] * 3, [Fraction(1, 3)] * 3), "p: got entries that sum to 0.99999"),
        ((torch.ones(1, 2) / 2, [0.5, 0.5]), "p: got shape [1, 2], expected [vocab]"),
        (([math.nan, 1.0], [0.5, 0.5]), "p: got entries that sum to nan"),
    ],
)
def test_bad_input_is_named(arguments, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        audit_step(*arguments)


def test_own_rules_are_for_floats():
    half = [Fraction(1, 2)] * 2
    with pytest.raises(ValueError, match="acceptance, residual: expected none with fractions"):
        audit_step(half, half, acceptance=lambda p, q: 1.0)

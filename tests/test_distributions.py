"""The mathematics: acceptance, residual, overlap."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from specdec_lab.distributions import (
    acceptance_probability,
    alpha,
    one_hot,
    require_distributions,
    residual,
    softmax,
    total_variation,
)

WEIGHTS = st.lists(st.integers(0, 20), min_size=4, max_size=4).filter(any)


def distribution(weights):
    row = torch.tensor(weights, dtype=torch.float64)
    return row / row.sum()


P = torch.tensor([0.35, 0.40, 0.20, 0.05], dtype=torch.float64)
Q = torch.tensor([0.55, 0.25, 0.15, 0.05], dtype=torch.float64)


def test_worked_example_by_hand():
    accepted = [acceptance_probability(p, q) for p, q in zip(P.tolist(), Q.tolist(), strict=True)]
    assert accepted == pytest.approx([0.35 / 0.55, 1.0, 1.0, 1.0])
    assert residual(P, Q).tolist() == pytest.approx([0.0, 0.75, 0.25, 0.0])
    assert alpha(P, Q) == pytest.approx(0.8)
    assert total_variation(P, Q) == pytest.approx(0.2)


@given(WEIGHTS, WEIGHTS)
def test_accepted_plus_replaced_mass_is_the_target(p_weights, q_weights):
    p, q = distribution(p_weights), distribution(q_weights)
    accepted = torch.minimum(p, q)
    rebuilt = accepted + (1.0 - accepted.sum()) * residual(p, q)
    assert torch.allclose(rebuilt, p, atol=1e-14)


@given(WEIGHTS, WEIGHTS)
def test_alpha_is_one_minus_total_variation(p_weights, q_weights):
    p, q = distribution(p_weights), distribution(q_weights)
    assert alpha(p, q) == pytest.approx(1.0 - total_variation(p, q), abs=1e-12)


@given(WEIGHTS, WEIGHTS)
def test_residual_is_a_distribution_on_tokens_the_target_prefers(p_weights, q_weights):
    p, q = distribution(p_weights), distribution(q_weights)
    left = residual(p, q)
    require_distributions("residual", left[None])
    if total_variation(p, q) > 1e-9:
        assert (left[p <= q] == 0.0).all()


def test_disjoint_supports_leave_the_target():
    only_a, only_b = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    assert alpha(only_a, only_b) == 0.0
    assert residual(only_a, only_b).tolist() == [1.0, 0.0]


def test_residual_without_mass_falls_back_to_the_target():
    p = torch.tensor([0.3, 0.7])
    assert torch.equal(residual(p, p.clone()), p)
    assert torch.equal(residual(p, p + 1e-8), p)  # p <= q everywhere, by rounding


def test_acceptance_of_an_impossible_draft_is_refused():
    with pytest.raises(ValueError, match=r"q: got 0\.0"):
        acceptance_probability(0.5, 0.0)
    with pytest.raises(ValueError, match="q: got nan"):
        acceptance_probability(0.5, float("nan"))
    with pytest.raises(ValueError, match="p: got nan"):
        acceptance_probability(float("nan"), 0.5)


def test_half_precision_logits_become_float32_probabilities():
    assert softmax(torch.zeros(3, dtype=torch.bfloat16)).dtype == torch.float32
    assert softmax(torch.zeros(3, dtype=torch.float16)).dtype == torch.float32
    assert softmax(torch.zeros(3, dtype=torch.float64)).dtype == torch.float64


def test_one_hot_follows_its_model():
    made = one_hot(2, like=torch.rand(4, dtype=torch.float64))
    assert made.tolist() == [0.0, 0.0, 1.0, 0.0]
    assert made.dtype == torch.float64


@pytest.mark.parametrize(
    "row", [[0.5, 0.6], [0.5, 0.4], [1.5, -0.5], [float("nan"), 1.0], [float("inf"), 0.0]]
)
def test_what_is_not_a_distribution_is_refused_with_its_row(row):
    with pytest.raises(ValueError, match="q: row 1 sums to"):
        require_distributions("q", torch.tensor([[0.5, 0.5], row]))

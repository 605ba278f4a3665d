"""The seeded chooser: strict acceptance, and no impossible token."""

import math

import pytest
import torch
from helpers import Rows, draft
from hypothesis import given
from hypothesis import strategies as st

from specdec_lab.randomness import SeededChooser, invert_cdf
from specdec_lab.verification import verify_by_sampling

JUST_BELOW_ONE = math.nextafter(1.0, 0.0)


def test_the_same_seed_gives_the_same_choices():
    p = torch.full((50,), 0.02)
    one, other = SeededChooser(5), SeededChooser(5)
    assert [one.sample(p) for _ in range(20)] == [other.sample(p) for _ in range(20)]
    assert SeededChooser().seed != SeededChooser().seed


def test_a_chooser_remembers_the_uniform_it_drew():
    chooser = SeededChooser(1)
    accepted = chooser.accept(0.5)
    assert accepted == (chooser.last_uniform < 0.5)


@pytest.mark.parametrize(
    ("uniform", "probability", "accepted"),
    [(0.0, 0.0, False), (JUST_BELOW_ONE, 1.0, True), (0.5, 0.5, False), (0.49, 0.5, True)],
)
def test_acceptance_is_strict(monkeypatch, uniform, probability, accepted):
    chooser = SeededChooser(0)
    monkeypatch.setattr(chooser, "uniform", lambda: uniform)
    assert chooser.accept(probability) is accepted


@given(
    st.lists(st.sampled_from([0.0, 1.0, 3.0, 1e-7]), min_size=2, max_size=9).filter(any),
    st.one_of(st.floats(0.0, 1.0, exclude_max=True), st.just(0.0), st.just(JUST_BELOW_ONE)),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_no_uniform_yields_a_token_without_probability(weights, uniform, dtype):
    row = torch.tensor(weights, dtype=dtype)
    row /= row.sum()
    assert row[invert_cdf(row, uniform)] > 0.0


def test_inversion_follows_the_running_sum():
    row = torch.tensor([0.25, 0.0, 0.5, 0.25])
    drawn = [invert_cdf(row, uniform) for uniform in (0.0, 0.2, 0.25, 0.7, 0.75, JUST_BELOW_ONE)]
    assert drawn == [0, 0, 2, 2, 3, 3]


def test_a_seeded_chooser_hits_its_probabilities():
    # 20,000 draws; a correct chooser fails this with probability below 1e-8 per token
    # (Hoeffding: 2 exp(-2 * 20000 * 0.0225^2) = 3e-9).
    row, chooser = torch.tensor([0.1, 0.0, 0.6, 0.3]), SeededChooser(0)
    draws = torch.tensor([chooser.sample(row) for _ in range(20_000)])
    shares = torch.bincount(draws, minlength=4) / len(draws)
    assert (shares - row).abs().max() < 0.0225


class LooseChooser(SeededChooser):
    """The fault that no enumeration can see, since it lies below the question: ``u <= ratio``."""

    def accept(self, probability):
        return self.uniform() <= probability


def test_a_loose_comparison_accepts_what_is_impossible_and_the_strict_one_does_not(monkeypatch):
    # A uniform of exactly 0 comes once in 2^53 draws; it must not let through a token with p = 0.
    for chooser, accepted in ((LooseChooser(0), True), (SeededChooser(0), False)):
        monkeypatch.setattr(chooser, "uniform", lambda: 0.0)
        rows = Rows([0.0, 1.0], [0.5, 0.5])
        verdict = verify_by_sampling(rows, draft([0], [1.0, 0.0]), chooser)
        assert verdict.positions[0].accepted is accepted

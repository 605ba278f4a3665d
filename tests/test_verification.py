"""The verdict on one draft, by enumeration of every choice."""

import math

import pytest
import torch
from helpers import ForcedChooser, Rows, distance, draft, law_of
from hypothesis import given
from hypothesis import strategies as st

from specdec_lab.distributions import one_hot
from specdec_lab.randomness import SeededChooser
from specdec_lab.records import Draft
from specdec_lab.verification import verify_by_sampling, verify_greedily

JUST_BELOW_ONE = math.nextafter(1.0, 0.0)
VOCAB = 3
ROW = st.lists(st.integers(0, 9), min_size=VOCAB, max_size=VOCAB).filter(any)


def normalised(weights):
    return [weight / sum(weights) for weight in weights]


def emitted(verdict):
    return [one.token for one in verdict.positions if one.accepted] + [verdict.closing]


def first_token_law(p_rows, q_rows, draw=None, q_claimed=None):
    """The exact law of the first emitted token, the draft's own draws included."""

    def run(chooser):
        tokens = [(draw or chooser.sample)(torch.tensor(q, dtype=torch.float64)) for q in q_rows]
        proposal = draft(tokens, *(q_claimed or q_rows))
        return emitted(verify_by_sampling(Rows(*p_rows), proposal, chooser))[:1]

    return law_of(run)


def as_law(p):
    return {(token,): mass for token, mass in enumerate(p) if mass > 0.0}


@given(ROW, ROW)
def test_the_first_token_has_exactly_the_targets_law(p_weights, q_weights):
    p, q = normalised(p_weights), normalised(q_weights)
    assert distance(first_token_law([p, p], [q]), as_law(p)) < 1e-12


@given(st.lists(ROW, min_size=3, max_size=3), st.lists(ROW, min_size=2, max_size=2))
def test_every_emitted_token_has_the_law_of_its_own_row(p_weights, q_weights):
    # Rows that do not depend on the prefix: the emitted tokens then are independent, and the law of
    # the i-th, given that it was reached, is p[i].
    p_rows, q_rows = [*map(normalised, p_weights)], [*map(normalised, q_weights)]

    def run(chooser):
        tokens = [chooser.sample(torch.tensor(q, dtype=torch.float64)) for q in q_rows]
        return emitted(verify_by_sampling(Rows(*p_rows), draft(tokens, *q_rows), chooser))

    law = law_of(run)
    for place, p in enumerate(p_rows):
        reached = sum(mass for tokens, mass in law.items() if len(tokens) > place)
        if reached < 1e-9:
            continue
        given_reached = {
            (token,): sum(m for t, m in law.items() if len(t) > place and t[place] == token) / reached
            for token in range(VOCAB)
        }
        assert distance(given_reached, as_law(p)) < 1e-9


def test_a_drafter_that_always_says_the_same_does_not_bend_the_law():
    p = [0.5, 0.3, 0.2]
    certain = [0.0, 1.0, 0.0]
    law = first_token_law([p, p], [certain])
    assert law == pytest.approx({(0,): 0.5, (1,): 0.3, (2,): 0.2})


@pytest.mark.parametrize("wrong", ["greedy draw scored with its softmax", "q before temperature"])
def test_a_q_that_was_not_sampled_from_bends_the_law_and_this_harness_sees_it(wrong):
    p, q = [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]
    if wrong == "greedy draw scored with its softmax":
        law = first_token_law([p, p], [q], draw=lambda row: int(row.argmax()))
    else:
        law = first_token_law([p, p], [normalised([x**3 for x in q])], q_claimed=[q])
    assert distance(law, as_law(p)) > 0.05


def test_equal_distributions_are_always_accepted():
    p = [0.2, 0.3, 0.5]
    for token in range(VOCAB):
        verdict = verify_by_sampling(Rows(p, p), draft([token], p), ForcedChooser(JUST_BELOW_ONE))
        assert verdict.positions[0].accepted
        assert verdict.closing_kind == "bonus"


def test_disjoint_supports_emit_the_targets_token():
    only_a, only_b = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    for uniform in (0.0, 0.5, JUST_BELOW_ONE):
        verdict = verify_by_sampling(Rows(only_a, only_a), draft([1], only_b), ForcedChooser(uniform))
        assert emitted(verdict) == [0]
        assert verdict.closing_kind == "replacement"


def test_a_residual_lost_to_rounding_still_gives_a_token_of_the_target():
    # p(x) / q(x) is one rounding step below 1, and nothing of p - q is positive.
    p = torch.tensor([0.25, 0.75, 0.0])
    q = torch.tensor([0.25, math.nextafter(0.75, 1.0), 0.0], dtype=torch.float64)
    rows = Rows([0.0] * VOCAB, [0.0] * VOCAB)
    rows.rows = [p.double(), p.double()]
    verdict = verify_by_sampling(rows, Draft([1], q[None]), ForcedChooser(JUST_BELOW_ONE))
    assert verdict.positions[0].accepted is False
    assert verdict.closing in (0, 1)


def test_a_uniform_of_zero_never_accepts_an_impossible_token():
    verdict = verify_by_sampling(
        Rows([0.0, 1.0, 0.0], [1.0, 0.0, 0.0]), draft([0], [0.5, 0.5, 0.0]), ForcedChooser(0.0)
    )
    assert emitted(verdict) == [1]


def test_the_bonus_is_sampled_and_not_the_argmax():
    bonus = [0.2, 0.3, 0.5]
    law = law_of(
        lambda chooser: emitted(
            verify_by_sampling(Rows([1.0, 0.0, 0.0], bonus), draft([0], [1.0, 0.0, 0.0]), chooser)
        )
    )
    assert law == pytest.approx({(0, 0): 0.2, (0, 1): 0.3, (0, 2): 0.5})


def test_the_replacement_comes_from_the_row_of_the_rejected_position():
    rows = Rows([1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0])
    certain = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    verdict = verify_by_sampling(rows, draft([0, 1], *certain), ForcedChooser(0.5))
    assert emitted(verdict) == [0, 2]


def test_an_empty_draft_is_plain_sampling():
    verdict = verify_by_sampling(
        Rows([0.0, 0.0, 1.0]), Draft([], torch.zeros(0, VOCAB)), SeededChooser(0)
    )
    assert (verdict.positions, verdict.closing, verdict.closing_kind) == ((), 2, "plain")


def test_a_token_that_q_gives_no_probability_is_refused():
    with pytest.raises(ValueError, match="not the distribution the token was drawn from"):
        verify_by_sampling(Rows([1, 0, 0], [1, 0, 0]), draft([0], [0.0, 1.0, 0.0]), SeededChooser(0))


@given(
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
    st.lists(st.integers(0, 2), max_size=3),
    st.floats(0, 1, exclude_max=True),
)
def test_greedy_verification_is_the_exact_rule_with_one_hot_p(choices, tokens, uniform):
    like = torch.zeros(VOCAB, dtype=torch.float64)
    p_rows = [one_hot(choice, like).tolist() for choice in choices]
    proposal = draft(tokens, *[[0.2, 0.3, 0.5]] * len(tokens))
    greedy = verify_greedily(Rows(*p_rows), proposal, ForcedChooser(uniform))
    exact = verify_by_sampling(Rows(*p_rows), proposal, ForcedChooser(uniform))
    assert emitted(greedy) == emitted(exact)
    assert greedy.closing_kind == exact.closing_kind
    assert [one.p for one in greedy.positions] == [one.p for one in exact.positions]


def test_positions_tell_the_whole_story():
    p, q = [0.5, 0.25, 0.25], [0.25, 0.5, 0.25]
    verdict = verify_by_sampling(Rows(p, p, p), draft([0, 1], q, q), ForcedChooser(0.75), trace=True)
    kept, rejected = verdict.positions
    assert (kept.token, kept.p, kept.q) == (0, 0.5, 0.25)
    assert (kept.acceptance_probability, kept.uniform, kept.accepted) == (1.0, 0.75, True)
    assert (rejected.acceptance_probability, rejected.accepted) == (0.5, False)
    assert rejected.top.residual == [(0, 1.0)]
    assert rejected.top.p == [(0, 0.5), (1, 0.25), (2, 0.25)]


def test_tokens_behind_the_first_rejection_are_drafted_but_not_judged():
    certain = [[1.0, 0.0, 0.0]] * 3
    verdict = verify_greedily(
        Rows(*[[0.0, 1.0, 0.0]] * 4), draft([0, 0, 0], *certain), SeededChooser(0)
    )
    assert [one.accepted for one in verdict.positions] == [False, None, None]
    assert verdict.positions[2].p is None


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (torch.ones(1, VOCAB), "sums to 3"),
        (torch.zeros(2, VOCAB), r"shape \(2, 3\) for 1 drafted"),
        (torch.ones(VOCAB), r"shape \(3,\)"),
    ],
)
def test_a_draft_whose_q_is_no_distribution_is_refused(q, message):
    with pytest.raises(ValueError, match=message):
        Draft([0], q)

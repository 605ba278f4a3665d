"""The adaptive draft length: it follows acceptance and costs, it lets go, and it changes no law."""

from itertools import pairwise

import pytest
from helpers import tiny_model

from specdec_lab.adaptive import AdaptiveGamma, Costs, measure_costs
from specdec_lab.audit import audit_decoder
from specdec_lab.decoding import generate, speculative
from specdec_lab.drafters import CorruptedDrafter, ModelDrafter, NGramDrafter
from specdec_lab.language_model import HFCausalLM, RandomLM
from specdec_lab.records import Position, Round, Seconds
from specdec_lab.sampling import Sampling
from specdec_lab.theory import expected_speedup

CHEAP = Costs(0.1, {1: 1.0, 9: 1.0})


def round_of(accepted: int, rejected: int = 1) -> Round:
    """A round with so many accepted tokens, then perhaps a rejected one."""
    verdicts = [True] * accepted + [False] * rejected
    positions = tuple(Position(5, 0.5, 0.5, 0.5, 0.1, verdict) for verdict in verdicts)
    return Round(positions, 7, "replacement" if rejected else "bonus", 3, Seconds(0.0, 0.0, 0.0))


def test_between_two_measured_lengths_the_cost_is_a_straight_line():
    costs = Costs(0.1, {1: 1.0, 3: 1.2, 9: 1.8})
    assert costs.of(0) == 1.0
    assert costs.of(1) == pytest.approx(0.1 + 1.1)
    assert costs.of(4) == pytest.approx(0.4 + 1.4)
    assert costs.of(20) == pytest.approx(2.0 + 1.8)


def test_it_drafts_more_where_more_is_accepted():
    gamma = AdaptiveGamma(CHEAP)
    lengths = [gamma([round_of(accepted)] * 20) for accepted in (1, 2, 4, 8)]
    assert lengths == sorted(lengths)
    assert lengths[0] >= 1
    assert lengths[-1] == 8


def test_it_takes_the_length_that_theory_promises_most_for():
    gamma = AdaptiveGamma(CHEAP, weight=1e-9)
    rounds = [round_of(2)] * 30  # two of three
    assert gamma.alpha(rounds) == pytest.approx(2 / 3)
    promises = {n: expected_speedup(2 / 3, n, 0.1) for n in range(1, 9)}
    assert gamma(rounds) == max(promises, key=promises.get)


def test_where_nothing_is_accepted_it_lets_go_and_tries_ever_less_often():
    gamma, rounds, drafted = AdaptiveGamma(CHEAP, patience=4), [], []
    for number in range(120):
        length = gamma(rounds)
        drafted.append(length)
        rounds.append(round_of(0, rejected=length))
        assert number < 12 or length <= 1
    tries = [number for number, length in enumerate(drafted) if length]
    gaps = [later - earlier for earlier, later in pairwise(tries)]
    assert len(tries) <= 12
    assert gaps[-1] >= 32


def test_it_comes_back_when_drafts_are_accepted_again():
    gamma, rounds, drafted = AdaptiveGamma(CHEAP, patience=2), [], []
    for number in range(60):
        length = gamma(rounds)
        drafted.append(length)
        good = number >= 10
        rounds.append(round_of(length, 0) if good else round_of(0, length))
    assert 0 in drafted[:10]
    assert drafted[-1] == 8


def test_a_dear_draft_is_never_asked():
    gamma, rounds = AdaptiveGamma(Costs(1.0, {1: 1.0, 9: 1.1})), []
    for _ in range(60):
        assert gamma(rounds) == 0
        rounds.append(round_of(0, 0))


def test_each_generation_starts_anew():
    gamma = AdaptiveGamma(CHEAP)
    first = gamma([])
    gamma([round_of(0)] * 30)
    assert gamma([]) == first


@pytest.mark.parametrize("unsure", [0.0, 0.4])
def test_it_changes_no_law(unsure):
    costs = Costs(0.3, {1: 1.0, 9: 1.1})

    def decoder(target, prompt, length, chooser):
        gamma = AdaptiveGamma(costs, longest=3, patience=1)
        drafter = ModelDrafter(RandomLM(target.vocab_size, seed=7), unsure=unsure)
        options = {"max_new_tokens": length, "sampling": Sampling(1.0), "chooser": chooser}
        rounds = speculative(target, drafter, prompt, gamma=gamma, **options)
        return [token for one in rounds for token in one.tokens]

    assert audit_decoder(decoder, RandomLM(3, seed=1), [1], 4).verdict == "exact"


@pytest.mark.parametrize(
    "make", [lambda lm: ModelDrafter(HFCausalLM(tiny_model("llama", 1))), NGramDrafter]
)
def test_measured_costs_and_the_greedy_output(make):
    lm = HFCausalLM(tiny_model("llama"))
    drafter = make(lm) if make is not NGramDrafter else NGramDrafter(37)
    costs = measure_costs(lm, drafter, context=16, repeats=1)
    assert costs.v[1] == 1.0
    assert (costs.c > 0.0) == isinstance(drafter, ModelDrafter)
    gamma = AdaptiveGamma(costs)
    made = generate(lm, [1, 2, 3], drafter=drafter, gamma=gamma, max_new_tokens=32, end_ids=[])
    assert made.tokens == generate(lm, [1, 2, 3], max_new_tokens=32, end_ids=[]).tokens


def test_an_unsure_draft_ends_early_and_changes_no_law():
    def decoder(unsure):
        def run(target, prompt, length, chooser):
            drafter = ModelDrafter(RandomLM(target.vocab_size, seed=7), unsure=unsure)
            options = {"max_new_tokens": length, "sampling": Sampling(1.0), "chooser": chooser}
            return [
                t
                for one in speculative(target, drafter, prompt, gamma=3, **options)
                for t in one.tokens
            ]

        return run

    assert audit_decoder(decoder(0.4), RandomLM(3, seed=1), [1], 4).verdict == "exact"
    lm, draft = HFCausalLM(tiny_model("llama")), HFCausalLM(tiny_model("llama", 1))
    drafted = []
    for unsure in (0.0, 0.5, 1.0):
        options = {"max_new_tokens": 32, "gamma": 6, "end_ids": []}
        made = generate(lm, [1, 2, 3], drafter=ModelDrafter(draft, unsure=unsure), **options)
        drafted.append(made.metrics.drafted / len(made.rounds))
    assert drafted[0] > drafted[1] > drafted[2]
    assert drafted[2] == pytest.approx(1.0, abs=0.1)
    with pytest.raises(ValueError, match="unsure: got 2"):
        ModelDrafter(draft, unsure=2)


def test_a_drafter_whose_steps_cannot_be_timed_is_refused():
    lm = HFCausalLM(tiny_model("llama"))
    with pytest.raises(ValueError, match="drafter: got CorruptedDrafter"):
        measure_costs(lm, CorruptedDrafter(NGramDrafter(37), 0.5), context=16)

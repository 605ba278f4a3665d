"""The law of whole decoded sequences, by enumeration: speculation must leave no trace in it."""

import itertools

import pytest
import torch
from helpers import CountingChooser, decoded_law, distance, draft, tiny_lm, tokens_of

from specdec_lab.decoding import autoregressive, speculative
from specdec_lab.drafters import (
    CorruptedDrafter,
    Drafter,
    ModelDrafter,
    NGramDrafter,
    ScriptedDrafter,
)
from specdec_lab.language_model import TableLM
from specdec_lab.randomness import SeededChooser
from specdec_lab.sampling import Sampling
from specdec_lab.stopping import StopRule

VOCAB = 3
TARGET = TableLM.random(VOCAB, order=2, seed=1)
DRAFT = TableLM.random(VOCAB, order=1, seed=2)
PROMPT = [0, 1]

DRAFTERS = {
    "model": lambda: ModelDrafter(DRAFT),
    "model with another temperature": lambda: ModelDrafter(DRAFT, Sampling(0.5)),
    "greedy model": lambda: ModelDrafter(DRAFT, Sampling(0.0)),
    "the target itself": lambda: ModelDrafter(TableLM.random(VOCAB, order=2, seed=1)),
    "n-gram": lambda: NGramDrafter(VOCAB, longest=2, shortest=1),
    "corrupted": lambda: CorruptedDrafter(ModelDrafter(DRAFT), 0.4),
    "scripted": lambda: ScriptedDrafter(VOCAB, [2, 0, 0, 1]),
}
SAMPLINGS = {
    "plain": Sampling(1.0),
    "temperature": Sampling(0.6),
    "top-k": Sampling(1.0, top_k=2),
    "top-p": Sampling(0.9, top_p=0.75),
    "min-p": Sampling(1.0, min_p=0.4),
    "repetition penalty": Sampling(1.0, repetition_penalty=1.7),
    "no repeated n-gram": Sampling(1.0, no_repeat_ngram_size=2),
    "custom": Sampling(1.0, processors=(lambda ids, scores: scores * (1 + ids.shape[1] % 3),)),
}


def textbook_law(length, sampling=SAMPLINGS["plain"]):
    """The target's own law, multiplied out without any decoder."""
    law = {}
    for tokens in itertools.product(range(VOCAB), repeat=length):
        mass = 1.0
        for place, token in enumerate(tokens):
            prefix = [*PROMPT, *tokens[:place]]
            TARGET.reset()
            mass *= float(sampling.distribution(prefix, TARGET.extend(prefix, rows=1)[0])[token])
        if mass > 0.0:
            law[tokens] = mass
    return law


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_plain_decoding_has_the_textbook_law(sampling):
    law = decoded_law(TARGET, None, PROMPT, max_new_tokens=3, sampling=SAMPLINGS[sampling])
    assert distance(law, textbook_law(3, SAMPLINGS[sampling])) < 1e-12


@pytest.mark.parametrize("gamma", [0, 1, 2])
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_speculation_has_the_targets_law(drafter, gamma):
    law = decoded_law(
        TARGET, DRAFTERS[drafter](), PROMPT, max_new_tokens=3, gamma=gamma, sampling=Sampling(1.0)
    )
    assert distance(law, textbook_law(3)) < 1e-9


@pytest.mark.parametrize("drafter", ["model", "n-gram"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_every_processor_keeps_the_law(sampling, drafter):
    chosen = SAMPLINGS[sampling]
    law = decoded_law(TARGET, DRAFTERS[drafter](), PROMPT, max_new_tokens=3, gamma=2, sampling=chosen)
    assert distance(law, textbook_law(3, chosen)) < 1e-6  # truncation and penalties are float32


def test_longer_drafts_keep_the_law():
    drafter = DRAFTERS["model"]()
    options = {"max_new_tokens": 4, "sampling": Sampling(1.0)}
    law = decoded_law(TARGET, drafter, PROMPT, gamma=3, **options)
    assert distance(law, textbook_law(4)) < 1e-9


@pytest.mark.parametrize("drafter", ["model", "corrupted"])
def test_end_tokens_and_changing_draft_lengths_keep_the_law(drafter):
    options = {"max_new_tokens": 3, "sampling": Sampling(1.0), "stop": StopRule([2])}
    plain = decoded_law(TARGET, None, PROMPT, **options)

    def gamma(rounds):
        return (2, 0, 1)[len(rounds) % 3]

    law = decoded_law(TARGET, DRAFTERS[drafter](), PROMPT, gamma=gamma, **options)
    assert distance(law, plain) < 1e-9
    assert {len(tokens) for tokens in law} == {1, 2, 3}


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_twin_of_the_target_is_always_accepted_whatever_is_done_to_the_logits(sampling):
    # Both sides must process their logits once, and with the prefix of the position: then q is p.
    twin = ModelDrafter(TableLM.random(VOCAB, order=2, seed=1))
    options = {"max_new_tokens": 5, "gamma": 4, "sampling": SAMPLINGS[sampling]}
    for seed in range(5):
        rounds = list(speculative(TARGET, twin, PROMPT, chooser=SeededChooser(seed), **options))
        assert all(one.accepted == one.drafted for one in rounds)


class LyingDrafter(Drafter):
    """Draws from a sharpened q and hands over the plain one (temperature on one side only)."""

    def propose(self, prefix, gamma, chooser):
        q = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
        sharp = q**3 / (q**3).sum()
        return draft([chooser.sample(sharp) for _ in range(gamma)], *[q.tolist()] * gamma)


def test_a_drafter_that_hands_over_another_q_is_found_out():
    law = decoded_law(
        TARGET, LyingDrafter(VOCAB), PROMPT, max_new_tokens=2, gamma=2, sampling=Sampling(1.0)
    )
    assert distance(law, textbook_law(2)) > 0.05


def test_no_draft_length_zero_draws_what_plain_sampling_draws():
    plain_chooser, chooser = CountingChooser(3), CountingChooser(3)
    options = {"max_new_tokens": 12, "sampling": Sampling(1.0)}
    plain = tokens_of(autoregressive(TARGET, PROMPT, chooser=plain_chooser, **options))
    rounds = speculative(TARGET, ModelDrafter(DRAFT), PROMPT, gamma=0, chooser=chooser, **options)
    assert tokens_of(rounds) == plain
    assert chooser.drawn == plain_chooser.drawn == 12


def test_greedy_decoding_draws_nothing():
    chooser = CountingChooser(0)
    list(speculative(TARGET, ModelDrafter(DRAFT), PROMPT, max_new_tokens=9, chooser=chooser))
    assert chooser.drawn == 0


def test_the_seed_is_used_once_per_generation():
    def run(seed):
        options = {"max_new_tokens": 30, "sampling": Sampling(1.0), "gamma": 3}
        chooser = SeededChooser(seed)
        return list(speculative(TARGET, ModelDrafter(DRAFT), PROMPT, chooser=chooser, **options))

    uniforms = [one.uniform for round_ in run(7) for one in round_.positions if one.uniform]
    assert len(set(uniforms)) == len(uniforms) > 10
    assert tokens_of(run(7)) == tokens_of(run(7))
    assert tokens_of(run(7)) != tokens_of(run(8))


def test_half_precision_models_are_judged_in_float32():
    target, small = tiny_lm("llama", 0), tiny_lm("llama", 1)
    for model in (target.model, small.model):
        model.to(torch.bfloat16)
    rounds = list(
        speculative(
            target, ModelDrafter(small), [1, 2], max_new_tokens=20, gamma=3, sampling=Sampling(1.0)
        )
    )
    chances = [
        one.acceptance_probability
        for round_ in rounds
        for one in round_.positions
        if one.acceptance_probability not in (None, 1.0)
    ]
    as_bfloat16 = torch.tensor(chances).bfloat16().double()
    assert not torch.equal(as_bfloat16, torch.tensor(chances, dtype=torch.float64))

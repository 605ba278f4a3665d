"""The law of whole decoded sequences, by enumeration: speculation must leave no trace in it."""

import pytest
import torch
from helpers import (
    CountingChooser,
    ReducedLM,
    decoder_with,
    draft,
    plain_decoder,
    tiny_lm,
    tokens_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_lab.audit import audit_decoder
from specdec_lab.decoding import autoregressive, speculative
from specdec_lab.drafters import (
    CorruptedDrafter,
    Drafter,
    LayerSkipDrafter,
    ModelDrafter,
    NGramDrafter,
    ScriptedDrafter,
)
from specdec_lab.language_model import RandomLM, TableLM
from specdec_lab.randomness import SeededChooser
from specdec_lab.sampling import Sampling
from specdec_lab.stopping import StopRule

VOCAB = 3
TARGET = RandomLM(VOCAB, seed=1)
DRAFT = RandomLM(VOCAB, seed=2)
PROMPT = [0, 1]

DRAFTERS = {
    "model": lambda target: ModelDrafter(DRAFT),
    "model, another temperature": lambda target: ModelDrafter(DRAFT, Sampling(0.5)),
    "model, greedy": lambda target: ModelDrafter(DRAFT, Sampling(0.0)),
    "model, top-k": lambda target: ModelDrafter(DRAFT, Sampling(1.0, top_k=2)),
    "model, reduced head": lambda target: ModelDrafter(ReducedLM(VOCAB, [0, 2])),
    "corrupted reduced head": lambda target: CorruptedDrafter(
        ModelDrafter(ReducedLM(VOCAB, [1, 2])), 0.4
    ),
    "the target's twin": lambda target: ModelDrafter(RandomLM(VOCAB, seed=1)),
    "n-gram": lambda target: NGramDrafter(VOCAB, longest=2, shortest=1),
    "corrupted n-gram": lambda target: CorruptedDrafter(NGramDrafter(VOCAB), 0.4),
    "scripted": lambda target: ScriptedDrafter(VOCAB, [2, 0, 0, 1]),
}
SAMPLINGS = {
    "plain": Sampling(1.0),
    "colder": Sampling(0.6),
    "hotter": Sampling(1.6),
    "top-k": Sampling(1.0, top_k=2),
    "top-p": Sampling(0.9, top_p=0.75),
    "min-p": Sampling(1.0, min_p=0.4),
    "repetition penalty": Sampling(1.0, repetition_penalty=1.7),
    "no repeated n-gram": Sampling(1.0, no_repeat_ngram_size=2),
    "custom": Sampling(1.0, processors=(lambda ids, scores: scores * (1 + ids.shape[1] % 3),)),
    "greedy": Sampling(0.0),
}


def require_exact(decoder, target=TARGET, length=3, **options):
    audit = audit_decoder(decoder, target, PROMPT, length, **options)
    assert audit.verdict == "exact", audit.reason
    assert audit.l1_error < 1e-12
    assert audit.output.covered == pytest.approx(1.0, abs=1e-12)
    return audit


@pytest.mark.parametrize("gamma", [0, 1, 2])
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_every_drafter_keeps_the_law(drafter, gamma):
    require_exact(decoder_with(DRAFTERS[drafter], gamma))


@pytest.mark.parametrize("gamma", [1, 2])
def test_layer_skip_keeps_the_law(gamma):
    target = tiny_lm("gpt2", vocab_size=VOCAB)
    target.model.double()
    audit = require_exact(decoder_with(lambda model: LayerSkipDrafter(model, 1), gamma), target)
    assert audit.output.paths > 27  # it drafted, and was rejected at times


def test_corrupting_a_model_keeps_the_law():
    decoder = decoder_with(lambda _: CorruptedDrafter(ModelDrafter(DRAFT), 0.4), gamma=1)
    require_exact(decoder)


def test_longer_drafts_keep_the_law():
    require_exact(decoder_with(DRAFTERS["model"], 3), length=4)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_every_way_to_sample_keeps_the_law(sampling):
    chosen = SAMPLINGS[sampling]
    require_exact(plain_decoder(chosen), sampling=chosen)
    for drafter in ("model", "n-gram"):
        require_exact(decoder_with(DRAFTERS[drafter], 2, chosen), sampling=chosen)


@pytest.mark.parametrize("length", [0, 1, 2, 4])
def test_budgets_and_end_tokens_keep_the_law(length):
    stop = StopRule([2])
    for decoder in (plain_decoder(stop=stop), decoder_with(DRAFTERS["model"], 3, stop=stop)):
        audit = require_exact(decoder, length=length, end_ids=[2])
    assert {len(tokens) for tokens in audit.law} == set(range(min(1, length), length + 1))


def test_changing_draft_lengths_keep_the_law():
    def gamma(rounds):
        return (2, 0, 1)[len(rounds) % 3]

    require_exact(decoder_with(DRAFTERS["corrupted n-gram"], gamma))


@settings(max_examples=40)
@given(st.data(), st.integers(2, 6), st.integers(1, 2), st.sampled_from([0.4, 1.0, 2.5]))
def test_any_two_models_keep_the_law(data, vocab, gamma, temperature):
    # Zeros, ties, near-certainties; supports that are equal, overlap, or have nothing in common.
    weight = st.sampled_from([0.0, 1.0, 1.0, 3.0, 1e-8])
    row = st.lists(weight, min_size=vocab, max_size=vocab).filter(any)
    rows = st.fixed_dictionaries({(): row, (0,): row, (1,): row})
    target, model = (
        TableLM({context: [x / sum(r) for x in r] for context, r in data.draw(rows).items()})
        for _ in range(2)
    )
    sampling = Sampling(temperature)
    decoder = decoder_with(lambda _: ModelDrafter(model), gamma, sampling)
    require_exact(decoder, target, length=2, sampling=sampling)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_twin_of_the_target_is_always_accepted_whatever_is_done_to_the_logits(sampling):
    # Both sides must process their logits once, and with the prefix of the position: then q is p.
    twin = ModelDrafter(RandomLM(VOCAB, seed=1))
    options = {"max_new_tokens": 4, "gamma": 3, "sampling": SAMPLINGS[sampling]}
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
    audit = audit_decoder(decoder_with(lambda _: LyingDrafter(VOCAB)), TARGET, PROMPT, 2)
    assert audit.verdict == "not exact"
    assert audit.l1_error > 0.1


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

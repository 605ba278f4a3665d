"""Greedy speculation gives the target's own greedy output, token for token, whoever drafts."""

import pytest
import torch
from helpers import near_twin, tiny_lm

from specdec_lab.decoding import generate
from specdec_lab.drafters import (
    CorruptedDrafter,
    LayerSkipDrafter,
    ModelDrafter,
    NGramDrafter,
    ScriptedDrafter,
)
from specdec_lab.randomness import SeededChooser

PROMPTS = [[3], [1, 2, 3, 1, 2, 3, 1], [30, 4, 4, 4, 19, 22]]
DRAFTERS = {
    "model": lambda target, twin: ModelDrafter(twin),
    "n-gram": lambda target, twin: NGramDrafter(target.vocab_size, shortest=1),
    "layer-skip": lambda target, twin: LayerSkipDrafter(target, 2),
    "corrupted": lambda target, twin: CorruptedDrafter(ModelDrafter(twin), 0.3),
    "scripted": lambda target, twin: ScriptedDrafter(target.vocab_size, [1, 2, 3] * 8),
}


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "qwen3"])
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_greedy_output_is_the_targets_own_for_draft_lengths_zero_to_eight(architecture, drafter):
    target = tiny_lm(architecture)
    proposer = DRAFTERS[drafter](target, near_twin(architecture))
    for prompt in PROMPTS:
        truth = generate(target, prompt, max_new_tokens=18).tokens
        for gamma in range(9):
            made = generate(
                target, prompt, drafter=proposer, gamma=gamma, max_new_tokens=18, seed=gamma
            )
            assert made.tokens == truth, (prompt, gamma)
            assert made.metrics.target_forwards == len(made.rounds) <= 18


def test_plain_greedy_output_is_what_transformers_generates():
    for architecture in ("llama", "gpt2", "qwen3", "mistral"):
        target = tiny_lm(architecture)
        theirs = target.model.generate(torch.tensor([PROMPTS[1]]), max_new_tokens=18, do_sample=False)
        assert generate(target, PROMPTS[1], max_new_tokens=18).tokens == theirs[0, 7:].tolist()


def test_the_most_recent_of_the_longest_matches_is_proposed():
    drafter = NGramDrafter(50, longest=3, shortest=2)
    # "7 8" stands twice; the later one was followed by 2, and "9 7 8" matches only the earlier one.
    assert drafter.propose([9, 7, 8, 1, 5, 7, 8, 2, 7, 8], 1, None).tokens == [2]
    assert drafter.propose([9, 7, 8, 1, 5, 7, 8, 2, 9, 7, 8], 1, None).tokens == [1]


def test_a_match_that_is_too_short_proposes_nothing():
    assert NGramDrafter(50, shortest=2).propose([1, 2, 3, 1], 4, None).tokens == []
    assert NGramDrafter(50).propose([1], 4, None).tokens == []


def test_a_copy_goes_on_into_the_draft_itself():
    assert NGramDrafter(50).propose([1, 2, 1, 2, 1], 5, None).tokens == [2, 1, 2, 1, 2]


@pytest.mark.parametrize(("matched", "proposed"), [(1, 2), (2, 4), (3, 8), (4, 9)])
def test_a_longer_match_is_trusted_with_a_longer_draft(matched, proposed):
    text = [10, *range(20, 30), 11, *range(20, 20 + matched)]
    drafter = NGramDrafter(50)
    assert len(drafter.propose(text, 9, None).tokens) == proposed
    assert len(drafter.propose(text, 1, None).tokens) == 1


def test_an_n_gram_drafter_forgets_tokens_that_were_taken_back():
    drafter = NGramDrafter(50)
    drafter.propose([1, 2, 3, 1, 2], 2, None)
    assert drafter.propose([1, 2, 4, 1, 2], 1, None).tokens == [4]
    assert drafter.propose([5, 6, 7, 8, 3], 1, None).tokens == []  # only the first text had another 3


@pytest.mark.parametrize(("noise", "agreement"), [(0.0, 1.0), (1.0, 0.1)])
def test_noise_is_a_knob_on_agreement(noise, agreement):
    target = tiny_lm()
    drafter = CorruptedDrafter(ModelDrafter(tiny_lm()), noise)
    made = generate(target, PROMPTS[1], drafter=drafter, gamma=2, max_new_tokens=40, seed=0)
    rate = made.metrics.acceptance_rate
    assert rate == 1.0 if agreement == 1.0 else rate <= agreement


def test_noise_changes_the_tokens_and_not_the_length_of_a_draft():
    text, inner = [*range(1, 10), 2], NGramDrafter(50)
    clean = inner.propose(text, 24, None)
    same = CorruptedDrafter(NGramDrafter(50), 0.0).propose(text, 24, SeededChooser(0))
    assert same.tokens == clean.tokens
    noisy = CorruptedDrafter(NGramDrafter(50), 1.0).propose(text, 24, SeededChooser(0))
    assert noisy.tokens != clean.tokens
    assert len(noisy) <= len(clean)
    assert torch.allclose(noisy.q, torch.full_like(noisy.q, 1 / 50))


@pytest.mark.parametrize("noise", [-0.1, 1.5])
def test_noise_out_of_range_is_refused(noise):
    with pytest.raises(ValueError, match=f"noise: got {noise}, expected 0 to 1"):
        CorruptedDrafter(NGramDrafter(5), noise)

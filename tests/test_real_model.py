"""The real 135M model: equality on prompts of every kind, and the cache audit."""

import pytest

from benchmarks.prompts import PROMPTS
from specdec_lab.cache_check import CheckedLM
from specdec_lab.decoding import generate, speculative
from specdec_lab.drafters import CorruptedDrafter, NGramDrafter, ScriptedDrafter
from specdec_lab.sampling import Sampling
from specdec_lab.text import decoder, encode

pytestmark = pytest.mark.slow
NEW_TOKENS = 24


def drafter_for(pair, place, truth):
    """A different drafter from prompt to prompt; every one is met with several draft lengths."""
    vocabulary = pair.target.vocab_size
    half_right = [token if i % 4 else 0 for i, token in enumerate(truth)]
    kinds = [
        pair.drafter("model"),
        pair.drafter("ngram"),
        NGramDrafter(vocabulary, shortest=1),
        pair.drafter("layerskip", layers=28),
        CorruptedDrafter(ScriptedDrafter(vocabulary, truth), 0.2),
        ScriptedDrafter(vocabulary, half_right),
    ]
    return kinds[place % len(kinds)]


@pytest.mark.parametrize("place", range(20))
def test_greedy_output_is_the_targets_own(pair, place):
    prompt = PROMPTS[place]
    options = {"chat": prompt.chat, "max_new_tokens": NEW_TOKENS}
    truth = pair.generate(prompt.text, drafter=None, **options)
    drafter = drafter_for(pair, place, truth.tokens)
    for gamma in (1 + place % 8, 8 - place % 8):
        made = pair.generate(prompt.text, drafter=drafter, gamma=gamma, seed=place, **options)
        assert made.tokens == truth.tokens
        assert made.text == truth.text


def test_there_are_twenty_prompts_of_different_kinds():
    assert len({prompt.text for prompt in PROMPTS}) == 20
    assert len({prompt.kind for prompt in PROMPTS}) == 7


def test_it_knows_the_capital_of_france(pair):
    made = pair.generate("The capital of France is", max_new_tokens=3)
    assert made.text.startswith(" Paris")


def test_cached_logits_equal_uncached_ones_every_round(pair):
    checked = CheckedLM(pair.target)
    tokens = encode(pair.tokenizer, PROMPTS[0].text, chat=True)
    drafter = pair.drafter("ngram")
    rounds = list(speculative(checked, drafter, tokens, max_new_tokens=24, gamma=5))
    assert sum(one.drafted - one.accepted for one in rounds) > 0  # there was something to rewind
    assert checked.largest_difference < 2e-3  # at most 8e-5 was seen, on logits of up to 30
    assert checked.near_ties == []


def test_streamed_pieces_are_the_text_with_characters_that_span_tokens(pair):
    text = "naïve café 漢字 😀 — “done”\n\n  indented"
    tokens = pair.tokenizer(text).input_ids
    truth = generate(
        pair.target,
        "Hello",
        drafter=ScriptedDrafter(pair.target.vocab_size, tokens),
        tokenizer=pair.tokenizer,
        max_new_tokens=len(tokens),
    )
    assert truth.text == decoder(pair.tokenizer)(truth.tokens)
    from specdec_lab.text import transcribe

    assert transcribe(tokens, decoder(pair.tokenizer)) == text


def test_a_stop_string_ends_the_text_exactly(pair):
    options = {"max_new_tokens": 40, "stop_strings": ["answer is"]}
    for drafter in (None, "model", "ngram"):
        made = pair.generate("The capital of France is", drafter=drafter, **options)
        assert made.stop_reason == "stop string"
        assert made.text.endswith("The answer is")


def test_the_end_token_is_emitted_and_not_shown(pair):
    made = pair.generate("What is the capital of France?", chat=True, max_new_tokens=40)
    assert made.stop_reason == "end token"
    assert made.tokens[-1] in pair.target.end_ids
    assert "<|im_end|>" not in made.text


@pytest.mark.parametrize("drafter", [None, "model", "ngram", "layerskip"])
def test_a_seed_repeats_a_sampled_run(pair, drafter):
    options = {"max_new_tokens": 12, "sampling": Sampling(0.9, top_p=0.95), "seed": 3}
    runs = [pair.generate("Once upon a time", drafter=drafter, **options) for _ in range(2)]
    assert runs[0].tokens == runs[1].tokens

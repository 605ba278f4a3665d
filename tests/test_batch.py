"""Several sequences at once: each comes out as it does alone, whatever the others accept."""

import pytest
import torch
from helpers import tiny_model

from specdec_lab.batch import generate_batch
from specdec_lab.batched_model import BatchedLM
from specdec_lab.decoding import Stopwatch, generate
from specdec_lab.draft_model import new_draft
from specdec_lab.drafters import LayerSkipDrafter, ModelDrafter, NGramDrafter
from specdec_lab.language_model import CannotRewind, HFCausalLM
from specdec_lab.sampling import Sampling

PROMPTS = [[1, 2, 3], [4], [5, 6, 7, 8, 9, 5, 6], [3, 1, 3, 1, 3]]


def model(architecture="llama", seed=0, **changes):
    """In double precision, so that no near tie is decided by the order of additions."""
    return HFCausalLM(tiny_model(architecture, seed, **changes).double())


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "qwen3"])
def test_every_row_of_logits_is_that_of_the_sequence_alone(architecture):
    lm = model(architecture)
    batch, alone = BatchedLM(lm, 3), [model(architecture) for _ in range(3)]

    def both_read(new, rows):
        for one, tokens, count, logits in zip(alone, new, rows, batch.extend(new, rows), strict=True):
            torch.testing.assert_close(logits, one.extend(tokens, count), rtol=0, atol=1e-10)
        assert [one.tokens for one in batch.sequences] == [one.tokens for one in alone]

    def both_rewind(lengths):
        for one, sequence, length in zip(alone, batch.sequences, lengths, strict=True):
            one.rewind(length)
            sequence.rewind(length)

    both_read([[1, 2, 3], [4], [5, 6, 7, 8, 9]], [3, 1, 2])
    both_read([[1], [4, 5, 6], [5, 6]], [1, 3, 2])
    both_rewind([2, 3, 7])
    both_read([[1, 4], [4], [5, 6, 1, 2, 3, 4]], [1, 1, 6])
    batch.keep([2, 0])
    alone = [alone[2], alone[0]]
    both_read([[7], [8, 9]], [1, 2])
    both_rewind([0, 1])
    both_read([[3, 3], [1]], [2, 1])


def drafters():
    draft = model(seed=1)
    reduced = HFCausalLM(new_draft(model().model, torch.arange(0, 37, 2)))
    return {
        "none": lambda: None,
        "n-gram": lambda: NGramDrafter(37),
        "model": lambda: ModelDrafter(draft),
        "itself": lambda: ModelDrafter(model()),
        "reduced head": lambda: ModelDrafter(reduced),
    }


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", drafters())
def test_each_sequence_comes_out_as_alone(name, temperature):
    make = drafters()[name]
    options = {"max_new_tokens": 24, "sampling": Sampling(temperature), "end_ids": [9]}
    if make() is not None:
        options["gamma"] = 4
    seeds = [5, 6, 7, 8]
    together = generate_batch(model(), PROMPTS, drafter=make(), seeds=seeds, **options)
    for prompt, seed, made in zip(PROMPTS, seeds, together, strict=True):
        alone = generate(model(), prompt, drafter=make(), seed=seed, **options)
        assert made.tokens == alone.tokens
        assert made.stop_reason == alone.stop_reason
        assert [one.accepted for one in made.rounds] == [one.accepted for one in alone.rounds]


def test_rows_accept_different_counts_and_end_at_different_times():
    made = generate_batch(
        model(), PROMPTS, drafter=ModelDrafter(model(seed=1)), max_new_tokens=24, gamma=3
    )
    assert len({tuple(one.accepted for one in run.rounds) for run in made}) > 1
    assert len({len(run.rounds) for run in made}) > 1


@pytest.mark.parametrize("budget", [0, 1, 2])
def test_small_budgets(budget):
    made = generate_batch(model(), PROMPTS, drafter=NGramDrafter(37), max_new_tokens=budget, end_ids=[])
    assert [len(run.tokens) for run in made] == [budget] * 4


def test_what_cannot_work_is_refused_by_name():
    lm = model()
    with pytest.raises(ValueError, match="prompts: got none"):
        generate_batch(lm, [])
    with pytest.raises(ValueError, match="prompt: got no tokens"):
        generate_batch(lm, [[1], []])
    with pytest.raises(ValueError, match="seeds: got 1 for 2 prompts"):
        generate_batch(lm, [[1], [2]], seeds=[1])
    with pytest.raises(ValueError, match="gamma: got -1"):
        generate_batch(lm, [[1]], drafter=NGramDrafter(37), gamma=-1)
    with pytest.raises(ValueError, match="drafter: got LayerSkipDrafter"):
        generate_batch(lm, [[1]], drafter=LayerSkipDrafter(lm, 1))
    with pytest.raises(ValueError, match="tokens: got id 37"):
        generate_batch(lm, [[1], [37]])
    with pytest.raises(CannotRewind, match="got MistralForCausalLM"):
        generate_batch(model("mistral"), [[1]])


def test_a_draft_model_with_a_shorter_context_stops_drafting_in_time():
    target, short = model(), model(max_position_embeddings=16)
    options = {"max_new_tokens": 24, "end_ids": []}
    made = generate_batch(target, PROMPTS, drafter=ModelDrafter(short), gamma=3, **options)
    assert [one.tokens for one in made] == [generate(target, p, **options).tokens for p in PROMPTS]
    assert made[1].rounds[0].drafted == 3
    assert made[1].rounds[-2].drafted == 0


def test_a_drafter_that_ends_its_drafts_early_is_refused():
    with pytest.raises(ValueError, match=r"unsure=0.5, expected 0 in a batch"):
        generate_batch(model(), PROMPTS, drafter=ModelDrafter(model(seed=1), unsure=0.5))


def test_the_rest_of_a_round_is_that_of_all_rows(monkeypatch):
    monkeypatch.setattr(Stopwatch, "lap", lambda self: 1.0)
    options = {"drafter": NGramDrafter(37), "max_new_tokens": 4, "end_ids": []}
    first = [one.rounds[0].seconds for one in generate_batch(model(), PROMPTS, **options)]
    # A second for each row's part, and one for what comes behind them.
    assert {(one.draft, one.verify, one.rest) for one in first} == {(1.0, 1.0, len(PROMPTS) + 1.0)}


def test_padding_behind_a_row_at_the_end_of_its_context_is_not_looked_up():
    """The positions of this architecture are rows of a table."""
    lm = model("gpt2", max_position_embeddings=12)
    batch, alone = BatchedLM(lm, 2), model("gpt2", max_position_embeddings=12)
    batch.extend([[1] * 11, [2]], rows=[1, 1])
    long, short = batch.extend([[3], [4, 5, 6, 7]], rows=[1, 4])
    torch.testing.assert_close(long, alone.extend([1] * 11 + [3], 1), rtol=0, atol=1e-10)
    alone.reset()
    torch.testing.assert_close(short, alone.extend([2, 4, 5, 6, 7], 4), rtol=0, atol=1e-10)

"""How the draft is made: batched sampling, the target's scores, the losses, a run that resumes."""

import pytest
import torch
from helpers import tiny_model

from benchmarks.held_out import HELD_OUT
from specdec_lab.bench.prompts import SIX_KINDS
from specdec_lab.decoding import generate
from specdec_lab.language_model import HFCausalLM
from training import batched, teacher, texts
from training.batched import continue_all
from training.held_out import held_out_runs, left_out, touching, word_runs
from training.losses import TargetHead, distance
from training.teacher import score
from training.texts import Document, load_shard, save_shard
from training.topics import INSTRUCTIONS, OPENINGS, REQUESTS_ABOUT_A_TEXT, lines, subjects

PROMPTS = [[1, 2, 3, 4], [1, 2, 9], [1, 2, 3, 4, 5, 6, 7], [1, 2]]


@pytest.mark.parametrize("end_ids", [[], [5, 11]])
def test_a_batch_writes_what_each_prompt_gets_alone(end_ids):
    model = tiny_model("llama")
    options = {"max_new_tokens": 20, "end_ids": end_ids}
    together = continue_all(model, PROMPTS, [0.0] * 4, seed=0, **options)
    alone = [generate(HFCausalLM(model), prompt, **options).tokens for prompt in PROMPTS]
    assert together == alone


def test_rows_that_end_and_are_dropped_change_no_other(monkeypatch):
    model = tiny_model("llama")
    options = {"max_new_tokens": 30, "end_ids": [5, 11, 17, 20], "seed": 3}
    monkeypatch.setattr(batched, "MOST_KEPT", 0.0)
    kept = continue_all(model, PROMPTS * 4, [1.0] * 16, **options)
    monkeypatch.setattr(batched, "MOST_KEPT", 1.0)
    assert continue_all(model, PROMPTS * 4, [1.0] * 16, **options) == kept
    assert len({len(one) for one in kept}) > 3


@pytest.mark.parametrize("block", [4, 64])
def test_a_uniform_picks_the_token_whose_mass_it_falls_into(monkeypatch, block):
    monkeypatch.setattr(batched, "BLOCK", block)
    logits = torch.randn(1, 16, generator=torch.Generator().manual_seed(0)).repeat(400, 1)
    edges = (logits[0] / 0.7).softmax(dim=-1).cumsum(dim=-1)
    uniforms = torch.linspace(0.0005, 0.9995, 400)
    drawn = batched._draw(logits, torch.full((400,), 0.7), uniforms)
    assert torch.equal(drawn, torch.searchsorted(edges, uniforms, right=True))


def test_prompts_that_cannot_be_continued_are_refused():
    with pytest.raises(ValueError, match="one temperature for each"):
        continue_all(tiny_model("llama"), PROMPTS, [0.0], max_new_tokens=1, end_ids=[], seed=0)


def test_scores_give_the_targets_probabilities_back(monkeypatch):
    monkeypatch.setattr(teacher, "TOKENS_AT_ONCE", 12)
    monkeypatch.setattr(teacher, "COLUMNS_AT_ONCE", 10)
    model = tiny_model("llama", tie_word_embeddings=True)
    scores = score(PROMPTS, model)
    kept = torch.tensor([1, 4, 9, 16, 25])
    head = TargetHead(model.lm_head.weight.detach()[kept])
    p = head.probabilities(scores["hidden"], scores["log_sum"])
    with torch.no_grad():
        rows = [model(torch.tensor([prompt])).logits[0].softmax(dim=-1) for prompt in PROMPTS]
    expected = torch.cat(rows)
    # The hidden states are kept in bfloat16: eight bits of each.
    torch.testing.assert_close(p, expected[:, kept], rtol=0.1, atol=0.02)
    torch.testing.assert_close(scores["mass"], expected.sum(dim=0).double(), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_losses_gradient_is_the_one_that_autograd_finds(monkeypatch, share):
    monkeypatch.setattr("training.losses.ROWS_AT_ONCE", 4)
    generator = torch.Generator().manual_seed(0)
    states, head, weight, hidden = (
        torch.randn(rows, 6, generator=generator) for rows in (9, 11, 11, 9)
    )
    states.requires_grad_(True)
    head.requires_grad_(True)
    log_sum = (hidden @ weight.T).logsumexp(dim=-1) + 0.1  # some mass lies outside the head
    p = (hidden @ weight.T - log_sum[:, None]).exp()
    log_q = (states @ head.T).log_softmax(dim=-1)
    overlap = torch.minimum(p, log_q.exp()).sum(dim=-1).mean()
    expected = (1 - share) * -(p * log_q).sum(dim=-1).mean() + share * (1 - overlap)
    by_autograd = torch.autograd.grad(expected, (states, head))
    loss, _, measured = distance(states, head, TargetHead(weight), hidden, log_sum, share)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(measured, overlap.detach())
    torch.testing.assert_close(torch.autograd.grad(loss, (states, head)), by_autograd)


def test_a_shard_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "FOLDER", tmp_path)
    documents = [Document([1, 49_151, 7], 2, 0.7), Document([5], 1, 0.0)]
    save_shard(3, documents, kind="plain")
    assert load_shard(tmp_path / "0003.npz") == documents


def test_templates_have_their_places_and_subjects_are_all_different():
    for block in (INSTRUCTIONS, OPENINGS, REQUESTS_ABOUT_A_TEXT):
        assert all("{}" in line for line in lines(block))
    assert len(set(subjects())) == len(subjects())


def test_no_template_says_what_a_held_out_prompt_says():
    fixed = [
        part
        for block in (INSTRUCTIONS, OPENINGS, REQUESTS_ABOUT_A_TEXT)
        for line in lines(block)
        for part in line.split("{}")
    ]
    assert touching(fixed) == []


def test_touching_finds_five_words_in_a_row_whatever_their_case():
    assert word_runs("One, two; THREE four five six") >= {("one", "two", "three", "four", "five")}
    assert touching(["Please tell me: why do onions make us weep?", "Why do onions grow?"]) == [0]
    assert touching(["def fibonacci(n):\n    return", "def fibonacci(m):"]) == [
        0
    ]  # a short prompt: all of it
    assert len(held_out_runs()) > 300


@pytest.mark.slow
def test_the_training_text_is_whole_and_hardly_touches_the_held_out_prompts(pair):
    shards = texts.shards_there()
    assert len(shards) >= 12
    decode, openings = pair.tokenizer.decode, [prompt.text[:40] for prompt in HELD_OUT]
    forbidden = total = 0
    for shard in shards:
        documents = load_shard(shard)
        gone = left_out(documents, decode)
        forbidden, total = forbidden + len(gone), total + len(documents)
        for number, one in enumerate(documents):
            assert 0 < one.reply_start <= len(one.tokens)
            assert max(one.tokens) < pair.target.vocab_size
            prompt = decode(one.tokens[: one.reply_start])
            assert number in gone or not any(opening in prompt for opening in openings)
    assert forbidden < 0.01 * total


@pytest.mark.slow
def test_the_prompts_that_speed_is_measured_on_were_not_trained_on(pair):
    """Five words may be shared by accident (a request's usual ones); a prompt's beginning may not."""
    runs = set().union(*(word_runs(text) for kind in SIX_KINDS.values() for text in kind))
    openings = [text[:60] for kind in SIX_KINDS.values() for text in kind]
    sharing = total = 0
    for shard in texts.shards_there():
        for one in load_shard(shard):
            prompt = pair.tokenizer.decode(one.tokens[: one.reply_start])
            total += 1
            sharing += bool(word_runs(prompt) & runs)
            assert not any(opening in prompt for opening in openings)
    assert sharing < 0.01 * total

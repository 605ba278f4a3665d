"""A training run, on a tiny target: it learns, it goes on after a kill as if there had been none."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from helpers import tiny_model

from specdec_lab.draft_model import load_draft
from specdec_lab.language_model import HFCausalLM
from training import distill, teacher, texts
from training.batched import continue_all
from training.distill import Settings, Trainer, learning_rate_factor, overlap_share
from training.texts import Document, save_shard

SETTINGS = Settings(layers=1, kept=20, passes=3.0, shards=2, step_tokens=64, learning_rate=1e-2)


class Words:
    """A tokenizer for which a chat turn stands between the tokens 1 and 2."""

    def apply_chat_template(self, messages, add_generation_prompt, tokenize):
        return f"1{messages[0]['content']}2"

    def __call__(self, text, add_special_tokens):
        return SimpleNamespace(input_ids=[int(text)])

    def decode(self, tokens):
        return "why do onions make us cry" if tokens == [1, 30] else "something else"


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """A tiny target, and two shards that it wrote."""
    monkeypatch.setattr(texts, "FOLDER", tmp_path / "data")
    monkeypatch.setattr(teacher, "home", lambda: tmp_path)
    monkeypatch.setattr(distill, "SHARDS_THAT_CHOOSE_THE_HEAD", 1)
    model = tiny_model("llama", tie_word_embeddings=True).to(torch.bfloat16)
    prompts = [[1, token, 2] for token in range(3, 30)]
    replies = continue_all(model, prompts, [1.0] * 27, max_new_tokens=12, end_ids=[], seed=0)
    documents = [Document(p + r, 3, 1.0) for p, r in zip(prompts, replies, strict=True)]
    save_shard(0, documents, kind="question")
    save_shard(1, [Document([1, 30, 4, 4], 2, 1.0), Document([7, 8, 9, 10], 2, 0.0)], kind="plain")
    return SimpleNamespace(target=HFCausalLM(model), tokenizer=Words())


def trained(pair, folder: Path, steps: int) -> Trainer:
    folder.mkdir(exist_ok=True)
    trainer = Trainer(pair, SETTINGS, folder)
    trainer.resume()
    for batch in trainer.batches():
        trainer.train_on(batch)
        if trainer.step == steps:
            break
    trainer.save()
    return trainer


def test_a_run_that_was_killed_goes_on_as_if_it_had_not_been(pair, tmp_path):
    straight = trained(pair, tmp_path / "a", 9)
    trained(pair, tmp_path / "b", 4)
    resumed = trained(pair, tmp_path / "b", 9)
    assert resumed.step == straight.step == 9
    for ours, theirs in zip(resumed.draft.parameters(), straight.draft.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_two_workers_find_the_slope_that_one_finds(pair, tmp_path):
    alone, together = (Trainer(pair, SETTINGS, tmp_path, workers) for workers in (1, 2))
    batch = next(alone.batches())
    measured = [trainer.train_on(batch) for trainer in (alone, together)]
    assert measured[0] == pytest.approx(measured[1], rel=1e-4)
    for ours, theirs in zip(alone.trained, together.trained, strict=True):
        assert (ours.grad - theirs.grad).norm() < 0.03 * ours.grad.norm()  # bfloat16 inside


def test_other_settings_under_the_same_name_are_refused(pair, tmp_path):
    trained(pair, tmp_path / "a", 1)
    other = Trainer(pair, Settings(**(vars(SETTINGS) | {"learning_rate": 1.0})), tmp_path / "a")
    with pytest.raises(SystemExit, match=r"checkpoint\.pt: made with .* expected"):
        other.resume()


def test_other_shards_under_the_same_name_are_refused(pair, tmp_path):
    trained(pair, tmp_path / "a", 1)
    save_shard(0, [Document([1, 3, 2, 4], 3, 1.0)], kind="question")
    with pytest.raises(SystemExit, match=r"checkpoint\.pt: made from other shards"):
        Trainer(pair, SETTINGS, tmp_path / "a").resume()


def test_too_few_shards_are_refused(pair, tmp_path):
    with pytest.raises(SystemExit, match="shards: got 2, expected 3: generate first"):
        Trainer(pair, Settings(shards=3), tmp_path)


def test_a_chat_counts_from_the_users_words_on_and_what_touches_the_held_out_is_left_out(
    pair, tmp_path
):
    text = Trainer(pair, SETTINGS, tmp_path).text
    assert len(text.spans) == 28  # 27 chats and one plain document; the one about onions is gone
    assert {first for _, _, first in text.spans[:27]} == {0}
    start, end, _ = text.spans[-1]
    assert text.tokens[start:end].tolist() == [7, 8, 9, 10]


def test_a_whole_run_learns_and_leaves_the_draft_and_its_ancestors(pair, tmp_path, monkeypatch):
    monkeypatch.setattr(
        distill, "held_out_text", lambda pair: SimpleNamespace(judge=lambda draft: {"alpha": 0.5})
    )
    folder = tmp_path / "run"
    folder.mkdir()
    trainer = distill.run(pair, SETTINGS, folder, every_seconds=0.0)
    assert trainer.curve[-1]["stored"] == {"alpha": 0.5}
    assert trainer.curve[-1]["tokens"] >= trainer.steps * SETTINGS.step_tokens
    overlaps = [point["training"]["overlap"] for point in trainer.curve]
    assert len(overlaps) == trainer.steps
    assert sum(overlaps[-5:]) > sum(overlaps[:5])
    assert {file.name for file in folder.iterdir()} == {
        "checkpoint.pt",
        "curve.json",
        "draft.safetensors",
        "early.safetensors",
        "middle.safetensors",
    }
    stored = load_draft(pair.target.model, folder / "draft.safetensors")
    assert stored.config.num_hidden_layers == 1
    assert len(stored.lm_head.token_ids) == 20


def test_a_run_goes_on_from_anothers_checkpoint(pair, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir(), second.mkdir()
    one = Trainer(pair, SETTINGS, first)
    one.train_on(next(one.batches()))
    for optimizer in one.optimizers:
        optimizer.param_groups[0]["weight_decay"] = 0.5
    one.save()
    (first / "early.safetensors").write_bytes(b"early")
    more = Trainer(pair, replace(SETTINGS, passes=2 * SETTINGS.passes), second)
    more.go_on_from(first)
    assert (more.step, more.tokens, more.curve) == (1, one.tokens, one.curve)
    for mine, theirs in zip(more.trained, one.trained, strict=True):
        assert torch.equal(mine, theirs)
    decays = [optimizer.param_groups[0]["weight_decay"] for optimizer in more.optimizers]
    assert 0.5 not in decays  # its own, not the other run's
    assert (second / "early.safetensors").read_bytes() == b"early"
    with pytest.raises(SystemExit, match="same layers"):
        Trainer(pair, replace(SETTINGS, kept=SETTINGS.kept - 1), second).go_on_from(first)
    with pytest.raises(SystemExit, match="expected a run's checkpoint"):
        more.go_on_from(tmp_path / "nowhere")


def test_schedules_begin_and_end_where_they_should():
    assert learning_rate_factor(0.0) < 0.02
    assert learning_rate_factor(0.01) == learning_rate_factor(0.6) == pytest.approx(1.0)
    assert learning_rate_factor(0.8) == pytest.approx(0.5)
    assert learning_rate_factor(1.0) == learning_rate_factor(1.01) == 0.0
    assert overlap_share(0.0) == overlap_share(0.02) == 0.0
    assert overlap_share(0.2) == overlap_share(1.0) == 0.9

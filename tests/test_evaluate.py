"""Judging a draft: what the numbers in the model card are made from, on a tiny pair."""

import json

import pytest
import torch
from helpers import tiny_model
from test_pretrained import tokenizer

from benchmarks.held_out import CHATS, HELD_OUT, KINDS
from benchmarks.prompts import Prompt
from specdec_lab import draft_model
from specdec_lab.draft_model import StoredDraft, new_draft
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair
from training import card, evaluate, held_out
from training.evaluate import GAMMAS, agreement, best_gamma, costs, speed, speedup

PROMPTS = [Prompt("one", "chat", "w1 w2 w3", chat=True), Prompt("two", "continue", "w4 w5")]


@pytest.fixture(scope="module")
def pair():
    target = tiny_model("llama", tie_word_embeddings=True, max_position_embeddings=256)
    words = tokenizer()
    words.chat_template = "{{ messages[0]['content'] }} w9"
    draft = new_draft(target, torch.arange(0, 37, 2))
    return Pair(HFCausalLM(target), HFCausalLM(draft), words)


@pytest.fixture(scope="module")
def identical(pair):
    return Pair(
        pair.target, HFCausalLM(new_draft(pair.target.model, torch.arange(37), 3)), pair.tokenizer
    )


def alphas(rows, temperature):
    return [value for row in rows if row["temperature"] == temperature for value in row["alphas"]]


def test_a_draft_that_is_the_target_agrees_everywhere(identical):
    rows = agreement(identical, PROMPTS)
    assert len(rows) == 2 * 3
    assert all(len(row["alphas"]) == held_out.REPLY for row in rows)
    assert min(alphas(rows, 0.0)) == 1.0
    assert min(alphas(rows, 0.7) + alphas(rows, 1.0)) == pytest.approx(1.0, abs=1e-3)


def test_alpha_is_the_overlap_of_p_and_q_behind_the_targets_own_text(pair):
    row = next(
        r for r in agreement(pair, PROMPTS) if r["temperature"] == 0.7 and r["kind"] == "continue"
    )
    prompt = [4, 5]
    p, q = (
        (model.uncached_logits(prompt, 1)[0].float() / 0.7).softmax(dim=-1)
        for model in (pair.target, pair.draft)
    )
    assert row["alphas"][0] == pytest.approx(float(torch.minimum(p, q).sum()), abs=1e-4)


def test_greedy_agreement_is_the_share_of_equal_argmaxes(pair):
    values = alphas(agreement(pair, PROMPTS), 0.0)
    assert set(values) == {0.0, 1.0}


def test_costs_are_ratios_of_the_same_run(pair):
    found = costs(pair, repeats=1)
    assert found["c"] == pytest.approx(found["draft_ms"] / found["target_ms"])
    assert set(found["v"]) == {str(n) for n in evaluate.LENGTHS}
    assert found["provenance"]["kind"] == "measured"


def test_a_killed_measurement_goes_on_with_the_prompts_that_are_left(pair, tmp_path):
    file = tmp_path / "kept.jsonl"
    first = speed(pair, PROMPTS[:1], 1.0, file)
    rows = speed(pair, PROMPTS, 1.0, file)
    assert rows[0] == first[0]
    assert [row["prompt"] for row in rows] == ["one", "two"]
    assert [json.loads(line) for line in file.read_text().splitlines()] == rows
    for judged, accepted in rows[1]["judged"]:
        assert judged >= accepted
    assert rows[1]["judged"][0][0] > 0


def row(name, plain, **seconds):
    return {"prompt": name, "plain": plain, "seconds_per_token": {k[1:]: v for k, v in seconds.items()}}


def test_the_best_draft_length_is_one_for_all_prompts(monkeypatch):
    monkeypatch.setattr(evaluate, "GAMMAS", (1, 2))
    rows = [row("a", 2.0, g1=1.0, g2=4.0), row("b", 2.0, g1=1.0, g2=0.5), row("c", 3.0, g1=2.0, g2=3.0)]
    assert speedup(rows[0], 1) == 2.0
    assert best_gamma(rows) == (1, 2.0)


def test_the_held_out_prompts_cover_every_kind_with_enough_chats():
    assert {prompt.kind for prompt in HELD_OUT} == set(KINDS)
    assert len(CHATS) >= 24
    assert len({prompt.name for prompt in HELD_OUT}) == len(HELD_OUT)


def test_the_card_is_made_from_the_results_alone(pair, tmp_path, monkeypatch):
    for module in (draft_model, card):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setattr(card, "RESULTS", tmp_path)
    (tmp_path / "draft.safetensors").write_bytes(b"x" * 1_500_000)
    shipped = {"embedded": StoredDraft("embedded", "a draft", "draft.safetensors", "")}
    monkeypatch.setattr(card, "stored_drafts", lambda: shipped)
    prompts = [Prompt(kind, kind, "w1 w2 w3") for kind in KINDS]
    results = {
        "agreement": agreement(pair, prompts),
        "costs": {"float32": costs(pair, repeats=1)},
        "speed": {
            "rows": [
                line for t in (0.0, 1.0) for line in speed(pair, prompts, t, tmp_path / f"{t}.jsonl")
            ],
            "provenance": costs(pair, repeats=1)["provenance"],
        },
    }
    (tmp_path / "embedded.json").write_text(json.dumps(results))
    point = {"tokens": 2_400_000, "seconds": 600, "training": {"overlap": 0.4}}
    (tmp_path / "curve.json").write_text(
        json.dumps([point | {"held_out": {"alpha": 0.3, "greedy": 0.2}}])
    )
    text = card.write_card().read_text()
    assert "{{" not in text
    assert "| embedded | 1.5 MB |" in text
    assert "2.4 million tokens with repetitions, 10 minutes" in text
    assert f"| {' | '.join(f'place {gamma}' for gamma in GAMMAS)} |" in text
    assert all(f"| {kind} | 1 | " in text for kind in KINDS)
    assert card.draw_curve().read_text().startswith("<?xml")

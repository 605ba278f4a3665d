"""Judging a draft: what the numbers in the model card are made from, on a tiny pair."""

import json
from types import SimpleNamespace

import pytest
import torch
from helpers import tiny_model
from test_pretrained import tokenizer

from benchmarks.held_out import CHATS, DEVELOPMENT_CHATS, HELD_OUT, KINDS
from benchmarks.prompts import Prompt
from specdec_lab import draft_model
from specdec_lab.draft_model import EMBEDDED_DRAFTS, new_draft, save_draft, stored_drafts
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair
from specdec_lab.provenance import provenance
from specdec_lab.text import encode
from training import card, evaluate, held_out, publish
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


def test_the_round_that_reads_the_prompt_is_not_timed():
    first, second = (
        SimpleNamespace(seconds=SimpleNamespace(total=total), tokens=tokens)
        for total, tokens in ((9.0, [1]), (1.0, [2, 3]))
    )
    assert evaluate.seconds_per_token(SimpleNamespace(rounds=[first, second])) == 0.5
    assert evaluate.seconds_per_token(SimpleNamespace(rounds=[first])) == 9.0


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
    assert not set(CHATS) & set(DEVELOPMENT_CHATS)
    assert len({prompt.name for prompt in HELD_OUT}) == len(HELD_OUT)


@pytest.fixture
def shipped(pair, tmp_path, monkeypatch):
    """Three drafts, published from a finished run into folders of the test's own."""
    for module in (draft_model, card, publish):
        monkeypatch.setattr(module, "FOLDER", tmp_path / "draft")
    for module in (draft_model, publish):
        monkeypatch.setattr(module, "LIST", tmp_path / "draft/drafts.json")
    for module in (card, evaluate, publish):
        monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    run = tmp_path / "run"
    for width, stage in enumerate(("draft", "middle", "early"), start=1):
        save_draft(new_draft(pair.target.model, torch.arange(width)), run / f"{stage}.safetensors")
    judged = {"alpha": 0.3, "greedy": 0.2}
    point = {"tokens": 2_400_000, "seconds": 600, "training": {"overlap": 0.4}, "held_out": judged}
    (run / "curve.json").write_text(json.dumps([point, point | {"stored": judged}]))
    return publish.publish(run)


def test_publishing_lists_what_it_copies(shipped):
    assert list(stored_drafts()) == list(EMBEDDED_DRAFTS)
    assert [one.title.partition(", ")[2] for one in shipped] == ["", "10% trained", "1% trained"]
    assert stored_drafts()["embedded"] == shipped[0]


def test_a_run_that_is_not_finished_is_not_published(shipped, tmp_path):
    (tmp_path / "run/curve.json").write_text(json.dumps([{"tokens": 1}]))
    with pytest.raises(SystemExit, match="expected a finished one"):
        publish.publish(tmp_path / "run")
    (tmp_path / "run/curve.json").write_text(json.dumps([{"stored": {}}]))
    (tmp_path / "run/early.safetensors").unlink()
    before = {file: file.read_bytes() for file in (tmp_path / "draft").iterdir()}
    with pytest.raises(FileNotFoundError):
        publish.publish(tmp_path / "run")
    assert {file: file.read_bytes() for file in (tmp_path / "draft").iterdir()} == before


def test_a_part_is_measured_once_for_each_draft(shipped, monkeypatch):
    calls = []
    monkeypatch.setattr(evaluate, "_measure", lambda *arguments: calls.append(arguments) or {})
    evaluate.measure_part("costs", "embedded")
    evaluate.measure_part("costs", "embedded")
    assert len(calls) == 1
    changed = shipped[0].__class__(**(vars(shipped[0]) | {"sha256": "another"}))
    monkeypatch.setattr(evaluate, "stored_drafts", lambda: {"embedded": changed})
    evaluate.measure_part("costs", "embedded")
    assert len(calls) == 2


def test_the_card_is_made_from_the_results_alone(pair, shipped, tmp_path):
    prompts = [Prompt(kind, kind, "w1 w2 w3") for kind in KINDS]
    by = {"provenance": provenance(pair.target, pair.drafter("model"))}
    agreeing = {"agreement": by | {"rows": agreement(pair, prompts)}}
    timed = [line for t in (0.0, 1.0) for line in speed(pair, prompts, t, tmp_path / f"{t}.jsonl")]
    ratios = costs(pair, repeats=1)
    for one in shipped:
        results = {"sha256": one.sha256} | agreeing
        if one.name == "embedded":
            results |= {"costs": by | {"float32": ratios, "bfloat16": ratios}}
            results |= {"speed": by | {"rows": timed}}
        (tmp_path / "results" / f"{one.name}.json").write_text(json.dumps(results))
    text = card.write_card().read_text()
    assert "{{" not in text
    assert "| embedded | 2 | 1 | " in text
    assert "2.4 million tokens with repetitions, 10 minutes" in text
    assert "0.300 and 0.200 before that" in " ".join(text.split())
    assert f"| {' | '.join(f'place {gamma}' for gamma in GAMMAS)} |" in text
    assert all(f"| {kind} | 1 | " in text for kind in KINDS)
    assert card.MISSING not in text
    assert card.draw_curve().read_text().startswith("<?xml")
    results = json.loads((tmp_path / "results/embedded.json").read_text())
    del results["speed"]
    (tmp_path / "results/embedded.json").write_text(json.dumps(results))
    assert card.card_text().count(card.MISSING) == 2  # by place in the draft, and the speedups


def test_the_card_refuses_results_of_another_draft(shipped, tmp_path):
    with pytest.raises(SystemExit, match=r"embedded\.json: missing, or of another draft"):
        card.card_text()


def test_judging_while_it_learns_finds_what_the_evaluation_finds(pair, tmp_path, monkeypatch):
    monkeypatch.setattr(held_out, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(held_out, "DEVELOPMENT_CHATS", ("w1 w2 w3", "w4 w5"))
    found = held_out.held_out_text(pair).judge(pair.draft.model)
    expected = {}
    for temperature, name in ((1.0, "alpha"), (0.0, "greedy")):
        prompts = [encode(pair.tokenizer, text, True) for text in held_out.DEVELOPMENT_CHATS]
        replies = held_out.reply_to(pair, prompts, temperature, seed=987_654_321)
        values = [
            value
            for ids, reply in zip(prompts, replies, strict=True)
            for value in evaluate._alphas(pair.target, pair.draft, ids, reply, temperature)
        ]
        expected[name] = sum(values) / len(values)
    assert found == pytest.approx(expected, abs=0.02)  # it computes in bfloat16

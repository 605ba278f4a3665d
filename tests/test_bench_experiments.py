"""The speed experiments on a tiny pair: what they measure, and that they go on where they were."""

import copy
import json
from dataclasses import replace

import jsonschema
import pytest
import torch
from helpers import tiny_model
from test_cli import run
from test_pretrained import tokenizer

from benchmarks import gpu
from specdec_lab import bench_cli, parsing
from specdec_lab.batch import generate_batch
from specdec_lab.bench import adaptive, batch, compare, decode, dtypes, slower, sweep, verify
from specdec_lab.bench.own_time import own_time, timed_forwards
from specdec_lab.bench.results import SCHEMA, Ledger, Result
from specdec_lab.bench.runs import described, judged_tokens
from specdec_lab.bench.setup import Setup
from specdec_lab.bench.sheets import SHEETS
from specdec_lab.benchmark import random_large_target
from specdec_lab.decoding import generate
from specdec_lab.draft_model import new_draft
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair

EXPERIMENTS = {
    module.EXPERIMENT: module
    for module in (decode, verify, dtypes, slower, batch, adaptive, sweep, compare)
}


@pytest.fixture(scope="module")
def pair():
    target = tiny_model("llama", tie_word_embeddings=True, max_position_embeddings=2048)
    words = tokenizer()
    words.chat_template = "{{ messages[0]['content'] }} w9"
    return Pair(HFCausalLM(target), HFCausalLM(new_draft(target, torch.arange(0, 37, 2))), words)


@pytest.fixture
def setup(pair, tmp_path, monkeypatch):
    kinds = {"conversation": ("w1 w2", "w3"), "retrieval": ("w4", "w5")}
    monkeypatch.setattr(sweep, "SIX_KINDS", kinds)
    monkeypatch.setattr(slower, "PASSAGES", ("w1 w2",))
    return Setup(lambda dtype: pair, tmp_path, quick=True, progress=False)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_result_keeps_to_the_schema_and_a_second_run_measures_nothing(setup, name, monkeypatch):
    """And its tables are whole."""
    EXPERIMENTS[name].run(setup)
    file = setup.out / f"{name}.json"
    before = file.read_text()
    jsonschema.validate(json.loads(before), SCHEMA)
    assert json.loads(before)["rows"]
    monkeypatch.setattr(Ledger, "add", None)
    EXPERIMENTS[name].run(setup)
    assert file.read_text() == before
    sheets = SHEETS[name](Result.load(file))
    assert all(sheet.rows and sheet.markdown().startswith(f"**{sheet.title}**") for sheet in sheets)


def test_the_command_shows_tables_keeps_results_and_goes_on(setup, pair, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(parsing, "load_pair_for", lambda options, dtype: pair)
    options = ("bench", "verify", "--quick", "--out", str(tmp_path))
    code, out, _ = run(capsys, *options)
    assert code == 0
    assert "The cost of verifying n tokens" in out
    code, again, _ = run(capsys, *options, "--json")
    shown, kept = json.loads(again)["verify"], json.loads((tmp_path / "quick/verify.json").read_text())
    assert (code, shown) == (0, kept)
    code, _, err = run(capsys, *options, "--dtype", "float32")
    assert (code, "--dtype" in err) == (2, True)


def test_a_runs_numbers_leave_out_the_round_that_reads_the_prompt(pair):
    options = {"drafter": pair.drafter("model"), "gamma": 3, "max_new_tokens": 20, "end_ids": []}
    made = [generate(pair.target, [1, 2, 3], **options) for _ in range(2)]
    row = described(made)
    later = made[0].rounds[1:]
    assert row["rounds"] == len(later) == sum(row["drafted"].values())
    assert row["tokens_per_round"] * row["rounds"] == pytest.approx(sum(len(r.tokens) for r in later))
    judged, accepted = judged_tokens(made[0].rounds)
    assert row["alpha"] == pytest.approx(accepted / judged)
    assert sum(one[0] for one in row["judged_at"]) == judged
    assert row["block_efficiency"] == made[0].metrics.block_efficiency
    parts = sum(row[f"{part}_seconds"] for part in ("draft", "verify", "rest"))
    assert parts / row["tokens_per_round"] == pytest.approx(row["seconds_per_token"], rel=1e-6)


def test_time_outside_the_forwards_and_the_model_as_it_was(pair):
    modes = own_time(pair, gamma=2, budget=8, prompts=2)["modes"]
    assert all(0.0 < mode["outside_ms"] < mode["round_ms"] for mode in modes.values())
    before = pair.target._forward
    with timed_forwards(pair.target) as clock:
        made = generate(pair.target, [1, 2], max_new_tokens=5, end_ids=[])
    assert clock.calls == len(made.rounds) == 5
    assert clock.seconds > 0.0
    assert pair.target._forward == before


def test_what_a_gpu_is_asked_for_on_a_tiny_pair_and_a_cpu(pair, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "SIZES", (1, 2))
    monkeypatch.setattr(gpu, "CONTEXTS", (16, 64))
    results = gpu.measure(pair, tmp_path, quick=True, progress=False)
    for file in tmp_path.glob("*.json"):
        jsonschema.validate(json.loads(file.read_text()), SCHEMA)
    kinds = {row["kind"] for row in results["costs"].rows}
    assert kinds == {"measured", "simulated"}
    assert len(gpu.costs_sheet(results["costs"]).rows) == 4
    assert len(gpu.loop_sheet(results["compare"]).rows) >= 5


def test_the_gpus_script_says_so_where_there_is_none(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="no CUDA device here"):
        gpu.main([])


def test_a_large_architecture_with_random_weights():
    small = {"num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 96, "vocab_size": 50}
    before = torch.get_default_dtype()
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    lm = random_large_target(torch.device("cpu"), "8B", **small, **heads)
    assert (lm.dtype, torch.get_default_dtype()) == (torch.bfloat16, before)
    assert lm.extend([1, 2, 3]).shape == (3, 50)
    assert lm.name == "8B, random weights"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_pair_without_a_draft_model_and_without_chats(setup, pair, name):
    tokenizer = copy.deepcopy(pair.tokenizer)
    tokenizer.chat_template = None
    bare = replace(setup, load=lambda dtype: Pair(pair.target, None, tokenizer))
    result = EXPERIMENTS[name].run(bare)
    assert result.rows
    assert not result.missing
    assert all(sheet.rows for sheet in SHEETS[name](result))


def test_another_draft_models_rows_are_not_taken_for_this_ones(setup, pair):
    verify.run(setup)
    other = HFCausalLM(pair.draft.model, name="another draft")
    changed = replace(setup, load=lambda dtype: Pair(pair.target, other, pair.tokenizer))
    with pytest.raises(ValueError, match=r"draft_model .*another draft"):
        verify.run(changed)


def test_one_experiment_that_fails_does_not_end_the_others(pair, capsys, monkeypatch, tmp_path):
    def fails(setup):
        raise ValueError("no room")

    monkeypatch.setattr(parsing, "load_pair_for", lambda options, dtype: pair)
    monkeypatch.setattr(bench_cli, "EXPERIMENTS", ("decode", "verify"))
    monkeypatch.setattr(decode, "run", fails)
    code, out, err = run(capsys, "bench", "--quick", "--out", str(tmp_path))
    assert code == 2
    assert "error: decode: no room" in err
    assert "The cost of verifying" in out


def test_an_interrupted_command_says_where_its_rows_are(pair, capsys, monkeypatch, tmp_path):
    def interrupted(setup):
        raise KeyboardInterrupt

    monkeypatch.setattr(parsing, "load_pair_for", lambda options, dtype: pair)
    monkeypatch.setattr(verify, "run", interrupted)
    code, _, err = run(capsys, "bench", "verify", "--out", str(tmp_path))
    assert code == 130
    assert f"kept in {tmp_path / 'full'}" in err


def test_the_knee_is_where_the_curve_stays_dear():
    assert verify.knee({1: 1.0, 2: 1.1, 4: 1.3, 8: 1.2, 16: 1.3, 32: 2.0}) == 16
    assert verify.knee({1: 1.0, 2: 1.1}) is None


@pytest.mark.parametrize("gamma", [1, 3, 6])
def test_transformers_drafts_what_it_is_told_to_and_its_settings_come_back(pair, gamma):
    target, draft = pair.target.model, pair.target.early_exit(1).model
    before = copy.deepcopy(draft.generation_config)
    ids, steps = torch.tensor([[1, 2, 3]]), []
    inner = draft.forward
    draft.forward = lambda *a, **k: steps.append(1) or inner(*a, **k)
    rounds = []
    inner_target = target.forward
    target.forward = lambda *a, **k: rounds.append(len(steps)) or inner_target(*a, **k)
    try:
        with compare.draft_length(draft, gamma):
            options = {"max_new_tokens": 40, "do_sample": False, "eos_token_id": None}
            target.generate(ids, assistant_model=draft, pad_token_id=0, **options)
    finally:
        del draft.forward, target.forward
    drafted = [later - earlier for earlier, later in zip([0, *rounds], rounds, strict=False)]
    assert set(drafted[: len(drafted) // 2]) == {gamma}  # near the end of the budget it drafts less
    assert max(drafted) == gamma
    assert draft.generation_config.to_dict() == before.to_dict()


def test_a_contender_that_the_call_for_one_token_leaves_no_time_is_left_out(pair, monkeypatch):
    seconds = {"ours, one token": 5.0, "theirs, one token": 5.0, "ours, n-gram, 10": 4.0}

    def take_turns(calls, *_, **__):
        for call in calls.values():
            call()
        return {name: [seconds.get(name, 7.0)] for name in calls}

    monkeypatch.setattr(compare, "take_turns", take_turns)
    task = sweep.Task("conversation", 0, [1, 2, 3], 0.0)
    row = compare.one_prompt(pair, task, compare.Lengths((2,), (10,)), budget=6)
    left = row["seconds_per_token"]
    assert "ours, n-gram, 10" in row["seconds"]
    assert set(row["seconds"]) - set(left) == set(seconds)
    assert left["ours, plain"] == pytest.approx(2.0 / (row["tokens"]["ours, plain"] - 1))


def test_what_is_to_blame_is_the_number_that_is_unlike_the_usual_one():
    usual = {"alpha": 0.5, "c": 0.1, "curve": {"1": 1.0, "5": 1.1}}
    assert slower.to_blame(0.5, 4, 0.9, 1.1, usual) == "c"
    assert slower.to_blame(0.1, 4, 0.1, 1.1, usual) == "alpha"
    assert slower.to_blame(0.5, 4, 0.1, 3.0, usual) == "v"


def test_a_batch_is_timed_while_all_are_there(pair):
    prompts = [[1, 2, 3, 1, 2], [4], [5, 6]]
    options = {"drafter": pair.drafter("model"), "gamma": 2, "max_new_tokens": 12, "end_ids": []}
    made = generate_batch(pair.target, prompts, **options)
    rounds = batch.full_rounds(made)
    fewest = min(len(one.rounds) for one in made)
    assert [len(one) for one in rounds] == [fewest - 1] * 3
    for at_once in zip(*rounds, strict=True):
        assert len({one.seconds for one in at_once}) == 1  # a round's seconds are the whole batch's
    tokens = sum(len(one.tokens) for sequence in rounds for one in sequence)
    seconds = sum(one.seconds.total for one in rounds[0])
    assert batch.batch_seconds_per_token(made) == pytest.approx(seconds / tokens)

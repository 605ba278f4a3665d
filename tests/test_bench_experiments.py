"""The speed experiments on a tiny pair: what they measure, and that they go on where they were."""

import json

import jsonschema
import pytest
import torch
from helpers import tiny_model
from test_cli import run
from test_pretrained import tokenizer

from benchmarks import gpu
from specdec_lab import parsing
from specdec_lab.bench import adaptive, batch, compare, decode, slower, sweep, verify
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
    module.EXPERIMENT: module for module in (decode, verify, slower, batch, adaptive, sweep, compare)
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
    assert row["new_tokens"] == 20
    judged, accepted = judged_tokens(made[0].rounds)
    assert row["alpha"] == pytest.approx(accepted / judged)
    assert sum(one[0] for one in row["judged_at"]) == judged
    parts = sum(row[f"{part}_seconds"] for part in ("draft", "verify", "rest"))
    assert parts / row["tokens_per_round"] == pytest.approx(row["seconds_per_token"], rel=1e-6)


def test_time_outside_the_forwards_and_the_model_as_it_was(pair):
    modes = own_time(pair, gamma=2, budget=8, turns=2)["modes"]
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

"""The speed experiments on a tiny pair: what they measure, and that they go on where they were."""

import json

import jsonschema
import pytest
import torch
from helpers import tiny_model
from test_pretrained import tokenizer

from specdec_lab.bench import adaptive, batch, compare, decode, slower, sweep, verify
from specdec_lab.bench.results import SCHEMA, Ledger
from specdec_lab.bench.setup import Setup
from specdec_lab.draft_model import new_draft
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair

EXPERIMENTS = {module.EXPERIMENT: module for module in (decode, verify, slower, batch, adaptive, sweep, compare)}


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
    EXPERIMENTS[name].run(setup)
    file = setup.out / f"{name}.json"
    before = file.read_text()
    jsonschema.validate(json.loads(before), SCHEMA)
    assert json.loads(before)["rows"]
    monkeypatch.setattr(Ledger, "add", None)
    EXPERIMENTS[name].run(setup)
    assert file.read_text() == before

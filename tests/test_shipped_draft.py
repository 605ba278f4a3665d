"""The draft models that are shipped: whole, small, loaded by default, and as good as they were."""

from statistics import mean

import pytest
import torch

from benchmarks.held_out import CHATS
from specdec_lab import draft_model
from specdec_lab.draft_model import EMBEDDED_DRAFTS, FOLDER, stored_drafts
from specdec_lab.drafters import ModelDrafter
from specdec_lab.language_model import HFCausalLM
from specdec_lab.text import encode
from specdec_lab.weights import WeightsError, sha256_of
from training.card import MISSING, card_text

LADDER = EMBEDDED_DRAFTS[::-1]


def test_a_draft_and_two_ancestors_are_there_as_they_were_published():
    assert tuple(stored_drafts()) == EMBEDDED_DRAFTS
    for draft in stored_drafts().values():
        assert sha256_of(FOLDER / draft.file) == draft.sha256


def test_they_are_small():
    sizes = [(FOLDER / draft.file).stat().st_size for draft in stored_drafts().values()]
    assert max(sizes) < 30e6
    assert sum(sizes) < 60e6


def test_the_card_beside_them_says_what_was_measured_of_them():
    card = (FOLDER / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert card == card_text()
    assert MISSING not in card


def test_without_their_list_nothing_else_takes_their_place(monkeypatch, tmp_path):
    monkeypatch.setattr(draft_model, "LIST", tmp_path / "drafts.json")
    with pytest.raises(WeightsError, match="missing; install this package again"):
        stored_drafts()


@pytest.mark.slow
def test_the_default_pair_drafts_with_it(pair):
    assert isinstance(pair.drafter(), ModelDrafter)
    assert pair.draft.name == stored_drafts()["embedded"].title
    assert pair.draft.dtype == pair.target.dtype == torch.float32


@pytest.mark.slow
def test_each_rung_of_the_ladder_agrees_more_with_the_target(pair):
    alphas = [alpha_of(pair, stored_drafts()[name].load(pair.target.model)) for name in LADDER]
    assert alphas == sorted(alphas)
    assert alphas[-1] > 1.2 * alphas[0]


def alpha_of(pair, model) -> float:
    """Alpha at temperature 1, at the positions of the target's greedy replies to two held-out chats."""
    draft, found = HFCausalLM(model, pair.target.vocab_size), []
    for question in CHATS[:2]:
        prompt = encode(pair.tokenizer, question, chat=True)
        reply = pair.generate(question, chat=True, drafter=None, max_new_tokens=48).tokens
        text, rows = (prompt + reply)[:-1], len(reply)
        p, q = (lm.uncached_logits(text, rows).softmax(dim=-1) for lm in (pair.target, draft))
        found += torch.minimum(p, q).sum(dim=-1).tolist()
    return mean(found)

"""The audit at the positions of texts: on toy models by hand, on the real one for its errors."""

import io

import pytest
import torch
from helpers import tiny_lm
from rich.console import Console

from specdec_lab.audit.positions import (
    audit_positions,
    decoding_error,
    kind_of,
    reconstruction_error,
)
from specdec_lab.audit.step import audit_step
from specdec_lab.drafters import ModelDrafter, NGramDrafter
from specdec_lab.language_model import RandomLM, TableLM
from specdec_lab.sampling import Sampling

TARGET = TableLM({(): [0.5, 0.3, 0.2], (0,): [0.1, 0.1, 0.8]})
DRAFT = TableLM({(): [0.2, 0.3, 0.5]})


def test_alpha_at_each_position_is_the_overlap_there():
    audit = audit_positions(TARGET, ModelDrafter(DRAFT), [[1], [2]], max_new_tokens=12)
    for text, before in zip(audit.texts, (1, 2), strict=True):
        assert len(text) == 12
        for position in text:
            assert position.alpha == pytest.approx(0.8 if before == 0 else 0.7) or before == 0
            assert position.alpha == pytest.approx(0.1 + 0.1 + 0.5 if before == 0 else 0.2 + 0.3 + 0.2)
            before = position.token
    assert audit.l1_error < 1e-15
    assert audit.exact


def test_the_text_does_not_depend_on_the_drafter():
    options = {"max_new_tokens": 10, "seed": 3}
    tokens = [
        [position.token for position in audit_positions(TARGET, drafter, [[1]], **options).texts[0]]
        for drafter in (ModelDrafter(DRAFT), ModelDrafter(TARGET), NGramDrafter(3))
    ]
    assert tokens[0] == tokens[1] == tokens[2]
    other = audit_positions(TARGET, ModelDrafter(DRAFT), [[1]], max_new_tokens=10, seed=4)
    assert [position.token for position in other.texts[0]] != tokens[0]


def test_a_drafter_with_nothing_to_say_leaves_a_position_unjudged():
    audit = audit_positions(RandomLM(50, seed=1), NGramDrafter(50), [[1, 2]], max_new_tokens=4)
    assert [position.alpha for position in audit.positions] == [None] * 4
    assert audit.alpha is None
    assert not audit.exact
    assert "nothing was judged" in shown(audit)
    assert "at 4 more the drafter proposed nothing" in shown(audit)


def test_sampling_is_taken_into_account():
    cold = audit_positions(TARGET, ModelDrafter(DRAFT), [[1]], max_new_tokens=8, sampling=Sampling(0.0))
    assert {position.alpha for position in cold.positions} <= {0.0, 1.0}


def test_a_text_ends_at_an_end_token():
    target = TableLM({(): [0.0, 0.0, 1.0]})
    target.end_ids = frozenset([2])
    audit = audit_positions(target, ModelDrafter(DRAFT), [[1]], max_new_tokens=8)
    assert [position.kind for position in audit.positions] == ["end"]


def test_a_text_ends_where_the_context_does():
    target = TableLM({(): [0.5, 0.3, 0.2]}, context_limit=5)
    audit = audit_positions(target, ModelDrafter(DRAFT), [[1, 2]], max_new_tokens=8)
    assert len(audit.positions) == 3


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="prompts: got one without tokens"):
        audit_positions(TARGET, ModelDrafter(DRAFT), [[]])
    with pytest.raises(ValueError, match="drafter: got a vocabulary of 7, expected 3"):
        audit_positions(TARGET, NGramDrafter(7), [[1]])


class Words:
    """A tokenizer that drops the space before a word when the word stands alone, as some do."""

    def decode(self, tokens, **_):
        return " ".join(["It rained.", "The", "cat"][token] for token in tokens)


def test_a_token_is_read_in_its_context():
    target = TableLM({(): [0.0, 1.0, 0.0], (1,): [0.0, 0.0, 1.0]})
    audit = audit_positions(target, ModelDrafter(DRAFT), [[0]], tokenizer=Words(), max_new_tokens=2)
    assert [(one.text, one.kind) for one in audit.positions] == [
        (" The", "sentence start"),
        (" cat", "word"),
    ]


def test_without_a_tokenizer_there_are_no_kinds():
    audit = audit_positions(TARGET, ModelDrafter(DRAFT), [[1]], max_new_tokens=2)
    assert {one.kind for one in audit.positions} == {"token"}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_reconstruction_is_the_one_step_audit(dtype):
    torch.manual_seed(0)
    p, q = (torch.rand(6, dtype=dtype).softmax(-1) for _ in range(2))
    assert reconstruction_error(p.double(), q.double()) < 1e-15
    assert decoding_error(p, q) < 1e-6
    if dtype == torch.float64:
        assert decoding_error(p, q) == pytest.approx(audit_step(p, q).l1_error, abs=1e-15)


def test_a_q_that_does_not_sum_to_one_is_told_from_rounding():
    p = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    q = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    # Tokens follow q / 0.9, and are judged by q: kept with .2*1 + .3*1 + .5*.4 over .9 ...
    assert decoding_error(p, 0.9 * q) > 0.02
    assert reconstruction_error(p, 0.9 * q) < 1e-15


@pytest.mark.parametrize(
    ("piece", "before", "kind"),
    [
        ("The", "", "sentence start"),
        (" She", "It rained.", "sentence start"),
        ("The", "end.\n", "sentence start"),
        (" Paris", "in", "name"),
        (" river", "the", "word"),
        ("ing", " runn", "inside a word"),
        (" 18", "in", "number"),
        ("7", "1", "number"),
        (".", "end", "punctuation"),
        ("\n\n", "end.", "punctuation"),
        (" élan", "the", "word"),
    ],
)
def test_kinds_of_positions(piece, before, kind):
    assert kind_of(piece, before) == kind


def shown(audit):
    console = Console(file=io.StringIO(), width=200, color_system=None)
    console.print(audit)
    return console.file.getvalue()


def test_the_report_has_both_errors_and_says_where_it_comes_from():
    target, draft = tiny_lm("llama", 0), tiny_lm("llama", 1)
    audit = audit_positions(target, ModelDrafter(draft), [[1, 2]], max_new_tokens=6)
    assert audit.l1_error < 1e-14 < audit.l1_error_decoding < 1e-5  # float32 on the one side
    text = shown(audit)
    assert "p is restored everywhere" in text
    assert "measured: target LlamaForCausalLM, drafter model, float32 on cpu" in text
    answer = audit.to_json()
    assert answer["positions"] == answer["judged"] == 6
    assert answer["provenance"]["kind"] == "measured"
    assert "<table>" in audit._repr_html_()


@pytest.mark.slow
def test_p_is_restored_at_real_positions(pair):
    drafter = pair.drafter("layerskip", layers=26)
    prompts = ["Who was Ada Lovelace?", "Write two sentences about the Danube."]
    audit = audit_positions(
        pair.target, drafter, prompts, tokenizer=pair.tokenizer, chat=True, max_new_tokens=12
    )
    assert len(audit.judged) == 22  # at the first position of a text, layer-skip has nothing to borrow
    assert audit.l1_error < 1e-14
    assert audit.l1_error_decoding < 1e-4
    assert 0.1 < audit.alpha < 0.9

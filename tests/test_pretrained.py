"""Pairs from local folders: what loads, and what is refused with which words."""

import pytest
import torch
from helpers import tiny_model
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from specdec_lab import pretrained
from specdec_lab.drafters import CorruptedDrafter, LayerSkipDrafter, ModelDrafter, NGramDrafter
from specdec_lab.pretrained import load_pair, require_same_vocabulary

WORDS = [f"w{i}" for i in range(37)]


def tokenizer(words=WORDS):
    model = WordLevel({word: i for i, word in enumerate(words)}, unk_token=words[0])
    inner = Tokenizer(model)
    inner.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token=words[0])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A target, a draft that fits, and drafts that do not."""
    home = tmp_path_factory.mktemp("models")
    swapped = [*WORDS[:5], WORDS[6], WORDS[5], *WORDS[7:]]
    makes = {
        "target": (tiny_model("llama"), WORDS),
        "draft": (tiny_model("llama", seed=1), WORDS),
        "padded": (tiny_model("llama", seed=1, vocab_size=40), WORDS),
        "larger": (tiny_model("llama", vocab_size=38), [*WORDS, "extra"]),
        "swapped": (tiny_model("llama"), swapped),
    }
    for name, (model, words) in makes.items():
        model.save_pretrained(home / name)
        tokenizer(words).save_pretrained(home / name)
    return {name: str(home / name) for name in makes}


def load(folders, draft=None, **options):
    return load_pair(
        target=folders["target"], draft=folders[draft] if draft else None, progress=False, **options
    )


@pytest.mark.parametrize("draft", ["draft", "padded"])
def test_a_pair_from_folders_decodes(folders, draft):
    pair = load(folders, draft)
    made = pair.generate("w1 w2 w3", max_new_tokens=8)
    assert made.tokens == pair.generate("w1 w2 w3", drafter=None, max_new_tokens=8).tokens
    assert made.provenance["target"] == folders["target"]
    assert made.provenance["draft_model"] == folders[draft]


def test_float32_on_a_cpu_unless_asked(folders):
    assert load(folders, device="cpu").target.dtype == torch.float32
    assert load(folders, dtype="bfloat16").target.dtype == torch.bfloat16
    assert load(folders, dtype=torch.float16).target.dtype == torch.float16


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        ("larger", "draft: got a vocabulary of 38 tokens, expected the target's 37"),
        ("swapped", "2 of 37 ids mean something else.*id 5 is 'w6' instead of 'w5'"),
    ],
)
def test_vocabularies_that_differ_in_size_or_meaning_are_refused(folders, draft, message):
    with pytest.raises(ValueError, match=message):
        load(folders, draft)


def test_the_same_vocabulary_is_accepted():
    require_same_vocabulary(tokenizer(), tokenizer())


def test_a_model_that_is_not_there_is_named(folders, tmp_path):
    with pytest.raises(ValueError, match=r"draft: got '.*nothing', expected a local folder or a hub"):
        load_pair(target=folders["target"], draft=str(tmp_path / "nothing"), progress=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pair": "nonsense"}, "pair: got 'nonsense', expected one of embedded, smollm2, qwen3"),
        ({"pair": "qwen3", "draft": "x"}, "pair: got 'qwen3' beside target or draft"),
        ({"target": "x", "device": "cuda:99"}, "device: got 'cuda:99', expected one that works here"),
        ({"target": "x", "device": "toaster"}, "device: got 'toaster', expected one that works here"),
        ({"target": "x", "dtype": "int3"}, "dtype: got 'int3', expected one of float32"),
    ],
)
def test_arguments_that_cannot_work_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        load_pair(**options)


def test_presets_name_a_target_and_a_draft(monkeypatch):
    seen = []

    def note(role, name, *_):
        seen.append((role, name))
        raise ValueError(role)

    monkeypatch.setattr(pretrained, "_load", note)
    for preset in pretrained.PRESETS:
        with pytest.raises(ValueError, match="target"):
            load_pair(preset)
    assert seen[0] == ("target", "embedded")
    assert all(draft for _, draft in pretrained.PRESETS.values())


def test_drafters_by_kind(folders):
    pair, alone = load(folders, "draft"), load(folders)
    assert isinstance(pair.drafter(), ModelDrafter)
    assert isinstance(alone.drafter(), NGramDrafter)
    assert isinstance(pair.drafter("ngram"), NGramDrafter)
    assert isinstance(pair.drafter("layerskip", layers=1), LayerSkipDrafter)
    corrupted = pair.drafter("corrupted", noise=0.5)
    assert isinstance(corrupted, CorruptedDrafter)
    assert isinstance(corrupted.drafter, ModelDrafter)
    with pytest.raises(ValueError, match="kind: got 'oracle', expected one of model, ngram"):
        pair.drafter("oracle")
    with pytest.raises(ValueError, match='kind: got "model", expected a pair'):
        alone.drafter("model")


@pytest.mark.parametrize("draft", ["embedded", "embedded-early"])
def test_the_embedded_draft_wants_the_embedded_target(folders, draft):
    with pytest.raises(ValueError, match=rf"draft: got '{draft}' for .*, expected target=\"embedded\""):
        load_pair(target=folders["target"], draft=draft, progress=False)


def test_progress_is_shown_when_asked(folders, capsys):
    pair = load(folders)
    pair.generate("w1", max_new_tokens=3, progress=True)
    assert "token/s" in capsys.readouterr().err
    pair.generate("w1", max_new_tokens=3)
    assert capsys.readouterr().err == ""


def test_a_chat_needs_a_template(folders):
    with pytest.raises(
        ValueError, match="chat: got True, expected a tokenizer that has a chat template"
    ):
        load(folders).generate("w1", chat=True, max_new_tokens=1)

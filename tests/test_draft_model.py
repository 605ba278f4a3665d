"""The embedded draft's architecture on a tiny target: shared embedding, reduced head, storage."""

import pytest
import torch
from helpers import tiny_model
from safetensors.torch import load_file, save_file

from specdec_lab import draft_model
from specdec_lab.decoding import generate
from specdec_lab.distributions import residual
from specdec_lab.draft_model import StoredDraft, load_draft, new_draft, save_draft
from specdec_lab.drafters import ModelDrafter
from specdec_lab.language_model import HFCausalLM
from specdec_lab.randomness import SeededChooser
from specdec_lab.records import Draft
from specdec_lab.sampling import Sampling
from specdec_lab.weights import WeightsError, sha256_of

KEPT = torch.tensor([0, 1, 2, 3, 5, 8, 13, 21, 34])
PROMPT = torch.tensor([[1, 2, 3, 4, 5]])


@pytest.fixture
def target():
    return tiny_model("llama", tie_word_embeddings=True)


def logits(model, ids=PROMPT):
    with torch.no_grad():
        return model(ids).logits[0]


def test_the_head_covers_its_tokens_and_no_others(target):
    rows = logits(new_draft(target, KEPT))
    others = [token for token in range(37) if token not in KEPT.tolist()]
    assert rows.shape == (5, 37)
    assert rows[:, KEPT].isfinite().all()
    assert (rows[:, others] == float("-inf")).all()


def test_a_draft_with_all_layers_and_tokens_is_the_target(target):
    whole = new_draft(target, torch.arange(37), layers=3)
    torch.testing.assert_close(logits(whole), logits(target))


def test_it_starts_from_the_targets_first_and_last_layers_and_trains_apart_from_them(target):
    draft = new_draft(target, KEPT, layers=2)
    first, last = (layer.mlp.up_proj.weight for layer in draft.model.layers)
    assert torch.equal(first, target.model.layers[0].mlp.up_proj.weight)
    assert torch.equal(last, target.model.layers[2].mlp.up_proj.weight)
    before = logits(target)
    with torch.no_grad():
        first.zero_()
        draft.lm_head.weight.zero_()
    assert torch.equal(logits(target), before)
    assert draft.model.embed_tokens is target.model.embed_tokens


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_storing_rounds_to_eight_bits_and_takes_the_targets_dtype(target, tmp_path, dtype):
    draft = new_draft(target, KEPT)
    file = tmp_path / "draft.safetensors"
    save_draft(draft, file)
    loaded = load_draft(target.to(dtype), file)
    assert loaded.dtype == dtype
    assert torch.equal(loaded.lm_head.token_ids, KEPT)
    for name, values in draft.state_dict().items():
        if "embed_tokens" in name:
            continue
        step = values.abs().amax(dim=-1, keepdim=True) / 127 if values.dim() == 2 else 0
        rounding = values.abs() * 2**-8 if dtype == torch.bfloat16 else 1e-6
        assert ((loaded.state_dict()[name] - values).abs() <= 0.51 * step + rounding).all(), name


def test_a_file_that_lacks_a_part_is_refused(target, tmp_path):
    file = tmp_path / "draft.safetensors"
    save_draft(new_draft(target, KEPT), file)
    tensors = load_file(file)
    del tensors["model.norm.weight"]
    save_file(tensors, file)
    with pytest.raises(WeightsError, match=r"draft.safetensors: lacks model.norm.weight"):
        load_draft(target, file)


def test_the_stored_file_leaves_the_embedding_out(target, tmp_path):
    save_draft(new_draft(target, KEPT), tmp_path / "draft.safetensors")
    own = sum(p.numel() for n, p in new_draft(target, KEPT).named_parameters() if "embed" not in n)
    assert (tmp_path / "draft.safetensors").stat().st_size < 2 * own + 8192


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_it_drafts_and_never_outside_its_head(target, temperature):
    lm = HFCausalLM(target)
    drafter = ModelDrafter(HFCausalLM(new_draft(target, KEPT)))
    made = generate(
        lm, [1, 2, 3], drafter=drafter, max_new_tokens=24, sampling=Sampling(temperature), seed=0
    )
    drafted = {position.token for one in made.rounds for position in one.positions}
    assert drafted
    assert drafted <= set(KEPT.tolist())
    if temperature == 0.0:
        assert made.tokens == generate(lm, [1, 2, 3], max_new_tokens=24).tokens


def test_what_it_keeps_of_a_row_is_all_there_is(target):
    whole, kept = (HFCausalLM(new_draft(target, KEPT)) for _ in range(2))
    for tokens in ([1, 2, 3], [4], [5, 6]):
        row = whole.extend(tokens, rows=1)[0]
        torch.testing.assert_close(kept.extend_kept(tokens), row[KEPT], rtol=1e-6, atol=1e-6)
    assert kept.tokens == whole.tokens
    kept.rewind(3)
    whole.rewind(3)
    torch.testing.assert_close(kept.extend_kept([8]), whole.extend([8])[0][KEPT], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("sampling", [Sampling(1.0), Sampling(0.7, top_k=4, top_p=0.9)])
def test_the_short_way_through_the_head_and_the_long_one_make_the_same_text(target, sampling):
    lm, options = HFCausalLM(target), {"max_new_tokens": 32, "sampling": sampling, "seed": 5}
    short = ModelDrafter(HFCausalLM(new_draft(target, KEPT)))
    long = ModelDrafter(HFCausalLM(new_draft(target, KEPT)))
    long.model.token_ids = None
    made = [generate(lm, [1, 2, 3], drafter=drafter, **options) for drafter in (short, long)]
    assert made[0].tokens == made[1].tokens
    assert made[0].metrics.accepted == made[1].metrics.accepted > 0


@pytest.mark.parametrize("penalty", [1.0, 1.5])
def test_a_processor_that_reads_tokens_gets_to_see_all_of_them(target, penalty):
    drafter = ModelDrafter(HFCausalLM(new_draft(target, KEPT)))
    drafter.begin(Sampling(1.0, repetition_penalty=penalty))
    draft = drafter.propose([1, 2, 3], 3, SeededChooser(0))
    assert draft.q.shape == (3, len(KEPT) if penalty == 1.0 else 37)
    assert draft.row(0, 37).sum() == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore")
def test_it_is_a_plain_assistant_model_for_transformers(target):
    draft = new_draft(target, KEPT)
    options = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    alone = target.generate(PROMPT, **options)
    assert torch.equal(target.generate(PROMPT, assistant_model=draft, **options), alone)


def test_an_altered_file_is_refused(target, tmp_path, monkeypatch):
    monkeypatch.setattr(draft_model, "FOLDER", tmp_path)
    file = tmp_path / "draft.safetensors"
    save_draft(new_draft(target, KEPT), file)
    stored = StoredDraft("tiny", "a tiny draft", file.name, sha256_of(file))
    stored.load(target)
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(WeightsError, match=r"draft.safetensors: missing or altered; install"):
        stored.load(target)
    file.unlink()
    with pytest.raises(WeightsError, match="missing or altered"):
        stored.load(target)


def test_a_reduced_q_says_the_same_as_the_whole_one():
    ids, q = torch.tensor([1, 4, 6]), torch.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
    reduced = Draft([4, 4], q, ids)
    whole = Draft([4, 4], torch.stack([reduced.row(i, 8) for i in range(2)]))
    assert whole.q.tolist()[0] == [0, 0.5, 0, 0, 0.25, 0, 0.25, 0]
    assert reduced.q_of_tokens() == whole.q_of_tokens() == [0.25, 1.0]
    assert Draft([5, 7], q, ids).q_of_tokens() == [0.0, 0.0]  # not drawn from this q
    assert reduced.until(frozenset({4})).token_ids is ids
    p = torch.rand(8, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)
    before = p.clone()
    assert torch.equal(residual(p, q[0], ids), residual(p, whole.q[0]))
    assert torch.equal(p, before)


def test_a_reduced_q_needs_one_token_for_each_column():
    with pytest.raises(ValueError, match=r"token_ids: got 2 of them, expected one for each of the 3"):
        Draft([4], torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([1, 4]))

"""The embedded draft model: a few layers on the target's embedding, a head over frequent tokens.

It is a plain transformers ``LlamaForCausalLM`` (so it works as ``assistant_model=`` too) with two
savings that make it cheap to ship and to run. The embedding is the target's own module, shared, so
it is not stored. The head covers only the tokens that carry most of the target's probability; the
others get minus infinity, that is, q = 0 there, which exact speculative sampling permits: a token
that is never drafted is still emitted, as a replacement.

Source of the reduced head: Zhao et al. 2025, FR-Spec (arXiv 2502.14856).
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import LlamaForCausalLM, PreTrainedModel

from specdec_lab.eight_bit import EightBitLinear
from specdec_lab.files import replacing
from specdec_lab.weights import WeightsError, sha256_of

FOLDER = Path(__file__).parent / "draft"
"""The shipped drafts, their list with checksums, and their model card."""
LIST = FOLDER / "drafts.json"
SCALE = ".scale"
EMBEDDED_DRAFTS = ("embedded", "embedded-middle", "embedded-early")
"""What ``load_pair(draft=...)`` calls them: the finished one, and two from earlier in its training."""


@dataclass(frozen=True)
class StoredDraft:
    """A draft that is shipped with this package.

    Args:
        name: one of ``EMBEDDED_DRAFTS``.
        title: what records and tables call it.
        file: in ``FOLDER``.
        sha256: of the file.
    """

    name: str
    title: str
    file: str
    sha256: str

    def load(self, target: PreTrainedModel) -> LlamaForCausalLM:
        """The draft on this target's embedding.

        Raises:
            WeightsError: if the file is missing or altered.
        """
        path = FOLDER / self.file
        if not path.is_file() or sha256_of(path) != self.sha256:
            raise WeightsError(f"{path}: missing or altered; install this package again")
        return load_draft(target, path)


def stored_drafts() -> dict[str, StoredDraft]:
    """The shipped drafts by name, in the order of ``EMBEDDED_DRAFTS``.

    Raises:
        WeightsError: if their list is missing.
    """
    if not LIST.exists():
        raise WeightsError(f"{LIST}: missing; install this package again")
    entries = json.loads(LIST.read_text(encoding="utf-8"))
    return {entry["name"]: StoredDraft(**entry) for entry in entries}


class ReducedHead(EightBitLinear):
    """Logits over some tokens of the vocabulary; minus infinity over the rest.

    Args:
        weight: ``[kept, width]``, one row for each token that is kept.
        token_ids: ``[kept]``, which tokens those are.
        vocab_size: width of the logits that come out.
    """

    token_ids: Tensor

    def __init__(self, weight: Tensor, token_ids: Tensor, vocab_size: int) -> None:
        super().__init__(weight)
        self.register_buffer("token_ids", token_ids)
        self.vocab_size = vocab_size

    def kept(self, hidden: Tensor) -> Tensor:
        """Hidden states ``[..., width]`` -> logits ``[..., kept]`` of ``token_ids`` alone."""
        return super().forward(hidden)

    def forward(self, hidden: Tensor) -> Tensor:
        """Hidden states ``[..., width]`` -> logits ``[..., vocab]``."""
        kept = self.kept(hidden)
        logits = kept.new_full((*kept.shape[:-1], self.vocab_size), float("-inf"))
        return logits.index_copy_(-1, self.token_ids, kept)


def new_draft(target: PreTrainedModel, token_ids: Tensor, layers: int = 2) -> LlamaForCausalLM:
    """A draft model that starts as the target's first and last layers, and its rows of the head.

    Args:
        target: a Llama model; its embedding is shared, everything else is copied.
        token_ids: ``[kept]``, the tokens that the head covers.
        layers: how many layers; the target's first, then its last ones.
    """
    token_ids = token_ids.sort().values
    draft = _empty_draft(target, token_ids, layers)
    depth = target.config.num_hidden_layers
    sources = [0, *range(depth - layers + 1, depth)]
    for layer, source in zip(draft.model.layers, sources, strict=True):
        layer.load_state_dict(target.model.layers[source].state_dict(), assign=False)
    draft.model.norm.load_state_dict(target.model.norm.state_dict())
    with torch.no_grad():
        draft.lm_head.weight.copy_(target.get_output_embeddings().weight[token_ids])
    return draft


def save_draft(draft: LlamaForCausalLM, file: Path) -> None:
    """Write what is the draft's own (not the shared embedding) as safetensors, in one step.

    Matrices are stored in 8 bits with one scale per row: half the bytes of bfloat16. What it costs in
    acceptance is in the model card.
    """
    tensors = {}
    for name, values in draft.state_dict().items():
        if "embed_tokens" in name:
            continue
        if values.dim() == 2:
            tensors[name], tensors[name + SCALE] = _to_int8(values)
        else:
            tensors[name] = values.float() if values.is_floating_point() else values.to(torch.int32)
    with replacing(file) as part:
        save_file({name: values.contiguous() for name, values in tensors.items()}, part)


def load_draft(target: PreTrainedModel, file: Path) -> LlamaForCausalLM:
    """The draft model in ``file``, on the target's embedding, in its dtype and on its device.

    Raises:
        WeightsError: if the file lacks a part of the model.
    """
    stored = load_file(file)
    if "lm_head.token_ids" not in stored:
        raise WeightsError(f"{file}: lacks lm_head.token_ids")
    tensors = {
        name: values * stored[name + SCALE] if name + SCALE in stored else values
        for name, values in stored.items()
        if not name.endswith(SCALE)
    }
    token_ids = tensors["lm_head.token_ids"].long()
    layers = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("model.layers."))
    draft = _empty_draft(target, token_ids, layers)
    missing = draft.load_state_dict(tensors, strict=False).missing_keys
    absent = [name for name in missing if "embed_tokens" not in name]
    if absent:
        raise WeightsError(f"{file}: lacks {', '.join(absent)}")
    for name in stored:
        if name + SCALE in stored:
            _read_eight_bits(draft, name.removesuffix(".weight"), stored[name], stored[name + SCALE])
    return draft


def _read_eight_bits(draft: LlamaForCausalLM, name: str, codes: Tensor, scale: Tensor) -> None:
    """Let the linear layer of this name read its weights as they are stored, where it pays."""
    layer = draft.get_submodule(name)
    if not isinstance(layer, EightBitLinear):
        layer = EightBitLinear(draft.get_parameter(f"{name}.weight").detach())
        draft.set_submodule(name, layer)
    layer.read_from(codes, scale)


def _to_int8(values: Tensor) -> tuple[Tensor, Tensor]:
    """``[rows, columns]`` as int8, and the scale ``[rows, 1]`` of each row."""
    scale = values.float().abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127.0
    return (values.float() / scale).round().to(torch.int8), scale


def _empty_draft(target: PreTrainedModel, token_ids: Tensor, layers: int) -> LlamaForCausalLM:
    """The modules, with memory but without values, except for what is shared with the target."""
    config = copy.deepcopy(target.config)
    config.num_hidden_layers = layers
    config.tie_word_embeddings = False
    with torch.device("meta"):
        draft = LlamaForCausalLM(config)  # type: ignore[arg-type]
    draft.model.embed_tokens = nn.Embedding(1, 1)  # the target's takes its place below
    width, device = config.hidden_size, target.device
    head = ReducedHead(torch.empty(len(token_ids), width), token_ids, config.vocab_size)
    draft.lm_head = head
    draft.model.rotary_emb = target.model.rotary_emb
    for module in (*draft.model.layers, draft.model.norm, draft.lm_head):
        if module is not head:
            module.to_empty(device=device)
        module.to(device=device, dtype=target.dtype)
    draft.model.embed_tokens = target.get_input_embeddings()
    draft.generation_config = copy.deepcopy(target.generation_config)
    return draft.eval()

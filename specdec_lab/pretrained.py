"""Real models: load a target and a draft that speak the same vocabulary, and decode with them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from specdec_lab.decoding import generate, stepwise
from specdec_lab.draft_model import EMBEDDED_DRAFTS, stored_drafts
from specdec_lab.drafters import (
    CorruptedDrafter,
    Drafter,
    LayerSkipDrafter,
    ModelDrafter,
    NGramDrafter,
)
from specdec_lab.language_model import HFCausalLM
from specdec_lab.records import Generation, Round
from specdec_lab.weights import ALL_WEIGHTS, fetch, find_weights

PRESETS: dict[str, tuple[str, str | None]] = {
    "embedded": ("embedded", "embedded"),
    "smollm2": ("HuggingFaceTB/SmolLM2-1.7B-Instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"),
    "qwen3": ("Qwen/Qwen3-8B", "Qwen/Qwen3-0.6B"),
}
"""Name -> (target, draft). All but "embedded" come from the Hugging Face hub and want a GPU."""

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DRAFTER_KINDS = ("model", "ngram", "layerskip", "corrupted")


@dataclass(frozen=True)
class Pair:
    """A target, perhaps a draft model, and the tokenizer they share."""

    target: HFCausalLM
    draft: HFCausalLM | None
    tokenizer: PreTrainedTokenizerBase

    def drafter(
        self,
        kind: str | None = None,
        *,
        layers: int | None = None,
        noise: float = 0.3,
    ) -> Drafter:
        """A drafter for this target.

        Args:
            kind: "model" (the draft model), "ngram" (prompt look-up), "layerskip" (the target's own
                first layers) or "corrupted" (the pair's default drafter, spoilt); None is "model" if
                there is a draft model, else "ngram".
            layers: for "layerskip", how many layers to run; None is two thirds of them.
            noise: for "corrupted", the share of noise, 0 to 1.

        Raises:
            ValueError: for an unknown kind, or "model" without a draft model.
        """
        if kind is None:
            kind = "ngram" if self.draft is None else "model"
        if kind == "ngram":
            return NGramDrafter(self.target.vocab_size)
        if kind == "layerskip":
            depth = self.target.model.config.num_hidden_layers
            return LayerSkipDrafter(self.target, depth * 2 // 3 if layers is None else layers)
        if kind == "corrupted":
            return CorruptedDrafter(self.drafter(), noise)
        if kind != "model":
            raise ValueError(f"kind: got {kind!r}, expected one of {', '.join(DRAFTER_KINDS)}")
        if self.draft is None:
            raise ValueError('kind: got "model", expected a pair that was loaded with a draft model')
        return ModelDrafter(self.draft)

    def generate(
        self, prompt: str | Sequence[int], *, drafter: Drafter | str | None = "default", **options: Any
    ) -> Generation:
        """``specdec_lab.decoding.generate`` with this pair's target and tokenizer.

        Args:
            prompt: text or token ids.
            drafter: a drafter, a kind of drafter, "default", or None for plain decoding.
            options: everything else that ``generate`` takes.
        """
        return generate(
            self.target, prompt, drafter=self._named(drafter), tokenizer=self.tokenizer, **options
        )

    def stepwise(
        self, prompt: str | Sequence[int], *, drafter: Drafter | str | None = "default", **options: Any
    ) -> Generator[Round, None, Generation]:
        """``specdec_lab.decoding.stepwise`` with this pair's target and tokenizer; as ``generate``."""
        return stepwise(
            self.target, prompt, drafter=self._named(drafter), tokenizer=self.tokenizer, **options
        )

    def _named(self, drafter: Drafter | str | None) -> Drafter | None:
        if isinstance(drafter, str):
            return self.drafter(None if drafter == "default" else drafter)
        return drafter


def load_pair(
    pair: str | None = None,
    *,
    target: str | None = None,
    draft: str | None = None,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    progress: bool = True,
) -> Pair:
    """Load a target and, if there is one, a draft model.

    Args:
        pair: a preset: "embedded" (the default; its target is fetched on first use, its draft model
            comes with this package, and it needs no hub), "smollm2", "qwen3". Or name the models
            yourself:
        target: a Hugging Face hub name, a local folder, or "embedded".
        draft: the same, for the draft model; None for a pair without one. For the embedded target also
            "embedded-middle" and "embedded-early", the embedded draft model as it was earlier in its
            training.
        dtype: "float32", "bfloat16", "float16" or a torch dtype. None is float32 on a CPU, bfloat16 on
            a GPU. float32 on a CPU, because there the one-token forward of decoding and the
            several-token forward of verification then agree to about 1e-4, and greedy speculative
            output is the target's own token for token. In bfloat16 they round differently enough to
            swap near ties; sampling stays exact with respect to the logits that were computed.
        device: None is the GPU if there is one, else the CPU.
        progress: show progress bars.

    Raises:
        ValueError: for an unknown preset or dtype, a model that cannot be loaded, or two models whose
            vocabularies differ in size or in meaning.
        CannotRewind: for a model that cannot take part in speculation.
    """
    if pair is not None and (target is not None or draft is not None):
        raise ValueError(f"pair: got {pair!r} beside target or draft, expected one or the other")
    if pair is not None and pair not in PRESETS:
        raise ValueError(f"pair: got {pair!r}, expected one of {', '.join(PRESETS)}")
    if pair is not None or target is None:
        preset_target, preset_draft = PRESETS[pair or "embedded"]
        target, draft = target or preset_target, draft or preset_draft
    if draft in EMBEDDED_DRAFTS:
        _require_embedded_target(target, draft)
    device = _device(device)
    dtype = _dtype(dtype, device)
    tokenizer, target_model = _load("target", target, dtype, device, progress)
    target_lm = HFCausalLM(target_model, name=_title(target))
    if draft is None:
        return Pair(target_lm, None, tokenizer)
    if draft in EMBEDDED_DRAFTS:
        return Pair(target_lm, embedded_draft(target_lm, draft), tokenizer)
    draft_tokenizer, draft_model = _load("draft", draft, dtype, device, progress)
    require_same_vocabulary(tokenizer, draft_tokenizer)
    draft_lm = HFCausalLM(draft_model, target_lm.vocab_size, name=_title(draft))
    return Pair(target_lm, draft_lm, tokenizer)


def _require_embedded_target(target: str, draft: str) -> None:
    if target != "embedded" and target not in ALL_WEIGHTS:
        raise ValueError(
            f'draft: got {draft!r} for {target!r}, expected target="embedded", whose embedding it '
            f"shares; the embedded target itself, as a draft, is {find_weights('embedded').name!r}"
        )


def embedded_draft(target_lm: HFCausalLM, name: str) -> HFCausalLM:
    """One of ``EMBEDDED_DRAFTS`` on the embedded target's embedding."""
    stored = stored_drafts()[name]
    return HFCausalLM(stored.load(target_lm.model), target_lm.vocab_size, stored.title)


def require_same_vocabulary(target: PreTrainedTokenizerBase, draft: PreTrainedTokenizerBase) -> None:
    """Refuse two tokenizers unless every token id stands for the same string in both.

    Raises:
        ValueError: says whether the sizes differ or which id means different things.
    """
    ours, theirs = target.get_vocab(), draft.get_vocab()
    if len(ours) != len(theirs):
        raise ValueError(
            f"draft: got a vocabulary of {len(theirs)} tokens, expected the target's {len(ours)}: "
            "speculation compares the two models token by token"
        )
    if ours == theirs:
        return
    target_strings = {token_id: string for string, token_id in ours.items()}
    draft_strings = {token_id: string for string, token_id in theirs.items()}
    differing = [i for i in target_strings if draft_strings.get(i) != target_strings[i]]
    first = min(differing)
    raise ValueError(
        f"draft: got a vocabulary in which {len(differing)} of {len(ours)} ids mean something else, "
        f"expected the target's; id {first} is {draft_strings.get(first)!r} instead of "
        f"{target_strings[first]!r}"
    )


def _title(name: str) -> str:
    """What records call a model: the embedded one by what it is."""
    return find_weights(name).name if name == "embedded" else name


def _device(device: str | torch.device | None) -> torch.device:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"device: got {str(device)!r}, expected one that works here: {reason}"
        ) from error
    return torch.device(device)


def _dtype(dtype: str | torch.dtype | None, device: torch.device) -> torch.dtype:
    if dtype is None:
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if isinstance(dtype, torch.dtype):
        return dtype
    if dtype not in DTYPES:
        raise ValueError(f"dtype: got {dtype!r}, expected one of {', '.join(DTYPES)}")
    return DTYPES[dtype]


def _load(
    role: str, name: str, dtype: torch.dtype, device: torch.device, progress: bool
) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
    """A tokenizer and a model by embedded name, local folder or hub name."""
    embedded = name == "embedded" or name in ALL_WEIGHTS
    where = str(fetch(find_weights(name), progress=progress)) if embedded else name
    try:
        with nullcontext() if progress else _transformers_bars_hidden():
            tokenizer = AutoTokenizer.from_pretrained(where)
            model = AutoModelForCausalLM.from_pretrained(where, dtype=dtype)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"{role}: got {name!r}, expected a local folder or a hub name with a causal LM: {reason}"
        ) from error
    return tokenizer, model.to(device)  # type: ignore[arg-type]


@contextmanager
def _transformers_bars_hidden() -> Iterator[None]:
    """transformers' own progress bars off for a while."""
    were_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if were_on:
            logging.enable_progress_bar()

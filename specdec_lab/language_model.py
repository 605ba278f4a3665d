"""A causal language model that can be rewound: all that decoding knows of a model.

``CausalLM`` keeps the tokens it has read in a cache. ``extend`` reads more and returns logits,
``rewind`` forgets the last ones. Speculation needs nothing else: it reads a draft, then forgets the
part that was rejected.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class CannotRewind(ValueError):
    """The model's cache cannot give up its last tokens, so it cannot take part in speculation."""


class CausalLM(ABC):
    """A model that has read ``tokens`` and can read on or go back.

    Args:
        vocab_size: width of a row of logits.
        context_limit: the most tokens it can hold, or None for no limit.
    """

    def __init__(self, vocab_size: int, context_limit: int | None = None) -> None:
        self.vocab_size = vocab_size
        self.context_limit = context_limit
        self.token_ids: Tensor | None = None
        """``[kept]``, ascending: the only tokens that can have any probability; None if all can."""
        self.end_ids: frozenset[int] = frozenset()
        """End-of-sequence tokens that the model itself names."""
        self.tokens: list[int] = []

    @property
    def length(self) -> int:
        """Number of tokens in the cache."""
        return len(self.tokens)

    def extend(self, tokens: Sequence[int], rows: int | None = None) -> Tensor:
        """Read ``tokens`` in one forward pass.

        Returns:
            Logits ``[rows, vocab]`` of the last ``rows`` tokens (all of them by default); the row of a
            token predicts the token after it.

        Raises:
            ValueError: for no tokens, something else than token ids (whole numbers of any kind, tensors
                and arrays of them included), an id outside the vocabulary, or more than the context.
        """
        tokens = self.checked_tokens(tokens)
        logits = self._forward(tokens, len(tokens) if rows is None else rows)
        self.tokens += tokens
        return logits

    def extend_kept(self, tokens: Sequence[int]) -> Tensor:
        """Read ``tokens``; the last one's row over ``token_ids`` alone, ``[kept]`` (or all of it)."""
        tokens = self.checked_tokens(tokens)
        row = self._forward_kept(tokens)
        self.tokens += tokens
        return row

    def rewind(self, length: int) -> None:
        """Forget all but the first ``length`` tokens.

        Raises:
            ValueError: if ``length`` is negative or more than there is.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"length: got {length}, expected 0 to {self.length}, the tokens held")
        if length < self.length:
            self._forget(length)
            del self.tokens[length:]

    def reset(self) -> None:
        """Forget everything, even what an interrupted forward pass left half-written."""
        self._forget(0)
        self.tokens.clear()

    def rewind_to_match(self, prefix: Sequence[int]) -> list[int]:
        """Forget what ``prefix`` does not confirm; return the rest of it, at least its last token.

        Afterwards ``extend`` of the returned tokens gives the row that predicts what follows.
        """
        known = min(self.length, len(prefix) - 1)
        if self.tokens[:known] != list(prefix[:known]):
            known = next(i for i in range(known) if self.tokens[i] != prefix[i])
        self.rewind(known)
        return list(prefix[known:])

    def synchronize(self) -> None:
        """Wait until the device has finished, so that a clock read next is true."""

    def checked_tokens(self, given: Sequence[int]) -> list[int]:
        tokens = _whole_numbers(given)
        if not tokens:
            raise ValueError("tokens: got none, expected at least one token to read")
        if min(tokens) < 0 or max(tokens) >= self.vocab_size:
            wrong = next(token for token in tokens if not 0 <= token < self.vocab_size)
            raise ValueError(f"tokens: got id {wrong}, expected 0 to {self.vocab_size - 1}")
        if self.context_limit is not None and self.length + len(tokens) > self.context_limit:
            raise ValueError(
                f"tokens: got {len(tokens)} on top of {self.length}, expected at most "
                f"{self.context_limit} in all, the model's context"
            )
        return tokens

    @abstractmethod
    def _forward(self, tokens: list[int], rows: int) -> Tensor:
        """Read ``tokens`` behind those held; logits ``[rows, vocab]`` of the last ones."""

    def _forward_kept(self, tokens: list[int]) -> Tensor:
        row = self._forward(tokens, 1)[0]
        return row if self.token_ids is None else row[self.token_ids]

    @abstractmethod
    def _forget(self, length: int) -> None:
        """Cut the cache to its first ``length`` tokens, which ``self.tokens`` still has to follow."""


def _whole_numbers(tokens: Sequence[int]) -> list[int]:
    """Plain ints: a cache that holds tensors would compare and hash them as something else."""
    try:
        return list(map(operator.index, tokens))
    except TypeError:
        raise ValueError(f"tokens: got {tokens!r:.80}, expected token ids, whole numbers") from None


class ExactLM(CausalLM):
    """A toy model whose rows are given, not computed by a network: no rounding to speak of.

    It reads what it holds: a decoder that leaves a stale token in the cache gets other rows.
    """

    def _forward(self, tokens: list[int], rows: int) -> Tensor:
        everything = self.tokens + tokens
        first = len(everything) - rows + 1
        return torch.stack([self._row(everything[:end]) for end in range(first, first + rows)])

    def _forget(self, length: int) -> None:
        pass

    @abstractmethod
    def _row(self, prefix: list[int]) -> Tensor:
        """Log-probabilities ``[vocab]``, float64, of what follows ``prefix``."""


class TableLM(ExactLM):
    """A toy model whose next-token probabilities are read from a table.

    Args:
        table: context -> probabilities ``[vocab]``. A context is a tuple of the last tokens; the
            longest one in the table that the prefix ends with is used, and ``()`` must be there.
        context_limit: as in ``CausalLM``.

    Raises:
        ValueError: if ``()`` is missing or the rows differ in length.
    """

    def __init__(
        self, table: Mapping[tuple[int, ...], Sequence[float]], context_limit: int | None = None
    ) -> None:
        if () not in table:
            raise ValueError("table: got no row for (), expected one for contexts not listed")
        widths = {len(row) for row in table.values()}
        if len(widths) != 1:
            raise ValueError(f"table: got rows of lengths {sorted(widths)}, expected one length")
        super().__init__(widths.pop(), context_limit)
        self._log_rows = {
            context: torch.tensor(row, dtype=torch.float64).log() for context, row in table.items()
        }
        self._longest = max(len(context) for context in table)

    @classmethod
    def random(cls, vocab_size: int, order: int = 1, seed: int = 0) -> TableLM:
        """A different random distribution behind every context of up to ``order`` tokens."""
        generator = torch.Generator().manual_seed(seed)
        contexts: list[tuple[int, ...]] = [()]
        for context in contexts:
            if len(context) < order:
                contexts.extend((*context, token) for token in range(vocab_size))
        rows = torch.rand(len(contexts), vocab_size, dtype=torch.float64, generator=generator) ** 2
        rows /= rows.sum(dim=-1, keepdim=True)
        return cls(dict(zip(contexts, rows.tolist(), strict=True)))

    def _row(self, prefix: list[int]) -> Tensor:
        for size in range(min(self._longest, len(prefix)), 0, -1):
            row = self._log_rows.get(tuple(prefix[-size:]))
            if row is not None:
                return row
        return self._log_rows[()]


class RandomLM(ExactLM):
    """A toy model with a different random distribution behind every prefix, however long.

    Nothing short of the whole prefix tells its next row, so no mistake about the prefix goes unseen.
    The rows are made from a hash, the same on every computer, when they are first asked for.

    Args:
        vocab_size: width of the rows.
        seed: another seed, another model.
        zeros: the share of tokens that are impossible, 0 to below 1; one at least is always possible.
        sharpness: the power that uniform weights are raised to; the higher, the less even the rows, and
            the less likely their least likely tokens.
    """

    def __init__(
        self, vocab_size: int, seed: int = 0, zeros: float = 0.0, sharpness: float = 2.0
    ) -> None:
        super().__init__(vocab_size)
        if not 0.0 <= zeros < 1.0:
            raise ValueError(f"zeros: got {zeros}, expected 0 to below 1")
        self._seed, self._zeros, self._sharpness = seed, zeros, sharpness
        self._rows: dict[tuple[int, ...], Tensor] = {}

    def _row(self, prefix: list[int]) -> Tensor:
        key = tuple(prefix)
        if key not in self._rows:
            self._rows[key] = self._make_row(key)
        return self._rows[key]

    def _make_row(self, prefix: tuple[int, ...]) -> Tensor:
        uniforms = torch.tensor(
            [self._uniform(prefix, token) for token in range(self.vocab_size)], dtype=torch.float64
        )
        rank = uniforms.argsort().argsort()
        possible = rank >= min(round(self._zeros * self.vocab_size), self.vocab_size - 1)
        weights = uniforms**self._sharpness * possible
        return (weights / weights.sum()).log()

    def _uniform(self, prefix: tuple[int, ...], token: int) -> float:
        digest = hashlib.sha256(f"{self._seed} {prefix} {token}".encode()).digest()
        return (int.from_bytes(digest[:8], "big") + 1) / 2.0**64


class HFCausalLM(CausalLM):
    """Any transformers causal LM whose cache can be cropped, for one sequence at a time.

    Args:
        model: the model, on its device and in its dtype; it is put in eval mode.
        vocab_size: give rows of this width: models of one family sometimes pad their vocabularies
            differently. Rows are cut or filled with minus infinity.
        name: what to call it in records; None is its class.

    Raises:
        CannotRewind: for a model with a recurrent state, an encoder, or any other cache that cannot
            be cropped; the message names the model.
    """

    def __init__(
        self, model: PreTrainedModel, vocab_size: int | None = None, name: str | None = None
    ) -> None:
        config = model.config.get_text_config(decoder=True)
        super().__init__(
            vocab_size or config.vocab_size, getattr(config, "max_position_embeddings", None)
        )
        self.model = model.eval()
        self.name = name or type(model).__name__
        self.device: torch.device = model.device  # asking the model walks through its parameters
        arguments = inspect.signature(model.forward).parameters
        self._cache_argument = cache_argument(model)
        self.keeps_rows = "logits_to_keep" in arguments
        if self._cache_argument not in arguments or model.config.is_encoder_decoder:
            raise _cannot_rewind(model, "it does not take a key-value cache of its own tokens only")
        self._cache = self._new_cache()
        self.end_ids = _end_ids(model)
        self._head = model.get_output_embeddings()
        self.token_ids = getattr(self._head, "token_ids", None)  # a head over some tokens only

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    def uncached_logits(self, tokens: Sequence[int], rows: int) -> Tensor:
        """Logits ``[rows, vocab]`` from a forward over all ``tokens`` that leaves the cache alone."""
        return self._logits(list(tokens), rows, use_cache=False)

    def early_exit(self, layers: int) -> HFCausalLM:
        """The model that stops after its first ``layers`` layers; it shares these weights.

        Raises:
            ValueError: if ``layers`` is not between 1 and one less than the model has.
        """
        name = f"{self.name}, first {layers} layers"
        return HFCausalLM(_with_first_layers(self.model, layers), self.vocab_size, name)

    def borrow_cache(self, other: HFCausalLM) -> None:
        """Start from the tokens that ``other``, a deeper model with the same first layers, has read.

        The keys and values of a layer depend on the layers below only, so those of the shared layers
        are the very ones this model would compute. Nothing is copied: a dynamic cache grows by making
        new tensors, so ``other`` never sees what is appended here.
        """
        depth = self.model.config.get_text_config(decoder=True).num_hidden_layers
        self._cache = copy.copy(other._cache)
        self._cache.layers = [copy.copy(layer) for layer in other._cache.layers[:depth]]
        self.tokens = list(other.tokens)

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _forward(self, tokens: list[int], rows: int) -> Tensor:
        return self._logits(tokens, rows, use_cache=True, **{self._cache_argument: self._cache})

    @torch.inference_mode()
    def _forward_kept(self, tokens: list[int]) -> Tensor:
        if self.token_ids is None:
            return super()._forward_kept(tokens)
        input_ids = torch.tensor([tokens], device=self.device)
        states = self.model.base_model(input_ids, **{self._cache_argument: self._cache})
        kept: Tensor = self._head.kept(states.last_hidden_state[0, -1])
        return kept

    @torch.inference_mode()
    def _logits(self, tokens: list[int], rows: int, **options: Any) -> Tensor:
        if self.keeps_rows:
            options["logits_to_keep"] = rows
        input_ids = torch.tensor([tokens], device=self.device)
        logits: Tensor = self.model(input_ids, **options).logits[0]
        if len(logits) > rows:
            logits = logits[-rows:]
        missing = self.vocab_size - logits.shape[-1]
        if missing == 0:
            return logits
        return torch.nn.functional.pad(logits, (0, missing), value=float("-inf"))

    def _forget(self, length: int) -> None:
        if length == 0:
            self._cache = self._new_cache()
        else:
            # A negative number removes that many, in every transformers release; over-cropping
            # would go unnoticed, but `rewind` has checked the length.
            self._cache.crop(length - self.length)

    def _new_cache(self) -> Any:
        from transformers.cache_utils import DynamicCache, DynamicLayer

        cache = DynamicCache(config=self.model.config)
        # A sliding-window layer throws keys away that a rewind would need again. A full layer keeps
        # them, and the attention mask hides what is outside the window: more memory, same logits.
        cache.layers = [
            DynamicLayer() if getattr(layer, "is_sliding", False) else layer for layer in cache.layers
        ]
        for layer in cache.layers:
            if not getattr(layer, "is_croppable", isinstance(layer, DynamicLayer)):
                raise _cannot_rewind(self.model, f"{type(layer).__name__} keeps a running state")
        return cache


def cache_argument(model: PreTrainedModel) -> str:
    """What ``model.forward`` calls its cache; transformers renamed the argument in 5.x."""
    arguments = inspect.signature(model.forward).parameters
    return "cache" if "cache" in arguments else "past_key_values"


def _end_ids(model: PreTrainedModel) -> frozenset[int]:
    """The end tokens of a model's generation settings, which name none, one or several."""
    named = getattr(model.generation_config, "eos_token_id", None)
    if named is None:
        return frozenset()
    return frozenset([named] if isinstance(named, int) else named)


def _cannot_rewind(model: PreTrainedModel, why: str) -> CannotRewind:
    return CannotRewind(
        f"model: got {type(model).__name__}, expected a causal LM whose cache can be cropped: {why}"
    )


def _with_first_layers(model: PreTrainedModel, layers: int) -> PreTrainedModel:
    """A copy of ``model`` that shares all its weights and runs only its first layers."""
    depth = model.config.num_hidden_layers
    if not 1 <= layers < depth:
        raise ValueError(f"layers: got {layers}, expected 1 to {depth - 1} of the {depth} layers")
    shallow = _module_copy(model)
    decoder = _module_copy(model.base_model)
    shallow._modules[model.base_model_prefix] = decoder
    for name, child in model.base_model.named_children():
        if isinstance(child, torch.nn.ModuleList) and len(child) == depth:
            decoder._modules[name] = child[:layers]
            break
    else:
        raise ValueError(f"model: got {type(model).__name__}, expected one list of {depth} layers")
    shallow.config = decoder.config = copy.deepcopy(model.config)
    shallow.config.num_hidden_layers = layers
    if getattr(shallow.config, "layer_types", None):
        shallow.config.layer_types = shallow.config.layer_types[:layers]
    return shallow


def _module_copy(module: Any) -> Any:
    """A module whose children can be replaced without touching the original's."""
    duplicate = copy.copy(module)
    duplicate._modules = dict(module._modules)
    return duplicate

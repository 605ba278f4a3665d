"""A causal language model that reads several sequences at once, each of a length of its own.

Speculation accepts another number of tokens in every row of a batch, so after a round the rows end in
different places. Each row's keys and values are written where *that row* ends, and a mask hides what
lies behind: nothing is moved, and no row waits for another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer

from specdec_lab.language_model import CannotRewind, CausalLM, HFCausalLM, cache_argument

ROOM = 64
"""Columns that a cache grows by at least, so that it does not grow in every round."""


class BatchSequence(CausalLM):
    """One sequence of a batch: what it has read, to be rewound on its own and read on together."""

    def _forward(self, tokens: list[int], rows: int) -> Tensor:
        raise RuntimeError("a sequence of a batch is read on by BatchedLM.extend, with the others")

    def _forget(self, length: int) -> None:
        pass  # the next tokens overwrite what lies behind the end


class BatchedLM:
    """Several sequences in one model; the batched counterpart of ``CausalLM``.

    Args:
        lm: the model; its own cache is left alone.
        count: how many sequences.

    Raises:
        ValueError: for no sequence.
        CannotRewind: for a model with other layers than full attention over all that was read.
    """

    def __init__(self, lm: HFCausalLM, count: int) -> None:
        if count < 1:
            raise ValueError(f"count: got {count}, expected 1 or more sequences")
        self.lm = lm
        self.sequences = [BatchSequence(lm.vocab_size, lm.context_limit) for _ in range(count)]
        """What each has read; each can be rewound."""
        cache = DynamicCache(config=lm.model.config)
        if any(type(layer) is not DynamicLayer for layer in cache.layers):
            raise CannotRewind(
                f"model: got {type(lm.model).__name__}, expected one whose every layer attends to all "
                "tokens read: a batch of sequences shares one mask among the layers"
            )
        self._ends = _Ends(lm.device)
        self._layers = [_RaggedLayer(self._ends) for _ in cache.layers]
        cache.layers = list(self._layers)
        self._cache = cache

    def extend(self, new: Sequence[Sequence[int]], rows: Sequence[int]) -> list[Tensor]:
        """Read some tokens in every sequence, in one forward pass.

        Args:
            new: for each sequence the tokens to read, at least one.
            rows: for each sequence how many rows of logits to return, at most as many as tokens read.

        Returns:
            For each sequence, logits ``[rows, vocab]`` of its last tokens.

        Raises:
            ValueError: for another number of sequences; or as ``CausalLM.extend``.
        """
        if len(new) != len(self.sequences):
            raise ValueError(f"new: got {len(new)} sequences, expected {len(self.sequences)}")
        read = [one.checked_tokens(tokens) for one, tokens in zip(self.sequences, new, strict=True)]
        longest = max(map(len, read))
        ids = torch.tensor([tokens + [0] * (longest - len(tokens)) for tokens in read])
        lengths = torch.tensor([one.length for one in self.sequences])
        first = min(len(tokens) - count for tokens, count in zip(read, rows, strict=True))
        logits = self._forward(ids, lengths, first)
        for one, tokens in zip(self.sequences, read, strict=True):
            one.tokens += tokens
        return [
            logits[i, len(tokens) - count - first : len(tokens) - first]
            for i, (tokens, count) in enumerate(zip(read, rows, strict=True))
        ]

    def keep(self, which: Sequence[int]) -> None:
        """Go on with these sequences only, in this order."""
        self.sequences = [self.sequences[i] for i in which]
        index = torch.tensor(list(which), device=self.lm.device)
        for layer in self._layers:
            if layer.is_initialized:
                layer.keys, layer.values = layer.keys[index], layer.values[index]

    @torch.inference_mode()
    def _forward(self, ids: Tensor, lengths: Tensor, first: int) -> Tensor:
        """Logits ``[sequences, longest - first, vocab]`` of the tokens from the ``first`` on."""
        device = self.lm.device
        ids, lengths = ids.to(device), lengths.to(device)
        longest = ids.shape[1]
        columns = lengths[:, None] + torch.arange(longest, device=device)  # [sequences, longest]
        self._ends.columns, self._ends.width = columns, int(columns.max()) + 1
        seen = torch.arange(self._ends.width, device=device) <= columns[:, :, None]
        # Behind the end of a shorter row stands padding, and that may lie outside the context.
        limit = self.lm.context_limit
        options: dict[str, Any] = {
            "attention_mask": _additive(seen, self.lm.dtype)[:, None],
            "position_ids": columns if limit is None else columns.clamp(max=limit - 1),
            "use_cache": True,
            cache_argument(self.lm.model): self._cache,
        }
        if self.lm.keeps_rows:
            options["logits_to_keep"] = longest - first
        logits: Tensor = self.lm.model(ids, **options).logits[:, first - longest :]
        missing = self.lm.vocab_size - logits.shape[-1]
        return (
            logits if missing == 0 else torch.nn.functional.pad(logits, (0, missing), value=-torch.inf)
        )


class _Ends:
    """Where the next keys and values go: shared by all layers."""

    def __init__(self, device: torch.device) -> None:
        self.columns = torch.zeros(0, 0, dtype=torch.long, device=device)
        self.width = 0


class _RaggedLayer(DynamicLayer):
    """One layer's keys and values ``[sequences, heads, columns, width]``."""

    keys: Tensor
    values: Tensor

    def __init__(self, ends: _Ends) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ends = ends

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write each sequence's new keys and values where it ends; all of them up to the longest."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys = self.values = key_states[:, :, :0]
        self.keys = self._written(self.keys, key_states)
        self.values = self._written(self.values, value_states)
        width = self.ends.width
        return self.keys[:, :, :width], self.values[:, :, :width]

    def _written(self, held: Tensor, new: Tensor) -> Tensor:
        width = self.ends.width
        if held.shape[2] < width:
            held = torch.nn.functional.pad(held, (0, 0, 0, width - held.shape[2] + ROOM))
        at = self.ends.columns[:, None, :, None].expand_as(new)
        return held.scatter_(2, at, new)


def _additive(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where a token may look, minus infinity where not: what every attention kernel takes."""
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, -torch.inf)

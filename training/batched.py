"""Sample many continuations at once: how the training text is written.

No padding, so no attention mask: the batch starts at its shortest prompt, and the rows with longer
ones are fed the rest of their own prompt before they sample. What all prompts begin with is read once.
The cache is laid out once, at its final size, and rows that have ended are dropped from the batch.
``training/README.md`` has the rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import DynamicCache, DynamicLayer

from specdec_lab.language_model import cache_argument

MOST_KEPT = 0.9
"""Compact the batch when no more than this share of its rows still runs; it copies the cache."""
BLOCK = 256


class _RoomyLayer(DynamicLayer):
    """A layer's keys and values in tensors as long as they will ever be, instead of ever new ones."""

    def __init__(self, room: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._room = room
        self._used = 0

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            batch, heads, _, width = key_states.shape
            self._all = key_states.new_empty(2, batch, heads, self._room, width)
        end = self._used + key_states.shape[2]
        self._all[0, :, :, self._used : end] = key_states
        self._all[1, :, :, self._used : end] = value_states
        self._used = end
        self.keys, self.values = self._all[0, :, :, :end], self._all[1, :, :, :end]
        return self.keys, self.values

    def repeat(self, batch: int) -> None:
        """One row becomes ``batch`` rows that have read the same."""
        self._all = self._all.repeat(1, batch, 1, 1, 1)

    def keep_rows(self, rows: Tensor) -> None:
        kept = self._all.new_empty(2, len(rows), *self._all.shape[2:])
        kept[:, :, :, : self._used] = self._all[:, rows, :, : self._used]
        self._all = kept


@torch.inference_mode()
def continue_all(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    temperatures: Sequence[float],
    *,
    max_new_tokens: int,
    end_ids: Sequence[int],
    seed: int,
) -> list[list[int]]:
    """Continue every prompt; each continuation ends behind its first end token, or at the budget.

    Args:
        model: a causal LM.
        prompts: token ids; the more alike their lengths, the faster.
        temperatures: one for each prompt; 0 is greedy.
        max_new_tokens: the budget of each.
        end_ids: tokens that end a continuation; they are part of it.
        seed: of the uniforms, one per prompt and position, so that a row that ends changes no other.

    Raises:
        ValueError: if there is not one temperature for each prompt, or a prompt is empty.
    """
    if len(temperatures) != len(prompts) or not all(prompts):
        raise ValueError(
            f"prompts: got {len(prompts)} with {len(temperatures)} temperatures, expected at least one "
            "token in each, and one temperature for each"
        )
    device = model.device
    shortest, longest = min(map(len, prompts)), max(map(len, prompts))
    generator = torch.Generator().manual_seed(seed)
    uniforms = torch.rand(len(prompts), longest + max_new_tokens, generator=generator).to(device)
    temperature = torch.tensor(temperatures, device=device)
    ends = torch.tensor(list(end_ids), device=device)
    cache = DynamicCache(config=model.config)
    layers = [_RoomyLayer(longest + max_new_tokens) for _ in cache.layers]
    cache.layers = list(layers)
    into_cache = {cache_argument(model): cache, "logits_to_keep": 1}
    text = [list(prompt) for prompt in prompts]
    done: set[int] = set()
    rows = torch.arange(len(prompts), device=device)  # which prompt each row of the batch continues
    shared = _shared_length(prompts)
    if shared > 1:
        model(torch.tensor([prompts[0][: shared - 1]], device=device), **into_cache)
        for layer in layers:
            layer.repeat(len(prompts))
    first = max(shared - 1, 0)
    unread = torch.tensor([prompt[first:shortest] for prompt in prompts], device=device)
    for place in range(shortest, longest + max_new_tokens):
        logits = model(unread, **into_cache).logits[:, -1]
        drawn = _draw(logits, temperature[rows], uniforms[rows, place])
        ended = torch.isin(drawn, ends).tolist()
        fed = []
        for row, token, is_end in zip(rows.tolist(), drawn.tolist(), ended, strict=True):
            if place < len(prompts[row]):
                fed.append(prompts[row][place])
                continue
            fed.append(token)
            if row not in done:
                text[row].append(token)
            if is_end or place + 1 == len(prompts[row]) + max_new_tokens:
                done.add(row)
        if len(done) == len(prompts):
            break
        unread = torch.tensor(fed, device=device)[:, None]
        running = torch.tensor([row not in done for row in rows.tolist()], device=device)
        if running.float().mean() <= MOST_KEPT:
            kept = running.nonzero()[:, 0]
            for layer in layers:
                layer.keep_rows(kept)
            rows, unread = rows[kept], unread[kept]
    return [written[len(prompt) :] for written, prompt in zip(text, prompts, strict=True)]


def _shared_length(prompts: Sequence[Sequence[int]]) -> int:
    """How many tokens all prompts begin with: read once for all of them."""
    columns = zip(*prompts, strict=False)
    return next((i for i, column in enumerate(columns) if len(set(column)) > 1), min(map(len, prompts)))


def _draw(logits: Tensor, temperature: Tensor, uniforms: Tensor) -> Tensor:
    """One token per row of ``[batch, vocab]``: the argmax, or where the cumulated mass passes u.

    Cumulated in two stages, over blocks and then within one: a third of the work of one long sum.
    """
    batch, vocab = logits.shape
    block = BLOCK if vocab % BLOCK == 0 else vocab
    scaled = logits.float() / temperature.clamp(min=1e-3)[:, None]
    weights = (scaled - scaled.amax(dim=-1, keepdim=True)).exp_().view(batch, -1, block)
    by_block = weights.sum(dim=-1).cumsum(dim=-1)
    goal = (uniforms * by_block[:, -1])[:, None]
    at = torch.searchsorted(by_block, goal, right=True).clamp(max=by_block.shape[1] - 1)
    before = torch.where(at > 0, by_block.gather(1, (at - 1).clamp(min=0)), 0.0)
    inside = weights[torch.arange(batch, device=logits.device), at[:, 0]].cumsum(dim=-1)
    place = torch.searchsorted(inside, goal - before, right=True).clamp(max=block - 1)
    drawn = (at * block + place)[:, 0]
    greedy = temperature == 0
    if greedy.any():
        drawn[greedy] = logits[greedy].argmax(dim=-1)
    return drawn

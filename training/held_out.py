"""How the draft is judged as it learns: on the target's own answers to the development chats."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import LlamaForCausalLM

from benchmarks.held_out import DEVELOPMENT_CHATS, HELD_OUT
from specdec_lab.files import replacing
from specdec_lab.pretrained import Pair
from training.batched import continue_all
from training.generate import Author
from training.teacher import cache_folder, score
from training.texts import Document

REPLY = 96
"""Most tokens that the target adds to a held-out prompt."""
OVERLAPPING_WORDS = 5


@dataclass(frozen=True)
class Judged:
    """The target's replies at one temperature: a padded batch, and the target's scores behind it.

    Args:
        ids: ``[prompts, longest]``.
        at: ``[positions, 2]``, row and column of each position whose next token is the target's own.
        hidden, log_sum: the target's scores there, ``[positions, width]`` and ``[positions]``.
    """

    ids: Tensor
    at: Tensor
    hidden: Tensor
    log_sum: Tensor


@dataclass(frozen=True)
class HeldOut:
    """The development chats, answered greedily and at temperature 1."""

    greedy: Judged
    sampled: Judged
    head: Tensor
    """The target's, ``[vocab, width]``."""

    @torch.inference_mode()
    def judge(self, draft: LlamaForCausalLM) -> dict[str, float]:
        """Alpha at temperature 1 on the sampled replies; agreement with the argmax on the greedy."""
        alpha, agreement = [], []
        kept = draft.lm_head.token_ids
        for spots, states in _states(draft, self.sampled):
            q = (states @ draft.lm_head.weight.to(states).T).float().softmax(dim=-1)
            logits = (self.sampled.hidden[spots].to(self.head) @ self.head[kept].T).float()
            p = (logits - self.sampled.log_sum[spots][:, None]).exp()
            alpha.append(torch.minimum(p, q).sum(dim=-1))
        for spots, states in _states(draft, self.greedy):
            ours = kept[(states @ draft.lm_head.weight.to(states).T).argmax(dim=-1)]
            theirs = (self.greedy.hidden[spots].to(self.head) @ self.head.T).argmax(dim=-1)
            agreement.append((ours == theirs).float())
        return {
            "alpha": round(float(torch.cat(alpha).mean()), 4),
            "greedy": round(float(torch.cat(agreement).mean()), 4),
        }


def _states(draft: LlamaForCausalLM, judged: Judged) -> Iterable[tuple[Tensor, Tensor]]:
    """Positions and the draft's last hidden states there, a few rows of the batch at a time."""
    for rows in torch.split(torch.arange(len(judged.ids), device=judged.ids.device), 8):
        with torch.autocast(draft.device.type, torch.bfloat16):
            states = draft.model(judged.ids[rows], use_cache=False).last_hidden_state
        spots = torch.isin(judged.at[:, 0], rows).nonzero()[:, 0]
        row, column = judged.at[spots].T
        yield spots, states[row - rows[0], column].to(torch.bfloat16)


def held_out_text(pair: Pair) -> HeldOut:
    """The target's replies to the development chats, written once and kept in the cache."""
    author = Author(pair.target.model, pair.tokenizer)
    prompts = [author.ask(author.encode(text)) for text in DEVELOPMENT_CHATS]
    head = pair.target.model.get_output_embeddings().weight.detach()
    return HeldOut(_judged(pair, prompts, 0.0), _judged(pair, prompts, 1.0), head)


def _judged(pair: Pair, prompts: list[list[int]], temperature: float) -> Judged:
    key = hashlib.sha256(repr((prompts, REPLY, pair.target.name)).encode()).hexdigest()[:8]
    file = cache_folder() / f"held-out-{temperature:g}-{key}.safetensors"
    if not file.exists():
        with replacing(file) as part:
            save_file(_answers(pair, prompts, temperature), part)
    device = pair.target.device
    return Judged(**{name: values.to(device) for name, values in load_file(file).items()})


def reply_to(pair: Pair, prompts: list[list[int]], temperature: float, seed: int) -> list[list[int]]:
    """What the target answers to each prompt, up to its own end tokens."""
    return continue_all(
        pair.target.model,
        prompts,
        [temperature] * len(prompts),
        max_new_tokens=REPLY,
        end_ids=sorted(pair.target.end_ids),
        seed=seed,
    )


def _answers(pair: Pair, prompts: list[list[int]], temperature: float) -> dict[str, Tensor]:
    replies = reply_to(pair, prompts, temperature, seed=987_654_321)
    texts = [prompt + reply for prompt, reply in zip(prompts, replies, strict=True)]
    scores = score(texts, pair.target.model)
    ids = torch.zeros(len(texts), max(map(len, texts)), dtype=torch.long)
    at, kept, begin = list[tuple[int, int]](), list[int](), 0
    for row, (text, prompt) in enumerate(zip(texts, prompts, strict=True)):
        ids[row, : len(text)] = torch.tensor(text)
        for column in range(len(prompt) - 1, len(text) - 1):
            at.append((row, column))
            kept.append(begin + column)
        begin += len(text)
    return {
        "ids": ids,
        "at": torch.tensor(at),
        "hidden": scores["hidden"][kept],
        "log_sum": scores["log_sum"][kept],
    }


def word_runs(text: str, length: int = OVERLAPPING_WORDS) -> set[tuple[str, ...]]:
    """All runs of so many words in a row, without case and punctuation; a shorter text is one run."""
    words = "".join(c.lower() if c.isalnum() or c == "'" else " " for c in text).split()
    return {tuple(words[i : i + length]) for i in range(max(len(words) - length, 0) + 1)}


@cache
def held_out_runs() -> set[tuple[str, ...]]:
    """The word runs of every held-out prompt and of every development chat."""
    texts = [*DEVELOPMENT_CHATS, *(prompt.text for prompt in HELD_OUT)]
    return set().union(*map(word_runs, texts))


def left_out(documents: Sequence[Document], decode: Callable[[list[int]], Any]) -> set[int]:
    """Which documents may not be trained on: their prompts share words with a held-out one."""
    return set(touching([str(decode(one.tokens[: one.reply_start])) for one in documents]))


def touching(prompts: Sequence[str]) -> list[int]:
    """Which of these prompts share a run of words with a held-out one."""
    by_length: dict[int, set[tuple[str, ...]]] = {}
    for run in held_out_runs():
        by_length.setdefault(len(run), set()).add(run)
    return [
        i
        for i, prompt in enumerate(prompts)
        if any(word_runs(prompt, length) & runs for length, runs in by_length.items())
    ]

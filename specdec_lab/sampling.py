"""From logits to the distribution that is really sampled: temperature, top-k, top-p, penalties.

All of it is transformers' own ``LogitsProcessor`` classes, applied once per position with the
prefix as it stands at that position. Target and draft go through the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import torch
from torch import Tensor

from specdec_lab.distributions import one_hot, softmax, wide

Processor = Callable[[Tensor, Tensor], Tensor]
"""transformers' convention: input_ids ``[1, length]`` and scores ``[1, vocab]`` -> scores."""


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen from a row of logits.

    Args:
        temperature: 0 is argmax (the lowest id on an exact tie), not a small epsilon.
        top_k: keep the k likeliest tokens; None keeps all.
        top_p: keep the likeliest tokens up to this mass, the token that crosses it included.
        min_p: keep tokens of at least this fraction of the likeliest token's probability.
        repetition_penalty: above 1 makes tokens of the prefix less likely.
        no_repeat_ngram_size: no n-gram of this size occurs twice.
        processors: further logits processors, applied before temperature and truncation. Each must
            be a function of (prefix, scores) alone: one with a memory of its own would be confused
            by drafts that are looked at and then rejected. It may write into the scores.

    Raises:
        ValueError: for a value outside its range, by name.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    no_repeat_ngram_size: int | None = None
    processors: tuple[Processor, ...] = ()

    def __post_init__(self) -> None:
        _require("temperature", self.temperature, 0.0 <= self.temperature < inf, "0 or more")
        for name in ("top_k", "no_repeat_ngram_size"):
            value = getattr(self, name)
            _require(name, value, value is None or value >= 1, "1 or more")
        for name in ("top_p", "min_p"):
            value = getattr(self, name)
            _require(name, value, value is None or 0.0 < value <= 1.0, "above 0 and at most 1")
        if callable(self.processors):
            raise ValueError("processors: got one function, expected a tuple of them: (processor,)")
        object.__setattr__(self, "processors", tuple(self.processors))
        penalty = self.repetition_penalty
        _require("repetition_penalty", penalty, penalty is None or penalty > 0.0, "above 0")

    @property
    def greedy(self) -> bool:
        """True at temperature 0: nothing random is left."""
        return self.temperature == 0.0

    def distribution(self, prefix: Sequence[int], logits: Tensor) -> Tensor:
        """What follows ``prefix``: logits ``[vocab]`` -> the distribution ``[vocab]`` sampled from."""
        scores = self._process(prefix, logits)
        return one_hot(_best(scores)[0], like=scores) if self.greedy else softmax(scores)

    def argmax(self, prefix: Sequence[int], logits: Tensor) -> int:
        """The likeliest token after processing; the lowest id on an exact tie."""
        return _best(self._process(prefix, logits))[0]

    @property
    def reads_tokens(self) -> bool:
        """True if some processor asks which token a score stands for, or what stands before it."""
        penalised = self.repetition_penalty not in (None, 1.0) or self.no_repeat_ngram_size is not None
        return penalised or bool(self.processors)

    @property
    def plain(self) -> bool:
        """True where logits pass unchanged, so that no prefix is needed to process them."""
        return not self._pipeline

    def _process(self, prefix: Sequence[int], logits: Tensor) -> Tensor:
        scores = wide(logits)
        if self.plain:
            return scores
        # A copy, because some processors write into the scores they are given.
        input_ids, scores = torch.tensor([list(prefix)], device=logits.device), scores.clone()[None]
        for processor in self._pipeline:
            scores = processor(input_ids, scores)
        return scores[0]

    @cached_property
    def _pipeline(self) -> list[Processor]:
        """In transformers' own order: penalties, custom, temperature, top-k, top-p, min-p."""
        pipeline: list[Processor] = []
        if self.repetition_penalty not in (None, 1.0):
            pipeline.append(_warper("RepetitionPenaltyLogitsProcessor")(self.repetition_penalty))
        if self.no_repeat_ngram_size is not None:
            pipeline.append(_warper("NoRepeatNGramLogitsProcessor")(self.no_repeat_ngram_size))
        pipeline.extend(self.processors)
        if self.temperature not in (0.0, 1.0):
            pipeline.append(_warper("TemperatureLogitsWarper")(float(self.temperature)))
        if self.greedy:
            return pipeline
        if self.top_k is not None:
            pipeline.append(_warper("TopKLogitsWarper")(self.top_k))
        if self.top_p not in (None, 1.0):
            pipeline.append(_warper("TopPLogitsWarper")(self.top_p))
        if self.min_p is not None:
            pipeline.append(_warper("MinPLogitsWarper")(self.min_p))
        return pipeline


def _best(scores: Tensor) -> list[int]:
    """The argmax of each row of ``scores [..., vocab]``; the lowest id on an exact tie.

    Raises:
        ValueError: if a row holds NaN, or leaves no token possible.
    """
    highest, tokens = scores.reshape(-1, scores.shape[-1]).max(dim=-1)
    if not all(value > float("-inf") for value in highest.tolist()):
        raise ValueError("logits: got NaN or nothing but minus infinity, expected a possible token")
    best: list[int] = tokens.tolist()
    return best


def _require(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise ValueError(f"{name}: got {value}, expected {expected}")


def _warper(name: str) -> Callable[..., Processor]:
    """A logits processor class of transformers, imported only by runs that use one."""
    from transformers.generation import logits_process

    processor: Callable[..., Processor] = getattr(logits_process, name)
    return processor


class TargetRows:
    """p at each drafted position and behind the draft, each computed when it is first asked for.

    Positions after a rejection are never looked at, so their (possibly expensive) processing is
    never done.

    Args:
        tokens: the committed prefix followed by the draft.
        logits: ``[gamma + 1, vocab]``; row i predicts the token after i drafted tokens.
    """

    def __init__(self, sampling: Sampling, tokens: Sequence[int], logits: Tensor) -> None:
        self._sampling = sampling
        self._tokens = tokens
        self._logits = logits
        self._prefix_length = len(tokens) - (len(logits) - 1)

    def __len__(self) -> int:
        return len(self._logits)

    def __getitem__(self, row: int) -> Tensor:
        """p ``[vocab]`` after ``row`` drafted tokens."""
        prefix = self._tokens[: self._prefix_length + row]
        return self._sampling.distribution(prefix, self._logits[row])

    def argmax(self, row: int) -> int:
        """The target's greedy token after ``row`` drafted tokens."""
        if self._sampling.plain:
            return self._plain_argmax[row]
        return self._sampling.argmax(self._tokens[: self._prefix_length + row], self._logits[row])

    @cached_property
    def _plain_argmax(self) -> list[int]:
        return _best(self._logits)

"""Distributions that the checks of one step are given."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from specdec_lab.checks.harness import Attempt


def pairs(seed: int | None, vocab: int = 5) -> list[tuple[Tensor, Tensor]]:
    """Distributions (p, q), some with impossible tokens."""
    lists = [
        ([0.6, 0.3, 0.1], [0.2, 0.2, 0.6]),
        ([0.35, 0.4, 0.2, 0.05], [0.55, 0.25, 0.15, 0.05]),
        ([0.0, 0.7, 0.3], [0.5, 0.5, 0.0]),
    ]
    pairs = [(exactly(p), exactly(q)) for p, q in lists]
    if seed is not None:
        random = Random(seed)
        pairs = [(_row(random, vocab), _row(random, vocab)) for _ in range(4)]
        pairs.append((_row(random, vocab, zeros=2), _row(random, vocab, zeros=1)))
        pairs.append((_row(random, vocab).float(), _row(random, vocab).float()))
    return pairs


def tensor_row(attempt: Attempt, yours: object, length: int) -> Tensor:
    """The learner's row in float64; it has to be a tensor, because later cells compute with it."""
    row = attempt.row(yours, length)
    attempt.require(
        isinstance(yours, Tensor),
        "the numbers are in a list or an array, expected a tensor: later cells compute with it.",
    )
    return row


def exactly(values: Sequence[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _row(random: Random, vocab: int, zeros: int = 0) -> Tensor:
    """A random distribution in which ``zeros`` tokens are impossible."""
    weights = exactly([random.random() ** 2 + 0.01 for _ in range(vocab)])
    weights[random.sample(range(vocab), zeros)] = 0.0
    return weights / weights.sum()

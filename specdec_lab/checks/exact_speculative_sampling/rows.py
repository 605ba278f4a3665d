"""Distributions that the checks of one step are given."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor


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


def exactly(values: Sequence[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _row(random: Random, vocab: int, zeros: int = 0) -> Tensor:
    """A random distribution in which ``zeros`` tokens are impossible."""
    weights = exactly([random.random() ** 2 + 0.01 for _ in range(vocab)])
    weights[random.sample(range(vocab), zeros)] = 0.0
    return weights / weights.sum()

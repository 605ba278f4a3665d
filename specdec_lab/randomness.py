"""Where every random choice of a decoder comes from: the ``Chooser``.

A decoder never calls a random number generator. It asks a chooser two questions, "is this
accepted?" and "which token?". Whoever answers decides what the run is: ``SeededChooser`` draws, so
the run is a sample; the chooser of ``enumeration.py`` walks every answer there is, so that the exact
output law of any decoder can be added up instead of estimated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class Chooser(ABC):
    """The two random questions that speculative decoding asks."""

    last_uniform: float | None = None
    """The uniform number behind the last answer, for display; None where none was drawn."""

    @abstractmethod
    def accept(self, probability: float) -> bool:
        """True with the given probability. Strict: a probability of 0 is never accepted."""

    @abstractmethod
    def sample(self, distribution: Tensor) -> int:
        """One token drawn from ``distribution [vocab]``; never one of probability 0."""


class SeededChooser(Chooser):
    """Draws from one ``torch.Generator``: the same seed gives the same run.

    Make one per generation. A chooser that is seeded anew for each decision draws the same uniform
    each time, and then nothing it produces is a sample.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._generator = torch.Generator()
        self.seed = self._generator.seed() if seed is None else seed
        self._generator.manual_seed(self.seed)

    def uniform(self) -> float:
        """One number in [0, 1), in double precision: a float32 grid would be too coarse."""
        self.last_uniform = torch.rand((), dtype=torch.float64, generator=self._generator).item()
        return self.last_uniform

    def accept(self, probability: float) -> bool:
        # Strict, or u = 0 would accept a token that the target gives no probability at all.
        return self.uniform() < probability

    def sample(self, distribution: Tensor) -> int:
        return invert_cdf(distribution, self.uniform())


def invert_cdf(distribution: Tensor, uniform: float) -> int:
    """The first token at which the running sum of ``distribution [vocab]`` exceeds ``uniform``.

    Strictly exceeds: a token of probability 0 does not move the sum, so it is never returned, and
    neither is anything else by a ``uniform`` that rounding would push past the total.

    Raises:
        ValueError: if there is no finite mass to draw from.
    """
    running_sum = distribution.cumsum(dim=-1, dtype=torch.float64)
    total = _total(float(running_sum[-1]))
    token = int(torch.searchsorted(running_sum, uniform * total, right=True))
    if token < len(distribution):
        return token
    return int(distribution.nonzero()[-1])


def _total(mass: float) -> float:
    """The mass of a distribution, if it is one."""
    if not 0.0 < mass < float("inf"):
        raise ValueError(
            f"distribution: sums to {mass}, expected 1: the logits, after temperature and processors, "
            "hold NaN or nothing but minus infinity"
        )
    return mass

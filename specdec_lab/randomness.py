"""Where every random choice of a decoder comes from: the ``Chooser``.

A decoder never calls a random number generator. It asks a chooser two questions, "is this
accepted?" and "which token?". Whoever answers decides what the run is: ``SeededChooser`` draws, so
the run is a sample; ``EnumeratingChooser`` walks every answer there is, so that the exact output
law of any decoder can be added up instead of estimated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch
from torch import Tensor

Outcome = TypeVar("Outcome")


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


class EnumeratingChooser(Chooser):
    """Answers along one path through the tree of all choices, and knows that path's probability.

    Not used directly: ``enumerate_outcomes`` walks all the paths.
    """

    def __init__(self, path: list[int]) -> None:
        self._path = path
        self._depth = 0
        self.probability = 1.0
        self.branches_left: list[list[int]] = []
        """Per choice beyond the given path, the answers not taken (token ids; 1 and 0 for accept)."""

    def accept(self, probability: float) -> bool:
        answers = {1: min(probability, 1.0), 0: 1.0 - min(probability, 1.0)}
        return bool(self._answer({answer: mass for answer, mass in answers.items() if mass > 0.0}))

    def sample(self, distribution: Tensor) -> int:
        support = distribution.nonzero().flatten().tolist()
        total = _total(float(distribution.double().sum()))
        return self._answer({token: float(distribution[token]) / total for token in support})

    def _answer(self, answers: dict[int, float]) -> int:
        if self._depth < len(self._path):
            answer = self._path[self._depth]
        else:
            answer, *others = answers
            self._path.append(answer)
            self.branches_left.append(others)
        self._depth += 1
        self.probability *= answers[answer]
        return answer


def enumerate_outcomes(run: Callable[[Chooser], Outcome]) -> Iterator[tuple[Outcome, float]]:
    """Every outcome of ``run`` with its exact probability, one per path of random choices.

    ``run`` is called once per path, and must make all its random choices through the chooser that
    it is given. The probabilities add up to 1; the same outcome may come by several paths.
    """
    pending: list[list[int]] = [[]]
    while pending:
        path = pending.pop()
        depth_given = len(path)
        chooser = EnumeratingChooser(path)
        outcome = run(chooser)
        for offset, others in enumerate(chooser.branches_left):
            stem = path[: depth_given + offset]
            pending.extend([*stem, answer] for answer in others)
        yield outcome, chooser.probability

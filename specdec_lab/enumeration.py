"""Every path through a program's random choices, each with its exact probability.

A program that makes all its random choices through a ``Chooser`` is a tree: each question is a node,
each possible answer a branch. ``Enumeration`` runs the program again and again, each time along
another path from the root to a leaf, until no branch is left. The likeliest branch that is left goes
next, so that a budget of paths covers as much probability as it can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, nsmallest
from math import inf
from random import Random
from typing import Generic, Literal, TypeVar

from torch import Tensor

from specdec_lab.randomness import Chooser

Outcome = TypeVar("Outcome")
MOST_CHOICES = 1000
"""Questions asked along one path before it is given up."""
HARDLY_LIKELY = 1e-3
"""A path that is given up is pruned if it is less likely than this; else the program never ends."""
SUM_TOLERANCE = 1e-4
"""How far from 1 a distribution may sum: far above float32 rounding, far below any real mistake."""

Fault = Literal["never ends", "bad distribution", "not repeatable"]


@dataclass(frozen=True)
class Choice:
    """A question that was asked, and its answer on this path (a token id; 1 or 0 for accept)."""

    question: Literal["accept", "sample"]
    answer: int
    probability: float

    def __str__(self) -> str:
        if self.question == "sample":
            return f"draw {self.answer}"
        return "accept" if self.answer else "reject"


class Misconduct(BaseException):
    """The program broke the rules of a chooser.

    Not an ``Exception``, so that the program's own ``except`` does not hide it.

    Args:
        fault: which rule.
        message: what was asked, and what was expected.
        path: the choices that led there.
    """

    def __init__(self, fault: Fault, message: str, path: Sequence[Choice]) -> None:
        super().__init__(message)
        self.fault = fault
        self.path = tuple(path)


class _Pruned(BaseException):
    """The path has become too unlikely to follow."""


@dataclass(frozen=True)
class _Stem:
    """The beginning of paths not walked yet: the answers to give, and their probability."""

    answers: tuple[int, ...] = ()
    probability: float = 1.0


class EnumeratingChooser(Chooser):
    """Answers along one path through the tree of all choices, and knows that path's probability.

    Not used directly: ``Enumeration`` walks all the paths. Along the given stem it gives the stem's
    answers, and behind it, at each question, the likeliest one.
    """

    def __init__(self, stem: _Stem, prune_below: float = 0.0, most_choices: int = MOST_CHOICES) -> None:
        self._stem = stem
        self._prune_below = prune_below
        self._most_choices = most_choices
        self.choices: list[Choice] = []
        self.probability = 1.0
        self.branches: list[_Stem] = []
        """Where the paths not taken begin."""
        self.raised: BaseException | None = None
        """What was raised into the program, in case the program caught it and went on."""

    def accept(self, probability: float) -> bool:
        chance = float(probability)
        if not chance >= 0.0:
            self._misconduct(
                "bad distribution",
                f"accept() was asked with a probability of {chance:g}, expected 0 or more",
            )
        chance = min(chance, 1.0)
        answers = {1: chance, 0: 1.0 - chance}
        return bool(
            self._answer("accept", {answer: mass for answer, mass in answers.items() if mass > 0.0})
        )

    def sample(self, distribution: Tensor) -> int:
        if not isinstance(distribution, Tensor) or distribution.dim() != 1:
            self._misconduct(
                "bad distribution",
                f"sample() was asked to draw from {_kind(distribution)}, expected a tensor [vocab]",
            )
        masses: list[float] = distribution.tolist()
        total, lowest = sum(masses), min(masses, default=0.0)
        if not (abs(total - 1.0) <= SUM_TOLERANCE and lowest >= 0.0):
            self._misconduct(
                "bad distribution",
                f"sample() was asked to draw from something that sums to {total:.6g} with smallest "
                f"entry {lowest:.6g}, expected a distribution: a sum of 1 and nothing negative",
            )
        return self._answer(
            "sample", {token: mass / total for token, mass in enumerate(masses) if mass > 0.0}
        )

    def finish(self) -> None:
        """The program has come back: raise again what it caught, and check that it asked everything."""
        if self.raised is not None:
            raise self.raised
        if len(self.choices) < len(self._stem.answers):
            self._not_repeatable()

    def _answer(self, question: Literal["accept", "sample"], answers: dict[int, float]) -> int:
        depth = len(self.choices)
        if depth >= self._most_choices:
            self._give_up(depth)
        on_stem = depth < len(self._stem.answers)
        if on_stem:
            answer = self._stem.answers[depth]
        else:
            answer = max(answers, key=answers.__getitem__)
            self._note_branches(answer, answers)
        mass = self.probability * answers.get(answer, 0.0)
        # The same answers must lead to the same questions, bit for bit: nothing but the chooser may
        # make a difference between two runs.
        whole_stem = on_stem and depth + 1 == len(self._stem.answers)
        if answer not in answers or (whole_stem and mass != self._stem.probability):
            self._not_repeatable()
        self.probability = mass
        self.choices.append(Choice(question, answer, answers[answer]))
        if mass < self._prune_below:
            self._raise(_Pruned())
        return answer

    def _give_up(self, depth: int) -> None:
        if self.probability < HARDLY_LIKELY:
            self._raise(_Pruned())
        self._misconduct(
            "never ends", f"after {depth} random choices it still asks for more, expected an end"
        )

    def _note_branches(self, taken: int, answers: dict[int, float]) -> None:
        before = tuple(choice.answer for choice in self.choices)
        self.branches += [
            _Stem((*before, answer), self.probability * mass)
            for answer, mass in answers.items()
            if answer != taken
        ]

    def _not_repeatable(self) -> None:
        self._misconduct(
            "not repeatable",
            "the same answers led to other questions than before, expected a program whose only "
            "source of chance is the chooser, and which starts each run afresh",
        )

    def _misconduct(self, fault: Fault, message: str) -> None:
        self._raise(Misconduct(fault, message, self.choices))

    def _raise(self, error: BaseException) -> None:
        self.raised = error
        raise error


def _kind(thing: object) -> str:
    if isinstance(thing, Tensor):
        return f"a tensor of shape {list(thing.shape)}"
    return f"a {type(thing).__name__}"


@dataclass(frozen=True)
class Visit(Generic[Outcome]):
    """One path walked to its end."""

    outcome: Outcome
    probability: float
    choices: tuple[Choice, ...]


class Enumeration(Generic[Outcome]):
    """Walk the tree of a program's random choices; iterate over it for one ``Visit`` per path.

    Args:
        run: the program. It is called once per path and must make all its random choices through the
            chooser that it is given.
        prune_below: paths less likely than this are left unwalked; their mass is in ``pruned``.
        max_paths: how many runs to make; the mass of the paths left is in ``unwalked``. None is all.
        most_choices: questions along one path before it is given up. Its mass goes to ``pruned``, or if
            it is not small, the program is taken to never end.

    Raises:
        Misconduct: from the iteration, when the program breaks the rules of a chooser.
    """

    def __init__(
        self,
        run: Callable[[Chooser], Outcome],
        *,
        prune_below: float = 0.0,
        max_paths: int | None = None,
        most_choices: int = MOST_CHOICES,
    ) -> None:
        self._run = run
        self._prune_below = prune_below
        self._max_paths = inf if max_paths is None else max_paths
        self._most_choices = most_choices
        self._pending: list[tuple[float, int, _Stem]] = [(-1.0, 0, _Stem())]
        self._stems = 1
        self._out_of_reach = 0.0
        self.runs = 0
        """Runs made, those included that were given up on the way."""
        self.paths = 0
        """Paths walked to their end."""
        self.choices = 0
        """Random choices made, over all paths."""
        self.pruned = 0.0
        """Probability of the paths that were left as too unlikely."""

    @property
    def unwalked(self) -> float:
        """Probability of the paths that are still to be walked."""
        return self._out_of_reach - sum(negative for negative, _, _ in self._pending)

    def __iter__(self) -> Iterator[Visit[Outcome]]:
        while self._pending and self.runs < self._max_paths:
            stem = heappop(self._pending)[2]
            self.runs += 1
            visit = self._walk(stem)
            if visit is not None:
                self.paths += 1
                yield visit

    def replay(self, visit: Visit[Outcome]) -> Outcome:
        """Run the program once more along a path that was walked.

        Raises:
            Misconduct: if it takes another path this time.
        """
        answers = tuple(choice.answer for choice in visit.choices)
        chooser = EnumeratingChooser(_Stem(answers, visit.probability), 0.0, self._most_choices)
        outcome = self._run(chooser)
        chooser.finish()
        return outcome

    def _walk(self, stem: _Stem) -> Visit[Outcome] | None:
        chooser = EnumeratingChooser(stem, self._prune_below, self._most_choices)
        try:
            outcome = self._run(chooser)
            chooser.finish()
        except _Pruned:
            self.pruned += chooser.probability
            return None
        finally:
            self.choices += len(chooser.choices)
            self._take(chooser.branches)
        return Visit(outcome, chooser.probability, tuple(chooser.choices))

    def _take(self, branches: list[_Stem]) -> None:
        for stem in branches:
            if stem.probability < self._prune_below:
                self.pruned += stem.probability
            else:
                # Equally likely stems: the older one first. The number also keeps stems from being
                # compared with each other.
                heappush(self._pending, (-stem.probability, self._stems, stem))
                self._stems += 1
        self._forget_what_is_out_of_reach()

    def _forget_what_is_out_of_reach(self) -> None:
        """The likeliest go first: with n runs left, only the n likeliest stems can still be walked."""
        runs_left = self._max_paths - self.runs
        if len(self._pending) > 2 * runs_left + 1000:
            kept = nsmallest(int(runs_left), self._pending)  # sorted, which is a heap
            everything = sum(negative for negative, _, _ in self._pending)
            self._out_of_reach += sum(negative for negative, _, _ in kept) - everything
            self._pending = kept


def enumerate_outcomes(run: Callable[[Chooser], Outcome]) -> Iterator[tuple[Outcome, float]]:
    """Every outcome of ``run`` with its exact probability, one per path of random choices.

    ``run`` is called once per path, and must make all its random choices through the chooser that
    it is given. The probabilities add up to 1; the same outcome may come by several paths.

    Raises:
        Misconduct: when it asks for something that is no distribution, never ends, or differs between
            two runs with the same answers.
    """
    for visit in Enumeration(run):
        yield visit.outcome, visit.probability


class _ProbingChooser(EnumeratingChooser):
    """Takes every branch with equal chance, and multiplies the numbers of branches along the way."""

    def __init__(self, random: Random) -> None:
        super().__init__(_Stem())
        self._random = random
        self.leaves = 1.0

    def _answer(self, question: Literal["accept", "sample"], answers: dict[int, float]) -> int:
        if len(self.choices) >= self._most_choices:
            self._misconduct("never ends", "no end in sight")
        answer = self._random.choice(list(answers))
        self.choices.append(Choice(question, answer, answers[answer]))
        self.leaves *= len(answers)
        return answer


def estimate_paths(run: Callable[[Chooser], object], probes: int = 40, seed: int = 0) -> float:
    """About how many paths ``run`` has, from a few random ones; infinite if one of them never ends.

    A path chosen with equal chance at each branch has a product of branch numbers whose mean is the
    number of leaves. Source: Knuth 1975, "Estimating the efficiency of backtrack programs".
    """
    random, total = Random(seed), 0.0
    for _ in range(probes):
        chooser = _ProbingChooser(random)
        try:
            run(chooser)
        except Misconduct as misconduct:
            if misconduct.fault == "never ends":
                return inf
            raise
        total += chooser.leaves
    return total / probes

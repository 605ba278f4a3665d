"""A machine on which plain and drafted runs race: slow at times, and behind the program's back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

ASKING = 1e-6
"""Seconds that the program needs to ask for a round, and a tenth of it to read the clock."""

WARMING = {"plain": 3.0, "drafted": 8.0}
"""How much slower the first run of each is."""

Rounds = Sequence[tuple[int, float]]
"""(tokens, seconds) of a run's rounds, the first of which reads the prompt."""


@dataclass(frozen=True)
class Track:
    """What is run, and how slow the machine is in which turn.

    Args:
        rounds: of a plain and of a drafted run.
        slowness: for each turn, by how much both runs take longer.
        hindered: for each turn, by how much the drafted run takes longer besides.
    """

    rounds: dict[str, Rounds]
    slowness: Sequence[float]
    hindered: Sequence[float]

    @classmethod
    def random(cls, random: Random, turns: int) -> Track:
        """Paces, slowness and disturbances are drawn."""
        steps = random.randint(11, 16)
        plain = [(1, random.uniform(0.4, 0.6))]
        plain += [(1, random.uniform(0.03, 0.05)) for _ in range(steps)]
        drafted = [(random.randint(1, 3), random.uniform(0.7, 0.9))]
        while sum(tokens for tokens, _ in drafted[1:]) <= steps:
            drafted.append((random.randint(1, 4), random.uniform(0.05, 0.08)))
        return cls(
            {"plain": plain, "drafted": drafted},
            [2.0 ** random.uniform(-2.0, 3.0) for _ in range(turns)],
            [random.uniform(0.6, 1.6) for _ in range(turns)],
        )

    @property
    def turns(self) -> int:
        return len(self.slowness)

    def times(self, name: str, pace: Callable[[Rounds], float]) -> list[float]:
        """For each turn, what ``pace`` makes of a run's rounds."""
        undisturbed = pace(self.rounds[name])
        return [
            undisturbed * slow * (hindered if name == "drafted" else 1.0)
            for slow, hindered in zip(self.slowness, self.hindered, strict=True)
        ]

    def speedups(self, pace: Callable[[Rounds], float]) -> list[float]:
        """For each turn, plain over drafted."""
        plain, drafted = self.times("plain", pace), self.times("drafted", pace)
        return [mine / theirs for mine, theirs in zip(plain, drafted, strict=True)]

    def speedup(self, pace: Callable[[Rounds], float]) -> float:
        """The median over turns."""
        return median(self.speedups(pace))


class FakeRace:
    """Runs a track on a device that works behind the program's back, and notes what was done."""

    def __init__(self, track: Track) -> None:
        self.track = track
        self.started: list[FakeRun] = []
        self.order: list[FakeRun] = []
        """The runs in the order of their first rounds."""
        self.readings = 0
        self.waits = 0
        self.read_behind: Counter[str] = Counter()
        """How often the clock was read while a "first" or a "later" round was still going on."""
        self._latest = ""
        self._now = 100.0
        self._busy_until = 0.0

    def plain(self) -> FakeRun:
        """Start a plain run."""
        return FakeRun(self, "plain")

    def drafted(self) -> FakeRun:
        """Start a drafted run."""
        return FakeRun(self, "drafted")

    def clock(self) -> float:
        """The time in seconds."""
        self.readings += 1
        if self._busy_until > self._now:
            self.read_behind[self._latest] += 1
        now = self._now
        self._now += ASKING / 10
        return now

    def synchronize(self) -> None:
        """Wait for the work to be finished."""
        self.waits += 1
        self._now = max(self._now, self._busy_until)

    def work(self, run: FakeRun) -> int:
        """Ask for a run's next round and return at once."""
        if run.asked == 0:
            run.slower = self._slowness_of_next(run.name)
            self.order.append(run)
        tokens, seconds = run.rounds[run.asked]
        self._latest = "later" if run.asked else "first"
        self._now += ASKING
        self._busy_until = max(self._busy_until, self._now) + seconds * run.slower
        return tokens

    def _slowness_of_next(self, name: str) -> float:
        """By how many runs there were: two make a turn, whichever of them comes first."""
        turn = min(len(self.order) // 2, self.track.turns) - 1
        slower = 1.0
        if turn >= 0:
            slower = self.track.slowness[turn]
            slower *= self.track.hindered[turn] if name == "drafted" else 1.0
        if all(run.name != name for run in self.order):
            slower *= WARMING[name]
        return slower


class FakeRun:
    """The iterator over a run's rounds."""

    def __init__(self, race: FakeRace, name: str) -> None:
        self.name = name
        self.rounds = race.track.rounds[name]
        self.asked = 0
        self.slower = 1.0
        self._race = race
        race.started.append(self)

    def __iter__(self) -> FakeRun:
        return self

    def __next__(self) -> int:
        if self.asked == len(self.rounds):
            raise StopIteration
        tokens = self._race.work(self)
        self.asked += 1
        return tokens

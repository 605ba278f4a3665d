"""The sweep's rows, gathered: all prompts of one kind, decoded with one drafter and draft length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from specdec_lab.adaptive import Costs
from specdec_lab.bench.prediction import Prediction, predict
from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.sweep import COSTS, costs_of
from specdec_lab.benchmark import Ratio, paired_ratio

PLAIN_LAW = ("draft model", "n-gram")
"""The drafters whose speed is held beside theory."""


@dataclass(frozen=True)
class Group:
    """Runs that differ in their prompt only.

    Args:
        temperature, kind, drafter, gamma: what they have in common.
        runs: for each prompt the plain row and the drafter's row, of the same turns.
        costs: of the drafter; None if it was not timed.
    """

    temperature: float
    kind: str
    drafter: str
    gamma: int
    runs: tuple[tuple[Row, Row], ...]
    costs: Costs | None

    @classmethod
    def pooled(cls, groups: Sequence[Group]) -> Group:
        """Groups of several kinds as one."""
        first = groups[0]
        runs = tuple(run for group in groups for run in group.runs)
        return cls(first.temperature, "all", first.drafter, first.gamma, runs, first.costs)

    @cached_property
    def speedup(self) -> Ratio:
        """Over plain decoding: the median over prompts."""
        return paired_ratio(
            [plain["seconds_per_token"] for plain, _ in self.runs],
            [run["seconds_per_token"] for _, run in self.runs],
        )

    @property
    def predictions(self) -> list[Prediction]:
        """For the prompts on which a drafted token was judged."""
        if self.costs is None:
            return []
        found = [predict(run, plain, self.costs) for plain, run in self.runs]
        return [one for one in found if one is not None]

    @property
    def alphas(self) -> list[float]:
        return [run["alpha"] for _, run in self.runs if run["alpha"] is not None]

    @property
    def rest_shares(self) -> list[float]:
        """The share of a run's time that is spent outside both forwards."""
        parts = ("draft_seconds", "verify_seconds", "rest_seconds")
        return [run["rest_seconds"] / sum(run[part] for part in parts) for _, run in self.runs]


def groups_of(result: Result) -> list[Group]:
    """All groups of a sweep, in its order."""
    timed = next((row for row in result.rows if row["key"] == COSTS), None)
    gathered: dict[tuple[float, str, str, int], list[tuple[Row, Row]]] = {}
    for row in result.rows:
        for run in row.get("runs", ()):
            key = (row["temperature"], row["prompt_kind"], run["drafter"], run["gamma"])
            gathered.setdefault(key, []).append((row["plain"], run))
    return [
        Group(*key, tuple(runs), costs_of(key[2], timed) if timed else None)
        for key, runs in gathered.items()
    ]


def best_length(result: Result, temperature: float, drafter: str) -> int | None:
    """The draft length with the highest median speedup over all prompts; None for no such drafter."""
    mine = [g for g in groups_of(result) if (g.temperature, g.drafter) == (temperature, drafter)]
    pooled = [
        Group.pooled([g for g in mine if g.gamma == gamma])
        for gamma in dict.fromkeys(g.gamma for g in mine)
    ]
    return max(pooled, key=lambda g: g.speedup.value).gamma if pooled else None


def shortest_way(found: Sequence[dict[str, float]], start: str) -> str | None:
    """Of the contenders whose name starts so, the one with the lowest median time; None for none."""
    names = [name for name in found[0] if name.startswith(start)]
    return min(names, key=lambda name: median(s[name] for s in found), default=None)

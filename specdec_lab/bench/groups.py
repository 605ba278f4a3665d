"""Rows gathered by what they have in common: a kind of prompt, a drafter, a draft length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from specdec_lab.adaptive import Costs
from specdec_lab.bench.prediction import Prediction, predict
from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.sweep import COSTS, costs_of
from specdec_lab.benchmark import Ratio, paired_ratio
from specdec_lab.drafters import ModelDrafter, NGramDrafter

BESIDE_THEORY = {"draft model": ModelDrafter.default_gamma, "n-gram": NGramDrafter.default_gamma}
"""The drafters whose speed is held beside theory, and at which draft length: fixed beforehand."""


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
    def steps(self) -> list[float]:
        """Time per token in plain steps, for each prompt."""
        return [run["seconds_per_token"] / plain["seconds_per_token"] for plain, run in self.runs]

    @property
    def predictions(self) -> list[Prediction]:
        """For the prompts on which a drafted token was judged."""
        if self.costs is None:
            return []
        found = [predict(run, plain, self.costs) for plain, run in self.runs]
        return [one for one in found if one is not None]

    @property
    def miss(self) -> float:
        """Measured over predicted: the median over the prompts that have a prediction."""
        return median(one.miss for one in self.predictions)

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
    known = {"n-gram", *timed["c"]} if timed else set()
    return [
        Group(*key, tuple(runs), costs_of(key[2], timed) if timed and key[2] in known else None)
        for key, runs in gathered.items()
    ]


def beside_theory(result: Result, temperature: float, drafter: str) -> list[Group]:
    """The kinds of a sweep that have predictions for a drafter, at its length of ``BESIDE_THEORY``."""
    wanted = (temperature, drafter, BESIDE_THEORY[drafter])
    groups = [one for one in groups_of(result) if (one.temperature, one.drafter, one.gamma) == wanted]
    return [group for group in groups if group.predictions]


def count_near(groups: Sequence[Group]) -> int:
    """How many were measured within 10 % of what was predicted."""
    return sum(abs(group.miss - 1.0) <= 0.1 for group in groups)


def by_length(groups: Sequence[Group]) -> dict[int, Group]:
    """Groups of one drafter by draft length, kinds put together."""
    lengths = dict.fromkeys(group.gamma for group in groups)
    return {n: Group.pooled([group for group in groups if group.gamma == n]) for n in lengths}


def each_length(groups: Sequence[Group]) -> list[dict[str, float]]:
    """For each prompt, draft length -> time per token in plain steps; groups of the same prompts."""
    return [{str(group.gamma): group.steps[i] for group in groups} for i in range(len(groups[0].runs))]


def over_plain(steps: Sequence[float]) -> Ratio:
    """The speedup that times per token, in plain steps, come to."""
    return paired_ratio([1.0] * len(steps), steps)


def temperatures_and_kinds(result: Result) -> list[tuple[float, str]]:
    """What the prompts of a result are sorted by; the lowest temperature first."""
    found = dict.fromkeys((r["temperature"], r["prompt_kind"]) for r in result.rows if "prompt" in r)
    return sorted(found, key=lambda pair: pair[0])


def in_steps_of(result: Result, temperature: float, kind: str, plain: str) -> list[dict[str, float]]:
    """For each prompt of a kind, contender -> its time per token over that of ``plain``."""
    rows = [row["seconds_per_token"] for row in result.of(temperature=temperature, prompt_kind=kind)]
    return [
        {name: seconds / row[plain] for name, seconds in row.items()} for row in rows if plain in row
    ]


def all_in_steps_of(result: Result, plain: str) -> list[dict[str, float]]:
    """The same for all prompts, kind by kind."""
    labels = temperatures_and_kinds(result)
    return [steps for label in labels for steps in in_steps_of(result, *label, plain)]


def chosen_apart(found: Sequence[Mapping[str, float]], start: str) -> list[float]:
    """Each prompt's time by the contender that does best on the *other* prompts.

    Whoever chooses a draft length by the times that it is then judged by, flatters it. A single prompt
    has no others: it is judged by its own best, and whoever shows that has to say so.

    Args:
        found: for each prompt, contender -> time.
        start: only contenders whose name starts so, and that every prompt has.

    Raises:
        ValueError: if there is none.
    """
    names = _shared(found, start)
    if not names:
        raise ValueError(f"start: got {start!r}, expected the start of one of {', '.join(found[0])}")
    times = []
    for place, here in enumerate(found):
        others = [*found[:place], *found[place + 1 :]] or [here]
        times.append(here[_lowest_median(names, others)])
    return times


def quickest(found: Sequence[Mapping[str, float]], start: str) -> str | None:
    """Of the contenders whose name starts so, the one with the lowest median time; None for none."""
    names = _shared(found, start)
    return _lowest_median(names, found) if names else None


def _lowest_median(names: Sequence[str], found: Sequence[Mapping[str, float]]) -> str:
    return min(names, key=lambda name: median(one[name] for one in found))


def _shared(found: Sequence[Mapping[str, float]], start: str) -> list[str]:
    return [name for name in found[0] if name.startswith(start) and all(name in one for one in found)]

"""The audit of a black box: samples against a law, where the randomness cannot be driven.

Two tests at once. A G-test (a likelihood-ratio test of the counts) sees a bias in what is possible; the
leak check sees a single hit on what is impossible. Neither proves exactness: they say how large a bias
would have been found.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb, sqrt
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import torch

from specdec_lab.sheet import Sheet, Shown, Toned

Outcome = TypeVar("Outcome", bound=Hashable)
SamplesVerdict = Literal["no bias found", "not exact", "leak"]

FALSE_ALARM = 1e-6
POWER = 0.99
MOST_ENTRIES = 2_000_000
"""Tables of counts times cells up to which the test's law is enumerated instead of approximated."""
LEAST_EXPECTED = ((1_000, 10.0), (50_000, 20.0), (float("inf"), 50.0))
"""(cells up to, hits expected): cells expected to be hit more rarely are pooled. G exceeds chi-square a
little in each cell, the less so the more hits are expected, and many cells add it up; so computed from
the Poisson law, the chance of a false alarm at 1e-6 stays within a factor of two."""
SHOWN = 6


@dataclass(frozen=True)
class SampleAudit(Shown, Generic[Outcome]):
    """What samples say about a law.

    Args:
        samples: how many there are.
        counts: outcome -> hits.
        law: outcome -> expected probability.
        test: "exact multinomial" (the law of G enumerated) or "G-test" (chi-square approximation).
        g: the statistic, 2 * sum of O ln(O/E) over the cells.
        degrees: cells less one, after pooling.
        p_value: the chance of a G at least this large if the law holds.
        pooled: how many rare outcomes were counted as one, and their probability together.
        leaks: outcomes of probability 0 that came all the same, with their hits.
        false_alarm: the chance to condemn an exact sampler.
        detectable: any bias with at least this total variation from the law, the pool counted as one
            outcome, is found with 99 % power (chi-square approximation).
    """

    samples: int
    counts: dict[Outcome, int]
    law: dict[Outcome, float]
    test: Literal["exact multinomial", "G-test"]
    g: float
    degrees: int
    p_value: float
    pooled: tuple[int, float]
    leaks: dict[Outcome, int]
    false_alarm: float
    detectable: float

    @property
    def verdict(self) -> SamplesVerdict:
        """ "leak", "not exact" or "no bias found"; samples cannot say "exact"."""
        if self.leaks:
            return "leak"
        return "not exact" if self.p_value < self.false_alarm else "no bias found"

    def to_json(self) -> dict[str, Any]:
        """The verdict and the numbers behind it, for machines."""
        return {
            "verdict": self.verdict,
            "samples": self.samples,
            "test": self.test,
            "g": self.g,
            "degrees": self.degrees,
            "p_value": self.p_value,
            "pooled_outcomes": self.pooled[0],
            "pooled_probability": self.pooled[1],
            "leaks": [[_name(outcome), hits] for outcome, hits in self.leaks.items()],
            "false_alarm": self.false_alarm,
            "detectable_total_variation": self.detectable,
            "power": POWER,
        }

    def sheet(self) -> Sheet:
        """The outcomes that differ the most from what is expected."""
        expected = {outcome: self.samples * mass for outcome, mass in self.law.items()}
        pulls = {
            outcome: (self.counts.get(outcome, 0) - mean) / sqrt(mean)
            for outcome, mean in expected.items()
            if mean > 0.0
        }
        worst = sorted(pulls, key=lambda outcome: -abs(pulls[outcome]))[:SHOWN]
        rows = [
            (
                _name(outcome),
                f"{self.counts.get(outcome, 0):,}",
                f"{expected[outcome]:,.1f}",
                f"{pulls[outcome]:+.1f}",
            )
            for outcome in worst
        ]
        return Sheet(
            title=f"{self.samples:,} samples against the law",
            columns=("outcome", "hits", "expected", "pull"),
            rows=tuple(rows),
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Iterable[str | Toned]:
        yield Toned(f"{self.verdict}: {self._reason()}", "good" if self.found_nothing else "bad")
        yield "pull is (hits - expected) / sqrt(expected); about 3 at most is usual"
        leak = 1.0 - (1.0 - POWER) ** (1.0 / self.samples)
        about = "at most" if self.test == "exact multinomial" else "about"
        yield (
            f"An exact sampler is condemned with a probability of {about} {self.false_alarm:g}. "
            f"Found with {POWER:.0%} power: any bias of total variation {self.detectable:.3f} or more, "
            f"and an impossible outcome that comes with a probability of {leak:.1e} or more."
        )
        if self.pooled[0]:
            yield Toned(
                f"Not seen: a bias among the {self.pooled[0]:,} rarest outcomes, counted as one "
                f"(probability {self.pooled[1]:.2g} together).",
                "unsure",
            )

    @property
    def found_nothing(self) -> bool:
        """Whether nothing was found."""
        return self.verdict == "no bias found"

    def _reason(self) -> str:
        if self.leaks:
            outcome, hits = max(self.leaks.items(), key=lambda item: item[1])
            return f"{_name(outcome)} is impossible under the law and came {hits} times"
        return f"{self.test}, G = {self.g:.1f} over {self.degrees + 1} cells, p = {self.p_value:.2g}"


def audit_samples(
    samples: Iterable[Outcome] | Mapping[Outcome, int],
    expected_law: Mapping[Outcome, float],
    *,
    false_alarm: float = FALSE_ALARM,
) -> SampleAudit[Outcome]:
    """Test samples against the law they should follow.

    Args:
        samples: independent outcomes (such as tuples of token ids), or outcome -> hits.
        expected_law: outcome -> probability; what is not there has probability 0.
        false_alarm: the chance to condemn a sampler that follows the law. The leak check adds nothing
            to it: an outcome of probability 0 never comes.

    Raises:
        ValueError: for no samples, or an expected law that is none.
    """
    counts = _counted(samples)
    total = sum(counts.values())
    _require_law(expected_law)
    if not 0.0 < false_alarm < 1.0:
        raise ValueError(f"false_alarm: got {false_alarm}, expected a probability between 0 and 1")
    law = {outcome: mass for outcome, mass in expected_law.items() if mass > 0.0}
    leaks = {outcome: hits for outcome, hits in counts.items() if hits and outcome not in law}
    observed = np.array([counts.get(outcome, 0) for outcome in law], dtype=float)
    expected = np.array(list(law.values()), dtype=float)
    expected = expected / expected.sum()
    exact = len(law) * comb(total + len(law) - 1, len(law) - 1) <= MOST_ENTRIES
    pooled = (0, 0.0)
    if not exact:
        observed, expected, pooled = _pooled(observed, expected, total)
    g, degrees = _g(observed, total * expected), len(expected) - 1
    if leaks:  # then the counts are not a table of the law at all
        p_value = 0.0
    elif exact:
        p_value = _exact_p_value(g, total, expected)
    else:
        p_value = _chi_square_tail(g / _williams(total, expected), degrees)
    return SampleAudit(
        samples=total,
        counts=counts,
        law=dict(expected_law),
        test="exact multinomial" if exact else "G-test",
        g=g,
        degrees=degrees,
        p_value=p_value,
        pooled=pooled,
        leaks=leaks,
        false_alarm=false_alarm,
        detectable=detectable_bias(total, degrees, false_alarm),
    )


def detectable_bias(samples: int, degrees: int, false_alarm: float, power: float = POWER) -> float:
    """The total variation from which on every bias is found with the given power; 1 at most.

    Under a biased law the statistic is about non-central chi-square, with a non-centrality of 2 n times
    the Kullback-Leibler divergence, which is at least 4 n TV^2 (Pinsker's inequality).
    """
    if degrees == 0:
        return 1.0
    critical = _solve(lambda x: _chi_square_tail(x, degrees) - false_alarm)
    centre = _solve(lambda shift: power - _shifted_tail(critical, degrees, shift))
    return min(1.0, sqrt(centre / (4.0 * samples)))


def _require_law(law: Mapping[Outcome, float]) -> None:
    total, smallest = sum(law.values()), min(law.values(), default=0.0)
    if not (abs(total - 1.0) <= 1e-4 and smallest >= 0.0):
        raise ValueError(
            f"expected_law: got probabilities that sum to {total:.6g} with smallest {smallest:.6g}, "
            "expected a sum of 1 and nothing negative"
        )


def _g(observed: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """2 * sum of O ln(O/E), in which an O of 0 adds nothing."""
    hit = observed > 0
    return float(2.0 * np.sum(observed[hit] * np.log(observed[hit] / expected[hit])))


def _pooled(
    observed: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], total: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], tuple[int, float]]:
    """The rarest cells in one, as many as it takes for every cell to be expected often enough."""
    least = next(hits for cells, hits in LEAST_EXPECTED if len(expected) <= cells)
    order = np.argsort(expected)
    running = np.cumsum(expected[order])
    rare = int(np.sum(expected * total < least))
    while 0 < rare < len(order) and running[rare - 1] * total < least:
        rare += 1
    if rare <= 1:
        return observed, expected, (0, 0.0)
    first, rest = order[:rare], order[rare:]
    return (
        np.append(observed[rest], observed[first].sum()),
        np.append(expected[rest], expected[first].sum()),
        (rare, float(running[rare - 1])),
    )


def _counted(samples: Iterable[Outcome] | Mapping[Outcome, int]) -> dict[Outcome, int]:
    counts = Counter(samples)
    try:
        whole = {outcome: operator.index(hits) for outcome, hits in counts.items()}
    except TypeError:
        whole = {}
    if not whole or min(whole.values()) < 0 or not sum(whole.values()):
        what = "something else" if counts else "none"
        raise ValueError(f"samples: got {what}, expected outcomes, or whole numbers of hits for each")
    return whole


def _exact_p_value(g: float, total: int, expected: np.ndarray[Any, Any]) -> float:
    """The chance of a G at least this large, over every table of counts that there is."""
    cells = len(expected)
    if cells == 1:
        return 1.0
    bars = np.array(list(combinations(range(total + cells - 1), cells - 1)))
    edges = np.hstack([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), total + cells - 1)])
    tables = torch.from_numpy(np.diff(edges, axis=1) - 1).double()
    law = torch.from_numpy(expected)
    log_mass = (
        torch.lgamma(torch.tensor(total + 1.0, dtype=torch.float64))
        - torch.lgamma(tables + 1.0).sum(dim=1)
        + (tables * law.log()).sum(dim=1)
    )
    statistics = 2.0 * (torch.xlogy(tables, tables / (total * law))).sum(dim=1)
    # A hair's breadth, so that rounding does not leave the observed table itself out.
    return min(1.0, float(log_mass.exp()[statistics >= g - 1e-9 * max(1.0, g)].sum()))


def _williams(total: int, expected: np.ndarray[Any, Any]) -> float:
    """Williams' correction, which brings G closer to chi-square. Source: Williams 1976, Biometrika."""
    if len(expected) == 1:
        return 1.0
    return 1.0 + (float(np.sum(1.0 / expected)) - 1.0) / (6.0 * total * (len(expected) - 1))


def _chi_square_tail(x: float, degrees: int) -> float:
    """The chance that chi-square with so many degrees of freedom exceeds x."""
    if degrees == 0:
        return 1.0
    half = torch.tensor([degrees / 2.0, max(x, 0.0) / 2.0], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


def _shifted_tail(x: float, degrees: int, shift: float) -> float:
    """The same for non-central chi-square: a Poisson mixture of central ones."""
    mean = shift / 2.0
    terms = torch.arange(int(mean + 12.0 * sqrt(mean + 1.0)) + 20, dtype=torch.float64)
    weights = (torch.xlogy(terms, torch.tensor(mean)) - mean - torch.lgamma(terms + 1.0)).exp()
    half = torch.tensor(x / 2.0, dtype=torch.float64)
    return float((weights * torch.special.gammaincc(degrees / 2.0 + terms, half)).sum())


def _solve(falling: Callable[[float], float]) -> float:
    """Where a falling function crosses 0, by bisection from 0 upwards."""
    low, high = 0.0, 1.0
    while falling(high) > 0.0:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if falling(middle) > 0.0 else (low, middle)
    return high


def _name(outcome: Hashable) -> str:
    return " ".join(map(str, outcome)) if isinstance(outcome, tuple) else str(outcome)

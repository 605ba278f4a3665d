"""Right answers to the exercises of ``04_speed_experiments``, in the form that they are asked for.

The course falls back on them where a learner's own does not pass its check yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

import numpy as np

Tokens = Callable[[float, int], float]
Speedup = Callable[[float, int, float, Mapping[int, float]], float]
Run = Callable[[], Iterator[int]]


def tokens_per_round(alpha: float, gamma: int) -> float:
    """Expected tokens of a round. Takes any alpha: whoever searches may step a little over 1."""
    return sum(alpha**accepted for accepted in range(gamma + 1))


def expected_speedup(
    alpha: float,
    gamma: int,
    c: float,
    v: Mapping[int, float],
    tokens_per_round: Tokens = tokens_per_round,
) -> float:
    """A round's tokens over its time in one-token passes."""
    return tokens_per_round(alpha, gamma) / (gamma * c + v[gamma + 1])


def best_gamma(
    alpha: float, c: float, v: Mapping[int, float], expected_speedup: Speedup = expected_speedup
) -> int:
    """The draft length that promises most, of those whose pass was timed."""
    return max((n - 1 for n in sorted(v)), key=lambda gamma: expected_speedup(alpha, gamma, c, v))


def least_alpha(
    gamma: int, c: float, v: Mapping[int, float], expected_speedup: Speedup = expected_speedup
) -> float | None:
    """The acceptance from which drafting pays, by bisection; None where it never does."""
    if expected_speedup(1.0, gamma, c, v) < 1.0:
        return None
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if expected_speedup(middle, gamma, c, v) < 1.0:
            low = middle
        else:
            high = middle
    return high


def paired_speedup(
    plain: Run,
    drafted: Run,
    turns: int,
    clock: Callable[[], float],
    synchronize: Callable[[], object],
) -> float:
    """The median over turns of plain pace over drafted pace."""

    def pace(start: Run) -> float:
        rounds = start()
        next(rounds)
        synchronize()
        started = clock()
        tokens = sum(rounds)
        synchronize()
        return (clock() - started) / tokens

    pace(plain), pace(drafted)
    return median(pace(plain) / pace(drafted) for _ in range(turns))


def latency(rounds: Sequence[tuple[int, float]]) -> dict[str, float]:
    """What somebody who reads along has to wait."""
    waits = [seconds for _, seconds in rounds[1:]]
    return {
        "first": rounds[0][1],
        "p50": float(np.percentile(waits, 50)),
        "p95": float(np.percentile(waits, 95)),
        "per_token": sum(waits) / sum(tokens for tokens, _ in rounds[1:]),
    }

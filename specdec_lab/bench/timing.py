"""Compare times that a busy machine disturbs: take turns, then look at ratios within each turn.

A shared computer is faster in one minute than in the next. Contenders that take turns meet the same
disturbances, and a ratio of two times from one turn hardly feels them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np

from specdec_lab.benchmark import nothing

Seconds = Mapping[str, Sequence[float]]
"""Contender -> its seconds, one for each turn."""


@dataclass(frozen=True)
class Ratio:
    """A median of ratios, with a bootstrap interval (95 %)."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def take_turns(
    contenders: Mapping[str, Callable[[], object]],
    turns: int,
    warmup: int = 1,
    clock: Callable[[], float] = perf_counter,
    synchronize: Callable[[], object] = nothing,
    on_turn: Callable[[], object] = nothing,
) -> dict[str, list[float]]:
    """Time each contender once a turn; every other turn goes through them backwards.

    Args:
        contenders: name -> what to time; it makes its own fresh state.
        turns: how often each is timed.
        warmup: turns before, untimed: the first ones pay for what happens only once.
        clock: reads the time in seconds.
        synchronize: waits until the device has finished.
        on_turn: called after each turn, to show progress.

    Raises:
        ValueError: for fewer than one turn.
    """
    if turns < 1:
        raise ValueError(f"turns: got {turns}, expected 1 or more")
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(-warmup, turns):
        names = list(contenders)
        for name in names if turn % 2 == 0 else reversed(names):
            synchronize()
            started = clock()
            contenders[name]()
            synchronize()
            if turn >= 0:
                seconds[name].append(clock() - started)
        on_turn()
    return seconds


def paired_ratio(
    slower: Sequence[float], faster: Sequence[float], resamples: int = 2_000, seed: int = 0
) -> Ratio:
    """How many times as fast: the median of ``slower[i] / faster[i]`` over turns or prompts.

    Args:
        slower: seconds of the one it is compared with.
        faster: seconds of the one that is praised, of the same turns.
        resamples: of the bootstrap (Efron 1979), which draws pairs with replacement.
        seed: of the bootstrap.

    Raises:
        ValueError: for none, or another number of each.
    """
    if not slower or len(slower) != len(faster):
        raise ValueError(
            f"slower, faster: got {len(slower)} and {len(faster)} times, expected as many, at least one"
        )
    ratios = np.asarray(slower, dtype=float) / np.asarray(faster, dtype=float)
    draws = np.random.default_rng(seed).integers(len(ratios), size=(resamples, len(ratios)))
    low, high = np.quantile(np.median(ratios[draws], axis=1), (0.025, 0.975))
    return Ratio(median(ratios.tolist()), float(low), float(high))

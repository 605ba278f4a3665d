"""The exact law of a small program's outcomes, and where two laws differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from specdec_lab.enumeration import EnumeratingChooser, Enumeration

CLOSE = 1e-6
"""Probability that two laws may differ by for rounding."""
MOST_PATHS = 3000
Outcome = TypeVar("Outcome")


def law_of(run: Callable[[EnumeratingChooser], Outcome]) -> dict[Outcome, float]:
    """Outcome -> probability, over every path of the chooser's answers."""
    law: dict[Outcome, float] = {}
    for visit in Enumeration(run, max_paths=MOST_PATHS):  # type: ignore[arg-type]
        law[visit.outcome] = law.get(visit.outcome, 0.0) + visit.probability
    return law


def apart(one: dict[Outcome, float], other: dict[Outcome, float]) -> dict[Outcome, float]:
    """Where two laws differ, the most first."""
    gaps = {key: one.get(key, 0.0) - other.get(key, 0.0) for key in one | other}
    far = {key: gap for key, gap in gaps.items() if abs(gap) > CLOSE}
    return dict(sorted(far.items(), key=lambda item: -abs(item[1])))

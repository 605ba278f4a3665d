"""What the speedup explorer shows, as data: a setting and what theory says of it, and measured points.

The formulas are those of ``specdec_lab.theory``; the measurements are those of ``bench.lesson.sweep``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

from specdec_lab.provenance import Kind
from specdec_lab.theory import best_gamma, expected_speedup, expected_tokens_per_round, least_alpha

LONGEST = 16
"""The longest draft that is shown."""
_RUN_KEYS = ("drafter", "gamma", "prompts", "alpha", "c", "speedup")
_EXPECTED = "expected what notebook 04 keeps as results/sweep.json"


@dataclass(frozen=True)
class Setting:
    """One place in the space that the explorer walks through, and what theory says of it.

    Args:
        alpha: expected acceptance at one position, 0 to 1.
        c: the cost of a draft step in target steps, 0 to 1.
        gamma: the draft length, 0 to ``LONGEST``; 0 is plain decoding.
        v_slope: what each further token adds to a target forward, 0 to 1: v is taken to be a line.

    Raises:
        ValueError: for a value outside its range, by name.
    """

    alpha: float
    c: float
    gamma: int
    v_slope: float

    def __post_init__(self) -> None:
        for name in ("alpha", "c", "v_slope"):
            value = getattr(self, name)
            if not _is_number(value) or not 0.0 <= value <= 1.0:
                raise ValueError(f"{name}: got {value!r}, expected a number from 0 to 1")
        whole = isinstance(self.gamma, int) and not isinstance(self.gamma, bool)
        if not whole or not 0 <= self.gamma <= LONGEST:
            raise ValueError(f"gamma: got {self.gamma!r}, expected a whole number from 0 to {LONGEST}")

    def v(self, n: int) -> float:
        """The cost of a target forward over ``n`` tokens, in one-token forwards: a line, assumed."""
        return 1.0 + self.v_slope * (n - 1)

    def speedup_at(self, gamma: int) -> float:
        """The expected speedup of a draft length."""
        return expected_speedup(self.alpha, gamma, self.c, self.v(gamma + 1))

    @cached_property
    def speedups(self) -> list[float]:
        """The expected speedup of each draft length from 0 to ``LONGEST``."""
        return [self.speedup_at(gamma) for gamma in range(LONGEST + 1)]

    @property
    def speedup(self) -> float:
        """The expected speedup of the chosen draft length."""
        return self.speedups[self.gamma]

    @cached_property
    def best(self) -> int:
        """The draft length with the highest expected speedup; 0 is "do not draft"."""
        return best_gamma(self.alpha, self.c, LONGEST, self.v)

    @property
    def tokens(self) -> float:
        """Expected tokens of a round, the bonus or replacement included."""
        return expected_tokens_per_round(self.alpha, self.gamma)

    @property
    def verifying(self) -> float:
        """v of the forward that verifies the chosen draft."""
        return self.v(self.gamma + 1)

    @property
    def cost(self) -> float:
        """The cost of a round in target steps."""
        return self.gamma * self.c + self.verifying

    @cached_property
    def pays_from(self) -> float | None:
        """The least alpha at which the chosen draft length is no slower than plain decoding."""
        return least_alpha(self.gamma, self.c, self.verifying)


@dataclass(frozen=True)
class SweptDrafter:
    """What was measured of one drafter.

    Args:
        name: of the drafter.
        prompts: on so many.
        alpha: the mean over its draft lengths; None if nothing was judged.
        c: None if its steps cannot be timed apart.
        points: (gamma, speedup), in order.
    """

    name: str
    prompts: int
    alpha: float | None
    c: float | None
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Sweep:
    """A measured sweep.

    Args:
        drafters: in the sweep's order.
        v: n -> the cost of a target forward over n tokens.
        kind: of its numbers.
        origin: the model, the hardware and the day.
    """

    drafters: tuple[SweptDrafter, ...]
    v: Mapping[int, float]
    kind: Kind
    origin: str

    @property
    def v_slope(self) -> float:
        """Of the line through v(1) = 1 that is nearest to the measured v, by least squares.

        Longer forwards than are shown are left out: they would tilt the line and be seen nowhere.
        """
        steps = [(n - 1, value - 1.0) for n, value in self._known.items()]
        squares = sum(step * step for step, _ in steps)
        return sum(step * rise for step, rise in steps) / squares if squares else 0.0

    def v_misses(self, slope: float) -> tuple[int, float]:
        """Where the line is farthest from a measured v: n, and measured minus line."""
        apart = {n: value - (1.0 + slope * (n - 1)) for n, value in self._known.items()}
        return max(apart.items(), key=lambda one: abs(one[1]), default=(1, 0.0))

    @property
    def timed(self) -> list[SweptDrafter]:
        """The drafters that can set the explorer: those with alpha and c."""
        return [one for one in self.drafters if one.alpha is not None and one.c is not None]

    @property
    def _known(self) -> dict[int, float]:
        return {n: value for n, value in self.v.items() if 1 < n <= LONGEST + 1}


def read_sweep(measured: Mapping[str, Any] | str | Path | None) -> Sweep | None:
    """A sweep from what ``bench.lesson.sweep`` made, or from the file in which a notebook kept it.

    Args:
        measured: the result with its provenance, or a path to it as JSON; nothing or empty for none.

    Raises:
        ValueError: if it is none, saying what is wrong with it.
    """
    if measured is None:
        return None
    result = _load(Path(measured)) if isinstance(measured, str | Path) else measured
    if not isinstance(result, Mapping):
        raise ValueError(f"measured: got {_short(result)}, {_EXPECTED}")
    if not result:
        return None
    missing = [key for key in ("costs", "runs", "provenance") if key not in result]
    if missing:
        raise ValueError(f"measured: got a dict without {' and '.join(missing)}, {_EXPECTED}")
    return Sweep(
        drafters=_drafters(result["runs"]),
        v=_verifying(result["costs"]),
        **_origin(result["provenance"]),
    )


def _load(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"measured: cannot read {file} ({error.strerror}), {_EXPECTED}") from None
    except ValueError:
        raise ValueError(f"measured: {file} is not JSON, {_EXPECTED}") from None


def _drafters(runs: Any) -> tuple[SweptDrafter, ...]:
    if not isinstance(runs, Sequence) or isinstance(runs, str):
        raise ValueError(f"measured: got runs = {_short(runs)}, expected a list of runs")
    for run in runs:
        _require_run(run)
    names = dict.fromkeys(run["drafter"] for run in runs)
    return tuple(_drafter(name, [run for run in runs if run["drafter"] == name]) for name in names)


def _drafter(name: str, runs: Sequence[Mapping[str, Any]]) -> SweptDrafter:
    alphas = [run["alpha"] for run in runs if run["alpha"] is not None]
    points = sorted((run["gamma"], run["speedup"]) for run in runs)
    return SweptDrafter(
        name,
        prompts=runs[0]["prompts"],
        alpha=mean(alphas) if alphas else None,
        c=runs[0]["c"],
        points=tuple((gamma, speedup) for gamma, speedup in points if gamma <= LONGEST),
    )


def _require_run(run: Any) -> None:
    if not isinstance(run, Mapping) or any(key not in run for key in _RUN_KEYS):
        raise ValueError(
            f"measured: got the run {_short(run)}, expected one with {', '.join(_RUN_KEYS)}"
        )
    right = {
        "drafter": isinstance(run["drafter"], str),
        "gamma": isinstance(run["gamma"], int) and run["gamma"] >= 0,
        "prompts": isinstance(run["prompts"], int),
        "alpha": run["alpha"] is None or (_is_number(run["alpha"]) and 0.0 <= run["alpha"] <= 1.0),
        "c": run["c"] is None or (_is_number(run["c"]) and run["c"] >= 0.0),
        "speedup": _is_number(run["speedup"]) and run["speedup"] > 0.0,
    }
    wrong = [f"{key} = {_short(run[key])}" for key, fits in right.items() if not fits]
    if wrong:
        raise ValueError(f"measured: got a run with {', '.join(wrong)}, {_EXPECTED}")


def _verifying(costs: Any) -> dict[int, float]:
    try:
        v = {int(n): float(value) for n, value in costs["v"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError(
            f"measured: got costs = {_short(costs)}, expected one with v, from n to a number"
        ) from None
    wrong = {
        n: value for n, value in v.items() if not (n >= 1 and math.isfinite(value) and value > 0.0)
    }
    if wrong:
        raise ValueError(f"measured: got v = {wrong}, expected n of 1 or more and numbers above 0")
    return v


def _origin(made: Any) -> dict[str, Any]:
    keys = ("kind", "target", "dtype", "hardware", "date")
    if not isinstance(made, Mapping) or any(key not in made for key in keys):
        raise ValueError(
            f"measured: got provenance = {_short(made)}, expected one with {', '.join(keys)}"
        )
    if made["kind"] not in ("measured", "simulated"):
        raise ValueError(f"measured: got kind = {_short(made['kind'])}, expected measured or simulated")
    where = f"{made['target'] or 'no model'}, {made['dtype']} on {made['hardware']}"
    return {"kind": made["kind"], "origin": f"{where}, {str(made['date'])[:10]}"}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

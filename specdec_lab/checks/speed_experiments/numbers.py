"""Checks of the numbers that are handed in: predictions, an experiment that loses, the measurement."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from specdec_lab.bench.sweep import GAMMAS
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.speed_experiments import answers
from specdec_lab.lab import BEFORE, RESULTS

AGREES = 0.03
"""How far two numbers may be apart that should be one: both were rounded."""


@check(read="What do you expect?")
def predictions(attempt: Attempt, seed: int | None) -> None:
    """A draft length of the sweep and any speedup that could be: the point is for having predicted."""
    answer = _filled(attempt, ["gamma", "speedup"])
    gamma = _whole(attempt, answer, "gamma")
    attempt.require(
        gamma in GAMMAS,
        f'"gamma": drafts of {gamma} tokens are not in the sweep. Choose {_either(GAMMAS)}.',
    )
    speedup = _number(attempt, answer, "speedup")
    attempt.require(
        0.1 <= speedup <= 10.0,
        f'"speedup": {speedup:g} times as fast? Write a number between 0.1 and 10; 1 means as fast.',
    )


def _either(values: Sequence[int]) -> str:
    """Such as "1, 2 or 4"."""
    *others, last = map(str, values)
    return f"{', '.join(others)} or {last}"


_SETTINGS = "abcde"

_REASONS = re.compile(
    r"\b(?:alpha|c|v|accept\w*|reject\w*|agree\w*|disagree\w*|match\w*|kept|keep\w*|guess\w*|draft\w*|"
    r"cost\w*|price|expensive|cheap\w*|verif\w*)\b|α",
    re.IGNORECASE,
)
"""Words for how many drafted tokens are kept, or for what drafting and verifying cost."""


@check(read="Where will it lose?")
def slower(attempt: Attempt, seed: int | None) -> None:
    """One of the settings, a speedup below 1, and a reason in terms of the theory."""
    answer = _filled(attempt, ["setting", "speedup", "because"])
    setting = answer["setting"]
    if not isinstance(setting, str) or setting.strip().lower() not in {*_SETTINGS}:
        attempt.fail('"setting": expected one of the letters "a" to "e".', yours=f"{setting!r:.40}")
    speedup = _number(attempt, answer, "speedup")
    attempt.require(speedup > 0.0, f'"speedup": {speedup:g}? Even a slow run has one above 0.')
    attempt.require(
        speedup < 1.0,
        f'"speedup": {speedup:g} would be no loss. You were asked which one is slower than plain '
        "decoding: below 1.",
    )
    reason = answer["because"]
    if not isinstance(reason, str):
        attempt.fail('"because": expected a text in quotes.', yours=f"{reason!r:.40}")
    words = reason.split()
    attempt.require(
        len(words) >= 8,
        f'"because": {len(words)} words say too little. A sentence of 8 or more.',
    )
    attempt.require(
        _REASONS.search(reason) is not None,
        '"because": which of them is to blame: alpha (too few tokens are kept), c (drafting costs too '
        "much) or v (verifying does)?",
    )


_ENTRIES = ["drafter", "gamma", "alpha", "c", "v", "predicted", "plain_ms", "drafted_ms", "speedup"]


@check(read="The numbers you defend")
def my_numbers(attempt: Attempt, seed: int | None) -> None:
    """Whether the numbers fit each other, and the measurement that was saved."""
    answer = _filled(attempt, _ENTRIES)
    drafter = answer["drafter"]
    if not isinstance(drafter, str) or not drafter.strip():
        attempt.fail('"drafter": expected its name, in quotes.', yours=f"{drafter!r:.40}")
    gamma = _whole(attempt, answer, "gamma")
    attempt.require(1 <= gamma <= 32, f'"gamma": drafts of {gamma} tokens? Expected 1 to 32.')
    numbers = {key: _number(attempt, answer, key) for key in _ENTRIES[2:]}
    _judge_ranges(attempt, numbers)
    alpha, c, v, predicted = (numbers[key] for key in ("alpha", "c", "v", "predicted"))
    tokens, cost = answers.tokens_per_round(alpha, gamma), gamma * c + v
    problem = '"predicted" does not follow from your alpha, gamma, c and v.'
    if _agree(predicted, cost / tokens):
        problem = '"predicted" is upside down; it should be the tokens of a round over its cost.'
    elif _agree(predicted, tokens):
        problem = '"predicted": those are the tokens of a round. Divide by what it costs.'
    elif _agree(predicted, tokens / (gamma * c + 1.0)):
        problem = '"predicted" leaves your v out.'
    elif _agree(predicted, tokens / (c + v)):
        problem = '"predicted" counts one drafted token; there are gamma of them.'
    attempt.require(
        _agree(predicted, tokens / cost),
        problem,
        yours=f"{predicted:.4g}",
        expected=f"{tokens / cost:.4g}, which is {tokens:.4g} tokens over ({gamma} * {c:g} + {v:g})",
    )
    _judge_measured(attempt, numbers["plain_ms"], numbers["drafted_ms"], numbers["speedup"])
    _judge_saved(attempt, drafter.strip(), gamma, numbers["speedup"])


def _judge_ranges(attempt: Attempt, numbers: Mapping[str, float]) -> None:
    alpha, c, v = numbers["alpha"], numbers["c"], numbers["v"]
    attempt.require(
        alpha <= 1.0 or alpha > 100.0,
        f'"alpha": {alpha:g} looks like percent. It is a share of the judged tokens, from 0 to 1.',
    )
    attempt.require(
        0.0 <= alpha <= 1.0, f'"alpha": got {alpha:g}; it is a share of the judged tokens, from 0 to 1.'
    )
    attempt.require(c >= 0.0, f'"c": got {c:g}; no draft takes less than no time.')
    attempt.require(
        v > 0.3,
        f'"v": got {v:g}; a pass over gamma + 1 tokens takes longer than a third of one over one. It '
        "is their ratio, not seconds.",
    )
    for key in ("predicted", "plain_ms", "drafted_ms", "speedup"):
        attempt.require(numbers[key] > 0.0, f'"{key}": got {numbers[key]:g}, expected more than 0.')


def _judge_measured(attempt: Attempt, plain: float, drafted: float, speedup: float) -> None:
    ratio = plain / drafted
    problem = '"speedup" is not "plain_ms" over "drafted_ms".'
    if _agree(speedup, 1.0 / ratio):
        problem = '"speedup" is upside down; it should be "plain_ms" over "drafted_ms".'
    elif any(_agree(speedup, mixed * ratio) for mixed in (1000.0, 0.001)):
        problem = 'one of "plain_ms" and "drafted_ms" is in seconds. Both are in milliseconds.'
    attempt.require(
        _agree(speedup, ratio),
        problem,
        yours=f"{speedup:.4g}",
        expected=f"{plain:g} / {drafted:g} = {ratio:.4g}",
    )
    attempt.require(
        max(plain, drafted) >= 0.1,
        f'"plain_ms" and "drafted_ms" look like seconds: {plain:g} ms would be '
        f"{1000.0 / plain:,.0f} in a second.",
    )


def _judge_saved(attempt: Attempt, drafter: str, gamma: int, speedup: float) -> None:
    """Against the sweep beside the notebook, or the one before it, if there is one that can be read."""
    last = Path(RESULTS) / "sweep.json"
    saved = [*_saved_runs(last), *_saved_runs(last.with_suffix(BEFORE))]
    if not saved:
        print(f"There is no {last} to compare them with: only with each other were they compared.")
        return
    names = dict.fromkeys(name for name, _, _ in saved)
    attempt.require(
        drafter in names,
        "your saved measurement knows no such drafter.",
        yours=drafter,
        saved=", ".join(names),
    )
    these = [theirs for name, length, theirs in saved if (name, length) == (drafter, gamma)]
    lengths = dict.fromkeys(length for name, length, _ in saved if name == drafter)
    attempt.require(
        bool(these),
        "your saved measurement has no run of this drafter with this gamma.",
        yours=f"gamma {gamma}",
        saved="gamma " + ", ".join(map(str, lengths)),
    )
    attempt.require(
        any(_agree(speedup, theirs) for theirs in these),
        f'your saved measurement says {" or ".join(f"{one:.4g}" for one in these)} for "speedup". Take '
        "your numbers from one and the same run.",
        yours=f"{speedup:.4g}",
    )


def _saved_runs(file: Path) -> list[tuple[str, int, float]]:
    """(drafter, gamma, speedup) of the runs that a file holds; whatever is not one is passed over."""
    try:
        runs = json.loads(file.read_text(encoding="utf-8"))["runs"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    found = []
    for run in runs if isinstance(runs, list) else ():
        try:
            found.append((str(run["drafter"]).strip(), int(run["gamma"]), float(run["speedup"])))
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return [one for one in found if math.isfinite(one[2]) and one[2] > 0.0]


def _filled(attempt: Attempt, keys: Sequence[str]) -> Mapping[str, Any]:
    """The answer, if it is a dict with these entries and none is blank."""
    answer, names = attempt.value, ", ".join(f'"{key}"' for key in keys)
    if not isinstance(answer, Mapping):
        attempt.fail(f"expected a dict with the entries {names}.", yours=f"{answer!r:.80}")
    missing = [key for key in keys if key not in answer]
    others = [key for key in answer if key not in keys]
    details = {"missing": str(missing)} if missing else {}
    details |= {"unknown": str(others)} if others else {}
    attempt.require(not details, f"expected the entries {names}, and no others.", **details)
    blank = [f'"{key}"' for key in keys if answer[key] is None or answer[key] is Ellipsis]
    attempt.require(not blank, f"not implemented yet: fill in {', '.join(blank)}.")
    return answer


def _whole(attempt: Attempt, answer: Mapping[str, Any], key: str) -> int:
    value = answer[key]
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        attempt.fail(f'"{key}": expected a whole number, such as 4.', yours=f"{value!r:.40}")
    return int(value)


def _number(attempt: Attempt, answer: Mapping[str, Any], key: str) -> float:
    value = answer[key]
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        attempt.fail(f'"{key}": expected a number, such as 0.5.', yours=f"{value!r:.40}")
    return float(value)


def _agree(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=AGREES)

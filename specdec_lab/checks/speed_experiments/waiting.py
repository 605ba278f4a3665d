"""The check of what a reader has to wait."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from statistics import mean, median, quantiles

import numpy as np

from specdec_lab.bench import runs
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.speed_experiments import answers
from specdec_lab.checks.speed_experiments.race import Rounds

Wrong = Mapping[str, Sequence[float]]
"""Misconception -> the numbers that it may give."""

MILLISECONDS = "those are milliseconds; seconds are asked for."


def _runs(seed: int | None) -> list[Rounds]:
    if seed is None:
        return [
            [(2, 0.067), (3, 0.071), (1, 0.052), (4, 0.094), (2, 0.058), (3, 0.066), (1, 0.217)],
            [(1, 0.5), (2, 0.05), (3, 0.07), (1, 0.06)],
        ]
    random = Random(seed)
    return [
        [(random.randint(1, 3), random.uniform(0.4, 0.9))]
        + [
            (random.randint(1, 5), random.uniform(0.04, 0.08) * (4.0 if random.random() < 0.2 else 1.0))
            for _ in range(count)
        ]
        for count in (3, 8, 13, 30)
    ]


@check(read="What a reader feels", closed=(runs,), reference=answers.latency)
def latency(attempt: Attempt, seed: int | None) -> None:
    """The first wait, two percentiles of the others, and the time per token."""
    for rounds in _runs(seed):
        yours = attempt(list(rounds), shown={"rounds": rounds})
        expected = answers.latency(rounds)
        if not isinstance(yours, Mapping):
            attempt.fail(f"it gave a value of type {type(yours).__name__}, expected a dict")
        missing = [f'"{key}"' for key in expected if key not in yours]
        attempt.require(
            not missing, f"there is no entry {', '.join(missing)}.", yours=f"entries {list(yours)}"
        )
        suspects = _suspects(rounds)
        for key, truth in expected.items():
            number = attempt.number(yours[key])
            if math.isclose(number, truth, rel_tol=1e-5):
                continue
            named = {MILLISECONDS: [1000.0 * truth], **suspects[key]}
            problem = next(
                (text for text, wrongs in named.items() if _among(number, wrongs)),
                "this is not the right number.",
            )
            attempt.fail(f'"{key}": {problem}', yours=f"{number:.6g}", expected=f"{truth:.6g}")


def _among(number: float, wrongs: Sequence[float]) -> bool:
    return any(math.isclose(number, wrong, rel_tol=1e-5) for wrong in wrongs)


def _suspects(rounds: Rounds) -> dict[str, Wrong]:
    """For each entry, what misconceptions would give."""
    tokens, seconds = [one for one, _ in rounds], [one for _, one in rounds]
    waits = seconds[1:]
    each = [time / made for made, time in rounds[1:]]
    percentiles = {"p50": _wrong_percentiles(rounds, 50), "p95": _wrong_percentiles(rounds, 95)}
    return {
        "first": {
            "the time that is asked for is that of the first round, which reads the prompt.": [
                seconds[1]
            ],
            "do not divide by the tokens: they appear together, when the round is over.": [
                seconds[0] / tokens[0],
                seconds[0] / sum(tokens),
            ],
            "that is how many tokens come first. When do they?": [tokens[0]],
            "that is when the *second* tokens appear.": [seconds[0] + seconds[1]],
            "that is the time of the whole run.": [sum(seconds)],
        },
        **percentiles,
        "per_token": {
            "the first round, which reads the prompt, is left out: its time and its tokens.": [
                sum(seconds) / sum(tokens),
                sum(seconds) / sum(tokens[1:]),
            ],
            "the time leaves the first round out, but its tokens are counted.": [
                sum(waits) / sum(tokens)
            ],
            "that is the time of a *round*. Several tokens may come out of it.": [
                mean(waits),
                median(waits),
                sum(seconds) / len(seconds),
            ],
            "that is all seconds over all tokens, not the mean (or median) of the rounds' own "
            "ratios.": [mean(each), median(each)],
            "that is upside down: tokens per second.": [sum(tokens[1:]) / sum(waits)],
        },
    }


def _wrong_percentiles(rounds: Rounds, percent: int) -> Wrong:
    seconds = [one for _, one in rounds]
    waits = seconds[1:]

    def at(times: Sequence[float]) -> list[float]:
        return [float(np.percentile(times, percent))]

    over_tokens = [[time / made] * made for made, time in rounds[1:]]
    between_tokens = [[time] + [0.0] * (made - 1) for made, time in rounds[1:]]
    found = [
        float(np.percentile(waits, percent, method=method))
        for method in ("lower", "higher", "nearest", "inverted_cdf", "midpoint", "weibull", "hazen")
    ]
    ordered = sorted(waits)
    found.append(ordered[min(int(percent / 100 * len(ordered)), len(ordered) - 1)])
    found.append(quantiles(waits, n=100)[percent - 1])
    return {
        'the first round is among the waits. It is what "first" is for.': at(seconds),
        "each wait is divided by its tokens. They appear together, so somebody who reads waits for the "
        "whole round.": at([time / made for made, time in rounds[1:]])
        + at([one for same in over_tokens for one in same]),
        "the tokens of a round appear together: one wait for all of them, and no waits of 0.": at(
            [one for same in between_tokens for one in same]
        ),
        "the seconds are how long each round took, not when it was over: no differences to take.": at(
            [later - earlier for earlier, later in pairwise(seconds)]
        )
        + at([abs(later - earlier) for earlier, later in pairwise(seconds)]),
        "those are times since the start; the waits lie between them.": at(np.cumsum(seconds).tolist())
        + at(np.cumsum(waits).tolist())
        + at(np.cumsum(seconds)[1:].tolist()),
        "`numpy.percentile` takes percents: 50 and 95, not 0.5 and 0.95.": [
            float(np.percentile(waits, percent / 100))
        ],
        "that is the mean. A percentile is found by size.": [mean(waits)],
        "that is the longest wait. numpy.percentile goes in a straight line from one wait to the "
        "next.": [max(waits)],
        "that is another rule for percentiles (there are many). Take numpy.percentile's own, which "
        "goes in a straight line from one wait to the next.": found,
        "the waits were not sorted by size.": [waits[len(waits) // 2]],
    }

"""Checks of what the promise is good for: the best draft length, and the acceptance that it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random

from specdec_lab import theory
from specdec_lab.adaptive import AdaptiveGamma
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.speed_experiments import answers
from specdec_lab.checks.speed_experiments.promises import random_v

MARGIN = 1.01
"""How much more the best length promises than the next best: no rounding tips the scales."""

V = Mapping[int, float]


def _choices(seed: int | None) -> list[tuple[float, float, dict[int, float]]]:
    """(alpha, c, v): the best length in the middle, no drafting at all, the longest."""
    if seed is None:
        v = {1: 1.0, 2: 1.1, 3: 1.18, 5: 1.4, 7: 1.48, 8: 1.66, 12: 2.9}
        return [
            (0.82, 0.08, v),
            (0.3, 0.6, v),
            (0.9, 0.02, {1: 1.0, 4: 1.05, 6: 1.08, 9: 1.1}),
            (0.75, 0.08, {6: 1.6, 1: 1.0, 4: 1.3, 12: 2.4}),
        ]
    random = Random(seed)
    cases = [(random.uniform(0.1, 0.3), random.uniform(0.5, 0.9), random_v(random, [1, 2, 4, 6]))]
    cases.append((random.uniform(0.9, 0.97), 0.01, random_v(random, [1, 3, 4])))
    while len(cases) < 6:
        lengths = random.sample(range(2, 14), 5)
        v = random_v(random, [1, *sorted(lengths)])
        case = random.uniform(0.4, 0.85), random.uniform(0.02, 0.2), v
        best, second = sorted((_promised(case, n - 1) for n in v), reverse=True)[:2]
        if best > MARGIN * second:
            shuffled = dict(random.sample(sorted(v.items()), len(v)))
            cases.append((*case[:2], shuffled))
    return cases


def _promised(case: tuple[float, float, V], gamma: int) -> float:
    alpha, c, v = case
    return answers.expected_speedup(alpha, gamma, c, v)


@check(
    read="The best draft length",
    closed=(theory.best_gamma, AdaptiveGamma.best),
    reference=answers.best_gamma,
)
def best_gamma(attempt: Attempt, seed: int | None) -> None:
    """Of the lengths that v knows, 0 among them, the one that promises most."""
    for case in _choices(seed):
        alpha, c, v = case
        yours = attempt(
            alpha, c, dict(v), _asking_what_is_known, shown={"alpha": alpha, "c": c, "v": v}
        )
        lengths = [n - 1 for n in sorted(v)]
        promised = [_promised(case, gamma) for gamma in lengths]
        best = lengths[promised.index(max(promised))]
        number = attempt.number(yours)
        attempt.require(
            best == 0 or not math.isclose(number, max(promised), rel_tol=1e-5),
            "that is the best speedup itself. Which length gives it?",
            yours=f"{number:.4g}",
            expected=str(best),
        )
        chosen = attempt.whole_number(yours)
        if chosen == best:
            continue
        problem = "this is not the length with the highest expected speedup."
        if best == 0:
            problem = "not to draft (gamma 0) is one of the choices, and the best one here."
        else:
            wrongs = _wrong_choices(v, lengths, promised, best)
            problem = next((text for text, wrong in wrongs.items() if chosen in wrong), problem)
        if chosen in lengths:
            theirs = promised[lengths.index(chosen)]
            attempt.fail(
                problem,
                yours=f"{chosen}, which promises {theirs:.3f}",
                expected=f"{best}, which promises {max(promised):.3f}",
            )
        attempt.fail(problem, yours=str(chosen), expected=f"one of {lengths}: {best}")


def _wrong_choices(
    v: V, lengths: Sequence[int], promised: Sequence[float], best: int
) -> dict[str, list[int]]:
    """Misconception -> the lengths that it leads to; ``best`` is above 0."""

    def best_of(among: Sequence[int]) -> int:
        return max(among, key=lambda gamma: promised[lengths.index(gamma)])

    before_gap = [gamma for gamma in lengths if all(n in lengths for n in range(gamma))]
    return {
        "that is n, the tokens of the pass. One of them is not drafted: gamma is n - 1.": [best + 1],
        "that is the place in a list. Which length stands there?": [
            lengths.index(best),
            lengths[1:].index(best),
            list(v).index(best + 1),
        ],
        "that is the first length that pays. A longer one pays more.": [
            next(gamma for gamma, speedup in zip(lengths, promised, strict=True) if speedup > 1.0)
        ],
        "that is the length with the *lowest* speedup.": [lengths[promised.index(min(promised))]],
        "that is the longest draft. Longer ones emit more, but cost more, too.": [lengths[-1]],
        "the longest length that v allows is never tried.": [best_of(lengths[:-1])],
        "v's lengths have gaps, and you stop at the first one.": [best_of(before_gap)],
    }


def _asking_what_is_known(
    alpha: float,
    gamma: int,
    c: float,
    v: V,
    tokens_per_round: answers.Tokens = answers.tokens_per_round,
) -> float:
    """The expected speedup; an unknown length is a KeyError, as it is for the learner's own."""
    if gamma + 1 not in v:
        raise KeyError(f"v has no entry for gamma + 1 = {gamma + 1}; its lengths may have gaps")
    return answers.expected_speedup(alpha, gamma, c, v, tokens_per_round)


def _thresholds(seed: int | None) -> list[tuple[int, float, dict[int, float]]]:
    """(gamma, c, v): the docstring's, others between two grid points, hopeless, barely enough, free."""
    v = {1: 1.0, 2: 1.2, 3: 1.33, 4: 1.41, 5: 1.58}
    if seed is None:
        return [(4, 0.11, v), (1, 0.1, v), (2, 1.2, v), (3, 0.0, dict.fromkeys(v, 1.0)), (2, 0.8, v)]
    random = Random(seed)
    cases: list[tuple[int, float, dict[int, float]]] = []
    while len(cases) < 4:
        gamma = random.randint(2, 6)
        case = gamma, random.uniform(0.05, 0.4), random_v(random, range(1, gamma + 3))
        least = answers.least_alpha(*case)
        # Between two hundredths, so that a grid of them is off.
        if least is not None and abs(100 * least % 1 - 0.5) < 0.3:
            cases.append(case)
    gamma = random.randint(1, 5)
    gaps = {1: 1.0, gamma + 1: 1.3}
    hopeless, barely = 1.1, (gamma - 0.35) / gamma
    return [*cases, (gamma, hopeless, gaps), (gamma, barely, gaps)]


TOLERANCE = 0.0015


@check(read="When does it pay at all?", closed=(theory.least_alpha,), reference=answers.least_alpha)
def least_alpha(attempt: Attempt, seed: int | None) -> None:
    """Where the promise crosses 1; None where it never does."""
    for gamma, c, v in _thresholds(seed):
        yours = attempt(
            gamma,
            c,
            dict(v),
            answers.expected_speedup,
            shown={"gamma": gamma, "c": c, "v": v},
            may_be_none=True,
        )
        truth = answers.least_alpha(gamma, c, v)
        if truth is None:
            _judge_hopeless(attempt, yours, answers.expected_speedup(1.0, gamma, c, v))
            continue
        expected = f"{truth:.4f}"
        attempt.require(
            yours is not None,
            f"it returned None, but alpha = {truth:.3f} is enough. Is there a `return` at its end?",
        )
        alpha = attempt.number(yours)
        if abs(alpha - truth) <= TOLERANCE:
            continue
        problem = "this is not the least alpha at which drafting pays."
        if abs(alpha - truth) <= 0.1:
            problem = "close, but it has to be right to three decimals."
        elif alpha < truth:
            problem = "drafting is slower than plain decoding at this alpha."
        elif alpha <= 1.0:
            problem = "a smaller alpha is enough."
        named = {
            "that is a speedup. At which alpha is it 1?": [
                answers.expected_speedup(0.5, gamma, c, v),
                answers.expected_speedup(1.0, gamma, c, v),
            ],
            "that is in percent; expected a number from 0 to 1.": [100.0 * truth],
            **_wrong_thresholds(gamma, c, v),
        }
        problem = next(
            (
                text
                for text, wrongs in named.items()
                if any(abs(alpha - wrong) <= TOLERANCE for wrong in wrongs)
            ),
            problem,
        )
        attempt.fail(problem, yours=f"{alpha:.4f}", expected=expected)


def _judge_hopeless(attempt: Attempt, yours: object, at_one: float) -> None:
    """Anything but None is wrong; what it was says why."""
    if yours is None:
        return
    problem = f"even alpha = 1 promises only {at_one:.3f} here; then None is asked for."
    if isinstance(yours, str):
        problem = "expected None itself, not a text."
    elif isinstance(yours, int | float) and yours > 1.0:
        problem = f"alpha is a chance, at most 1, and even that promises only {at_one:.3f} here: None."
    attempt.fail(problem, yours=f"{yours!r:.40}", expected="None")


def _wrong_thresholds(gamma: int, c: float, v: V) -> dict[str, list[float]]:
    """Misconception -> the alphas that it leads to."""

    def at(cost: float, tokens: answers.Tokens = answers.tokens_per_round) -> float:
        return _crossing(lambda alpha: tokens(alpha, gamma), cost)

    verify = v[gamma + 1]
    cost = gamma * c + verify
    accepted = _crossing(lambda alpha: answers.tokens_per_round(alpha, gamma) - 1.0, cost)
    return {
        "v is not used: the pass over gamma + 1 tokens takes longer than one over one.": [
            at(gamma * c + 1.0)
        ],
        "c is not used: the gamma drafted tokens cost something, too.": [at(verify)],
        "c is the time of one drafted token, and gamma of them are drafted.": [at(c + verify)],
        "only gamma tokens are drafted, not gamma + 1.": [at((gamma + 1) * c + verify)],
        "the pass reads gamma + 1 tokens: v[gamma + 1].": [at(gamma * c + v.get(gamma, math.nan))],
        "that takes each drafted token to be kept with probability alpha, even behind a rejected "
        "one.": [(cost - 1.0) / gamma],
        "that is where the drafted tokens that are kept pay for the round. It emits one more.": [
            accepted
        ],
        "that is right for gamma = 1 only.": [c + verify - 1.0],
        "that is the whole draft kept or nothing; the first few tokens count, too.": [
            ((cost - 1.0) / gamma) ** (1.0 / gamma) if cost > 1.0 else math.nan
        ],
    }


def _crossing(tokens: Callable[[float], float], cost: float) -> float:
    """Where a growing number of tokens pays for a cost; nan where it does not."""
    if math.isnan(cost) or tokens(1.0) < cost:
        return math.nan
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if tokens(middle) < cost else (low, middle)
    return high

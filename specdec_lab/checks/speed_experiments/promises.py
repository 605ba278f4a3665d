"""Checks of what theory promises: tokens of a round, and the speedup."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random

from specdec_lab import theory
from specdec_lab.adaptive import AdaptiveGamma, Costs
from specdec_lab.bench.prediction import Prediction
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.speed_experiments import answers

TIMED = {1: 1.0, 2: 1.07, 3: 1.15, 4: 1.21, 5: 1.36, 6: 1.47}
"""v(n) without gaps."""


@check(read="Tokens of a round", closed=(theory,), reference=answers.tokens_per_round)
def tokens_per_round(attempt: Attempt, seed: int | None) -> None:
    """1 + alpha + ... + alpha^gamma, at the edges, too."""
    cases = [(0.7, 4), (0.5, 2), (1.0, 3), (0.0, 5), (0.6, 0)]
    if seed is not None:
        random = Random(seed)
        cases = [(random.uniform(0.3, 0.9), random.randint(2, 8)) for _ in range(4)]
        cases += [(1.0, random.randint(2, 8)), (0.0, random.randint(1, 8)), (1.0, 0), (0.0, 0)]
    for alpha, gamma in cases:
        yours = attempt(alpha, gamma, shown={"alpha": alpha, "gamma": gamma})
        attempt.require(
            not _undefined(yours),
            "the closed formula is 0 / 0 where alpha is 1. Every drafted token is kept there, and the "
            "bonus comes on top.",
        )
        truth = answers.tokens_per_round(alpha, gamma)
        problem = "this is not how many tokens a round emits."
        if gamma == 0:
            problem = "with gamma 0 nothing is drafted; the round emits the one token of a plain step."
        elif alpha == 1.0:
            problem = "at alpha = 1 every drafted token is kept, and the bonus comes on top."
        elif alpha == 0.0:
            problem = "at alpha = 0 no drafted token is kept; the round emits the replacement alone."
        elif _near(attempt.number(yours), truth, 0.03):
            problem = "close, but not equal. Work it out, without rounding and without drawing samples."
        attempt.same_number(yours, truth, problem, suspects=_wrong_tokens(alpha, gamma, truth))


def _wrong_tokens(alpha: float, gamma: int, truth: float) -> dict[str, float]:
    last = alpha**gamma
    if gamma == 0 or alpha in (0.0, 1.0):
        return {}
    return {
        "one term is missing: where all gamma tokens are kept, the bonus comes on top.": truth - last,
        "that is rounded. A mean need not be a whole number.": float(round(truth)),
        "that is how many drafted tokens are kept. A round emits one more: the bonus or the "
        "replacement.": truth - 1.0,
        "that is one term too many: at most gamma + 1 tokens come out of a round.": truth
        + last * alpha,
        "that takes each drafted token to be kept with probability alpha, even behind a rejected one. "
        "The second can be kept only if the first was: alpha * alpha.": 1.0 + gamma * alpha,
        "that is alpha times what could come out. The first token comes out always, the second with "
        "alpha, the third with alpha * alpha.": (gamma + 1) * alpha,
        "that is alpha times the draft. Behind a rejected token no other is kept, and a round emits "
        "one more than it keeps.": gamma * alpha,
        "that counts only the rounds in which the whole draft is kept. The others emit something, "
        "too.": (gamma + 1) * last,
        "that is a whole draft or nothing. A round may also keep the first few tokens.": 1.0
        + gamma * last,
        "the rounds in which the whole draft is kept are missing: they emit gamma + 1.": truth
        - (gamma + 1) * last,
        "that is what comes out if every drafted token is kept. Where is alpha?": gamma + 1.0,
        "that is the chance that the whole draft is kept, not a number of tokens.": last,
        "that is a draft without end: 1 / (1 - alpha). Here it ends behind gamma tokens.": 1.0
        / (1.0 - alpha),
        "the sum is right but for its division by 1 - alpha.": truth * (1.0 - alpha),
        "1 - alpha is the chance of a rejection. Here it is alpha, of being kept, that multiplies "
        "from token to token.": answers.tokens_per_round(1.0 - alpha, gamma),
        "each length is counted with the chance of *reaching* it, so adding one for each is enough: do "
        "not multiply with the length.": sum((i + 1) * alpha**i for i in range(gamma + 1)),
    }


def _undefined(yours: object) -> bool:
    """Whether it is the nan that tensors and arrays give for 0 / 0."""
    try:
        return math.isnan(yours)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def _near(number: float, truth: float, relative: float) -> bool:
    return math.isclose(number, truth, rel_tol=relative)


Case = tuple[float, int, float, dict[int, float]]
"""(alpha, gamma, c, v)"""


def _promises(seed: int | None) -> list[Case]:
    if seed is None:
        return [
            (0.7, 4, 0.13, TIMED),
            (0.5, 2, 0.1, {1: 1.0, 3: 1.2, 5: 1.4}),
            (1.0, 3, 0.25, TIMED),
            (0.6, 0, 0.1, TIMED),
        ]
    random = Random(seed)
    cases = [
        (random.uniform(0.3, 0.9), gamma, random.uniform(0.05, 0.4), random_v(random, range(1, 12)))
        for gamma in random.sample(range(2, 9), 4)
    ]
    gaps = random_v(random, [1, 4, 6, 9])
    return [*cases, (0.65, 5, 0.2, gaps), (0.8, 0, 0.3, gaps), (0.0, 3, 0.0, gaps)]


def random_v(random: Random, lengths: range | list[int]) -> dict[int, float]:
    """v(n) for some lengths: 1 for one token, then more and more."""
    v, before, now = dict[int, float](), 1, 1.0
    for n in lengths:
        now += sum(random.uniform(0.02, 0.15) for _ in range(n - before))
        v[n], before = round(now, 3), n
    return v


@check(
    read="What a round costs",
    closed=(
        theory.expected_speedup,
        AdaptiveGamma.speedup,
        Costs.of,
        vars(Prediction)["speedup"].fget,
    ),
    reference=answers.expected_speedup,
)
def expected_speedup(attempt: Attempt, seed: int | None) -> None:
    """Tokens over gamma drafts and one pass over gamma + 1 tokens."""
    for alpha, gamma, c, v in _promises(seed):
        yours = attempt(
            alpha,
            gamma,
            c,
            dict(v),
            answers.tokens_per_round,
            shown={"alpha": alpha, "gamma": gamma, "c": c, "v": v},
        )
        problem = "this is not the speedup that theory promises."
        if gamma == 0:
            problem = (
                "with gamma 0 nothing is drafted: each round is a plain step, and the speedup is 1."
            )
        attempt.same_number(
            yours,
            answers.expected_speedup(alpha, gamma, c, v),
            problem,
            suspects=_wrong_promises(alpha, gamma, c, v) if gamma else {},
        )


def _wrong_promises(alpha: float, gamma: int, c: float, v: Mapping[int, float]) -> dict[str, float]:
    tokens, verify = answers.tokens_per_round(alpha, gamma), v[gamma + 1]
    cost = gamma * c + verify
    truth = tokens / cost
    listed = list(v.values())
    one_less = v.get(gamma, math.nan)
    return {
        "the pass reads gamma + 1 tokens, the last one of the text and the draft: v[gamma + 1].": tokens
        / (gamma * c + one_less),
        "v is looked up one too far: the pass reads gamma + 1 tokens.": tokens
        / (gamma * c + v.get(gamma + 2, math.nan)),
        "you take the entry at that place in v. Its lengths may have gaps: look it up by its "
        "length.": tokens / (gamma * c + listed[min(gamma, len(listed) - 1)]),
        "v is not used: a pass over several tokens takes longer than one over one.": tokens
        / (gamma * c + 1.0),
        "the drafting is missing: gamma tokens at c each.": tokens / verify,
        "the pass that verifies is missing: v[gamma + 1].": tokens / (gamma * c) if c else math.nan,
        "only gamma tokens are drafted. The last one of the round comes from the target, without a "
        "cost of its own.": tokens / ((gamma + 1) * c + verify),
        "c is the time of *one* drafted token, and gamma of them are drafted.": tokens / (c + verify),
        "that is upside down: the tokens over the time.": 1.0 / truth,
        "you count the drafted tokens that are kept. The round emits one more, and the pass pays for "
        "it.": (tokens - 1.0) / cost,
        "that takes every drafted token to be kept. `tokens_per_round` says how many come out.": (
            (gamma + 1) / cost
        ),
        "the draft is verified in one pass; you pay for one per drafted token.": tokens
        / (gamma * (c + verify)),
        "the draft is verified in one pass, whose time is v[gamma + 1]; you pay for gamma + 1 passes "
        "over one token.": tokens / (gamma * c + gamma + 1),
        "there is one pass of the target too many: the one that verifies also gives the last "
        "token.": tokens / (gamma * c + verify + 1.0),
        "the rows of the pass share one v[gamma + 1]: do not multiply it.": tokens
        / (gamma * c + (gamma + 1) * verify),
        "parentheses are missing: divide by (gamma * c + v[gamma + 1]).": tokens / gamma * c + verify,
        "only the drafting is below the line. The pass belongs there, too.": tokens / (gamma * c)
        + verify
        if c
        else math.nan,
        "that is the difference. How many *times* as fast is a ratio.": tokens - cost,
        "that is by how much it is faster. A speedup of 1 means: as fast.": truth - 1.0,
        "that is in percent. A speedup of 1 means: as fast.": 100.0 * truth,
        "that is what the round costs. What does it emit for that?": cost,
        "those are the tokens of the round. What do they cost?": tokens,
    }

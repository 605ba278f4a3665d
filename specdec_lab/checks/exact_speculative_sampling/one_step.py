"""Checks of the two rules, and of alpha."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from specdec_lab import distributions
from specdec_lab.audit import step
from specdec_lab.checks.exact_speculative_sampling.naming import (
    fail_row,
    first_wrong,
    same_number,
    same_row,
)
from specdec_lab.checks.exact_speculative_sampling.rows import exactly, pairs, tensor_row
from specdec_lab.checks.harness import Attempt, check

Case = TypeVar("Case")
HALF = "half precision has three digits at most. Compute with the numbers as they come."
VAGUE = (
    "close, but not equal. Work it out, without drawing samples, without rounding, without adding "
    "anything small, and not in half precision."
)


@check(
    read="When to keep",
    closed=(distributions,),
    reference=distributions.acceptance_probability,
)
def acceptance_probability(attempt: Attempt, seed: int | None) -> None:
    """min(1, p / q)."""
    cases = [(0.35, 0.55), (0.4, 0.25), (0.0, 0.3), (0.5, 0.5), (0.9, 0.1)]
    if seed is not None:
        random = Random(seed)
        cases = [(random.random(), random.uniform(0.01, 1.0)) for _ in range(8)]
        cases += [(0.0, random.random() + 0.01), (1e-9, 1.0), (0.8, 0.001), (0.002, 0.001)]
    cases += [(2e-9, 8e-9), (2e-30, 8e-30)]

    def ask(case: tuple[float, float]) -> float:
        yours = attempt(*case, shown={"p_of_token": case[0], "q_of_token": case[1]})
        attempt.require(
            not isinstance(yours, bool | np.bool_)
            and not (isinstance(yours, Tensor) and yours.dtype == torch.bool),
            "that is a verdict; expected the probability of keeping. The dice are thrown later.",
        )
        return attempt.number(yours)

    found = first_wrong(cases, ask, lambda case: min(1.0, case[0] / case[1]), _chances, same_number)
    if found:
        (p, q), name = found
        truth, yours = min(1.0, p / q), ask((p, q))
        problem = "this is not the right number."
        if yours in (0.0, 1.0) and q >= 1e-8:
            problem = (
                "that is 1 or 0, with nothing in between. What is drafted too often is still kept "
                "*sometimes*, and the dice are thrown later."
            )
        elif yours in _halves(p, q):
            problem = HALF
        elif abs(yours - truth) < 0.01 or q < 1e-8:
            problem = (
                "close, but not the ratio itself. Nothing is to be rounded, and q is never 0 here, so "
                "nothing has to be added."
            )
        attempt.same_number(yours, truth, name or problem)


def _chances(case: tuple[float, float]) -> dict[str, float | None]:
    """Misconception -> the chance to keep that it gives."""
    p, q = case
    return {
        "that is q/p: p and q are exchanged. What the draft proposes too often (q above p) is kept "
        "only sometimes.": min(1.0, q / p) if p > 0.0 else None,
        "that is q/p: p and q are exchanged. And no probability is above 1.": q / p if p > 0 else None,
        "no probability is above 1: a token that is drafted too rarely is always kept.": p / q,
        "that is p itself, as if q were 1.": p,
        "that is q itself.": q,
        "that is the chance to be drafted *and* kept. Here it was drafted already.": min(p, q),
        "that is 1 or 0, with nothing in between. What is drafted too often is still kept "
        "*sometimes*.": float(p >= q),
        "that is 1 or 0, with nothing in between. What is drafted too often is still kept "
        "*sometimes*, and what is drafted just often enough is always kept.": float(p > q),
        "that is always 1. If every drafted token is kept, what comes out is q.": 1.0,
        "where p is 0 the target never says this token, so it is never kept.": (
            min(1.0, p / q) if p > 0.0 else 1.0
        ),
        "the ratio decides, not the difference: p/q, not p - q.": max(0.0, p - q),
        "the ratio decides, not the difference: p/q, not 1 - |p - q|.": 1.0 - abs(p - q),
        "the ratio decides, not the difference: p/q, not 1 - (q - p).": min(1.0, 1.0 - (q - p)),
        "p is compared with q alone, not with p + q.": p / (p + q),
        "that is the chance to reject.": 1.0 - min(1.0, p / q),
        "that is p times q, as if the draft had to equal a token drawn from p.": p * q,
        "the larger of 1 and p/q is never below 1. Take the smaller one.": max(1.0, p / q),
        "that is 1 - q/p. The chance to keep is p/q, and 1 at most.": (
            max(0.0, 1.0 - q / p) if p > 0.0 else None
        ),
    }


def _halves(p: float, q: float) -> list[float]:
    """The ratio in half precision, or made that in the end."""
    dtypes = (torch.bfloat16, torch.float16)
    ratios = [torch.tensor(p).to(dtype) / torch.tensor(q).to(dtype) for dtype in dtypes]
    return [min(1.0, float(ratio)) for ratio in [*ratios, *(torch.tensor(p / q).to(d) for d in dtypes)]]


@check(read="What is still lacking", closed=(distributions,), reference=distributions.residual)
def residual(attempt: Attempt, seed: int | None) -> None:
    """max(0, p - q), normalised; p where nothing is lacking."""

    def ask(case: tuple[Tensor, Tensor]) -> Tensor:
        return _residual_of(attempt, *case)

    def truth(case: tuple[Tensor, Tensor]) -> Tensor:
        above = (case[0] - case[1]).clamp(min=0.0)
        return (above / above.sum()).double()

    found = first_wrong(pairs(seed), ask, truth, _replacements, same_row)
    if found:
        case, name = found
        yours = steady(attempt, ask, case)
        fail_row(attempt, name or unnamed(yours, truth(case), _half_rows(*case)), yours, truth(case))
    _nearly_equal(attempt)
    _equal(attempt)


def _half_rows(p: Tensor, q: Tensor) -> list[Tensor]:
    """The residual in half precision, or of p and q in half precision."""
    rows = []
    for dtype in (torch.bfloat16, torch.float16):
        for x, y in ((p.to(dtype), q.to(dtype)), (p.to(dtype).double(), q.to(dtype).double())):
            above = (x - y).clamp(min=0.0)
            rows.append((above / above.sum()).double())
    return rows


def steady(attempt: Attempt, ask: Callable[[Case], Tensor], case: Case, times: int = 4) -> Tensor:
    """The learner's row, if it is the same each time."""
    yours, *others = (ask(case).nan_to_num(nan=-1.0) for _ in range(times))
    attempt.require(
        all(torch.equal(yours, other) for other in others),
        "it gives other probabilities each time. Work them out, without drawing samples.",
    )
    return ask(case)


def unnamed(yours: Tensor, expected: Tensor, halves: Sequence[Tensor]) -> str | None:
    """What can be said of a row that no misconception explains."""
    if any(same_row(yours, half) and not same_row(expected, half) for half in halves):
        return HALF
    if bool((yours < -1e-6).any()):
        return "a probability cannot be negative."
    near = torch.allclose(yours, expected, atol=0.02) and f"{float(yours.sum()):.4g}" == "1"
    return VAGUE if near else None


def _replacements(case: tuple[Tensor, Tensor]) -> dict[str, Tensor | None]:
    """Misconception -> the residual that it gives."""
    p, q = case[0].double(), case[1].double()
    above, below, apart = (p - q).clamp(min=0.0), (q - p).clamp(min=0.0), (p - q).abs()
    common = torch.minimum(p, q)
    return {
        "it does not sum to 1 yet: divide by the sum.": above,
        "that is p. Part of it has come out by acceptance already.": p,
        "that is q. What it proposes too often was just rejected.": q,
        "that is |p - q|. What the draft has too much of is not lacking.": apart / apart.sum(),
        "that is |p - q|. What the draft has too much of is not lacking. And divide by the sum.": apart,
        "p and q are exchanged: that is what the draft has too much of.": below / below.sum(),
        "p and q are exchanged: that is what the draft has too much of. And divide by the sum.": below,
        "that is what p and q have in common: what comes out by acceptance.": common / common.sum(),
        "that is what p and q have in common. What is p lacking?": common,
        "a probability cannot be negative: max(0, p - q), token by token, before you divide.": (
            (p - q) / above.sum()
        ),
        "a probability cannot be negative: max(0, p - q), token by token, and then divide by the "
        "sum.": p - q,
        "a probability cannot be negative: max(0, p - q), token by token, before the sum is taken.": (
            (p - q) / apart.sum()
        ),
        "that is a softmax of what is lacking. These are probabilities already; divide by their sum.": (
            above.softmax(-1)
        ),
        "that is a softmax of p - q. These are no logits: max(0, p - q), divided by the sum.": (
            (p - q).softmax(-1)
        ),
        "that is all of p where p is above q. Only the difference is lacking.": (
            p * (p > q) / (p * (p > q)).sum()
        ),
        "that is the largest entry only. The replacement is drawn, so it needs them all.": (
            above == above.max()
        ).double(),
        "that is the larger of p and q, scaled to 1. Only what p has more of is lacking.": (
            torch.maximum(p, q) / torch.maximum(p, q).sum()
        ),
        "that is the ratio p/q, scaled to 1. What is lacking is a difference.": (
            (p / q) / (p / q).sum() if bool((q > 0.0).all()) else None
        ),
        "every token that is lacking gets the same. Of some more is lacking than of others.": (
            (p > q) / (p > q).sum()
        ),
        "these are in sorted order. Leave each at its own place.": (
            (above / above.sum()).sort(descending=True).values
        ),
    }


def _residual_of(attempt: Attempt, p: Tensor, q: Tensor, q_shown: str | None = None) -> Tensor:
    """The learner's residual, if it is a row of finite numbers in sufficient precision."""
    yours = attempt(p.clone(), q.clone(), shown={"p": p, "q": q_shown or q})
    row = tensor_row(attempt, yours, len(p))
    attempt.require(
        not isinstance(yours, Tensor) or yours.dtype in (torch.float32, torch.float64),
        "expected float32 or float64: three significant digits are not enough for a probability.",
    )
    if bool((p > q + 1e-6).any()):
        # A sum that ought to be 0 is mostly not quite 0 in floating point.
        attempt.require(
            bool(torch.isfinite(row).all()) and float(row.abs().max()) < 1e3,
            "negative entries have to become 0 before you divide. (p - q sums to 0.)",
            yours=str(row.tolist()),
        )
    return row


def _nearly_equal(attempt: Attempt) -> None:
    """Little is lacking, but all of that counts."""
    for little in (2.0**-13, 2.0**-21):  # float32 holds all of these exactly
        p = exactly([0.5, 0.25, 0.25])
        q = exactly([0.5 - little, 0.25, 0.25 + little])
        row = _residual_of(attempt, p, q, str(q.tolist()))
        attempt.require(
            not 0.9 < float(row.sum()) < 1.0 - 1e-6,
            "little is lacking here, so whatever small is added to the sum shows. Divide by the sum "
            "itself.",
            yours=str(row.tolist()),
        )
        attempt.same_distribution(
            row,
            exactly([1.0, 0.0, 0.0]),
            suspects={
                "p and q are close here, but not equal: a little is lacking, and the replacement is "
                "drawn from that.": p
            },
        )


def _equal(attempt: Attempt) -> None:
    """Nothing is lacking."""
    p = exactly([0.5, 0.3, 0.2])
    cases = [
        (exactly([1.0, 0.0]), exactly([1.0, 0.0]), "where p and q are equal, that is 0 divided by 0."),
        (p, p.clone(), "where p and q are equal, that is 0 divided by 0."),
        (
            p,
            p * (1.0 + 1e-15),
            "p is nowhere above q here, though they differ in the last digit: 0 divided by 0 again. "
            "Ask whether anything is lacking.",
        ),
    ]
    for p, q, problem in cases:
        differ = "the same" if torch.equal(p, q) else "the same, up to rounding"
        row = _residual_of(attempt, p, q, differ)
        attempt.require(
            bool(torch.isfinite(row).all()), f"{problem} Return p there.", yours=str(row.tolist())
        )
        attempt.require(
            torch.allclose(row, p),
            "where p is nowhere above q, p itself is asked for.",
            yours=str(row.tolist()),
            expected=str(p.tolist()),
        )


@check(read="Alpha", closed=(distributions, step), reference=distributions.alpha)
def overlap(attempt: Attempt, seed: int | None) -> None:
    """The sum of min(p, q)."""
    cases = [*pairs(seed), (exactly([0.5, 0.5]), exactly([0.5, 0.5]))]
    cases += [(exactly([1.0, 0.0]), exactly([0.0, 1.0])), *pairs(1303)[:2]]
    cases.append((exactly([0.0, 0.6, 0.4]), exactly([0.0, 0.5, 0.5])))

    def ask(case: tuple[Tensor, Tensor]) -> float:
        p, q = case
        yours = attempt(p.clone(), q.clone(), shown={"p": p, "q": q})
        if isinstance(yours, list | tuple | np.ndarray | Tensor) and np.shape(yours) == (len(p),):
            attempt.fail("that is an entry for each token; add them up.")
        if isinstance(yours, Tensor):
            attempt.require(
                yours.dtype in (torch.float32, torch.float64),
                "expected float32 or float64: three significant digits are not enough.",
            )
        nan = isinstance(yours, Tensor | float) and bool(yours != yours)
        attempt.require(not nan, "it gave nan: 0 divided by 0, for a token that neither would say.")
        return attempt.number(yours)

    def truth(case: tuple[Tensor, Tensor]) -> float:
        return float(torch.minimum(*case).sum())

    found = first_wrong(cases, ask, truth, _alphas, lambda one, other: abs(one - other) < 1e-5)
    if found:
        case, name = found
        yours = ask(case)
        if any(ask(case) != yours for _ in range(3)):
            attempt.fail("it gives another number each time. Work it out, without drawing samples.")
        problem = VAGUE if abs(yours - truth(case)) < 0.03 else "this is not the right number."
        attempt.same_number(yours, truth(case), name or problem)


def _alphas(case: tuple[Tensor, Tensor]) -> dict[str, float | None]:
    """Misconception -> the alpha that it gives."""
    p, q = case[0].double(), case[1].double()
    common, distance = torch.minimum(p, q), float((p - q).abs().sum())
    alpha, drafted = float(common.sum()), q > 0.0
    ratio = torch.where(drafted, p / q.clamp(min=1e-30), 0.0).clamp(max=1.0)
    where_defined = bool(drafted.all())
    return {
        "that is the total variation, what p and q do *not* have in common: 1 - alpha.": 1 - alpha,
        "that is the L1 distance. alpha is 1 minus *half* of it.": distance,
        "the L1 distance counts everything twice, what p has more of and what q has more of. alpha is "
        "1 minus *half* of it.": 1 - distance,
        "the L1 distance counts everything twice and may exceed 1. alpha is 1 minus *half* of it.": (
            max(0.0, 1 - distance)
        ),
        "that is the sum of p times q: how often two draws agree. The rule keeps more.": float(p @ q),
        "that is the sum of the larger ones; what they share is the smaller one.": float(
            torch.maximum(p, q).sum()
        ),
        "that is the mean of min(p, q); alpha is the sum.": alpha / len(p),
        "that is the largest of min(p, q); alpha is the sum.": float(common.max()),
        "that is the smallest of min(p, q); alpha is the sum.": float(common.min()),
        "that is alpha in percent; a number from 0 to 1 is asked for.": 100 * alpha,
        "that is how many tokens have the same p and q. What counts is how much they share.": float(
            torch.isclose(p, q).sum()
        ),
        "that is the share of tokens that have the same p and q. What counts is how much they "
        "share.": float(torch.isclose(p, q).double().mean()),
        "that is 1 if both have the same likeliest token. Any token may be drafted.": float(
            p.argmax() == q.argmax()
        ),
        "p and q are exchanged in the ratio: min(1, p/q), weighted with q.": float(
            (q * torch.where(p > 0.0, q / p.clamp(min=1e-30), 1.0).clamp(max=1.0)).sum()
        ),
        "no chance is above 1: min(1, p/q). (And q times p/q is just p.)": float(p[drafted].sum()),
        "that is the mean acceptance of all tokens. Each counts as often as it is drafted: weight it "
        "with q.": float(ratio.mean()) if where_defined else None,
        "that is the sum of the acceptances. Each counts as often as it is drafted: weight it with "
        "q.": float(ratio.sum()) if where_defined else None,
        "that weights the acceptance with p. The token is drawn from q.": (
            float(p @ ratio) if where_defined else None
        ),
        "where q is below p, all of q is kept; it counts as well.": float(p[p < q].sum()),
        "where q is below p, all of q is kept; it counts as well. (Where they are equal, too.)": float(
            p[p <= q].sum()
        ),
        "where p is below q, all of p is kept; it counts as well.": float(q[q <= p].sum()),
        "where p is below q, all of p is kept; it counts as well. (Where they are equal, too.)": float(
            q[q < p].sum()
        ),
        "the smaller one is taken token by token; that is the smaller of two sums, 1.": 1.0,
    }

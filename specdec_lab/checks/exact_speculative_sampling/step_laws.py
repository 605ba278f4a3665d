"""The check of the audit in code: the law of one step, under any two rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from specdec_lab import distributions
from specdec_lab.audit import step
from specdec_lab.checks import references
from specdec_lab.checks.exact_speculative_sampling.naming import fail_row, first_wrong, same_row
from specdec_lab.checks.exact_speculative_sampling.one_step import steady, unnamed
from specdec_lab.checks.exact_speculative_sampling.rows import exactly, pairs
from specdec_lab.checks.harness import Attempt, check


def _always(chance: float) -> references.Acceptance:
    return lambda p, q: chance


def _ratio(p: float, q: float) -> float:
    return min(1.0, p / q)


def _lacking(p: Tensor, q: Tensor) -> Tensor:
    above = (p - q).clamp(min=0.0)
    return above / above.sum() if above.sum() > 0.0 else p


def _rules() -> list[tuple[tuple[str, str], references.Acceptance, references.Residual]]:
    """Two rules and what to call them: the right ones, and some wrong ones, which have laws as well."""
    lacking = "max(0, p - q) normalised"
    return [
        (("always 0.5", "q"), _always(0.5), lambda p, q: q),
        (("min(1, p/q)", lacking), _ratio, _lacking),
        (("min(1, p/q)", "p"), _ratio, lambda p, q: p),
        (("min(1, q/p)", lacking), lambda p, q: min(1.0, q / p) if p else 1.0, _lacking),
    ]


@check(
    read="The audit, in code",
    closed=(distributions, step),
    reference=references.step_law,
)
def step_law(attempt: Attempt, seed: int | None) -> None:
    """Accepted plus rejection mass times residual, for any two rules."""
    cases = [
        _Case(names, p, q, acceptance, replacement)
        for p, q in [(exactly([0.6, 0.4]), exactly([0.5, 0.5])), *pairs(seed)]
        for names, acceptance, replacement in _rules()
    ]

    def ask(case: _Case) -> Tensor:
        yours = attempt(
            case.p.clone(),
            case.q.clone(),
            _Careful(attempt, case.acceptance),
            _CarefulResidual(attempt, case.residual),
            shown={"p": case.p, "q": case.q, **case.rules},
        )
        return attempt.row(yours, len(case.p))

    found = first_wrong(cases, ask, _Case.truth, _laws, same_row)
    if found:
        case, name = found
        yours = steady(attempt, ask, case, times=40)  # few of the dice may be in doubt
        fail_row(attempt, name or unnamed(yours, case.truth(), _half_laws(case)), yours, case.truth())


def _half_laws(case: _Case) -> list[Tensor]:
    """The law added up in half precision."""
    laws = []
    for dtype in (torch.bfloat16, torch.float16):
        accepted, rest = (row.to(dtype) for row in (_accepted(case), case.residual(case.p, case.q)))
        laws.append((accepted + (1 - accepted.sum()) * rest).double())
    return laws


def _accepted(case: _Case) -> Tensor:
    return case.q * _chance(case).to(case.q.dtype)


def _chance(case: _Case) -> Tensor:
    pairs_of = zip(case.p.tolist(), case.q.tolist(), strict=True)
    return exactly([case.acceptance(x, y) if y > 0.0 else 0.0 for x, y in pairs_of])


@dataclass(frozen=True)
class _Case:
    """Two distributions and two rules."""

    names: tuple[str, str]
    p: Tensor
    q: Tensor
    acceptance: references.Acceptance
    residual: references.Residual

    @property
    def rules(self) -> dict[str, str]:
        """How a failure shows the two rules."""
        return dict(zip(("acceptance", "residual"), self.names, strict=True))

    def truth(self) -> Tensor:
        """What comes out."""
        return references.step_law(self.p, self.q, self.acceptance, self.residual).double()


def _laws(case: _Case) -> dict[str, Tensor | None]:
    """Misconception -> the law that it gives."""
    p, q = case.p.double(), case.q.double()
    pairs_of = list(zip(case.p.tolist(), case.q.tolist(), strict=True))
    chance = _chance(case)
    exchanged = exactly([case.acceptance(y, x) if x > 0.0 else 0.0 for x, y in pairs_of])
    accepted, swapped, weighted = q * chance, q * exchanged, p * chance
    rest, other_rest = case.residual(p, q), case.residual(q, p)
    rejected, kept_if_right = 1.0 - accepted.sum(), torch.minimum(p, q)
    drafted = q > 0.0
    return {
        "that is p. It is what *ought* to come out. Work out what does, under the rules that were "
        "handed in.": p,
        "that is only what was accepted. Replacements come out as well.": accepted,
        "that is only what was replaced. Accepted tokens come out as well.": rejected * rest,
        "the residual is drawn from only if something was rejected: weight it with the rejection "
        "mass.": accepted + rest,
        "that is what was accepted, scaled up to 1. What is rejected does not come back in the same "
        "proportions.": accepted / accepted.sum(),
        "the chance to keep is weighted with p; but the token is drawn from q.": weighted
        + (1.0 - weighted.sum()) * rest,
        "the rejection mass is the same for every token that comes out: something was rejected, "
        "whichever it was. You weight each token's residual with its own rejection.": accepted
        + (q - accepted) * rest,
        "the rejection mass is the same for every token that comes out: something was rejected, "
        "whichever it was. You weight each token's residual with its own chance to be rejected.": (
            accepted + (1.0 - chance) * rest
        ),
        "what is added to each token is the mass of *its own* rejections. They are replaced by others: "
        "by the residual.": q,
        "the rejection mass is wrong: 1 minus what was accepted *in all*, each weighted with q.": (
            accepted + (1.0 - chance.mean()) * rest
        ),
        "the rejection mass is wrong: the chances to reject do not count alike. Weight each with q.": (
            accepted + (1.0 - chance).sum() * rest
        ),
        "what was accepted is not the rejection mass; that is 1 minus it.": accepted
        + accepted.sum() * rest,
        "that is the chance to keep, not yet weighted with q.": chance + rejected * rest,
        "that is the chance to keep, not yet weighted with q; it makes the rejection mass wrong as "
        "well.": chance + (1.0 - chance.sum()) * rest,
        "p and q are exchanged in `residual`: the target's comes first.": accepted
        + rejected * other_rest,
        "p and q are exchanged in `acceptance`: the target's comes first.": (
            swapped + (1.0 - swapped.sum()) * rest if bool((p > 0.0).all()) else None
        ),
        "p and q are exchanged in both rules: the target's comes first.": (
            swapped + (1.0 - swapped.sum()) * other_rest if bool((p > 0.0).all()) else None
        ),
        "the second draw is from p here, whatever `residual` says. Ask it.": accepted + rejected * p,
        "the `residual` that was handed in is not used; you work with max(0, p - q).": accepted
        + rejected * _lacking(p, q),
        "the `acceptance` that was handed in is not used; you work with min(1, p/q).": kept_if_right
        + (1.0 - kept_if_right.sum()) * rest,
        "the rejection mass is what is left of 1 under *this* rule. You take that of min(1, p/q).": (
            accepted + (1.0 - kept_if_right.sum()) * rest
        ),
        "the rejection mass is weighted with p; but the token is drawn from q.": accepted
        + (1.0 - weighted.sum()) * rest,
        "that is the residual alone. It is drawn from only if something was rejected.": rest,
        "the residual is drawn from only if something was rejected: weight it with the rejection mass. "
        "Scaling the sum to 1 does not mend it.": (accepted + rest) / (1.0 + accepted.sum()),
        "that is the average of what was accepted and the residual. Weight the residual with the "
        "rejection mass, and nothing else.": (accepted + rest) / 2.0,
        "that is the chance to keep, not yet weighted with q, and without replacements.": chance,
        "that is the chance to keep, scaled to 1. Weight it with q.": chance / chance.sum(),
        "that is the chance to keep, not yet weighted with q. And the residual's weight is the same "
        "for every token: the rejection mass.": chance + (1.0 - chance) * rest,
        "the rejection mass is the same for every token that comes out. You weight each token's "
        "residual with what its own acceptance leaves of 1.": accepted + (1.0 - accepted) * rest,
        "the rejection mass is wrong: it is no mean of the chances to reject. Weight each with q.": (
            accepted + (1.0 - chance[drafted].mean()) * rest
        ),
        "the rejection mass is wrong: it is no sum of the chances to reject. Weight each with q.": (
            accepted + (1.0 - chance[drafted]).sum() * rest
        ),
    }


class _Careful:
    """An acceptance rule that minds how it is asked."""

    def __init__(self, attempt: Attempt, rule: references.Acceptance) -> None:
        self._attempt = attempt
        self._rule = rule

    @property
    def shown(self) -> str:
        """How a failure names it."""
        return "<a rule>"

    def __call__(self, p: Any, q: Any) -> float:
        for name, value in (("p(x)", p), ("q(x)", q)):
            if np.ndim(value) > 0:
                self._attempt.fail(
                    f"`acceptance` takes two numbers, and got a whole row for {name}. Go through the "
                    "tokens one by one."
                )
        p, q = float(p), float(q)
        self._attempt.require(
            q > 0.0,
            "`acceptance` was asked about a token with q(x) = 0. The draft never proposes it, so it is "
            "never accepted.",
        )
        return self._rule(p, q)


class _CarefulResidual:
    """A residual rule that minds how it is asked."""

    def __init__(self, attempt: Attempt, rule: references.Residual) -> None:
        self._attempt = attempt
        self._rule = rule

    @property
    def shown(self) -> str:
        """How a failure names it."""
        return "<a rule>"

    def __call__(self, p: Any, q: Any) -> Tensor:
        for name, value in (("p", p), ("q", q)):
            self._attempt.require(
                isinstance(value, Tensor) and value.ndim == 1,
                f"`residual` takes whole rows, tensors [vocab], and got something else for {name}.",
            )
        return self._rule(p, q)

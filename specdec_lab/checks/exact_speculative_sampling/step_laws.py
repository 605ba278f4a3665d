"""The check of the audit in code: the law of one step, under any two rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from specdec_lab import distributions
from specdec_lab.audit import step
from specdec_lab.checks import references
from specdec_lab.checks.exact_speculative_sampling.naming import fail_row, first_wrong, same_row
from specdec_lab.checks.exact_speculative_sampling.rows import exactly, pairs
from specdec_lab.checks.harness import Attempt, check


def _always(chance: float) -> references.Acceptance:
    return lambda p, q: chance


def _ratio(p: float, q: float) -> float:
    return min(1.0, p / q)


def _lacking(p: Tensor, q: Tensor) -> Tensor:
    above = (p - q).clamp(min=0.0)
    return above / above.sum() if above.sum() > 0.0 else p


def _rules() -> list[tuple[str, references.Acceptance, references.Residual]]:
    """Two rules and what to call them: the right ones, and some wrong ones, which have laws as well."""
    return [
        ("always 0.5, q", _always(0.5), lambda p, q: q),
        ("min(1, p/q), max(0, p - q) normalised", _ratio, _lacking),
        ("min(1, p/q), p", _ratio, lambda p, q: p),
        ("min(1, q/p), max(0, p - q) normalised", lambda p, q: min(1.0, q / p) if p else 1.0, _lacking),
    ]


@check(
    read="The audit, in code",
    closed=(distributions, step),
    reference=references.step_law,
)
def step_law(attempt: Attempt, seed: int | None) -> None:
    """Accepted plus rejection mass times residual, for any two rules."""
    cases = [
        _Case(name, p, q, acceptance, replacement)
        for p, q in [(exactly([0.6, 0.4]), exactly([0.5, 0.5])), *pairs(seed)]
        for name, acceptance, replacement in _rules()
    ]

    def ask(case: _Case) -> Tensor:
        yours = attempt(
            case.p.clone(),
            case.q.clone(),
            _Careful(attempt, case.acceptance),
            case.residual,
            shown={"p": case.p, "q": case.q, "acceptance, residual": case.name},
        )
        return attempt.row(yours, len(case.p))

    found = first_wrong(cases, ask, _Case.truth, _laws, same_row)
    if found:
        yours = ask(found[0])
        fail_row(attempt, found[1], yours, found[0].truth())


@dataclass(frozen=True)
class _Case:
    """Two distributions and two rules."""

    name: str
    p: Tensor
    q: Tensor
    acceptance: references.Acceptance
    residual: references.Residual

    def truth(self) -> Tensor:
        """What comes out."""
        return references.step_law(self.p, self.q, self.acceptance, self.residual).double()


def _laws(case: _Case) -> dict[str, Tensor | None]:
    """Misconception -> the law that it gives."""
    p, q = case.p.double(), case.q.double()
    pairs_of = list(zip(case.p.tolist(), case.q.tolist(), strict=True))
    chance = exactly([case.acceptance(x, y) if y > 0.0 else 0.0 for x, y in pairs_of])
    exchanged = exactly([case.acceptance(y, x) if x > 0.0 else 0.0 for x, y in pairs_of])
    accepted, swapped, weighted = q * chance, q * exchanged, p * chance
    rest, other_rest = case.residual(p, q), case.residual(q, p)
    rejected = 1.0 - accepted.sum()
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
        "the rejection mass is wrong: 1 less what was accepted *in all*, each weighted with q.": (
            accepted + (1.0 - chance.mean()) * rest
        ),
        "the rejection mass is wrong: the chances to reject do not count alike. Weight each with q.": (
            accepted + (1.0 - chance).sum() * rest
        ),
        "what was accepted is not the rejection mass; that is 1 less it.": accepted
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
            if isinstance(value, Tensor) and value.ndim > 0:
                self._attempt.fail(
                    f"`acceptance` takes two numbers, and got a tensor for {name}. Go through the "
                    "tokens one by one."
                )
        p, q = float(p), float(q)
        self._attempt.require(
            q > 0.0,
            "`acceptance` was asked about a token with q(x) = 0. The draft never proposes it, so it is "
            "never accepted.",
        )
        return self._rule(p, q)

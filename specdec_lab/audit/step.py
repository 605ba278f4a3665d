"""One step of speculative sampling, audited: is what comes out p?

A token x comes out in two ways. It is drafted and accepted, with mass q(x) * a(x); or some other token
is rejected and x is drawn from the residual. Added up over all x, the two have to give p.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import torch
from torch import Tensor

from specdec_lab import distributions
from specdec_lab.enumeration import SUM_TOLERANCE
from specdec_lab.sheet import Sheet, Shown, Toned

Number: TypeAlias = Any
"""A float or a ``Fraction``; never both kinds in one audit."""
Row: TypeAlias = Sequence[Any] | Tensor
"""A distribution ``[vocab]``."""
Acceptance = Callable[[float, float], float]
"""(p(x), q(x)) -> the chance to keep a drafted token x."""
Residual = Callable[[Tensor, Tensor], Tensor]
"""(p ``[vocab]``, q ``[vocab]``) -> what a replacement is drawn from, ``[vocab]``."""

EXAMPLE_LABELS = ("Paris", "London", "Rome", "Berlin")
EXAMPLE_P = (Fraction(35, 100), Fraction(40, 100), Fraction(20, 100), Fraction(5, 100))
EXAMPLE_Q = (Fraction(55, 100), Fraction(25, 100), Fraction(15, 100), Fraction(5, 100))
"""The worked example of the course: the draft is too fond of Paris."""


@dataclass(frozen=True)
class StepAudit(Shown):
    """What one step does with each token. All tuples have one entry per token.

    The numbers are floats, or ``Fraction``s where p and q were fractions; then nothing is rounded.

    Args:
        labels: what to call the tokens.
        p, q: the target's and the draft's distribution.
        acceptance: the chance to keep the token when it is drafted; None where it never is (q = 0).
        residual: what a replacement is drawn from.
        accepted_mass: q(x) * acceptance, the chance that x comes out as an accepted draft.
        restored_mass: rejection mass * residual, the chance that x comes out as a replacement.
    """

    labels: tuple[str, ...]
    p: tuple[Number, ...]
    q: tuple[Number, ...]
    acceptance: tuple[Number, ...]
    residual: tuple[Number, ...]
    accepted_mass: tuple[Number, ...]
    restored_mass: tuple[Number, ...]

    @property
    def final_mass(self) -> tuple[Number, ...]:
        """The distribution that comes out."""
        return tuple(map(sum, zip(self.accepted_mass, self.restored_mass, strict=True)))

    @property
    def alpha(self) -> Number:
        """The chance that a drafted token is kept."""
        return sum(self.accepted_mass)

    @property
    def rejection_mass(self) -> Number:
        """The chance that it is not; with the exact rule the total variation between p and q."""
        return sum(self.q) - self.alpha

    @property
    def l1_error(self) -> Number:
        """Sum of the differences between what comes out and p; 0 means exact."""
        return sum(abs(out - p) for out, p in zip(self.final_mass, self.p, strict=True))

    def sheet(self) -> Sheet:
        """The audit as a table."""
        number = str if self.rational else _decimal
        percent = _ratio if self.rational else _percent
        rows = zip(
            self.labels,
            map(number, self.p),
            map(number, self.q),
            map(percent, self.acceptance),
            map(number, self.residual),
            map(number, self.accepted_mass),
            map(number, self.restored_mass),
            map(number, self.final_mass),
            strict=True,
        )
        how = "in rational arithmetic" if self.rational else "in float64"
        error = f"{float(self.l1_error):.1e}" if self.l1_error else "0"
        return Sheet(
            title=f"One step of speculative sampling, {how}",
            columns=("token", "p", "q", "accept", "residual", "accepted", "+ restored", "= final"),
            rows=tuple(rows),
            notes=(
                f"alpha {_percent(self.alpha)}; rejection mass {_percent(self.rejection_mass)}",
                Toned(
                    f"L1 distance between the final mass and p: {error}",
                    "good" if self.l1_error < 1e-6 else "bad",
                ),
            ),
        )

    @property
    def rational(self) -> bool:
        """Whether the numbers are fractions."""
        return isinstance(self.p[0], Fraction)

    def to_json(self) -> dict[str, Any]:
        """The numbers as floats, for machines."""
        columns = ("p", "q", "acceptance", "residual", "accepted_mass", "restored_mass", "final_mass")
        return {
            "labels": list(self.labels),
            **{
                name: [None if x is None else float(x) for x in getattr(self, name)] for name in columns
            },
            "alpha": float(self.alpha),
            "rejection_mass": float(self.rejection_mass),
            "l1_error": float(self.l1_error),
        }


def audit_step(
    p: Row,
    q: Row,
    labels: Sequence[str] | None = None,
    *,
    acceptance: Acceptance | None = None,
    residual: Residual | None = None,
) -> StepAudit:
    """Audit one step of speculative sampling on given distributions.

    Args:
        p: the target's distribution over the vocabulary, ``[vocab]``.
        q: the draft's.
        labels: what to call the tokens; None is their numbers.
        acceptance: the rule to audit, (p(x), q(x)) -> chance; None is the library's own.
        residual: the rule to audit, tensors (p, q) -> tensor; None is the library's own.

    Both as numbers are audited in float64, by the very functions that decoding uses; both as
    ``Fraction``s in rational arithmetic, in which the library's rules leave an error of exactly 0.

    Raises:
        ValueError: for p, q or labels that do not fit each other, or are not distributions.

    Source: Leviathan et al. 2023 (arXiv 2211.17192), appendix A.1, the proof that this audits.
    """
    target, draft = _rows(p, q)
    names = tuple(map(str, range(len(target))) if labels is None else labels)
    if not len(target) == len(draft) == len(names):
        raise ValueError(
            f"p, q, labels: got {len(target)}, {len(draft)} and {len(names)} entries, expected as many "
            "of each as there are tokens"
        )
    if isinstance(target[0], Fraction):
        if acceptance is not None or residual is not None:
            raise ValueError(
                "acceptance, residual: expected none with fractions; give p and q as floats"
            )
        return _assemble(names, target, draft, *_rational_rules(target, draft))
    p_row, q_row = (torch.tensor(row, dtype=torch.float64) for row in (target, draft))
    accept = acceptance or distributions.acceptance_probability
    chances = [
        _chance(accept(p_of_token, q_of_token)) if q_of_token > 0.0 else None
        for p_of_token, q_of_token in zip(target, draft, strict=True)
    ]
    rest = torch.as_tensor((residual or distributions.residual)(p_row, q_row)).tolist()
    return _assemble(names, target, draft, chances, rest)


def worked_example(rational: bool = False) -> StepAudit:
    """The course's example: Paris, London, Rome, Berlin."""
    if rational:
        return audit_step(EXAMPLE_P, EXAMPLE_Q, EXAMPLE_LABELS)
    return audit_step(list(map(float, EXAMPLE_P)), list(map(float, EXAMPLE_Q)), EXAMPLE_LABELS)


def _rational_rules(p: Sequence[Number], q: Sequence[Number]) -> tuple[list[Number], list[Number]]:
    """The library's two rules once more, in numbers that do not round."""
    chances = [min(Fraction(1), x / y) if y else None for x, y in zip(p, q, strict=True)]
    leftover = [max(Fraction(0), x - y) for x, y in zip(p, q, strict=True)]
    mass = sum(leftover)
    return chances, [entry / mass for entry in leftover] if mass else list(p)


def _assemble(
    labels: tuple[str, ...],
    p: Sequence[Number],
    q: Sequence[Number],
    acceptance: Sequence[Number],
    residual: Sequence[Number],
) -> StepAudit:
    drafted = [(y, 0 if chance is None else chance) for y, chance in zip(q, acceptance, strict=True)]
    accepted = [y * chance for y, chance in drafted]
    # Added up over what is rejected: 1 minus what is accepted would lose digits where p is nearly q.
    rejected = sum(y * (1 - chance) for y, chance in drafted)
    # Where nothing is rejected the residual is never drawn from, whatever it is (0/0 where p = q).
    restored = [rejected * entry if rejected else rejected for entry in residual]
    return StepAudit(labels, *map(tuple, (p, q, acceptance, residual, accepted, restored)))


def _chance(acceptance: float) -> float:
    """A uniform number is compared with the rule's value, so more than 1 is the same as 1."""
    value = float(acceptance)
    if not value >= 0.0:
        raise ValueError(f"acceptance: got {value:g} for a token, expected 0 or more")
    return min(1.0, value)


def _rows(
    p: Sequence[Number] | Tensor, q: Sequence[Number] | Tensor
) -> tuple[list[Number], list[Number]]:
    """Both rows as fractions if there is one among them, else as floats; whole numbers are either."""
    rows = {"p": _entries("p", p), "q": _entries("q", q)}
    every = [entry for row in rows.values() for entry in row]
    rational = any(isinstance(entry, Fraction) for entry in every)
    if rational and not all(isinstance(entry, Fraction | int) for entry in every):
        raise ValueError("p, q: got fractions and floats, expected both of one kind")
    kind = Fraction if rational else float
    target, draft = ([kind(entry) for entry in row] for row in rows.values())
    _require_distribution("p", target, 0.0 if rational else SUM_TOLERANCE)
    _require_distribution("q", draft, 0.0 if rational else SUM_TOLERANCE)
    return target, draft


def _entries(name: str, row: Row) -> list[Number]:
    if isinstance(row, Tensor) and row.dim() != 1:
        raise ValueError(f"{name}: got shape {list(row.shape)}, expected [vocab]")
    entries = row.double().tolist() if isinstance(row, Tensor) else list(row)
    if not entries:
        raise ValueError(f"{name}: got no entries, expected one per token")
    return entries


def _require_distribution(name: str, row: list[Number], tolerance: float) -> None:
    if not (min(row) >= 0 and abs(sum(row) - 1) <= tolerance):
        raise ValueError(
            f"{name}: got entries that sum to {float(sum(row)):.6g} with smallest "
            f"{float(min(row)):.6g}, expected a distribution: a sum of 1 and nothing negative"
        )


def _float(value: Number) -> float | None:
    return None if value is None else float(value)


def _decimal(value: Number) -> str:
    if value == 0:
        return "0"
    return f"{value:.3f}" if abs(value) >= 0.001 else f"{value:.0e}"


def _percent(value: Number) -> str:
    return "-" if value is None else f"{100 * float(value):.3g} %"


def _ratio(value: Number) -> str:
    return "-" if value is None else str(value)

"""The check of the audit by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from torch import Tensor

from specdec_lab.audit import step
from specdec_lab.audit.step import EXAMPLE_LABELS, EXAMPLE_P, EXAMPLE_Q
from specdec_lab.checks.failure import CheckFailed
from specdec_lab.checks.harness import Attempt, check

ROUGHLY = 0.006
"""Answers by hand may be rounded to two decimals."""
_EACH = ("acceptance", "accepted", "residual", "final")


@check(read="The audit, by hand")
def by_hand(attempt: Attempt, seed: int | None) -> None:
    """The worked example. What is expected is not shown: it is the answer."""
    answer = attempt.value
    if not isinstance(answer, Mapping) or set(answer) != {*_EACH, "rejection_mass"}:
        attempt.fail("expected the five entries acceptance, accepted, rejection_mass, residual, final.")
    filled = [entry for key in _EACH for entry in _entries(attempt, answer, key)]
    if None in [*filled, answer["rejection_mass"]]:
        attempt.fail("not implemented yet: fill in every entry.")
    audit = step.audit_step([*map(float, EXAMPLE_P)], [*map(float, EXAMPLE_Q)], EXAMPLE_LABELS)
    p, q = audit.p, audit.q
    both = [x * y for x, y in zip(p, q, strict=True)]
    doubled = [x + y for x, y in zip(audit.accepted_mass, audit.p, strict=True)]
    _like(attempt, answer, "acceptance", audit.acceptance, {
        "that is q/p: the letters are exchanged.": [min(1.0, y / x) for x, y in zip(p, q, strict=True)],
        "no probability is above 1. A token that the draft proposes too rarely is always kept.": [
            x / y for x, y in zip(p, q, strict=True)
        ],
        "that is the chance that it is rejected.": [1.0 - a for a in audit.acceptance],
        "that is 1 or 0. Paris is drafted too often, but still kept *sometimes*.": [0.0, 1.0, 1.0, 1.0],
        "that is p.": p,
        "that is q/p, and no probability is above 1: the letters are exchanged.": [
            y / x for x, y in zip(p, q, strict=True)
        ],
        "that is p times q, as if the draft had to equal a token drawn from p.": both,
        "that is how often the token is drafted *and* kept. Here the question is how often it is "
        "kept, once it was drafted.": audit.accepted_mass,
    })  # fmt: skip
    _like(attempt, answer, "accepted", audit.accepted_mass, {
        "that is how often the token is kept once it was drafted; it has to be drafted first.":
            audit.acceptance,
        "that is p times the acceptance. The token is drawn from q.": [
            x * a for x, a in zip(p, audit.acceptance, strict=True)
        ],
        "that is q: how often the token is drafted. Not every one is kept.": q,
        "that is p. What is drafted too rarely is accepted only as often as it is drafted.": p,
        "that is the larger of p and q. A token is kept at most as often as it is drafted.": [
            max(x, y) for x, y in zip(p, q, strict=True)
        ],
        "these are scaled up to 1. Something is rejected, so they sum to less.": [
            x / audit.alpha for x in audit.accepted_mass
        ],
        "that is p times q, as if the draft had to equal a token drawn from p.": both,
    })  # fmt: skip
    mass = _number(attempt, "rejection_mass", answer["rejection_mass"])
    attempt.require(
        abs(mass - 100 * audit.rejection_mass) > ROUGHLY * 100,
        '"rejection_mass": write it as a number from 0 to 1, not in percent.',
    )
    attempt.require(
        abs(mass - sum(1.0 - a for a in audit.acceptance) / 4) > ROUGHLY,
        '"rejection_mass": the four chances do not count alike. Each token counts as often as it is '
        "drafted.",
    )
    attempt.require(
        abs(mass - sum(abs(x - y) for x, y in zip(p, q, strict=True))) > ROUGHLY,
        '"rejection_mass": that is the sum of |p - q|. It counts twice, what is too much and what is '
        "lacking.",
    )
    attempt.require(
        abs(mass - (1 - sum(both))) > ROUGHLY,
        '"rejection_mass": that is how often two draws differ, one from p and one from q.',
    )
    attempt.require(
        abs(mass - sum(x * (1.0 - a) for x, a in zip(p, audit.acceptance, strict=True))) > ROUGHLY,
        '"rejection_mass": that is weighted with p. The token is drawn from q.',
    )
    attempt.require(
        abs(mass - audit.alpha) > ROUGHLY,
        '"rejection_mass": that is how much is accepted in all. The rest is rejected.',
    )
    attempt.require(
        abs(mass - (1 - audit.acceptance[0])) > ROUGHLY,
        '"rejection_mass": that is the chance once Paris was drafted. It has to be drafted first.',
    )
    attempt.require(
        abs(mass - audit.rejection_mass) <= ROUGHLY,
        '"rejection_mass": add up what is accepted; the rest of 1 is rejected.',
    )
    leftover = [max(0.0, x - y) for x, y in zip(p, q, strict=True)]
    apart = [abs(x - y) for x, y in zip(p, q, strict=True)]
    _like(attempt, answer, "residual", audit.residual, {
        "that does not sum to 1 yet. Divide by the sum.": leftover,
        "that is p. Some of it has come out by acceptance already; only what is lacking is left.": p,
        "no probability is negative: what the draft proposes too often is not lacking at all, so it "
        "gets 0.": [x - y for x, y in zip(p, q, strict=True)],
        "what the draft proposes too often is not lacking: max(0, p - q), not |p - q|.": [
            x / sum(apart) for x in apart
        ],
        "what the draft proposes too often is not lacking: max(0, p - q), not |p - q|. And divide by "
        "the sum.": apart,
        "a probability cannot be negative: what the draft proposes too often gets 0.": [
            (x - y) / sum(leftover) for x, y in zip(p, q, strict=True)
        ],
        "that is what the draft has too much of, max(0, q - p). What p has more of is lacking.": [
            1.0, 0.0, 0.0, 0.0
        ],
        "that is p with Paris struck out. Other tokens have come out by acceptance already, too.": [
            0.0, *(x / sum(p[1:]) for x in p[1:])
        ],
        "that is the largest entry only. The replacement is *drawn*.": [0.0, 1.0, 0.0, 0.0],
        "that is q. What it proposes too often was just rejected.": q,
        "that is what the draft has too much of, max(0, q - p). What p has more of is lacking; and "
        "divide by the sum.": [max(0.0, y - x) for x, y in zip(p, q, strict=True)],
        "both get the same, but more is lacking of one than of the other.": [0.0, 0.5, 0.5, 0.0],
    })  # fmt: skip
    _like(attempt, answer, "final", audit.final_mass, {
        "the replacements are missing: rejection mass times residual comes on top of what is "
        "accepted.": audit.accepted_mass,
        "the residual comes out only if something was rejected: weight it with the rejection mass.": [
            x + y for x, y in zip(audit.accepted_mass, audit.residual, strict=True)
        ],
        "that counts what was accepted twice.": doubled,
        "that is what the draft gives. What is rejected is replaced.": q,
        "that is drawn again from p after a rejection. Draw from the residual.": [
            x + audit.rejection_mass * y for x, y in zip(audit.accepted_mass, p, strict=True)
        ],
        "that is what was accepted, scaled up to 1. What was rejected is replaced from the residual.": [
            x / audit.alpha for x in audit.accepted_mass
        ],
        "that is only what comes out as a replacement.": audit.restored_mass,
        "that is acceptance plus residual. The one has to be weighted with q, the other with the "
        "rejection mass.": [x + y for x, y in zip(audit.acceptance, audit.residual, strict=True)],
    })  # fmt: skip


def _entries(attempt: Attempt, answer: Mapping[str, object], key: str) -> list[object]:
    entries = answer[key]
    if not isinstance(entries, list | tuple | Tensor | np.ndarray) or len(entries) != 4:
        attempt.fail(f'expected four numbers for "{key}": Paris, London, Rome, Berlin.')
    return [_plain(entry) for entry in entries]


def _number(attempt: Attempt, key: str, entry: object) -> float:
    """As a float; a failure tells where it stands."""
    try:
        return attempt.number(_plain(entry))
    except CheckFailed as failure:
        attempt.fail(f'"{key}": {failure.problem}')


def _plain(entry: object) -> object:
    """Fractions are numbers, too."""
    return float(entry) if isinstance(entry, Fraction) else entry


def _like(
    attempt: Attempt,
    answer: Mapping[str, object],
    key: str,
    expected: Sequence[float],
    suspects: Mapping[str, Sequence[float]],
) -> None:
    yours = [_number(attempt, key, entry) for entry in _entries(attempt, answer, key)]
    if _near(yours, expected):
        return
    problem = next((text for text, wrong in suspects.items() if _near(yours, wrong)), "")
    if _near([entry / 100 for entry in yours], expected):
        problem = "write numbers from 0 to 1, not percentages."
    if not problem:
        pairs = zip(EXAMPLE_LABELS, yours, expected, strict=True)
        off = {city: abs(mine - theirs) for city, mine, theirs in pairs if abs(mine - theirs) > ROUGHLY}
        problem = f"look at {' and '.join(off)} again."
        if max(off.values()) < 2 * ROUGHLY:
            problem += " It is nearly right: round it, do not cut digits off."
    attempt.fail(f'"{key}": {problem}')


def _near(yours: Sequence[float], expected: Sequence[float]) -> bool:
    return all(abs(mine - theirs) <= ROUGHLY for mine, theirs in zip(yours, expected, strict=True))

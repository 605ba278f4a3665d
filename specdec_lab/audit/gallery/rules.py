"""Rogues whose fault lies in a rule: when a token is kept, or what follows it."""

from __future__ import annotations

import torch
from torch import Tensor

from specdec_lab.audit.decoder import Verdict as AuditVerdict
from specdec_lab.audit.gallery.member import (
    Acceptance,
    Bonus,
    Member,
    Replacement,
    emitted,
    exact_acceptance,
    exact_bonus,
    exact_replacement,
    judged_by,
    kept,
    loop,
)
from specdec_lab.distributions import one_hot, residual
from specdec_lab.randomness import Chooser
from specdec_lab.records import Draft
from specdec_lab.sampling import Sampling, TargetRows
from specdec_lab.verification import Verdict, Verifier

# --- when a drafted token is kept ---------------------------------------------------------------


def inverted_ratio(p: TargetRows, draft: Draft, i: int) -> float:
    """The two letters mixed up."""
    token = draft.tokens[i]
    p_of_token, q_of_token = float(p[i][token]), float(draft.q[i][token])
    return min(1.0, q_of_token / p_of_token) if p_of_token > 0.0 else 1.0


def target_probability(p: TargetRows, draft: Draft, i: int) -> float:
    """As if q were 1: right for a one-hot draft and for no other."""
    return float(p[i][draft.tokens[i]])


def hard_threshold(p: TargetRows, draft: Draft, i: int) -> float:
    """The ratio compared with 1 instead of with a uniform number."""
    token = draft.tokens[i]
    return 1.0 if p[i][token] >= draft.q[i][token] else 0.0


def plausible_enough(p: TargetRows, draft: Draft, i: int) -> float:
    """Any token that the target finds plausible: faster, and lossy."""
    return 1.0 if p[i][draft.tokens[i]] > 0.25 else 0.0


def next_row(p: TargetRows, draft: Draft, i: int) -> float:
    """Off by one: the row behind the token instead of the row that predicts it."""
    token = draft.tokens[i]
    return min(1.0, float(p[i + 1][token]) / float(draft.q[i][token]))


def last_unverified(p: TargetRows, draft: Draft, i: int) -> float:
    """The loop over the draft ends one position early."""
    return 1.0 if i == len(draft) - 1 else exact_acceptance(p, draft, i)


def epsilon_below(p: TargetRows, draft: Draft, i: int) -> float:
    """A small number against a division by zero that cannot happen."""
    token = draft.tokens[i]
    return min(1.0, float(p[i][token]) / (float(draft.q[i][token]) + 1e-5))


def in_half_precision(p: TargetRows, draft: Draft, i: int) -> float:
    """Probabilities in bfloat16: eight bits are not enough for a ratio."""
    token = draft.tokens[i]
    return min(1.0, float(p[i].bfloat16()[token] / draft.q[i].bfloat16()[token]))


# --- what replaces a rejected token -------------------------------------------------------------


def from_the_target(p: TargetRows, draft: Draft, i: int) -> Tensor:
    """p itself: what acceptance has given already is given again."""
    return p[i]


def target_without_the_token(p: TargetRows, draft: Draft, i: int) -> Tensor:
    """p with the rejected token struck out."""
    rest = p[i].clone()
    rest[draft.tokens[i]] = 0.0
    return rest / rest.sum()


def absolute_difference(p: TargetRows, draft: Draft, i: int) -> Tensor:
    """|p - q| instead of max(0, p - q): half of it goes to what the draft is too fond of."""
    difference = (p[i] - draft.q[i]).abs()
    return difference / difference.sum()


def softmax_of_the_residual(p: TargetRows, draft: Draft, i: int) -> Tensor:
    """Probabilities taken for logits."""
    return torch.softmax((p[i] - draft.q[i]).clamp(min=0.0), dim=-1)


def residual_of_the_next_row(p: TargetRows, draft: Draft, i: int) -> Tensor:
    """Off by one: p of the position behind, q of this one."""
    return residual(p[i + 1], draft.q[i])


def last_row(p: TargetRows, draft: Draft, i: int) -> Tensor:
    """The row of the bonus token, after a rejection too."""
    return p[len(draft)]


def largest_of_the_residual(p: TargetRows, draft: Draft, i: int) -> Tensor:
    """The argmax instead of a draw."""
    rest = exact_replacement(p, draft, i)
    return one_hot(int(rest.argmax()), like=rest)


TEMPERATURE = Sampling(0.5)


def before_the_temperature(p: TargetRows, draft: Draft, i: int) -> Tensor:
    """The residual of p as it was before the temperature, p^T up to a factor."""
    unwarped = p[i] ** TEMPERATURE.temperature
    return residual(unwarped / unwarped.sum(), draft.q[i])


def not_normalised(p: TargetRows, draft: Draft, i: int) -> Tensor:
    """max(0, p - q) as it is: it sums to the rejection mass, not to 1."""
    return (p[i] - draft.q[i]).clamp(min=0.0)


def not_clamped(p: TargetRows, draft: Draft, i: int) -> Tensor:
    """p - q with its negative entries, divided by the sum of the positive ones."""
    difference = p[i] - draft.q[i]
    return difference / difference.clamp(min=0.0).sum()


# --- what follows a draft kept whole ------------------------------------------------------------


def likeliest_bonus(p: TargetRows, draft: Draft) -> Tensor:
    """The argmax instead of a draw."""
    row = exact_bonus(p, draft)
    return one_hot(int(row.argmax()), like=row)


def bonus_of_the_row_before(p: TargetRows, draft: Draft) -> Tensor:
    """Off by one: the row that has predicted the last drafted token."""
    return p[max(0, len(draft) - 1)]


# --- the whole verdict --------------------------------------------------------------------------


def one_uniform_per_round(
    p: TargetRows, draft: Draft, chooser: Chooser, trace: bool = False
) -> Verdict:
    """One number u judges every position, as when the generator is seeded anew for each.

    Then i tokens are kept with the smallest of their i chances, not with the product.
    """
    reached = [1.0]
    for i in range(len(draft)):
        reached.append(min(reached[-1], exact_acceptance(p, draft, i)))
    law = [here - beyond for here, beyond in zip(reached, [*reached[1:], 0.0], strict=True)]
    count = chooser.sample(torch.tensor(law, dtype=torch.float64))
    whole = count == len(draft)
    rest = exact_bonus(p, draft) if whole else exact_replacement(p, draft, count)
    return kept(draft, count, chooser.sample(rest))


def whole_or_nothing(p: TargetRows, draft: Draft, chooser: Chooser, trace: bool = False) -> Verdict:
    """One coin for the whole draft, with the product of the chances."""
    chance = 1.0
    for i in range(len(draft)):
        chance *= exact_acceptance(p, draft, i)
    if chooser.accept(chance):
        return kept(draft, len(draft), chooser.sample(exact_bonus(p, draft)))
    return kept(draft, 0, chooser.sample(exact_replacement(p, draft, 0)))


def rest_of_the_draft_kept(
    p: TargetRows, draft: Draft, chooser: Chooser, trace: bool = False
) -> Verdict:
    """A rejected token is replaced in its place, and the tokens behind it are judged as if it stood."""
    tokens = []
    for i, token in enumerate(draft.tokens):
        if chooser.accept(exact_acceptance(p, draft, i)):
            tokens.append(token)
        else:
            tokens.append(chooser.sample(exact_replacement(p, draft, i)))
    return emitted(tokens, chooser.sample(exact_bonus(p, draft)))


def rejected_token_kept(p: TargetRows, draft: Draft, chooser: Chooser, trace: bool = False) -> Verdict:
    """The count of accepted tokens is off by one, so the rejected one stays."""
    for i in range(len(draft)):
        if not chooser.accept(exact_acceptance(p, draft, i)):
            return kept(draft, i + 1, chooser.sample(exact_replacement(p, draft, i)))
    return kept(draft, len(draft), chooser.sample(exact_bonus(p, draft)))


def _accepts(name: str, what: str, rule: Acceptance) -> Member:
    return Member(name, what, loop(verifier=judged_by(acceptance=rule)), "not exact")


def _replaces(name: str, what: str, rule: Replacement, expected: AuditVerdict = "not exact") -> Member:
    return Member(name, what, loop(verifier=judged_by(replacement=rule)), expected)


def _closes(name: str, what: str, rule: Bonus) -> Member:
    return Member(name, what, loop(verifier=judged_by(bonus=rule)), "not exact")


def _judges(name: str, what: str, verifier: Verifier) -> Member:
    return Member(name, what, loop(verifier=verifier), "not exact")


RULES = [
    _accepts("inverted ratio", "accepts with min(1, q/p)", inverted_ratio),
    _accepts("ratio without q", "accepts with p(x), as if q(x) were 1", target_probability),
    _accepts("hard threshold", "accepts exactly if p(x) >= q(x); no coin", hard_threshold),
    _accepts("plausible enough", "accepts whatever has p(x) above 0.25", plausible_enough),
    _accepts("judged by the next row", "takes p(x) from one row too late", next_row),
    _accepts("last token unverified", "the loop over the draft ends one early", last_unverified),
    _accepts("epsilon below", "divides by q(x) + 0.00001", epsilon_below),
    _accepts("half precision", "computes the ratio in bfloat16", in_half_precision),
    _replaces("resampled from p", "replaces from p, not from the residual", from_the_target),
    _replaces(
        "p without the token", "replaces from p, rejected token struck out", target_without_the_token
    ),
    _replaces("absolute residual", "replaces from |p - q|", absolute_difference),
    _replaces("softmax of the residual", "takes the residual for logits", softmax_of_the_residual),
    _replaces(
        "residual of the next row", "takes the residual one row too late", residual_of_the_next_row
    ),
    _replaces("replaced by the last row", "uses the bonus row after a rejection, too", last_row),
    _replaces("largest of the residual", "replaces by the residual's argmax", largest_of_the_residual),
    Member(
        "residual before temperature",
        "subtracts q from p as it was before the temperature",
        loop(verifier=judged_by(replacement=before_the_temperature), sampling=TEMPERATURE),
        "not exact",
        sampling=TEMPERATURE,
    ),
    _replaces(
        "residual not normalised",
        "draws from max(0, p - q) as it is",
        not_normalised,
        "bad distribution",
    ),
    _replaces(
        "residual not clamped",
        "draws from p - q, negative entries and all",
        not_clamped,
        "bad distribution",
    ),
    _closes("argmax bonus", "takes the likeliest token as the bonus", likeliest_bonus),
    _closes("bonus of the row before", "draws the bonus one row too early", bonus_of_the_row_before),
    _judges("one uniform per round", "judges every position by the same number", one_uniform_per_round),
    _judges("whole draft or nothing", "one coin for all, the chances multiplied", whole_or_nothing),
    _judges(
        "rest of the draft kept", "goes on with the draft behind a replacement", rest_of_the_draft_kept
    ),
    _judges("rejected token kept", "keeps one token too many", rejected_token_kept),
]

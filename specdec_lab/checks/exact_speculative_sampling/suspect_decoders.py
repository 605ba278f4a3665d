"""Decoders that are wrong in a known way, for a check to compare laws with.

Most of the faults are those of the audit's gallery. Each is put into a loop of the form that learners
write, with the draft length and the processing of the toy at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from specdec_lab.audit.gallery import rules
from specdec_lab.audit.gallery.member import Acceptance, Bonus, Replacement, emitted, judged_by
from specdec_lab.checks import references
from specdec_lab.checks.references import Process, ProposeSampled
from specdec_lab.distributions import one_hot
from specdec_lab.language_model import CausalLM
from specdec_lab.randomness import Chooser
from specdec_lab.records import Draft
from specdec_lab.verification import Verdict, Verifier

DraftLength = Callable[[int, int], int]
"""(gamma, tokens left in the budget) -> how many to draft."""
DRAFT_LENGTHS: list[DraftLength] = [
    lambda gamma, left: min(gamma, left - 1),
    lambda gamma, left: gamma,
    lambda gamma, left: min(gamma, left),
]
"""What is too much is cut off at the end."""


def _ratio(p: Any, draft: Draft, i: int) -> float:
    """min(1, p/q), also for a q that the token cannot have been drawn from."""
    token = draft.tokens[i]
    q_of_token = float(draft.q[i][token])
    return min(1.0, float(p[i][token]) / q_of_token) if q_of_token > 0.0 else 1.0


@dataclass(frozen=True)
class Suspect:
    """A decoder with one fault.

    Args:
        what: what it does, to go on "a decoder which ...".
        verifier: judges the draft.
        propose: drafts.
        row: (process, logits) -> p.
        forgets: whether the target forgets what was rejected.
    """

    what: str
    verifier: Verifier = judged_by(_ratio)  # noqa: RUF009
    propose: ProposeSampled = references.propose
    row: Callable[[Process, Tensor], Tensor] = lambda process, logits: process(logits)
    forgets: bool = True

    def decode(
        self,
        target: CausalLM,
        draft_model: CausalLM,
        prompt: Sequence[int],
        gamma: int,
        length: int,
        process: Process,
        chooser: Chooser,
        draft_length: DraftLength,
    ) -> tuple[int, ...]:
        """The new tokens."""
        tokens, end = list(prompt), len(prompt) + length
        unread = list(prompt)
        while len(tokens) < end:
            wanted = draft_length(gamma, end - len(tokens))
            drafted, q = self.propose(draft_model, tokens, wanted, process, chooser)
            draft = Draft(drafted, torch.stack(q) if q else torch.zeros(0, target.vocab_size))
            if self.forgets:
                unread = target.rewind_to_match(tokens)
            rows = target.extend([*unread, *drafted], rows=len(drafted) + 1)
            p: Any = [self.row(process, row) for row in rows]
            tokens += self.verifier(p, draft, chooser, False).tokens
            unread = tokens[-1:]
        return tuple(tokens[len(prompt) : end])


# --- drafts whose q was not drawn from ----------------------------------------------------------


def _drawing(
    drawn: Callable[[Process, Tensor], Tensor], handed: Callable[[Process, Tensor], Tensor]
) -> ProposeSampled:
    """Draws from one distribution of a row of logits, and hands over another."""

    def propose(
        model: CausalLM, tokens: Sequence[int], gamma: int, process: Process, chooser: Chooser
    ) -> tuple[list[int], list[Tensor]]:
        draft, q = list[int](), list[Tensor]()
        for _ in range(gamma):
            logits = model.extend(model.rewind_to_match([*tokens, *draft]))[-1]
            q.append(handed(process, logits))
            draft.append(chooser.sample(drawn(process, logits)))
        return draft, q

    return propose


def _processed(process: Process, logits: Tensor) -> Tensor:
    return process(logits)


def _raw(_process: Process, logits: Tensor) -> Tensor:
    return logits.softmax(-1)


def _twice(process: Process, logits: Tensor) -> Tensor:
    return process(process(logits).log())


def _as_logits(process: Process, logits: Tensor) -> Tensor:
    return process(process(logits))


def _likeliest(process: Process, logits: Tensor) -> Tensor:
    p = process(logits)
    return one_hot(int(p.argmax()), like=p)


def _colder(process: Process, logits: Tensor) -> Tensor:
    """At half the temperature."""
    p = process(logits) ** 2
    return p / p.sum()


def _first_q_for_all(
    model: CausalLM, tokens: Sequence[int], gamma: int, process: Process, chooser: Chooser
) -> tuple[list[int], list[Tensor]]:
    draft, q = references.propose(model, tokens, gamma, process, chooser)
    return draft, q[:1] * len(q)


# --- verdicts that are not in the gallery -------------------------------------------------------


def _everything_and_more(p: Any, draft: Draft, chooser: Chooser, trace: bool = False) -> Verdict:
    """Judges properly, and then keeps the whole draft in front of what was to follow."""
    verdict = judged_by(_ratio)(p, draft, chooser, trace)
    return emitted(draft.tokens, verdict.closing)


def _accepted_dropped(p: Any, draft: Draft, chooser: Chooser, trace: bool = False) -> Verdict:
    """Keeps only what follows the accepted tokens."""
    return emitted([], judged_by(_ratio)(p, draft, chooser, trace).closing)


def _always(p: Any, draft: Draft, i: int) -> float:
    return 1.0


def _if_likeliest(p: Any, draft: Draft, i: int) -> float:
    return float(int(p[i].argmax()) == draft.tokens[i])


def _accepts(what: str, rule: Acceptance) -> Suspect:
    return Suspect(what, judged_by(acceptance=rule))


def _replaces(what: str, rule: Replacement) -> Suspect:
    return Suspect(what, judged_by(replacement=rule))


def _closes(what: str, rule: Bonus) -> Suspect:
    return Suspect(what, judged_by(bonus=rule))


SUSPECTS: list[Suspect] = [
    _accepts("accepts with min(1, q/p)", rules.inverted_ratio),
    _accepts("accepts with p(x), as if q(x) were 1", rules.target_probability),
    _accepts("accepts exactly if p(x) >= q(x), without a coin", rules.hard_threshold),
    _accepts("accepts whatever has p(x) above 0.25", rules.plausible_enough),
    _accepts("accepts a token exactly if it is p's likeliest", _if_likeliest),
    _accepts("accepts everything", _always),
    _accepts("takes p(x) from one row too late", rules.next_row),
    _accepts("does not judge the last drafted token", rules.last_unverified),
    _accepts("divides by q(x) + 0.00001", rules.epsilon_below),
    _accepts("computes the ratio in bfloat16", rules.in_half_precision),
    _replaces("replaces from p, not from the residual", rules.from_the_target),
    _replaces("replaces from p, the rejected token struck out", rules.target_without_the_token),
    _replaces("replaces from |p - q|", rules.absolute_difference),
    _replaces("takes the residual for logits", rules.softmax_of_the_residual),
    _replaces("takes the residual one row too late", rules.residual_of_the_next_row),
    _replaces("uses the bonus row after a rejection, too", rules.last_row),
    _replaces("replaces by the residual's likeliest token", rules.largest_of_the_residual),
    _replaces("replaces by p's likeliest token", lambda p, draft, i: one_hot(int(p[i].argmax()), p[i])),
    _replaces("replaces from q", lambda p, draft, i: draft.q[i]),
    _closes("takes the likeliest token as the bonus", rules.likeliest_bonus),
    _closes("draws the bonus one row too early", rules.bonus_of_the_row_before),
    Suspect("judges every position by the same random number", rules.one_uniform_per_round),
    Suspect("tosses one coin for the whole draft, the chances multiplied", rules.whole_or_nothing),
    Suspect("goes on with the draft behind a replacement", rules.rest_of_the_draft_kept),
    Suspect("keeps the rejected token, too", rules.rejected_token_kept),
    Suspect("keeps the whole draft, whatever was rejected", _everything_and_more),
    Suspect("drops the accepted tokens, and keeps only what follows them", _accepted_dropped),
    Suspect("leaves rejected tokens in the target's cache", forgets=False),
    Suspect(
        "drafts the likeliest token, and hands over the softmax as q",
        propose=_drawing(_likeliest, _processed),
    ),
    Suspect(
        "drafts the likeliest token, and hands over the softmax of the logits as q",
        propose=_drawing(_likeliest, _raw),
    ),
    Suspect(
        "draws the draft at half the temperature that q says", propose=_drawing(_colder, _processed)
    ),
    Suspect(
        "draws the draft without `process`, and q says with it", propose=_drawing(_raw, _processed)
    ),
    Suspect(
        "draws the draft with `process`, and q says without it", propose=_drawing(_processed, _raw)
    ),
    Suspect("hands over the first q for every token", propose=_first_q_for_all),
    Suspect("does not put p through `process`", row=_raw),
    Suspect("puts neither p nor q through `process`", propose=_drawing(_raw, _raw), row=_raw),
    Suspect("puts p through the temperature and top-p twice", row=_twice),
    Suspect("puts p through `process` twice", row=_as_logits),
]
"""The commonest come first: the first whose law is the learner's is named."""


def suspects() -> Iterator[tuple[Suspect, DraftLength]]:
    """Each fault, with each way to choose the length of a draft."""
    for draft_length in DRAFT_LENGTHS:
        for suspect in SUSPECTS:
            yield suspect, draft_length

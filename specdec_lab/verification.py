"""Who decides: which drafted tokens are kept, and which token follows them.

Two verifiers over one signature. ``verify_by_sampling`` is the exact rejection rule of Leviathan et
al. 2023 (arXiv 2211.17192, algorithm 1) and Chen et al. 2023 (arXiv 2302.01318, algorithm 2);
``verify_greedily`` is what it becomes at temperature 0, where every choice is certain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from specdec_lab.distributions import acceptance_probability, residual
from specdec_lab.randomness import Chooser
from specdec_lab.records import Closing, Draft, Position, Top
from specdec_lab.sampling import TargetRows

TRACED_ENTRIES = 10


@dataclass(frozen=True)
class Verdict:
    """What became of a draft: a position per drafted token, and the token behind the accepted ones."""

    positions: tuple[Position, ...]
    closing: int
    closing_kind: Closing
    closing_top: Top | None = None

    @property
    def tokens(self) -> list[int]:
        """What it emits: the accepted tokens, then the closing one."""
        return [position.token for position in self.positions if position.accepted] + [self.closing]


Verifier = Callable[[TargetRows, Draft, Chooser, bool], Verdict]
"""(p at each position, the draft, the source of choices, whether to trace) -> the verdict."""


def verify_by_sampling(p: TargetRows, draft: Draft, chooser: Chooser, trace: bool = False) -> Verdict:
    """Keep each drafted token x with probability min(1, p(x)/q(x)), up to the first rejection.

    The rejected token is replaced by a draw from the residual *at its own position*, and the rest of
    the draft is dropped. A draft kept whole earns a bonus token from the target's last row. Either
    way the emitted tokens have exactly the target's distribution.

    Args:
        p: the target's distributions; ``p[i]`` follows i drafted tokens, so there is one more of
            them than drafted tokens.
        draft: the proposal with q, the distributions its tokens were really drawn from.
        chooser: makes the decisions.
        trace: also record the largest entries of p, q and the residual.

    Raises:
        ValueError: if q gives a drafted token no probability: it cannot have been drawn from q.
    """
    positions: list[Position] = []
    q_of_tokens = draft.q_of_tokens()
    for i, (token, q_of_token) in enumerate(zip(draft.tokens, q_of_tokens, strict=True)):
        p_here = p[i]
        p_of_token = float(p_here[token])
        probability = acceptance_probability(p_of_token, q_of_token)
        accepted = chooser.accept(probability)
        positions.append(
            Position(
                token,
                q_of_token,
                p_of_token,
                probability,
                chooser.last_uniform,
                accepted,
                _top(p_here, draft.row(i, len(p_here)).to(p_here.device)) if trace else None,
            )
        )
        if not accepted:
            positions += _never_judged(draft, q_of_tokens, first=i + 1)
            replacement = chooser.sample(_residual(p_here, draft, i))
            return Verdict(tuple(positions), replacement, "replacement")
    p_last = p[len(draft)]
    return Verdict(
        tuple(positions),
        chooser.sample(p_last),
        "bonus" if draft.tokens else "plain",
        _top(p_last) if trace else None,
    )


def verify_greedily(p: TargetRows, draft: Draft, chooser: Chooser, trace: bool = False) -> Verdict:
    """Keep drafted tokens while they are the target's own argmax; then emit the argmax that is not.

    The exact rule with a one-hot p: the acceptance probability is 1 for the argmax and 0 for any
    other token, whatever q is, and the residual is the argmax. Nothing random is left, so the chooser
    is not asked. Arguments as in ``verify_by_sampling``.
    """
    positions: list[Position] = []
    q_of_tokens = draft.q_of_tokens()
    for i, (token, q_of_token) in enumerate(zip(draft.tokens, q_of_tokens, strict=True)):
        choice = p.argmax(i)
        accepted = token == choice
        certain = 1.0 if accepted else 0.0
        top = _top(p[i], draft.row(i, len(p[i])).to(p[i].device)) if trace else None
        positions.append(Position(token, q_of_token, certain, certain, None, accepted, top))
        if not accepted:
            positions += _never_judged(draft, q_of_tokens, first=i + 1)
            return Verdict(tuple(positions), choice, "replacement")
    last = len(draft)
    return Verdict(
        tuple(positions),
        p.argmax(last),
        "bonus" if draft.tokens else "plain",
        _top(p[last]) if trace else None,
    )


def _residual(p: Tensor, draft: Draft, position: int) -> Tensor:
    """The residual at one position, on p's device; q is looked at only where it is not zero."""
    ids = draft.token_ids
    return residual(p, draft.q[position].to(p.device), None if ids is None else ids.to(p.device))


def _never_judged(draft: Draft, q_of_tokens: list[float], first: int) -> list[Position]:
    return [Position(draft.tokens[i], q_of_tokens[i]) for i in range(first, len(draft))]


def _top(p: Tensor, q: Tensor | None = None) -> Top:
    if q is None:
        return Top(_largest(p), [], [])
    return Top(_largest(p), _largest(q), _largest(residual(p, q)))


def _largest(distribution: Tensor) -> list[tuple[int, float]]:
    values, tokens = distribution.topk(min(TRACED_ENTRIES, len(distribution)))
    pairs = zip(tokens.tolist(), values.tolist(), strict=True)
    return [(token, value) for token, value in pairs if value > 0.0]

"""Wrong ways to judge a draft, and what to say to whoever judges like that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from specdec_lab.distributions import acceptance_probability, residual
from specdec_lab.randomness import Chooser

Verify = Callable[[Sequence[int], Sequence[Tensor], Sequence[Tensor], Chooser], Any]
Verdict = tuple[int, int]
Rows = Sequence[Tensor]
Chance = Callable[[Sequence[int], Rows, Rows, int], float]
"""(draft, q, p, i) -> the chance to keep the i-th token."""
Replacement = Callable[[Sequence[int], Rows, Rows, int], Tensor]
Bonus = Callable[[Sequence[int], Rows, Rows], Tensor]


def ratio(p: Tensor, q: Tensor, token: int) -> float:
    """min(1, p/q) of one token; also where another row than its own gives it no probability."""
    return acceptance_probability(float(p[token]), float(q[token])) if q[token] > 0.0 else 1.0


def judged(
    chance: Chance = lambda d, q, p, i: ratio(p[i], q[i], d[i]),
    replacement: Replacement = lambda d, q, p, i: residual(p[i], q[i]),
    bonus: Bonus = lambda d, q, p: p[len(d)],
    count: Callable[[int], int] = lambda i: i,
) -> Verify:
    """A verifier put together from its parts; the exact one if nothing is changed."""

    def verify(draft: Sequence[int], q: Rows, p: Rows, chooser: Chooser) -> Verdict:
        for i in range(len(draft)):
            if not chooser.accept(chance(draft, q, p, i)):
                return count(i), chooser.sample(replacement(draft, q, p, i))
        return len(draft), chooser.sample(bonus(draft, q, p))

    return verify


def one_hot(row: Tensor) -> Tensor:
    """All of the probability on the likeliest token."""
    certain = torch.zeros_like(row)
    certain[int(row.argmax())] = 1.0
    return certain


def _normalised(row: Tensor) -> Tensor:
    return row / row.sum()


def _without(row: Tensor, token: int) -> Tensor:
    rest = row.clone()
    rest[token] = 0.0
    return _normalised(rest)


def _coins_for_all(draft: Sequence[int], q: Rows, p: Rows, chooser: Chooser) -> list[bool]:
    return [chooser.accept(ratio(p[i], q[i], token)) for i, token in enumerate(draft)]


def every_accepted(replaced: Callable[[list[bool]], int]) -> Verify:
    """Counts what is accepted behind a rejection as well; ``replaced`` chooses the residual's row."""

    def verify(draft: Sequence[int], q: Rows, p: Rows, chooser: Chooser) -> Verdict:
        kept = _coins_for_all(draft, q, p, chooser)
        if all(kept):
            return len(draft), chooser.sample(p[-1])
        row = replaced(kept)
        return sum(kept), chooser.sample(residual(p[row], q[row]))

    return verify


def _last(kept: list[bool]) -> int:
    """Where the last rejection is."""
    return max(i for i, coin in enumerate(kept) if not coin)


def last_rejection(draft: Sequence[int], q: Rows, p: Rows, chooser: Chooser) -> Verdict:
    """Goes on behind a rejection, and a later one takes its place."""
    kept = _coins_for_all(draft, q, p, chooser)
    if all(kept):
        return len(draft), chooser.sample(p[-1])
    last = _last(kept)
    return last, chooser.sample(residual(p[last], q[last]))


def matching(draft: Sequence[int], q: Rows, p: Rows, chooser: Chooser) -> Verdict:
    """Keeps what equals a token drawn from p: exact, but another rule."""
    for i, token in enumerate(draft):
        own = chooser.sample(p[i])
        if own != token:
            return i, own
    return len(draft), chooser.sample(p[-1])


def whole_or_nothing(draft: Sequence[int], q: Rows, p: Rows, chooser: Chooser) -> Verdict:
    """One coin, with all the chances multiplied."""
    chance = 1.0
    for i, token in enumerate(draft):
        chance *= ratio(p[i], q[i], token)
    if chooser.accept(chance):
        return len(draft), chooser.sample(p[-1])
    if not draft:
        return 0, chooser.sample(p[-1])
    return 0, chooser.sample(residual(p[0], q[0]))


def one_number_for_all(draft: Sequence[int], q: Rows, p: Rows, chooser: Chooser) -> Verdict:
    """Keeps i tokens with the smallest of their i chances."""
    reached = [1.0]
    for i, token in enumerate(draft):
        reached.append(min(reached[-1], ratio(p[i], q[i], token)))
    law = [here - beyond for here, beyond in zip(reached, [*reached[1:], 0.0], strict=True)]
    count = chooser.sample(torch.tensor(law, dtype=torch.float64))
    if count == len(draft):
        return count, chooser.sample(p[-1])
    return count, chooser.sample(residual(p[count], q[count]))


def _instead_of_a_bonus(count: Callable[[int], int]) -> Verify:
    """The draft's last token where a bonus is due, behind ``count(length)`` tokens."""

    def verify(draft: Sequence[int], q: Rows, p: Rows, chooser: Chooser) -> Verdict:
        for i, token in enumerate(draft):
            if not chooser.accept(ratio(p[i], q[i], token)):
                return i, chooser.sample(residual(p[i], q[i]))
        return (count(len(draft)), draft[-1]) if draft else (0, chooser.sample(p[-1]))

    return verify


def exchanged(draft: Sequence[int], q: Rows, p: Rows, chooser: Chooser) -> Verdict:
    """The right verdict, its two parts in the wrong order."""
    accepted, following = judged()(draft, q, p, chooser)
    return following, accepted


def suspects() -> Iterable[tuple[str, Verify]]:
    """What is wrong, and a verifier that does so."""
    yield from _replacements()
    yield from _coins()
    yield from _both()
    yield (
        "the bonus token is drawn from p[-1]; you take its likeliest.",
        judged(bonus=lambda d, q, p: one_hot(p[-1])),
    )
    yield (
        "the bonus token is drawn one row too early: p[-1] is behind the last drafted token.",
        judged(bonus=lambda d, q, p: p[max(0, len(d) - 1)]),
    )
    yield (
        "the bonus token is drawn from a residual. Nothing was rejected there, so it is p[-1] itself.",
        judged(bonus=lambda d, q, p: residual(p[-1], q[-1]) if d else p[-1]),
    )
    yield (
        "the bonus token is missing: the draft's last token is given in its place. Behind a draft that "
        "was kept whole, p[-1] has one more to give.",
        _instead_of_a_bonus(lambda length: length - 1),
    )
    yield (
        "the bonus token is missing: the draft's last token comes twice. Draw one from p[-1].",
        _instead_of_a_bonus(lambda length: length),
    )
    yield "the rejected token is counted among the accepted ones.", judged(count=lambda i: i + 1)
    yield (
        "after a rejection the tokens in front of it are dropped as well. They stay.",
        judged(count=lambda i: 0),
    )
    for replaced in (lambda kept: kept.index(False), _last, sum):
        yield (
            "every accepted token is counted, those behind a rejection, too. They continue a text that "
            "does not exist.",
            every_accepted(replaced),
        )
    yield (
        "the judging goes on behind a rejection. Stop at the *first* one: what was drafted behind it "
        "continues a text that does not exist.",
        last_rejection,
    )
    yield (
        "one coin decides about the whole draft. Each token has its own, from the left.",
        whole_or_nothing,
    )
    yield (
        "one random number judges all tokens. Each has a coin of its own.",
        one_number_for_all,
    )
    yield (
        "this keeps a token if it equals one drawn from p. That is exact as well, but it keeps fewer; "
        "here the rule with min(1, p/q) is asked for.",
        matching,
    )
    yield "the two are in the wrong order: first how many are kept, then the token.", exchanged


def _replacements() -> Iterable[tuple[str, Verify]]:
    """What is wrong with what follows a rejection."""
    yield (
        "after a rejection you draw from p. Part of p has come out by acceptance already; draw from "
        "`residual(p[i], q[i])`.",
        judged(replacement=lambda d, q, p, i: p[i]),
    )
    yield (
        "after a rejection you draw from p with the rejected token struck out. Others have come out by "
        "acceptance already, too; draw from `residual(p[i], q[i])`.",
        judged(replacement=lambda d, q, p, i: _without(p[i], d[i])),
    )
    yield (
        "the replacement is drawn from |p - q|. What the draft has too much of is not lacking; draw "
        "from `residual(p[i], q[i])`.",
        judged(replacement=lambda d, q, p, i: _normalised((p[i] - q[i]).abs())),
    )
    yield (
        "the replacement is drawn from a softmax of the residual. It is a distribution already.",
        judged(replacement=lambda d, q, p, i: residual(p[i], q[i]).softmax(-1)),
    )
    yield (
        "the replacement is drawn from a softmax of max(0, p - q). Those are no logits; "
        "`residual(p[i], q[i])` is a distribution already.",
        judged(replacement=lambda d, q, p, i: (p[i] - q[i]).clamp(min=0.0).softmax(-1)),
    )
    yield (
        "the replacement is drawn from q. The draft had its chance; draw from `residual(p[i], q[i])`.",
        judged(replacement=lambda d, q, p, i: q[i]),
    )
    yield (
        "the replacement is drawn from the residual; you take its likeliest token.",
        judged(replacement=lambda d, q, p, i: one_hot(residual(p[i], q[i]))),
    )
    yield (
        "after a rejection you take p's likeliest token. Draw from `residual(p[i], q[i])`.",
        judged(replacement=lambda d, q, p, i: one_hot(p[i])),
    )
    yield (
        "the replacement has to be drawn at the place of the rejection; you use the target's last row.",
        judged(replacement=lambda d, q, p, i: p[-1]),
    )
    yield (
        "the replacement is drawn one row too late, from p[i + 1]. Draw from `residual(p[i], q[i])`.",
        judged(replacement=lambda d, q, p, i: p[i + 1]),
    )
    yield (
        "the residual needs p at the place of the rejection; you use the target's last row.",
        judged(replacement=lambda d, q, p, i: residual(p[-1], q[i])),
    )
    yield (
        "the residual is taken one row too late: p[i], q[i] and draft[i] belong together.",
        judged(replacement=lambda d, q, p, i: residual(p[i + 1], q[i])),
    )
    yield (
        "the residual is taken one row too early: p[i], q[i] and draft[i] belong together. (p[-1] is "
        "the last row.)",
        judged(replacement=lambda d, q, p, i: residual(p[i - 1], q[i])),
    )
    yield (
        "the residual is taken one row too early: p[i], q[i] and draft[i] belong together.",
        judged(replacement=lambda d, q, p, i: residual(p[max(0, i - 1)], q[max(0, i - 1)])),
    )
    yield (
        "the residual is always that of the first row: p[i], q[i] and draft[i] belong together.",
        judged(replacement=lambda d, q, p, i: residual(p[0], q[0])),
    )
    yield (
        "the residual takes the first row of q for every token. Each has its own, q[i].",
        judged(replacement=lambda d, q, p, i: residual(p[i], q[0])),
    )
    yield (
        "the residual takes the last row of q for every token. Each has its own, q[i].",
        judged(replacement=lambda d, q, p, i: residual(p[i], q[-1])),
    )
    yield (
        "p and q are exchanged in `residual`: the target's comes first.",
        judged(replacement=lambda d, q, p, i: residual(q[i], p[i])),
    )


def _multiplied(capped: bool, draft: Sequence[int], q: Rows, p: Rows, place: int) -> float:
    """All the ratios so far; each at most 1, or only the whole."""
    chance = 1.0
    for i in range(place + 1):
        token = draft[i]
        chance *= ratio(p[i], q[i], token) if capped else float(p[i][token]) / float(q[i][token])
    return min(1.0, chance)


def _coins() -> Iterable[tuple[str, Verify]]:
    """What is wrong with the chance to keep a token."""
    yield "nothing is ever rejected.", judged(chance=lambda d, q, p, i: 1.0)
    yield (
        "p and q are exchanged in `acceptance`: the target's comes first.",
        judged(chance=lambda d, q, p, i: ratio(q[i], p[i], d[i])),
    )
    yield (
        "it is the wrong way round: where `chooser.accept` says yes, the token is kept.",
        judged(chance=lambda d, q, p, i: 1.0 - ratio(p[i], q[i], d[i])),
    )
    yield (
        "it decides by itself: a token is kept exactly if p >= q. What is drafted too often is still "
        "kept *sometimes*: ask `chooser.accept`.",
        judged(chance=lambda d, q, p, i: float(p[i][d[i]] >= q[i][d[i]])),
    )
    yield (
        "it decides by itself: a token is kept if its chance is above one half. Ask `chooser.accept`.",
        judged(chance=lambda d, q, p, i: float(ratio(p[i], q[i], d[i]) >= 0.5)),
    )
    yield (
        "it decides by itself: a token is kept if it is p's likeliest. That is the rule of greedy "
        "decoding; here ask `chooser.accept`.",
        judged(chance=lambda d, q, p, i: float(int(p[i].argmax()) == d[i])),
    )
    yield (
        "a token is kept with probability p(x), as if q(x) were 1.",
        judged(chance=lambda d, q, p, i: float(p[i][d[i]])),
    )
    yield (
        "a token is kept with probability min(p, q). That is the chance to be drafted *and* kept; here "
        "it was drafted already.",
        judged(chance=lambda d, q, p, i: min(float(p[i][d[i]]), float(q[i][d[i]]))),
    )
    yield (
        "a token is kept with probability p(x) times q(x). It was drafted already: min(1, p/q).",
        judged(chance=lambda d, q, p, i: float(p[i][d[i]] * q[i][d[i]])),
    )
    yield (
        "token i is judged by row i + 1. p[i] is what the target says *in front of* draft[i].",
        judged(chance=lambda d, q, p, i: ratio(p[i + 1], q[i], d[i])),
    )
    yield (
        "token i is judged by row i - 1. p[i] is what the target says *in front of* draft[i]. (p[-1] "
        "is the last row.)",
        judged(chance=lambda d, q, p, i: ratio(p[i - 1], q[i], d[i])),
    )
    yield (
        "every token is judged by the target's last row. p[i] belongs to draft[i].",
        judged(chance=lambda d, q, p, i: ratio(p[-1], q[i], d[i])),
    )
    yield (
        "every token is judged by the target's first row. p[i] belongs to draft[i].",
        judged(chance=lambda d, q, p, i: ratio(p[0], q[i], d[i])),
    )
    yield (
        "the coin takes the first row of q for every token. Each has its own, q[i].",
        judged(chance=lambda d, q, p, i: ratio(p[i], q[0], d[i])),
    )
    for capped in (False, True):
        yield (
            "the ratios are multiplied from token to token. Each is judged by its own p[i] and q[i]: "
            "that those before it were kept has been decided.",
            judged(chance=partial(_multiplied, capped)),
        )
    yield (
        "the last drafted token is kept without being judged.",
        judged(chance=lambda d, q, p, i: 1.0 if i == len(d) - 1 else ratio(p[i], q[i], d[i])),
    )
    yield (
        "the first drafted token is kept without being judged.",
        judged(chance=lambda d, q, p, i: ratio(p[i], q[i], d[i]) if i else 1.0),
    )


def _both() -> Iterable[tuple[str, Verify]]:
    """What goes wrong for the coin and for the residual alike."""
    yield (
        "p is one row too late for the coin and the residual: p[i] is what the target says *in front "
        "of* draft[i].",
        judged(
            chance=lambda d, q, p, i: ratio(p[i + 1], q[i], d[i]),
            replacement=lambda d, q, p, i: residual(p[i + 1], q[i]),
        ),
    )
    yield (
        "p and q are exchanged, in `acceptance` and in `residual`: the target's comes first.",
        judged(
            chance=lambda d, q, p, i: ratio(q[i], p[i], d[i]),
            replacement=lambda d, q, p, i: residual(q[i], p[i]),
        ),
    )
    yield (
        "the first row of q is taken for every token. Each has its own, q[i].",
        judged(
            chance=lambda d, q, p, i: ratio(p[i], q[0], d[i]),
            replacement=lambda d, q, p, i: residual(p[i], q[0]),
        ),
    )
    yield (
        "the last row of q is taken for every token. Each has its own, q[i].",
        judged(
            chance=lambda d, q, p, i: ratio(p[i], q[-1], d[i]),
            replacement=lambda d, q, p, i: residual(p[i], q[-1]),
        ),
    )
    yield (
        "the first rows of p and q are taken for every token. p[i] and q[i] belong to draft[i].",
        judged(
            chance=lambda d, q, p, i: ratio(p[0], q[0], d[i]),
            replacement=lambda d, q, p, i: residual(p[0], q[0]),
        ),
    )

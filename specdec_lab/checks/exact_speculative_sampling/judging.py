"""The check of judging a draft: the law of its verdict, over every path that chance can take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from specdec_lab import verification
from specdec_lab.checks import references
from specdec_lab.checks.exact_speculative_sampling.laws import apart, law_of
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.distributions import acceptance_probability, residual
from specdec_lab.enumeration import EnumeratingChooser
from specdec_lab.randomness import Chooser

Verify = Callable[[Sequence[int], Sequence[Tensor], Sequence[Tensor], Chooser], Any]
Verdict = tuple[int, int]
Law = dict[Verdict, float]


class _Case:
    """A draft to judge, with p and q at each place."""

    def __init__(self, random: Random, length: int, vocab: int = 4, zeros: int = 0) -> None:
        self.q = [_row(random, vocab, zeros) for _ in range(length)]
        self.p = [_row(random, vocab, zeros) for _ in range(length + 1)]
        self.draft = [random.choice(row.nonzero()[:, 0].tolist()) for row in self.q]

    def law(self, verify: Verify) -> Law:
        """(accepted, following) -> probability."""
        return law_of(lambda chooser: verify(self.draft, self.q, self.p, chooser))


def _row(random: Random, vocab: int, zeros: int = 0) -> Tensor:
    weights = [random.random() ** 2 + 0.02 for _ in range(vocab)]
    for token in random.sample(range(vocab), zeros):
        weights[token] = 0.0
    row = torch.tensor(weights, dtype=torch.float64)
    return row / row.sum()


@check(read="Judge a draft", closed=(verification,), reference=references.exact_verify)
def exact_verify(attempt: Attempt, seed: int | None) -> None:
    """The law of (accepted, following), over every path."""
    random = Random(3 if seed is None else seed)
    cases = [_Case(random, 1), _Case(random, 2), _Case(random, 0), _Case(random, 3, zeros=1)]
    if seed is not None:
        cases += [_Case(random, 3, vocab=3), _Case(random, 2, vocab=6, zeros=3)]
    for case in cases:
        _judge_verify(attempt, case)


def _judge_verify(attempt: Attempt, case: _Case) -> None:
    asked = {"accept": 0, "sample": 0}

    def run(chooser: EnumeratingChooser) -> Verdict:
        yours = attempt(
            list(case.draft),
            list(case.q),
            list(case.p),
            chooser,
            _acceptance(attempt),
            _residual(attempt),
            shown={"draft": case.draft, "q": "...", "p": "...", "chooser": "..."},
        )
        for choice in chooser.choices:
            asked[choice.question] += 1
        return _verdict(attempt, yours, case.draft)

    law = law_of(run)
    truth = case.law(references.exact_verify)
    far = apart(law, truth)
    if not far:
        return
    attempt.require(
        asked["sample"] > 0,
        "`chooser.sample` was never asked. The token behind the draft is drawn, after a rejection as "
        "well as for the bonus.",
    )
    suspects = ((text, case.law(wrong)) for text, wrong in _wrong_verifiers())
    found = next((text for text, wrong in suspects if not apart(law, wrong)), None)
    if found is None and case.draft and not asked["accept"]:
        found = "`chooser.accept` was never asked. Whether a token is kept is decided by the chooser."
    outcome = next(iter(far))
    attempt.fail(
        found or "the verdicts do not come with the right probabilities.",
        outcome=f"accepted {outcome[0]}, then token {outcome[1]}",
        yours=f"comes with probability {law.get(outcome, 0.0):.4f}",
        expected=f"{truth.get(outcome, 0.0):.4f}",
    )


def _acceptance(attempt: Attempt) -> references.Acceptance:
    def acceptance(p_of_token: Any, q_of_token: Any) -> float:
        for value in (p_of_token, q_of_token):
            if isinstance(value, Tensor) and value.ndim > 0:
                attempt.fail(
                    "`acceptance` takes two numbers, the drafted token's p and q, and got a whole row."
                )
        p, q = float(p_of_token), float(q_of_token)
        if q <= 0.0:
            return 1.0
        return min(1.0, p / q)

    return acceptance


def _residual(attempt: Attempt) -> references.Residual:
    def residual(p: Tensor, q: Tensor) -> Tensor:
        for value in (p, q):
            if not isinstance(value, Tensor) or value.ndim != 1:
                attempt.fail("`residual` takes two whole rows, p[i] and q[i], and got something else.")
        lacking = (p - q).clamp(min=0.0)
        return lacking / lacking.sum() if lacking.sum() > 0.0 else p

    return residual


def _verdict(attempt: Attempt, yours: object, draft: Sequence[int]) -> Verdict:
    if not isinstance(yours, tuple | list) or len(yours) != 2:
        attempt.fail(
            "expected two things: how many drafted tokens are kept, and the token behind them."
        )
    accepted = attempt.whole_number(yours[0])
    attempt.require(
        yours[1] is not None,
        "there is always a token behind the accepted ones: a replacement, or the bonus token.",
    )
    following = attempt.whole_number(yours[1])
    attempt.require(
        0 <= accepted <= len(draft),
        f"{accepted} tokens are said to be kept, of {len(draft)} drafted ones.",
    )
    return accepted, following


def _wrong_verifiers() -> Iterable[tuple[str, Verify]]:
    """What is wrong, and a verifier that does so."""
    keep, lack = acceptance_probability, residual

    def ratio(p: Tensor, q: Tensor, token: int) -> float:
        return keep(float(p[token]), float(q[token])) if q[token] > 0.0 else 1.0

    def judged(
        chance: Callable[..., float] = lambda d, q, p, i: ratio(p[i], q[i], d[i]),
        replacement: Callable[..., Tensor] = lambda d, q, p, i: lack(p[i], q[i]),
        bonus: Callable[..., Tensor] = lambda d, q, p: p[-1],
        count: Callable[[int], int] = lambda i: i,
    ) -> Verify:
        def verify(
            draft: Sequence[int], q: Sequence[Tensor], p: Sequence[Tensor], chooser: Chooser
        ) -> Verdict:
            for i in range(len(draft)):
                if not chooser.accept(chance(draft, q, p, i)):
                    return count(i), chooser.sample(replacement(draft, q, p, i))
            return len(draft), chooser.sample(bonus(draft, q, p))

        return verify

    def all_accepted(
        draft: Sequence[int], q: Sequence[Tensor], p: Sequence[Tensor], chooser: Chooser
    ) -> Verdict:
        kept = [chooser.accept(ratio(p[i], q[i], token)) for i, token in enumerate(draft)]
        if all(kept):
            return len(draft), chooser.sample(p[-1])
        first = kept.index(False)
        return sum(kept), chooser.sample(lack(p[first], q[first]))

    def matching(
        draft: Sequence[int], q: Sequence[Tensor], p: Sequence[Tensor], chooser: Chooser
    ) -> Verdict:
        for i, token in enumerate(draft):
            own = chooser.sample(p[i])
            if own != token:
                return i, own
        return len(draft), chooser.sample(p[-1])

    def whole_or_nothing(
        draft: Sequence[int], q: Sequence[Tensor], p: Sequence[Tensor], chooser: Chooser
    ) -> Verdict:
        chance = 1.0
        for i, token in enumerate(draft):
            chance *= ratio(p[i], q[i], token)
        if chooser.accept(chance):
            return len(draft), chooser.sample(p[-1])
        return 0, chooser.sample(lack(p[0], q[0]))

    def one_hot(row: Tensor) -> Tensor:
        certain = torch.zeros_like(row)
        certain[int(row.argmax())] = 1.0
        return certain

    yield (
        "after a rejection you draw from p. Part of p has come out by acceptance already; draw from "
        "`residual(p[i], q[i])`.",
        judged(replacement=lambda d, q, p, i: p[i]),
    )
    yield (
        "the bonus token is drawn from p[-1], not its likeliest.",
        judged(bonus=lambda d, q, p: one_hot(p[-1])),
    )
    yield (
        "the replacement is drawn from the residual; you take its likeliest token.",
        judged(replacement=lambda d, q, p, i: one_hot(lack(p[i], q[i]))),
    )
    yield (
        "the replacement has to be drawn at the place of the rejection; you use the target's last row.",
        judged(replacement=lambda d, q, p, i: p[-1]),
    )
    yield (
        "the residual needs p at the place of the rejection; you use the target's last row.",
        judged(replacement=lambda d, q, p, i: lack(p[-1], q[i])),
    )
    yield (
        "the residual is taken one row too late: p[i], q[i] and draft[i] belong together.",
        judged(replacement=lambda d, q, p, i: lack(p[i + 1], q[i])),
    )
    yield (
        "token i is judged by row i + 1. p[i] is what the target says *in front of* draft[i].",
        judged(chance=lambda d, q, p, i: ratio(p[i + 1], q[i], d[i])),
    )
    yield (
        "p and q are one row too late for the coin and the residual: p[i] is what the target says *in "
        "front of* draft[i].",
        judged(
            chance=lambda d, q, p, i: ratio(p[i + 1], q[i], d[i]),
            replacement=lambda d, q, p, i: lack(p[i + 1], q[i]),
        ),
    )
    yield (
        "p and q are exchanged in `acceptance`: the target's comes first.",
        judged(chance=lambda d, q, p, i: ratio(q[i], p[i], d[i])),
    )
    yield (
        "p and q are exchanged in `residual`: the target's comes first.",
        judged(replacement=lambda d, q, p, i: lack(q[i], p[i])),
    )
    yield (
        "p and q are exchanged, in `acceptance` and in `residual`: the target's comes first.",
        judged(
            chance=lambda d, q, p, i: ratio(q[i], p[i], d[i]),
            replacement=lambda d, q, p, i: lack(q[i], p[i]),
        ),
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
        "a token is kept with probability p(x), as if q(x) were 1.",
        judged(chance=lambda d, q, p, i: float(p[i][d[i]])),
    )
    yield "nothing is ever rejected.", judged(chance=lambda d, q, p, i: 1.0)
    yield (
        "the rejected token is counted among the accepted ones.",
        judged(count=lambda i: i + 1),
    )
    yield (
        "after a rejection the tokens in front of it are dropped as well. They stay.",
        judged(count=lambda i: 0),
    )
    yield (
        "the last drafted token is kept without being judged.",
        judged(
            chance=lambda d, q, p, i: 1.0 if i == len(d) - 1 else ratio(p[i], q[i], d[i]),
        ),
    )
    yield (
        "the bonus token is drawn one row too early: p[-1] is behind the last drafted token.",
        judged(bonus=lambda d, q, p: p[max(0, len(d) - 1)]),
    )
    yield (
        "every accepted token is counted, those behind a rejection, too. They continue a text that "
        "does not exist.",
        all_accepted,
    )
    yield (
        "one coin decides about the whole draft. Each token has its own, from the left.",
        whole_or_nothing,
    )
    yield (
        "this keeps a token if it equals one drawn from p. That is exact as well, but it keeps fewer; "
        "here the rule with min(1, p/q) is asked for.",
        matching,
    )

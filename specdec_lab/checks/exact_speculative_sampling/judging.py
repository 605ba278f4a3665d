"""The check of judging a draft: the law of its verdict, over every path that chance can take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from specdec_lab import verification
from specdec_lab.checks import references
from specdec_lab.checks.exact_speculative_sampling.laws import (
    AskedChooser,
    Law,
    apart,
    law_of,
    law_of_yours,
    the_same,
)
from specdec_lab.checks.exact_speculative_sampling.suspect_verdicts import Verdict, Verify, suspects
from specdec_lab.checks.harness import Attempt, check

TINY = 1e-7
"""A probability that no number added to it leaves alone."""
ROUNDED = 0.01
"""Laws that are no further apart look like a matter of rounding."""


class _Case:
    """A draft to judge, with p and q at each place; what is drafted is mostly in doubt, 0 < p/q < 1."""

    def __init__(
        self, random: Random, length: int, vocab: int = 4, zeros: int = 0, tiny: bool = False
    ) -> None:
        self.q = [_row(random, vocab, zeros) for _ in range(length)]
        self.p = [_row(random, vocab, zeros) for _ in range(length + 1)]
        self.draft = [
            _in_doubt(random, p, q) if random.random() < 0.8 else _possible(random, q)
            for p, q in zip(self.p, self.q, strict=False)
        ]
        if tiny:
            self.q[-1] = _with(self.q[-1], self.draft[-1], TINY)
            self.p[length - 1] = _with(self.p[length - 1], self.draft[-1], TINY * 0.6)

    def law(self, verify: Verify) -> Law:
        """(accepted, following) -> probability."""
        return law_of(lambda chooser: verify(self.draft, self.q, self.p, chooser))


def _row(random: Random, vocab: int, zeros: int = 0) -> Tensor:
    weights = [random.random() ** 2 + 0.02 for _ in range(vocab)]
    for token in random.sample(range(vocab), zeros):
        weights[token] = 0.0
    row = torch.tensor(weights, dtype=torch.float64)
    return row / row.sum()


def _possible(random: Random, q: Tensor) -> int:
    """A token that q may have drawn."""
    token: int = random.choice(q.nonzero()[:, 0].tolist())
    return token


def _in_doubt(random: Random, p: Tensor, q: Tensor) -> int:
    """One that is kept only sometimes, if there is one."""
    doubtful = ((p > 0.0) & (p < q)).nonzero()[:, 0].tolist()
    token: int = random.choice(doubtful) if doubtful else _possible(random, q)
    return token


def _with(row: Tensor, token: int, probability: float) -> Tensor:
    """The row with one probability made another."""
    changed = row.clone()
    changed[token] = 0.0
    changed *= (1.0 - probability) / changed.sum()
    changed[token] = probability
    return changed


class _Telling(_Case):
    """Three drafted tokens that thresholds part: likeliest with p < q; p > q without; just rare."""

    def __init__(self, random: Random) -> None:
        places = [
            ([0.5, 0.3, 0.1, 0.1], [0.7, 0.1, 0.15, 0.05], 0),
            ([0.5, 0.3, 0.1, 0.1], [0.3, 0.2, 0.25, 0.25], 1),
            ([0.5, 0.3, 0.14, 0.06], [0.4, 0.4, 0.1, 0.1], 2),
        ]
        order = random.sample(range(4), 4)
        shuffled = [[_shuffled(random, row, order) for row in rows] for *rows, _ in places]
        self.p = [p for p, _ in shuffled] + [_row(random, 4)]
        self.q = [q for _, q in shuffled]
        self.draft = [order.index(token) for *_, token in places]


def _shuffled(random: Random, row: Sequence[float], order: Sequence[int]) -> Tensor:
    """The row in another order, each entry a little changed."""
    weights = torch.tensor([row[token] * random.uniform(0.9, 1.1) for token in order]).double()
    return weights / weights.sum()


def _cases(seed: int | None) -> list[_Case]:
    random = Random(7 if seed is None else seed)
    cases = [_Case(random, 1), _Case(random, 2), _Case(random, 0), _Case(random, 3, zeros=1)]
    cases += [_Case(random, 3), _Case(random, 1, tiny=True), _Telling(random)]
    if seed is not None:
        cases += [_Case(random, 3, vocab=3), _Case(random, 2, vocab=6, zeros=3), _Case(random, 4)]
    return cases


@check(read="Judge a draft", closed=(verification,), reference=references.exact_verify)
def exact_verify(attempt: Attempt, seed: int | None) -> None:
    """The law of (accepted, following), over every path."""
    cases, asked = _cases(seed), Counter[str]()
    laws = [_law_of_yours(attempt, case, asked) for case in cases]
    truths = [case.law(references.exact_verify) for case in cases]
    wrong = [i for i, (law, truth) in enumerate(zip(laws, truths, strict=True)) if apart(law, truth)]
    if not wrong:
        return
    first = wrong[0]
    law, truth = laws[first], truths[first]
    outcome = next(iter(apart(law, truth)))
    _law_of_yours(attempt, cases[first], Counter())  # once more, for the failure to show this case
    attempt.fail(
        _what_is_wrong(cases, laws, truths, asked),
        outcome=f"accepted {outcome[0]}, then token {outcome[1]}",
        yours=f"comes with probability {law.get(outcome, 0.0):.4f}",
        expected=f"{truth.get(outcome, 0.0):.4f}",
    )


def _law_of_yours(attempt: Attempt, case: _Case, asked: Counter[str]) -> Law:
    def run(chooser: AskedChooser) -> Verdict:
        q, p = [row.clone() for row in case.q], [row.clone() for row in case.p]
        yours = attempt(
            list(case.draft),
            q,
            p,
            chooser,
            _acceptance(attempt),
            _residual(attempt),
            shown={"draft": case.draft, "q": "...", "p": "...", "chooser": "..."},
        )
        asked["accept"] += chooser.accepts
        asked["sample"] += len(chooser.drawn)
        for name, rows, before in (("q", q, case.q), ("p", p, case.p)):
            attempt.require(
                all(map(torch.equal, rows, before)),
                f"your code changes a row of {name} that it was given; the caller still needs that. "
                "Work on a copy.",
            )
        return _verdict(attempt, yours, case.draft)

    # Coins and draws are one more than drafted tokens; whoever tosses all coins first needs no more.
    return law_of_yours(attempt, run, most_questions=40)


def _what_is_wrong(
    cases: Sequence[_Case], laws: Sequence[Law], truths: Sequence[Law], asked: Counter[str]
) -> str:
    for text, wrong in suspects():
        if the_same(laws, (case.law(wrong) for case in cases)):
            return text
    if not asked["sample"]:
        return (
            "`chooser.sample` was never asked. The token behind the draft is drawn, after a rejection "
            "as well as for the bonus."
        )
    if not asked["accept"]:
        return "`chooser.accept` was never asked. Whether a token is kept is decided by the chooser."
    gaps = [
        max(map(abs, apart(law, truth).values()), default=0.0)
        for case, law, truth in zip(cases, laws, truths, strict=True)
        if not any(row.min() == TINY for row in case.q)
    ]
    if max(gaps) < ROUNDED:
        return (
            "nearly right, but not quite. Is something added to q (which is never 0 for a token that "
            "was drawn), or is the ratio computed in half precision?"
        )
    return "the verdicts do not come with the right probabilities."


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
            "expected two things: how many drafted tokens are kept, and the token behind them.",
            yours=f"{yours!r:.80}",
        )
    attempt.require(
        not isinstance(yours[0], list | tuple),
        "the first of the two is *how many* drafted tokens are kept, not which.",
    )
    accepted = attempt.whole_number(yours[0])
    attempt.require(
        yours[1] is not None,
        "there is always a token behind the accepted ones: a replacement, or the bonus token.",
    )
    following = attempt.whole_number(yours[1])
    attempt.require(
        0 <= accepted <= len(draft),
        f"{accepted} tokens are said to be kept, of {len(draft)} drafted ones. First comes how many, "
        "then the token behind them.",
    )
    return accepted, following

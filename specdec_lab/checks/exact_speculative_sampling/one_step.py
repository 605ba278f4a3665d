"""Checks of one step: the audit by hand, the two rules, the audit in code, alpha."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from specdec_lab import distributions
from specdec_lab.audit import step
from specdec_lab.audit.step import EXAMPLE_LABELS, EXAMPLE_P, EXAMPLE_Q
from specdec_lab.checks import references
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
    doubled = [x + y for x, y in zip(audit.accepted_mass, audit.p, strict=True)]
    _like(attempt, answer, "acceptance", audit.acceptance, {
        "that is q/p: the letters are exchanged.": [min(1.0, y / x) for x, y in zip(p, q, strict=True)],
        "no probability is above 1. A token that the draft proposes too rarely is always kept.": [
            x / y for x, y in zip(p, q, strict=True)
        ],
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
    })  # fmt: skip
    mass = attempt.number(answer["rejection_mass"])
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
    })  # fmt: skip
    _like(attempt, answer, "final", audit.final_mass, {
        "the replacements are missing: rejection mass times residual comes on top of what is "
        "accepted.": audit.accepted_mass,
        "the residual comes out only if something was rejected: weight it with the rejection mass.": [
            x + y for x, y in zip(audit.accepted_mass, audit.residual, strict=True)
        ],
        "that counts what was accepted twice.": doubled,
    })  # fmt: skip


def _entries(attempt: Attempt, answer: Mapping[str, object], key: str) -> list[object]:
    entries = answer[key]
    if not isinstance(entries, list | tuple | Tensor) or len(entries) != len(EXAMPLE_LABELS):
        attempt.fail(f'expected four numbers for "{key}": Paris, London, Rome, Berlin.')
    return list(entries)


def _like(
    attempt: Attempt,
    answer: Mapping[str, object],
    key: str,
    expected: Sequence[float],
    suspects: Mapping[str, Sequence[float]],
) -> None:
    yours = [attempt.number(entry) for entry in _entries(attempt, answer, key)]
    if _near(yours, expected):
        return
    problem = next((text for text, wrong in suspects.items() if _near(yours, wrong)), "")
    if not problem:
        pairs = zip(EXAMPLE_LABELS, yours, expected, strict=True)
        wrong = [city for city, mine, theirs in pairs if abs(mine - theirs) > ROUGHLY]
        problem = f"look at {' and '.join(wrong)} again."
    attempt.fail(f'"{key}": {problem}')


def _near(yours: Sequence[float], expected: Sequence[float]) -> bool:
    return all(abs(mine - theirs) <= ROUGHLY for mine, theirs in zip(yours, expected, strict=True))


@check(
    read="When to keep",
    closed=(distributions,),
    reference=distributions.acceptance_probability,
)
def acceptance_probability(attempt: Attempt, seed: int | None) -> None:
    """min(1, p / q)."""
    cases = [(0.35, 0.55), (0.4, 0.25), (0.0, 0.3), (0.5, 0.5), (0.9, 0.1)]
    if seed is not None:
        random = Random(seed)
        cases = [(random.random(), random.uniform(0.01, 1.0)) for _ in range(8)]
        cases += [(0.0, random.random() + 0.01), (1e-9, 1.0), (0.8, 0.001), (0.002, 0.001)]
    for p, q in cases:
        yours = attempt(p, q, shown={"p_of_token": p, "q_of_token": q})
        attempt.require(
            not isinstance(yours, bool),
            "that is a verdict; expected the probability of keeping. The dice are thrown later.",
        )
        attempt.same_number(
            yours,
            min(1.0, p / q),
            suspects={
                "that is q/p: p and q are exchanged. What the draft proposes too often (q above p) is "
                "kept only sometimes.": min(1.0, q / p) if p > 0.0 else 1.0,
                "no probability is above 1: a token that is drafted too rarely is always kept.": p / q,
                "that is p itself, as if q were 1.": p,
                "that is the chance to be drafted *and* kept. Here it was drafted already.": min(p, q),
                "that is 1 or 0, with nothing in between. What is drafted too often is still kept "
                "*sometimes*.": float(p >= q),
                "that is the chance to reject.": 1.0 - min(1.0, p / q),
                "that is p times q, as if the draft had to equal a token drawn from p.": p * q,
            },
            problem="close, but not the ratio itself. q is never 0 here, so nothing has to be added."
            if abs(attempt.number(yours) - min(1.0, p / q)) < 0.01
            else "this is not the right number.",
        )


def _pairs(seed: int | None, vocab: int = 5) -> list[tuple[Tensor, Tensor]]:
    """Distributions (p, q), some with impossible tokens."""
    lists = [
        ([0.6, 0.3, 0.1], [0.2, 0.2, 0.6]),
        ([0.35, 0.4, 0.2, 0.05], [0.55, 0.25, 0.15, 0.05]),
        ([0.0, 0.7, 0.3], [0.5, 0.5, 0.0]),
    ]
    pairs = [(_exactly(p), _exactly(q)) for p, q in lists]
    if seed is not None:
        random = Random(seed)
        pairs = [(_row(random, vocab), _row(random, vocab)) for _ in range(4)]
        pairs.append((_row(random, vocab, zeros=2), _row(random, vocab, zeros=1)))
        pairs.append((_row(random, vocab).float(), _row(random, vocab).float()))
    return pairs


def _exactly(values: Sequence[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _row(random: Random, vocab: int, zeros: int = 0) -> Tensor:
    """A random distribution in which ``zeros`` tokens are impossible."""
    weights = _exactly([random.random() ** 2 + 0.01 for _ in range(vocab)])
    weights[random.sample(range(vocab), zeros)] = 0.0
    return weights / weights.sum()


@check(read="What is still lacking", closed=(distributions,), reference=distributions.residual)
def residual(attempt: Attempt, seed: int | None) -> None:
    """max(0, p - q), normalised; p where nothing is lacking."""
    for p, q in _pairs(seed):
        yours = attempt(p.clone(), q.clone(), shown={"p": p, "q": q})
        above, apart = (p - q).clamp(min=0.0), (p - q).abs()
        below = (q - p).clamp(min=0.0)
        attempt.same_distribution(
            yours,
            (above / above.sum()).double(),
            suspects={
                "it does not sum to 1 yet: divide by the sum.": above.double(),
                "that is p. Part of it has come out by acceptance already.": p.double(),
                "that is |p - q|. What the draft has too much of is not lacking.": (
                    apart / apart.sum()
                ).double(),
                "p and q are exchanged: that is what the draft has too much of.": (
                    below / below.sum()
                ).double(),
                "a probability cannot be negative: max(0, p - q), token by token, before you divide.": (
                    (p - q) / above.sum()
                ).double(),
                "that is a softmax of what is lacking. These are probabilities already; divide by "
                "their sum.": above.double().softmax(-1),
                "negative entries have to become 0 before you divide. (p - q sums to 0.)": (
                    (p - q) / (p - q).sum()
                ).double(),
                "that is the largest entry only. The replacement is drawn, so it needs them all.": (
                    above == above.max()
                ).double(),
            },
        )
    for p in (_exactly([0.5, 0.3, 0.2]), _exactly([1.0, 0.0])):
        q = p.clone() if len(p) == 2 else p * (1.0 + 1e-15)
        yours = attempt(p.clone(), q, shown={"p": p, "q": "the same, up to rounding"})
        row = attempt.row(yours, len(p))
        attempt.require(
            bool(torch.isfinite(row).all()),
            "where p and q are equal, that is 0 divided by 0. Return p there.",
            yours=str(row.tolist()),
        )
        attempt.require(
            torch.allclose(row, p),
            "where p is nowhere above q, p itself is asked for.",
            yours=str(row.tolist()),
            expected=str(p.tolist()),
        )


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
    for p, q in [(_exactly([0.6, 0.4]), _exactly([0.5, 0.5])), *_pairs(seed)]:
        for name, acceptance, replacement in _rules():
            yours = attempt(
                p.clone(),
                q.clone(),
                _Careful(attempt, acceptance),
                replacement,
                shown={"p": p, "q": q, "acceptance, residual": name},
            )
            truth = references.step_law(p, q, acceptance, replacement).double()
            chance = _exactly([
                acceptance(x, y) if y > 0.0 else 0.0
                for x, y in zip(p.tolist(), q.tolist(), strict=True)
            ])  # fmt: skip
            accepted = q.double() * chance
            rest = replacement(p, q).double()
            attempt.same_distribution(
                yours,
                truth,
                suspects={
                    "that is p. It is what *ought* to come out. Work out what does, under the rules "
                    "that were handed in.": p.double(),
                    "that is only what was accepted. Replacements come out as well.": accepted,
                    "that is only what was replaced. Accepted tokens come out as well.": (
                        1 - accepted.sum()
                    )
                    * rest,
                    "the residual is drawn from only if something was rejected: weight it with the "
                    "rejection mass.": accepted + rest,
                    "that is what was accepted, scaled up to 1. What is rejected does not come back in "
                    "the same proportions.": accepted / accepted.sum(),
                    "the chance to keep is weighted with p; but the token is drawn from q.": p.double()
                    * chance
                    + (1 - (p.double() * chance).sum()) * rest,
                    "the rejection mass is the same for every token that comes out: something was "
                    "rejected, whichever it was. You weight each token's residual with its own "
                    "rejection.": accepted + (q.double() - accepted) * rest,
                    "what is added to each token is the mass of *its own* rejections. They are "
                    "replaced by others: by the residual.": accepted + (q.double() - accepted),
                    "the rejection mass is wrong: 1 less what was accepted *in all*, each weighted "
                    "with q.": accepted + (1 - chance.mean()) * rest,
                },
            )


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


@check(read="Alpha", closed=(distributions, step), reference=distributions.alpha)
def overlap(attempt: Attempt, seed: int | None) -> None:
    """The sum of min(p, q)."""
    pairs = [*_pairs(seed), (_exactly([0.5, 0.5]), _exactly([0.5, 0.5]))]
    pairs += [(_exactly([1.0, 0.0]), _exactly([0.0, 1.0])), *_pairs(1303)[:2]]
    for p, q in pairs:
        yours = attempt(p.clone(), q.clone(), shown={"p": p, "q": q})
        truth = float(torch.minimum(p, q).sum())
        distance = float((p - q).abs().sum())
        if isinstance(yours, Tensor) and yours.ndim == 1 and len(yours) == len(p) > 1:
            attempt.fail("that is an entry for each token; add them up.")
        attempt.same_number(
            yours,
            truth,
            suspects={
                "that is the total variation, what p and q do *not* have in common: 1 - alpha.": 1
                - truth,
                "that is the L1 distance. alpha is 1 less *half* of it.": distance,
                "the L1 distance counts everything twice, what p has more of and what q has more of. "
                "alpha is 1 less *half* of it.": 1 - distance,
                "that is the sum of p times q: how often two draws agree. The rule keeps more.": float(
                    (p * q).sum()
                ),
                "that is the sum of the larger ones; what they share is the smaller one.": float(
                    torch.maximum(p, q).sum()
                ),
                "that is the mean of min(p, q); alpha is the sum.": truth / len(p),
                "that is the mean acceptance of all tokens. Each counts as often as it is drafted: "
                "weight it with q.": float((p / q.clamp(min=1e-30)).clamp(max=1.0).mean()),
                "that weights the acceptance with p. The token is drawn from q.": float(
                    (p * (p / q.clamp(min=1e-30)).clamp(max=1.0)).sum()
                ),
            },
            relative=1e-4,
        )

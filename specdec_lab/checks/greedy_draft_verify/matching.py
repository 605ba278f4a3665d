"""The check of the law of literal matching."""

from __future__ import annotations

from random import Random

import torch

from specdec_lab.checks import references
from specdec_lab.checks.harness import Attempt, check


@check(read="What matching cannot do", reference=references.literal_matching_law)
def literal_matching_law(attempt: Attempt, seed: int | None) -> None:
    """The law of what comes out, not a sample of it."""
    pairs = [([0.5, 0.3, 0.2], [0.6, 0.3, 0.1]), ([0.2, 0.7, 0.1], [0.5, 0.25, 0.25])]
    if seed is not None:
        random = Random(seed)
        pairs = [(_distribution(random, 5), _distribution(random, 5)) for _ in range(4)]
        pairs.append(([0.1, 0.2, 0.7], [0.5, 0.5, 0.0]))
    for p_list, q_list in pairs:
        p = torch.tensor(p_list, dtype=torch.float64)
        q = torch.tensor(q_list, dtype=torch.float64)
        yours = attempt(p.clone(), q.clone(), shown={"p": p_list, "q": q_list})
        top, likeliest = int(p.argmax()), torch.zeros_like(p)
        likeliest[top] = 1.0
        q_top, own = int(q.argmax()), torch.zeros_like(p)
        own[q_top] = 1.0
        kept, rejected = q[top] * likeliest, 1 - q[top]
        rest, residual = p * (1.0 - likeliest), (p - q).clamp(min=0.0)
        attempt.same_distribution(
            yours,
            references.literal_matching_law(p, q),
            suspects={
                "that is p itself. It would be, if the rule were exact; work out both ways in which a "
                "token can come out.": p,
                "that is q. What the drafter draws comes out only if it is p's likeliest token.": q,
                "after a rejection the token is drawn from all of p, and may be its likeliest "
                "token again.": kept + rejected * rest / rest.sum(),
                "the rest of p does not sum to one. After a rejection the token is drawn from all of "
                "p, and may be its likeliest token again.": kept + rejected * rest,
                "that draws from what p has more of than q. Here a token is drawn from all of p.": kept
                + rejected * residual / residual.sum(),
                "the draft is kept if it is the likeliest token of *p*, the target's.": q[q_top] * own
                + (1 - q[q_top]) * p,
                "these do not sum to one: the way over a kept draft is missing.": rejected * p,
                "these do not sum to one: a token is drawn from p only if the draft is not kept.": kept
                + p,
                "that sums to one, but dividing does not mend it: a token is drawn from p only if the "
                "draft is not kept.": (kept + p) / (1 + q[top]),
                "that keeps any draft with probability min(1, p/q). Here nothing but p's likeliest "
                "token is kept.": torch.minimum(p, q) + (1 - torch.minimum(p, q).sum()) * p,
                "the draft is the likeliest token with probability q, not p.": p[top] * likeliest
                + (1 - p[top]) * p,
                "the two ways are weighted the wrong way round.": rejected * likeliest + q[top] * p,
            },
        )


def _distribution(random: Random, vocab: int) -> list[float]:
    weights = [random.random() ** 2 + 0.01 for _ in range(vocab)]
    return [weight / sum(weights) for weight in weights]

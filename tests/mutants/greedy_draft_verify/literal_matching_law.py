"""The law of literal matching."""

import numpy as np
import torch

from specdec_lab.checks import references
from specdec_lab.course.mutants import right, wrong


@wrong("p, as if the rule were exact", says="that is p itself")
def p_itself(p, q):
    return p


@wrong("q", says="that is q[.]")
def q_itself(p, q):
    return q


@wrong("the likeliest token of q is kept", says=r"the likeliest token of \*p\*")
def likeliest_of_q(p, q):
    likeliest = int(q.argmax())
    law = (1 - q[likeliest]) * p
    law[likeliest] += q[likeliest]
    return law


@wrong("the likeliest token is not drawn again", says="drawn from all of p, and may be its likeliest")
def not_again(p, q):
    likeliest = int(p.argmax())
    rest = p.clone()
    rest[likeliest] = 0
    law = (1 - q[likeliest]) * rest / rest.sum()
    law[likeliest] = q[likeliest]
    return law


@wrong("the likeliest token not drawn again, mass missing", says="the rest of p does not sum to one")
def not_again_unscaled(p, q):
    likeliest = int(p.argmax())
    law = (1 - q[likeliest]) * p
    law[likeliest] = q[likeliest]
    return law


@wrong("draws from the residual", says="what p has more of than q")
def residual_style(p, q):
    likeliest = int(p.argmax())
    residual = (p - q).clamp(min=0)
    law = (1 - q[likeliest]) * residual / residual.sum()
    law[likeliest] += q[likeliest]
    return law


@wrong("the way over a kept draft is missing", says="the way over a kept draft is missing")
def kept_is_missing(p, q):
    return (1 - q[p.argmax()]) * p


@wrong("draws from p in any case", says="drawn from p only if the draft is not kept")
def draws_in_any_case(p, q):
    law = p.clone()
    law[p.argmax()] += q[p.argmax()]
    return law


@wrong("draws from p in any case, normalised", says="does not mend it")
def draws_and_normalises(p, q):
    law = p.clone()
    law[p.argmax()] += q[p.argmax()]
    return law / law.sum()


@wrong("kept with probability p", says="with probability q, not p")
def kept_with_p(p, q):
    likeliest = int(p.argmax())
    law = (1 - p[likeliest]) * p
    law[likeliest] += p[likeliest]
    return law


@wrong("the two ways exchanged", says="the wrong way round")
def exchanged(p, q):
    likeliest = int(p.argmax())
    law = q[likeliest] * p
    law[likeliest] += 1 - q[likeliest]
    return law


@wrong("any drafted token may come out", says="these sum to")
def any_draft(p, q):
    likeliest = int(p.argmax())
    return q + (1 - q[likeliest]) * p


@wrong("kept with probability min(1, p / q)", says="Here nothing but p's likeliest token is kept")
def exact_rule_without_residual(p, q):
    kept = torch.minimum(p, q)
    return kept + (1 - kept.sum()) * p


@wrong("draws samples", says="without drawing samples")
def draws_samples(p, q):
    generator = torch.Generator().manual_seed(0)
    drafted = torch.multinomial(q, 20_000, replacement=True, generator=generator)
    from_p = torch.multinomial(p, 20_000, replacement=True, generator=generator)
    out = torch.where(drafted == p.argmax(), drafted, from_p)
    return torch.bincount(out, minlength=len(p)) / 20_000


@wrong("the likeliest token's probability only", says="expected 3 numbers")
def one_number(p, q):
    likeliest = int(p.argmax())
    return q[likeliest] + (1 - q[likeliest]) * p[likeliest]


@wrong("changes p", says="your code changes what it was given")
def changes_p(p, q):
    likeliest = int(p.argmax())
    p *= 1 - q[likeliest]
    p[likeliest] += q[likeliest]
    return p


@wrong("calls the reference", says="calls the library's `literal_matching_law`")
def calls_the_reference(p, q):
    return references.literal_matching_law(p, q)


@right("a list, in a loop")
def looped(p, q):
    p, q = p.tolist(), q.tolist()
    likeliest = p.index(max(p))
    law = []
    for token, probability in enumerate(p):
        drawn = (1 - q[likeliest]) * probability
        law.append(q[token] + drawn if token == likeliest else drawn)
    return law


@right("vectorised, in float32")
def vectorised(p, q):
    p, q = p.float(), q.float()
    is_likeliest = (p == p.max()).float()
    kept = (q * is_likeliest).sum()
    return torch.lerp(p, is_likeliest, kept)


@right("over all pairs of tokens, numpy")
def all_pairs(p, q):
    p, q = p.numpy(), q.numpy()
    law = np.zeros(len(p))
    for drafted, chance in enumerate(q):
        if drafted == p.argmax():
            law[drafted] += chance
        else:
            law += chance * p
    return law

"""alpha."""

import numpy as np
import torch

from specdec_lab import distributions
from specdec_lab.audit import audit_step
from specdec_lab.course.mutants import right, wrong


@wrong("not written", says=r"^✗ overlap: not implemented yet")
def not_written(p, q):
    raise NotImplementedError


@wrong("total variation", says="that is the total variation")
def variation(p, q):
    return float((p - q).abs().sum() / 2)


@wrong("L1 distance", says="that is the L1 distance")
def l1(p, q):
    return (p - q).abs().sum()


@wrong("1 - L1 distance", says="counts everything twice")
def one_less_l1(p, q):
    return 1 - (p - q).abs().sum()


@wrong("sum of p q", says="sum of p times q")
def product(p, q):
    return p @ q


@wrong("sum of the larger", says="sum of the larger ones")
def larger(p, q):
    return torch.maximum(p, q).sum()


@wrong("mean of min(p, q)", says="alpha is the sum")
def mean(p, q):
    return torch.minimum(p, q).mean()


@wrong("largest of min(p, q)", says="largest of min")
def largest(p, q):
    return torch.minimum(p, q).max()


@wrong("mean acceptance", says="mean acceptance of all tokens")
def mean_acceptance(p, q):
    return torch.where(q > 0, p / q, 1.0).clamp(max=1.0).mean()


@wrong("sum of acceptances", says="sum of the acceptances")
def sum_of_acceptances(p, q):
    return (p / q).clamp(max=1.0).sum()


@wrong("acceptance weighted with p", says="weights the acceptance with p")
def weighted_with_p(p, q):
    return (p * (p / q).clamp(max=1.0)).nansum()


@wrong("where p is below q only", says="where q is below p, all of q is kept")
def only_below(p, q):
    return p[p < q].sum()


@wrong("where q is below p only", says="where p is below q, all of p is kept")
def only_above(p, q):
    return q[q <= p].sum()


@wrong("the smaller of two sums", says="token by token")
def smaller_sum(p, q):
    return min(p.sum(), q.sum())


@wrong("not added up", says="add them up")
def not_added(p, q):
    return torch.minimum(p, q)


@wrong("a list, not added up", says="add them up")
def list_not_added(p, q):
    return [min(x, y) for x, y in zip(p.tolist(), q.tolist(), strict=True)]


@wrong("0/0 where neither gives a token any probability", says="0 divided by 0")
def nan(p, q):
    return (q * (p / q).clamp(max=1.0)).sum()


@wrong("compares tensors as numbers", says="raised RuntimeError: Boolean value")
def ambiguous(p, q):
    return min(p, q).sum()


@wrong("bfloat16", says="expected float32 or float64")
def bfloat16(p, q):
    return torch.minimum(p.bfloat16(), q.bfloat16()).sum()


@wrong("changes p", says="your code changes what it was given")
def changes_p(p, q):
    p[p > q] = q[p > q]
    return p.sum()


@wrong("calls the library", says="calls the library's `alpha`")
def calls_the_library(p, q):
    return distributions.alpha(p, q)


@wrong("calls the library's total variation", says="calls the library's `total_variation`")
def calls_total_variation(p, q):
    return 1 - distributions.total_variation(p, q)


@wrong("no return", says="returned None")
def no_return(p, q):
    torch.minimum(p, q).sum()


@wrong("1 - L1 distance, not below 0", says="counts everything twice")
def one_less_l1_clamped(p, q):
    return max(0.0, 1 - float((p - q).abs().sum()))


@wrong("the rejection mass", says="what p and q do \\*not\\* have in common")
def rejection_mass(p, q):
    return (p - q).clamp(min=0).sum()


@wrong("smallest of min(p, q)", says="smallest of min")
def smallest(p, q):
    return torch.minimum(p, q).min()


@wrong("ratio without min", says="no chance is above 1")
def without_min(p, q):
    drafted = q > 0
    return (q[drafted] * (p[drafted] / q[drafted])).sum()


@wrong("letters exchanged in the ratio", says="exchanged in the ratio")
def exchanged(p, q):
    return sum(y * min(1, y / x) if x > 0 else y for x, y in zip(p.tolist(), q.tolist(), strict=True))


@wrong("how many tokens are equal", says="how many tokens have the same")
def equal_tokens(p, q):
    return int((p == q).sum())


@wrong("the share of tokens that are equal", says="the share of tokens that have the same")
def share_of_equal_tokens(p, q):
    return float((p == q).float().mean())


@wrong("whether the likeliest token is the same", says="the same likeliest token")
def same_likeliest(p, q):
    return float(p.argmax() == q.argmax())


@wrong("a verdict", says="type bool, expected a number")
def verdict(p, q):
    return torch.allclose(p, q)


@wrong("in percent", says="in percent")
def percent(p, q):
    return 100 * torch.minimum(p, q).sum()


@wrong("rounded", says="close, but not equal.*without rounding")
def rounded(p, q):
    return round(float(torch.minimum(p, q).sum()), 2)


@wrong("in bfloat16, and back", says="close, but not equal.*half precision")
def bfloat16_and_back(p, q):
    return float(torch.minimum(p.bfloat16(), q.bfloat16()).sum())


@wrong("counts samples", says="without drawing samples")
def counts_samples(p, q):
    drafted = torch.multinomial(q, 5000, replacement=True)
    return float((torch.rand(5000) * q[drafted] < p[drafted]).double().mean())


@wrong("counts samples from one seed", says="close, but not equal.*without drawing samples")
def counts_the_same_samples(p, q):
    generator = torch.Generator().manual_seed(1)
    drafted = torch.multinomial(q, 20_000, replacement=True, generator=generator)
    return float((torch.rand(20_000, generator=generator) * q[drafted] < p[drafted]).double().mean())


@wrong("one number in brackets", says="expected a number")
def in_brackets(p, q):
    return torch.minimum(p, q).sum(dim=-1, keepdim=True)


@wrong("an array, not added up", says="add them up")
def array_not_added(p, q):
    return np.minimum(p.numpy(), q.numpy())


@wrong("calls the library's audit", says="calls the library's `audit_step`")
def calls_the_audit(p, q):
    return audit_step(p, q).alpha


@right("1 - total variation")
def one_less_variation(p, q):
    return 1 - 0.5 * (p - q).abs().sum()


@right("a loop")
def loop(p, q):
    total = 0
    for x, y in zip(p, q, strict=True):
        total += min(x, y)
    return total


@right("numpy, float32")
def with_numpy(p, q):
    return np.minimum(p.float().numpy(), q.float().numpy()).sum()


@right("1 - what is lacking")
def one_less_lacking(p, q):
    return float(1 - (p - q).clamp(min=0).sum())


@right("the chance to keep, weighted with q, where q is not 0")
def weighted(p, q):
    drafted = q > 0
    return (q[drafted] * (p[drafted] / q[drafted]).clamp(max=1.0)).sum().item()


@right("half of what is left of both")
def by_halves(p, q):
    return float((p + q - (p - q).abs()).sum() / 2)


@right("torch.where, in float64")
def where(p, q):
    return torch.where(p < q, p.double(), q.double()).sum()

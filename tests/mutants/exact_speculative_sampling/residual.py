"""What the replacement of a rejected token is drawn from."""

import numpy as np
import torch

from specdec_lab import distributions
from specdec_lab.course.mutants import right, wrong


def _lacking(p, q):
    return (p - q).clamp(min=0.0)


@wrong("not written", says=r"^✗ residual: not implemented yet")
def not_written(p, q):
    raise NotImplementedError


@wrong("not normalised", says="does not sum to 1 yet")
def not_normalised(p, q):
    return _lacking(p, q)


@wrong("p itself", says="that is p\\. Part of it")
def p_itself(p, q):
    return p.clone()


@wrong("q itself", says="that is q\\.")
def q_itself(p, q):
    return q.clone()


@wrong("|p - q|", says="that is \\|p - q\\|")
def absolute(p, q):
    apart = (p - q).abs()
    return p if apart.sum() == 0 else apart / apart.sum()


@wrong("|p - q|, not normalised", says="that is \\|p - q\\|.*And divide")
def absolute_not_normalised(p, q):
    return (p - q).abs()


@wrong("letters exchanged", says="p and q are exchanged")
def exchanged(p, q):
    return p if _lacking(q, p).sum() == 0 else _lacking(q, p) / _lacking(q, p).sum()


@wrong("not clamped", says="a probability cannot be negative")
def not_clamped(p, q):
    return (p - q) / _lacking(p, q).sum()


@wrong("p - q as it is", says="a probability cannot be negative")
def difference(p, q):
    return p - q


@wrong("divided by its sum, which is 0", says="negative entries have to become 0 before you divide")
def sums_to_zero(p, q):
    return (p - q) / (p - q).sum()


@wrong("clamped behind the division", says="negative entries have to become 0 before you divide")
def clamped_too_late(p, q):
    return ((p - q) / (p - q).sum()).clamp(min=0.0)


@wrong("softmax of what is lacking", says="softmax of what is lacking")
def softmax(p, q):
    return _lacking(p, q).softmax(-1)


@wrong("softmax of the difference", says="softmax of p - q")
def softmax_of_difference(p, q):
    return (p - q).softmax(-1)


@wrong("the largest entry", says="the largest entry only")
def largest(p, q):
    row = torch.zeros_like(p)
    row[(p - q).argmax()] = 1.0
    return row


@wrong("its number", says="type int, expected 3 numbers")
def token(p, q):
    return int((p - q).argmax())


@wrong("what both have", says="what p and q have in common")
def common(p, q):
    return torch.minimum(p, q) / torch.minimum(p, q).sum()


@wrong("all of p where p is above q", says="all of p where p is above q")
def p_where_above(p, q):
    above = p * (p > q)
    return p if above.sum() == 0 else above / above.sum()


@wrong("NaN where p equals q", says="where p and q are equal, that is 0 divided by 0")
def nan_where_equal(p, q):
    return _lacking(p, q) / _lacking(p, q).sum()


@wrong("asks whether p equals q, to the last digit", says="differ in the last digit")
def exactly_equal(p, q):
    if torch.equal(p, q):
        return p
    return _lacking(p, q) / _lacking(p, q).sum()


@wrong("an epsilon below", says="close, but not equal|these sum to|p itself is asked for")
def epsilon(p, q):
    return _lacking(p, q) / (_lacking(p, q).sum() + 1e-3)


@wrong("p where the two are close", says="close here, but not equal")
def p_where_close(p, q):
    return p if torch.allclose(p, q) else _lacking(p, q) / _lacking(p, q).sum()


@wrong("p where next to nothing is lacking", says="close here, but not equal")
def p_where_little_is_lacking(p, q):
    lacking = _lacking(p, q)
    return p if lacking.sum() < 1e-6 else lacking / lacking.sum()


@wrong("a small epsilon below", says="whatever small is added to the sum shows")
def small_epsilon(p, q):
    return _lacking(p, q) / (_lacking(p, q).sum() + 1e-10)


@wrong("zeros where p equals q", says="p itself is asked for")
def zeros(p, q):
    return torch.nan_to_num(_lacking(p, q) / _lacking(p, q).sum())


@wrong("even chances where p equals q", says="p itself is asked for")
def even(p, q):
    if _lacking(p, q).sum() == 0:
        return torch.ones_like(p) / len(p)
    return _lacking(p, q) / _lacking(p, q).sum()


@wrong("p where they are close", says="p and q are close here, but not equal")
def close(p, q):
    if torch.allclose(p, q, atol=1e-3):
        return p
    return _lacking(p, q) / _lacking(p, q).sum()


@wrong("counts samples", says="without drawing samples")
def counts_samples(p, q):
    rest = _lacking(p, q)
    if rest.sum() == 0:
        return p
    drawn = torch.multinomial(rest, 40000, True, generator=torch.Generator().manual_seed(0))
    return torch.bincount(drawn, minlength=len(p)).double() / 40000


@wrong("in bfloat16", says="expected float32 or float64")
def bfloat16(p, q):
    rest = _lacking(p.bfloat16(), q.bfloat16())
    return p if rest.sum() == 0 else rest / rest.sum()


@wrong("in bfloat16, and back", says="half precision")
def bfloat16_and_back(p, q):
    rest = _lacking(p.bfloat16(), q.bfloat16())
    return p if rest.sum() == 0 else (rest / rest.sum()).double()


@wrong("subtracts in place", says="your code changes what it was given")
def in_place(p, q):
    p -= q
    p.clamp_(min=0.0)
    p /= p.sum()
    return p


@wrong("no return", says="returned None")
def no_return(p, q):
    _lacking(p, q)


@wrong("calls the library", says="calls the library's `residual`")
def calls_the_library(p, q):
    return distributions.residual(p, q)


@wrong("not normalised, but p where p equals q", says="does not sum to 1 yet")
def not_normalised_with_care(p, q):
    return _lacking(p, q) if (p > q).any() else p


@wrong("p - q over the sum of |p - q|", says="a probability cannot be negative.*before the sum")
def over_all_that_differs(p, q):
    return (p - q) / (p - q).abs().sum()


@wrong("letters exchanged, not normalised", says="p and q are exchanged")
def exchanged_not_normalised(p, q):
    return _lacking(q, p)


@wrong("max(p, q)", says="the larger of p and q")
def larger(p, q):
    return torch.maximum(p, q) / torch.maximum(p, q).sum()


@wrong("p/q", says="that is the ratio p/q")
def ratio(p, q):
    weights = (p / q).nan_to_num(0.0, posinf=0.0)
    return weights / weights.sum()


@wrong("the same for all that is lacking", says="every token that is lacking gets the same")
def even_chances(p, q):
    above = (p > q).double()
    return above / above.sum() if above.sum() > 0 else p


@wrong("in sorted order", says="in sorted order")
def sorted_order(p, q):
    rest = _lacking(p, q).sort(descending=True).values
    return rest / rest.sum() if rest.sum() > 0 else p


@wrong("only the entries above 0", says="expected 3 numbers")
def only_above(p, q):
    rest = (p - q)[p > q]
    return rest / rest.sum() if len(rest) else p


@wrong("an epsilon of 1e-4 below", says="these sum to 0.9998")
def middling_epsilon(p, q):
    rest = _lacking(p, q)
    return rest / (rest.sum() + 1e-4) if rest.sum() > 0 else p


@wrong("the likeliest token where p equals q", says="p itself is asked for")
def likeliest_where_equal(p, q):
    rest = _lacking(p, q)
    return rest / rest.sum() if rest.sum() > 0 else (p == p.max()).double()


@wrong("None where p equals q", says="returned None")
def none_where_equal(p, q):
    rest = _lacking(p, q)
    return rest / rest.sum() if rest.sum() > 0 else None


@wrong("0/0 in plain numbers", says="your code raised ZeroDivisionError")
def zero_division(p, q):
    rest = _lacking(p, q).tolist()
    return torch.tensor([entry / sum(rest) for entry in rest])


@wrong("in float16, and back", says="half precision")
def float16_and_back(p, q):
    rest = _lacking(p.half(), q.half())
    return p if rest.sum() == 0 else (rest / rest.sum()).double()


@wrong("p and q rounded to bfloat16", says="half precision")
def bfloat16_at_first(p, q):
    rest = _lacking(p.bfloat16().double(), q.bfloat16().double())
    return p if rest.sum() == 0 else rest / rest.sum()


@wrong("rounded", says="close, but not equal.*without rounding")
def rounded(p, q):
    rest = _lacking(p, q)
    return p if rest.sum() == 0 else (rest / rest.sum()).round(decimals=2)


@wrong("changes q", says="your code changes what it was given")
def changes_q(p, q):
    rest = q.neg_().add_(p).clamp_(min=0.0)
    return rest / rest.sum() if rest.sum() > 0 else p


@wrong("a row too many", says="shape .1, 3.")
def two_dimensions(p, q):
    return without_common(p, q)[None]


@wrong("a list that holds a tensor", says="expected a number")
def list_of_a_tensor(p, q):
    return [without_common(p, q)]


@right("asks whether anything is lacking")
def asks_first(p, q):
    if not (p > q).any():
        return p.clone()
    rest = torch.relu(p - q)
    return rest / rest.sum()


@right("numpy")
def with_numpy(p, q):
    rest = np.maximum(p.numpy() - q.numpy(), 0)
    return torch.from_numpy(rest / rest.sum()) if rest.sum() else p


@right("a loop")
def loop(p, q):
    rest = [max(0.0, x - y) for x, y in zip(p.tolist(), q.tolist(), strict=True)]
    return torch.tensor([x / sum(rest) for x in rest]) if sum(rest) > 0 else p


@wrong("a list", says="in a list or an array, expected a tensor")
def gives_a_list(p, q):
    return loop(p, q).tolist()


@right("p without what both have")
def without_common(p, q):
    rest = p - torch.minimum(p, q)
    return torch.where(rest.sum() > 0, rest / rest.sum(), p)


@right("a small tolerance, where p is a rounding above q")
def tolerance(p, q):
    rest = torch.where(p > q, p - q, torch.zeros_like(p))
    return p if rest.sum() < 1e-12 else rest.div(rest.sum())


@right("in float32, divided by the total variation")
def over_variation(p, q):
    p, q = p.float(), q.float()
    return _lacking(p, q) / ((p - q).abs().sum() / 2) if (p > q).any() else p


@right("NaN mended")
def mended(p, q):
    row = _lacking(p, q) / _lacking(p, q).sum()
    return p if row.isnan().any() else row

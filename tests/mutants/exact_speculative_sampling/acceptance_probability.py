"""The chance to keep a drafted token."""

import math
import random
from fractions import Fraction

import numpy as np
import torch

from specdec_lab import distributions
from specdec_lab.course.mutants import right, wrong


@wrong("not written", says=r"^✗ acceptance_probability: not implemented yet")
def not_written(p_of_token, q_of_token):
    raise NotImplementedError


@wrong("min(1, q/p)", says="that is q/p")
def inverted(p_of_token, q_of_token):
    return min(1.0, q_of_token / p_of_token)


@wrong("min(1, q/p), and 1 where p is 0", says="that is q/p")
def inverted_carefully(p_of_token, q_of_token):
    return min(1.0, q_of_token / p_of_token) if p_of_token else 1.0


@wrong("p/q without the limit", says="no probability is above 1")
def unlimited(p_of_token, q_of_token):
    return p_of_token / q_of_token


@wrong("max instead of min", says="never below 1")
def larger(p_of_token, q_of_token):
    return max(1.0, p_of_token / q_of_token)


@wrong("p alone", says="that is p itself")
def p_alone(p_of_token, q_of_token):
    return p_of_token


@wrong("min(p, q)", says="drafted \\*and\\* kept")
def smaller(p_of_token, q_of_token):
    return min(p_of_token, q_of_token)


@wrong("p q", says="p times q")
def product(p_of_token, q_of_token):
    return p_of_token * q_of_token


@wrong("1 or 0", says="with nothing in between")
def threshold(p_of_token, q_of_token):
    return 1.0 if p_of_token >= q_of_token else 0.0


@wrong("a verdict", says="that is a verdict")
def verdict(p_of_token, q_of_token):
    return p_of_token >= q_of_token


@wrong("throws the dice", says="that is a verdict")
def dice(p_of_token, q_of_token):
    return torch.rand(()) < p_of_token / q_of_token


@wrong("throws numpy's dice", says="that is a verdict")
def numpy_dice(p_of_token, q_of_token):
    return np.random.random() < np.float64(p_of_token / q_of_token)


@wrong("the chance to reject", says="that is the chance to reject")
def rejects(p_of_token, q_of_token):
    return 1.0 - min(1.0, p_of_token / q_of_token)


@wrong("1 - q/p", says="that is 1 - q/p")
def one_less(p_of_token, q_of_token):
    return max(0.0, 1.0 - q_of_token / p_of_token) if p_of_token else 0.0


@wrong("an epsilon of 1e-5", says="nothing has to be added")
def epsilon(p_of_token, q_of_token):
    return min(1.0, p_of_token / (q_of_token + 1e-5))


@wrong("an epsilon of 1e-10", says="nothing has to be added")
def small_epsilon(p_of_token, q_of_token):
    return min(1.0, p_of_token / (q_of_token + 1e-10))


@wrong("float32's own epsilon", says="nothing has to be added")
def float_epsilon(p_of_token, q_of_token):
    return min(1.0, p_of_token / max(q_of_token, float(np.finfo(np.float32).eps)))


@wrong("in bfloat16", says="half precision")
def bfloat16(p_of_token, q_of_token):
    p, q = torch.tensor(p_of_token).bfloat16(), torch.tensor(q_of_token).bfloat16()
    return min(1.0, float(p / q))


@wrong("rounded", says="close, but not the ratio itself")
def rounded(p_of_token, q_of_token):
    return round(min(1.0, p_of_token / q_of_token), 3)


@wrong("no return", says="returned None")
def no_return(p_of_token, q_of_token):
    min(1.0, p_of_token / q_of_token)


@wrong("text", says="type str, expected a number")
def text(p_of_token, q_of_token):
    return f"{min(1.0, p_of_token / q_of_token):.0%}"


@wrong("calls the library", says="calls the library's `acceptance_probability`")
def calls_the_library(p_of_token, q_of_token):
    return distributions.acceptance_probability(p_of_token, q_of_token)


@wrong("q/p without the limit", says="exchanged. And no probability is above 1")
def inverted_unlimited(p_of_token, q_of_token):
    return q_of_token / p_of_token if p_of_token else 1.0


@wrong("q alone", says="that is q itself")
def q_alone(p_of_token, q_of_token):
    return q_of_token


@wrong("always kept", says="that is always 1")
def always(p_of_token, q_of_token):
    return 1.0


@wrong("1 or 0, and 0 where p is q", says="what is drafted just often enough is always kept")
def strict_threshold(p_of_token, q_of_token):
    return float(p_of_token > q_of_token)


@wrong("a division without a remainder", says="with nothing in between")
def floor_division(p_of_token, q_of_token):
    return min(1, p_of_token // q_of_token)


@wrong("throws the dice, gives a number", says="with nothing in between")
def dice_as_a_number(p_of_token, q_of_token):
    return float(random.random() < p_of_token / q_of_token)


@wrong("p - q", says="the ratio decides, not the difference")
def difference(p_of_token, q_of_token):
    return max(0.0, p_of_token - q_of_token)


@wrong("1 - |p - q|", says="the ratio decides, not the difference")
def likeness(p_of_token, q_of_token):
    return 1.0 - abs(p_of_token - q_of_token)


@wrong("1 minus what q is above p", says="the ratio decides, not the difference")
def one_less_excess(p_of_token, q_of_token):
    return min(1.0, 1.0 - (q_of_token - p_of_token))


@wrong("p/(p + q)", says="with q alone, not with p [+] q")
def share_of_both(p_of_token, q_of_token):
    return p_of_token / (p_of_token + q_of_token)


@wrong("1 where p is 0", says="where p is 0 the target never says this token")
def keeps_the_impossible(p_of_token, q_of_token):
    return min(1.0, p_of_token / q_of_token) if p_of_token else 1.0


@wrong("an epsilon of 1e-15", says="nothing has to be added")
def tiny_epsilon(p_of_token, q_of_token):
    return min(1.0, p_of_token / (q_of_token + 1e-15))


@wrong("an epsilon on both sides", says="nothing has to be added")
def epsilon_on_both_sides(p_of_token, q_of_token):
    return min(1.0, (p_of_token + 1e-12) / (q_of_token + 1e-12))


@wrong("float16 at the end", says="half precision")
def float16_at_the_end(p_of_token, q_of_token):
    return torch.tensor(min(1.0, p_of_token / q_of_token)).half()


@wrong("logarithms, without care for p = 0", says="your code raised ValueError")
def logarithms_of_zero(p_of_token, q_of_token):
    return min(1.0, math.exp(math.log(p_of_token) - math.log(q_of_token)))


@wrong("a list", says="a list of 1, expected a number")
def a_list(p_of_token, q_of_token):
    return [min(1.0, p_of_token / q_of_token)]


@right("by cases")
def by_cases(p_of_token, q_of_token):
    if p_of_token >= q_of_token:
        return 1
    return p_of_token / q_of_token


@right("what is kept over what is drafted")
def share(p_of_token, q_of_token):
    return min(p_of_token, q_of_token) / q_of_token


@right("a tensor")
def tensor(p_of_token, q_of_token):
    return (torch.tensor(p_of_token) / torch.tensor(q_of_token)).clamp(max=1.0)


@right("numpy")
def with_numpy(p_of_token, q_of_token):
    return np.minimum(1.0, np.divide(p_of_token, q_of_token))


@right("one less the chance to reject")
def one_less_rejection(p_of_token, q_of_token):
    return 1 - max(0.0, 1 - p_of_token / q_of_token)


@right("fractions on the way")
def fractions(p_of_token, q_of_token):
    return float(min(Fraction(1), Fraction(p_of_token) / Fraction(q_of_token)))


@right("logarithms, with care for p = 0")
def logarithms(p_of_token, q_of_token):
    if p_of_token == 0.0:
        return 0.0
    return math.exp(min(0.0, math.log(p_of_token) - math.log(q_of_token)))


@right("torch.where, in float64")
def where(p_of_token, q_of_token):
    ratio = torch.tensor(p_of_token, dtype=torch.float64) / q_of_token
    return torch.where(ratio > 1.0, torch.ones_like(ratio), ratio)

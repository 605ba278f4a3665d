"""Temperature and top-p."""

import math

import numpy as np
import torch
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from specdec_lab import distributions
from specdec_lab.checks import references
from specdec_lab.course.mutants import right, wrong
from specdec_lab.sampling import Sampling, TargetRows


def _softmax(logits, temperature):
    return (logits.double() / temperature).softmax(-1)


def _cut(probabilities, top_p, shown=None):
    """The front of ``probabilities`` by the order and the sums of ``shown``."""
    shown = probabilities if shown is None else shown
    ordered, tokens = shown.sort(descending=True)
    kept = torch.zeros_like(probabilities)
    kept[tokens[ordered.cumsum(-1) - ordered < top_p]] = 1.0
    return probabilities * kept / (probabilities * kept).sum()


@wrong("not written", says=r"^✗ processed: not implemented yet")
def not_written(logits, temperature, top_p):
    raise NotImplementedError


@wrong("multiplies by the temperature", says="multiplied by the temperature")
def multiplies(logits, temperature, top_p):
    return _cut((logits.double() * temperature).softmax(-1), top_p)


@wrong("no temperature", says="the temperature is not used")
def no_temperature(logits, temperature, top_p):
    return _cut(logits.double().softmax(-1), top_p)


@wrong("the temperature twice", says="the temperature is used twice")
def temperature_twice(logits, temperature, top_p):
    return _cut(_softmax(logits.double() / temperature, temperature), top_p)


@wrong("probabilities over the temperature", says="probabilities are divided by the temperature")
def probabilities_divided(logits, temperature, top_p):
    return _cut(logits.double().softmax(-1), top_p) / temperature


@wrong("no top-p", says="top-p is not used")
def no_top_p(logits, temperature, top_p):
    return _softmax(logits, temperature)


@wrong("not normalised", says="not divided by its sum")
def not_normalised(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    return row * (_cut(row, top_p) > 0)


@wrong("top-p before the temperature, its set only", says="top-p is applied before the temperature")
def top_p_first(logits, temperature, top_p):
    return _cut(_softmax(logits, temperature), top_p, shown=logits.double().softmax(-1))


@wrong("top-p, then the temperature", says="before the temperature|temperature afterwards")
def temperature_last(logits, temperature, top_p):
    row = _cut(logits.double().softmax(-1), top_p) ** (1 / temperature)
    return row / row.sum()


@wrong("drops the token that crosses", says="the sum has to \\*reach\\* top_p")
def drops_crossing(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    ordered, tokens = row.sort(descending=True)
    dropped = ordered.cumsum(-1) > top_p
    dropped[0] = False
    row[tokens[dropped]] = 0.0
    return row / row.sum()


@wrong("drops the token that crosses, the first one, too", says="even if it is the first")
def drops_all(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    ordered, tokens = row.sort(descending=True)
    row[tokens[ordered.cumsum(-1) > top_p]] = 0.0
    return row / row.sum()


@wrong("one token too many", says="one token too many is kept")
def one_too_many(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    ordered, tokens = row.sort(descending=True)
    kept = int((ordered.cumsum(-1) < top_p).sum()) + 2
    row[tokens[kept:]] = 0.0
    return row / row.sum()


@wrong("those above top_p", says="those of at least top_p")
def above_top_p(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    row[row < top_p] = 0.0
    return row / row.sum() if row.sum() > 0 else row


@wrong("those above 1 - top_p", says="at least 1 - top_p")
def above_the_rest(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    row[row < 1 - top_p] = 0.0
    return row / row.sum()


@wrong("min-p", says="beside the likeliest one's")
def min_p(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    row[row < top_p * row.max()] = 0.0
    return row / row.sum()


@wrong("top-k", says="not a share of the tokens")
def top_k(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    tokens = row.sort(descending=True).indices
    row[tokens[max(1, round(top_p * len(row))) :]] = 0.0
    return row / row.sum()


@wrong("the least likely", says="the \\*least\\* likely tokens are kept")
def least_likely(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    ordered, tokens = row.sort()
    row[tokens[ordered.cumsum(-1) - ordered >= top_p]] = 0.0
    return row / row.sum()


@wrong("not sorted", says="sort by probability first")
def not_sorted(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    row[row.cumsum(-1) - row >= top_p] = 0.0
    return row / row.sum()


@wrong("in sorted order", says="in sorted order")
def sorted_order(logits, temperature, top_p):
    ordered = _softmax(logits, temperature).sort(descending=True).values
    ordered = ordered * (ordered.cumsum(-1) - ordered < top_p)
    return ordered / ordered.sum()


@wrong("a mask in sorted order", says="was found in sorted order")
def mask_in_sorted_order(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    ordered = row.sort(descending=True).values
    row = row * (ordered.cumsum(-1) - ordered < top_p)
    return row / row.sum()


@wrong("softmax again, of what is kept", says="softmax is taken again")
def softmax_again(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    kept = _cut(row, top_p) > 0
    return row.masked_fill(~kept, float("-inf")).softmax(-1)


@wrong("softmax again, of everything", says="softmax is taken again.*what is dropped gets 0")
def softmax_of_all(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    return (row * (_cut(row, top_p) > 0)).softmax(-1)


@wrong("the likeliest only", says="likeliest token alone")
def likeliest(logits, temperature, top_p):
    row = torch.zeros(len(logits), dtype=torch.float64)
    row[logits.argmax()] = 1.0
    return row


@wrong("computes in bfloat16", says="expected float32 or float64")
def bfloat16(logits, temperature, top_p):
    return _cut((logits / temperature).softmax(-1), top_p)


@wrong("computes in bfloat16 and says float32", says="Make them float32 before")
def bfloat16_at_first(logits, temperature, top_p):
    return _cut((logits / temperature).softmax(-1).float(), top_p)


@wrong("divides the caller's logits", says="your code changes what it was given")
def in_place(logits, temperature, top_p):
    logits /= temperature
    return _cut(logits.float().softmax(-1), top_p)


@wrong("draws", says="type int, expected 3 numbers")
def draws(logits, temperature, top_p):
    return int(torch.multinomial(_cut(_softmax(logits, temperature), top_p), 1))


@wrong("no return", says="returned None")
def no_return(logits, temperature, top_p):
    _cut(_softmax(logits, temperature), top_p)


@wrong("calls the library's Sampling", says="calls the library's `Sampling.distribution`")
def calls_the_library(logits, temperature, top_p):
    return Sampling(temperature, top_p=top_p).distribution([], logits)


@wrong("calls the library's softmax", says="calls the library's `softmax`")
def calls_softmax(logits, temperature, top_p):
    return _cut(distributions.softmax(logits / temperature), top_p)


@wrong("calls the reference", says="calls the library's `processed`")
def calls_the_reference(logits, temperature, top_p):
    return references.processed(logits, temperature, top_p)


@wrong("probabilities over the temperature, then the cut", says="the probabilities are divided")
def probabilities_divided_first(logits, temperature, top_p):
    row = logits.double().softmax(-1) / temperature
    ordered, tokens = row.sort(descending=True)
    row[tokens[ordered.cumsum(-1) - ordered >= top_p]] = 0.0
    return row / row.sum()


@wrong("a softmax of probabilities over the temperature", says="the softmax is taken twice")
def softmax_twice(logits, temperature, top_p):
    return _cut((logits.double().softmax(-1) / temperature).softmax(-1), top_p)


@wrong("probabilities to the power of the temperature", says="multiplied by the temperature")
def power_of_temperature(logits, temperature, top_p):
    row = logits.double().softmax(-1) ** temperature
    return _cut(row / row.sum(), top_p)


@wrong("an epsilon with the temperature", says="close, but not equal")
def temperature_and_epsilon(logits, temperature, top_p):
    return _cut(_softmax(logits, temperature + 1e-3), top_p)


@wrong("the temperature for the cut only", says="used for the cut only")
def temperature_for_the_cut(logits, temperature, top_p):
    return _cut(logits.double().softmax(-1), top_p, shown=_softmax(logits, temperature))


@wrong("transformers' own, in the wrong order", says="top-p is applied before the temperature")
def warpers_in_the_wrong_order(logits, temperature, top_p):
    scores = TopPLogitsWarper(top_p)(None, logits.float()[None])
    return TemperatureLogitsWarper(temperature)(None, scores)[0].softmax(-1)


@wrong("no softmax", says="a softmax is missing")
def no_softmax(logits, temperature, top_p):
    scores = logits.double() / temperature
    return scores / scores.sum()


@wrong("divided by top_p", says="divided by its sum, which is seldom just top_p")
def divided_by_top_p(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    return row * (_cut(row, top_p) > 0) / top_p


@wrong("drops the token that crosses, not normalised", says="And divide what is kept by its sum")
def drops_crossing_not_normalised(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    ordered, tokens = row.sort(descending=True)
    row[tokens[ordered.cumsum(-1) > top_p]] = 0.0
    return row


@wrong("keeps a part of the token that crosses", says="with all of its probability")
def crossing_in_part(logits, temperature, top_p):
    ordered, tokens = _softmax(logits, temperature).sort(descending=True)
    before = ordered.cumsum(-1) - ordered
    row = torch.zeros_like(ordered)
    row[tokens] = torch.minimum(ordered, (top_p - before).clamp(min=0.0))
    return row / row.sum()


@wrong("up to 1 - top_p", says="not of 1 - top_p")
def up_to_the_rest(logits, temperature, top_p):
    return _cut(_softmax(logits, temperature), 1 - top_p if top_p < 1 else 1)


@wrong("put back the wrong way", says="put back the wrong way")
def wrong_way_back(logits, temperature, top_p):
    ordered, tokens = _softmax(logits, temperature).sort(descending=True)
    return _cut(ordered, top_p)[tokens]


@wrong("those of at most top_p", says="those of at most top_p")
def at_most_top_p(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    row[row > top_p] = 0.0
    return row / row.sum()


@wrong("transformers' min-p", says="beside the likeliest one's")
def min_p_warper(logits, temperature, top_p):
    scores = TemperatureLogitsWarper(temperature)(None, logits.float()[None])
    return MinPLogitsWarper(top_p)(None, scores)[0].softmax(-1)


@wrong("transformers' top-k, rounded down", says="not a share of the tokens, rounded down")
def top_k_warper(logits, temperature, top_p):
    scores = TemperatureLogitsWarper(temperature)(None, logits.float()[None])
    return TopKLogitsWarper(max(1, int(top_p * len(logits))))(None, scores)[0].softmax(-1)


@wrong("top-k, rounded up", says="not a share of the tokens, rounded up")
def top_k_rounded_up(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    row[row.argsort(descending=True)[math.ceil(top_p * len(row)) :]] = 0.0
    return row / row.sum()


@wrong("keeps the others", says="what should be kept is dropped")
def the_others(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    others = row * (_cut(row, top_p) == 0)
    return others / others.sum() if others.sum() > 0 else row


@wrong("drops with a logit of 0", says="a logit of 0 drops nothing")
def logits_of_zero(logits, temperature, top_p):
    scores = logits.double() / temperature
    scores[_cut(scores.softmax(-1), top_p) == 0] = 0.0
    return scores.softmax(-1)


@wrong("softmax once more at the end", says="once more at the end")
def softmax_at_the_end(logits, temperature, top_p):
    return _cut(_softmax(logits, temperature), top_p).softmax(-1)


@wrong("what is dropped goes to the likeliest", says="goes to the likeliest token")
def rest_to_the_likeliest(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    row[_cut(row, top_p) == 0] = 0.0
    row[row.argmax()] += 1 - row.sum()
    return row


@wrong("what is dropped is shared out evenly", says="shared out evenly")
def rest_shared_out(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    kept = _cut(row, top_p) > 0
    return torch.where(kept, row + row[~kept].sum() / kept.sum(), 0.0)


@wrong("the same for all that is kept", says="not all equally likely")
def even_chances(logits, temperature, top_p):
    kept = _cut(_softmax(logits, temperature), top_p) > 0
    return kept / kept.sum()


@wrong("only the kept entries", says="expected 3 numbers")
def only_kept(logits, temperature, top_p):
    row = _cut(_softmax(logits, temperature), top_p)
    return row[row > 0]


@wrong("a drawn token in a tensor", says="expected 3 numbers")
def draws_a_tensor(logits, temperature, top_p):
    return torch.multinomial(_cut(_softmax(logits, temperature), top_p), 1)


@wrong("counts samples", says="without drawing samples")
def counts_samples(logits, temperature, top_p):
    drawn = torch.multinomial(_cut(_softmax(logits, temperature), top_p), 20_000, replacement=True)
    return torch.bincount(drawn, minlength=len(logits)) / 20_000


@wrong("everything in bfloat16, and back", says="half precision")
def bfloat16_and_back(logits, temperature, top_p):
    return _cut((logits.bfloat16() / temperature).softmax(-1), top_p).double()


@wrong("logits rounded to bfloat16", says="half precision")
def rounded_logits(logits, temperature, top_p):
    return _cut(_softmax(logits.bfloat16(), temperature), top_p)


@wrong("float16 until the cut", says="half precision")
def float16_at_first(logits, temperature, top_p):
    return _cut((logits.half() / temperature).softmax(-1).double(), top_p)


@wrong("the temperature in bfloat16", says="Make them float32 before")
def wide_too_late(logits, temperature, top_p):
    return _cut((logits / temperature).double().softmax(-1), top_p)


@wrong("transformers' own, in bfloat16", says="Make them float32 before")
def warpers_in_bfloat16(logits, temperature, top_p):
    scores = TemperatureLogitsWarper(temperature)(None, logits[None])
    return TopPLogitsWarper(top_p)(None, scores)[0].float().softmax(-1)


@wrong("rounded", says="close, but not equal.*without rounding")
def rounded(logits, temperature, top_p):
    return _cut(_softmax(logits, temperature), top_p).round(decimals=3)


@wrong("divides in place what is float32 already", says="your code changes what it was given")
def in_place_if_float32(logits, temperature, top_p):
    return _cut(logits.float().div_(temperature).softmax(-1), top_p)


@wrong("drops in the caller's logits", says="your code changes what it was given")
def drops_in_place(logits, temperature, top_p):
    logits[_cut(_softmax(logits, temperature), top_p) == 0] = -math.inf
    return _softmax(logits, temperature)


@wrong("logarithms", says="these are logarithms")
def logarithms(logits, temperature, top_p):
    return _cut(_softmax(logits, temperature), top_p).log()


@wrong("logits", says="a probability cannot be negative")
def cut_logits(logits, temperature, top_p):
    dropped = _cut(_softmax(logits, temperature), top_p) == 0
    return (logits.double() / temperature).masked_fill(dropped, -math.inf)


@wrong("a row too many", says="shape .1, 3.")
def two_dimensions(logits, temperature, top_p):
    return _cut(_softmax(logits, temperature), top_p)[None]


@wrong("values and tokens", says="expected a number")
def values_and_tokens(logits, temperature, top_p):
    return _cut(_softmax(logits, temperature), top_p).sort(descending=True)


@wrong("calls the library's rows", says="calls the library's `TargetRows")
def calls_rows(logits, temperature, top_p):
    return TargetRows(Sampling(temperature, top_p=top_p), [0], logits[None])[0]


@wrong("below top_p, the first one in any case", says="the sum has to \\*reach\\* top_p")
def below_top_p(logits, temperature, top_p, dtype=torch.float64):
    ordered, tokens = (logits.to(dtype) / temperature).softmax(-1).sort(descending=True)
    keep = ordered.cumsum(-1) < top_p
    keep[0] = True
    row = torch.zeros_like(ordered)
    row[tokens[keep]] = ordered[keep]
    return row / row.sum()


@wrong("below top_p in float32", says="the sum has to \\*reach\\* top_p")
def below_top_p_in_float32(logits, temperature, top_p):
    return below_top_p(logits.float(), temperature, top_p, dtype=torch.float32)


@wrong("sums in float32, for top_p = 1 as well", says="may reach 1 before the last")
def sums_in_float32(logits, temperature, top_p):
    probabilities = (logits.float() / temperature).softmax(-1)
    ordered, tokens = probabilities.sort(descending=True)
    probabilities[tokens[ordered.cumsum(-1) - ordered >= top_p]] = 0.0
    return probabilities / probabilities.sum()


@right("cuts the logits, one softmax at the end")
def cuts_logits(logits, temperature, top_p):
    scores = logits.float() / temperature
    ordered, tokens = scores.softmax(-1).sort(descending=True)
    if top_p < 1.0:
        scores[tokens[1:][ordered.cumsum(-1)[:-1] >= top_p]] = float("-inf")
    return scores.softmax(-1)


@right("a loop")
def loop(logits, temperature, top_p):
    row = _softmax(logits, temperature).tolist()
    kept, total = [0.0] * len(row), 0.0
    for token in sorted(range(len(row)), key=lambda token: -row[token]):
        kept[token] = row[token]
        total += row[token]
        if total >= top_p:
            break
    return torch.tensor([entry / total for entry in kept])


@right("numpy")
def with_numpy(logits, temperature, top_p):
    scores = logits.double().numpy() / temperature
    row = np.exp(scores - scores.max())
    row /= row.sum()
    order = np.argsort(-row)
    before = np.concatenate([[0.0], np.cumsum(row[order])[:-1]])
    row[order[before >= top_p]] = 0.0
    return torch.from_numpy(row / row.sum())


@wrong("an array", says="in a list or an array, expected a tensor")
def gives_an_array(logits, temperature, top_p):
    return with_numpy(logits, temperature, top_p).numpy()


@right("the temperature behind the softmax, as a power")
def power(logits, temperature, top_p):
    row = logits.double().softmax(-1) ** (1 / temperature)
    return _cut(row / row.sum(), top_p)


@right("counts how many are needed")
def counts(logits, temperature, top_p):
    row = torch.log_softmax(logits.double() / temperature, dim=0).exp()
    values, tokens = row.topk(len(row))
    needed = int((values.cumsum(0) < top_p).sum()) + 1
    kept = torch.zeros_like(row).scatter(0, tokens[:needed], values[:needed])
    return kept / kept.sum()


@right("transformers' own")
def warpers(logits, temperature, top_p):
    scores = TemperatureLogitsWarper(temperature)(None, logits.float()[None])
    return TopPLogitsWarper(top_p)(None, scores)[0].softmax(-1)


@right("from below, in float64: what is dropped sums to at most 1 - top_p")
def from_below(logits, temperature, top_p):
    row = _softmax(logits, temperature)
    ordered, tokens = row.sort()
    row[tokens[ordered.cumsum(-1) <= 1 - top_p]] = 0.0
    return row / row.sum()


@right("a mask shifted by one and scattered, torch.where, in float32")
def shifted_mask(logits, temperature, top_p):
    row = (logits.float() / temperature).softmax(-1)
    ordered, tokens = row.sort(descending=True)
    dropped = ordered.cumsum(-1) > top_p
    dropped[1:] = dropped[:-1].clone()
    dropped[0] = False
    row = torch.where(torch.zeros_like(dropped).scatter(0, tokens, dropped), 0.0, row)
    return row / row.sum()

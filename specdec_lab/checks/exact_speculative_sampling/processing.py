"""The check of temperature and top-p."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from specdec_lab import distributions, sampling
from specdec_lab.checks import references
from specdec_lab.checks.exact_speculative_sampling.naming import fail_row, first_wrong, same_row
from specdec_lab.checks.exact_speculative_sampling.one_step import steady, unnamed
from specdec_lab.checks.exact_speculative_sampling.rows import tensor_row
from specdec_lab.checks.harness import Attempt, check

_Case = tuple[Tensor, float, float]
"""Logits, temperature, top-p."""


@check(
    read="From logits to p",
    closed=(sampling.Sampling.distribution, sampling.TargetRows, distributions),
    reference=references.processed,
)
def processed(attempt: Attempt, seed: int | None) -> None:
    """Temperature, softmax, then the likeliest tokens up to the one that crosses top-p."""
    log = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log()
    spread = torch.tensor([1.5, -0.3, 0.9, 2.0, 0.1], dtype=torch.float64)
    cases: list[_Case] = [
        (log, 1.0, 0.6),
        (log, 1.0, 0.4),
        (log, 1.0, 1.0),
        (spread, 0.5, 1.0),
        (spread, 1.0, 0.7),
        (spread, 1.0, 0.5),
        (spread.float(), 2.0, 0.8),
        (torch.tensor([3.0, -1.0, 2.0, 2.25]).bfloat16(), 0.8, 0.9),
        (torch.tensor([0.2, float("-inf"), 1.0], dtype=torch.float64), 1.3, 1.0),
    ]
    if seed is not None:
        random = Random(seed)
        cases = []
        for temperature, top_p in (
            *((1.0, 1.0), (0.6, 0.9), (1.7, 0.5), (0.9, 0.2), (1.2, 0.95)),
            *((3.0, 0.3), (2.0, 0.7)),
        ):
            scores = [random.gauss(0.0, 1.5) for _ in range(7)]
            cases.append((torch.tensor(scores, dtype=torch.float64), temperature, top_p))
        cases += [
            (cases[i][0].bfloat16(), temperature, 0.85) for i, temperature in ((1, 0.7), (2, 1.9))
        ]
        cases.append((cases[3][0].float(), 0.8, 0.75))

    def ask(case: _Case) -> Tensor:
        logits, temperature, top_p = case
        yours = attempt(
            logits.clone(),
            temperature,
            top_p,
            shown={"logits": logits.float(), "temperature": temperature, "top_p": top_p},
        )
        row = tensor_row(attempt, yours, len(logits))
        if isinstance(yours, Tensor):
            attempt.require(
                yours.dtype not in (torch.bfloat16, torch.float16),
                f"it gave {str(yours.dtype).removeprefix('torch.')}, expected float32 or float64: "
                "three significant digits are not enough for a probability.",
            )
        return row

    def truth(case: _Case) -> Tensor:
        return references.processed(*case).double()

    found = first_wrong(cases, ask, truth, _suspects, same_row)
    if found is None:
        _judge_everything_kept(attempt)
        return
    case, name = found
    yours, halves = steady(attempt, ask, case), _half_rows(case)
    if not name and case[0].dtype == torch.bfloat16:
        attempt.require(
            float((yours - truth(case)).abs().max()) > 0.02
            and not any(same_row(yours, half) for half in halves),
            "close, but not equal: the logits come in bfloat16 here. Make them float32 before you "
            "compute with them.",
        )
    fail_row(attempt, name or unnamed(yours, truth(case), halves), yours, truth(case))


def _judge_everything_kept(attempt: Attempt) -> None:
    """In float32 the first two already sum to 1."""
    scores = torch.tensor([0.0, -18.0, 0.0, -18.0, -18.0])
    shown = {"logits": scores, "temperature": 1.0, "top_p": 1.0}
    row = tensor_row(attempt, attempt(scores.clone(), 1.0, 1.0, shown=shown), len(scores))
    attempt.require(
        bool((row > 0.0).all()),
        "with top_p = 1 every token is kept, the unlikely ones, too. A sum of rounded numbers may "
        "reach 1 before the last token.",
        yours=str(row.tolist()),
    )


def _half_rows(case: _Case) -> list[Tensor]:
    """What half precision makes of it, used throughout or for the first steps only."""
    logits, temperature, top_p = case
    rows = []
    for dtype in (torch.bfloat16, torch.float16):
        half = logits.to(dtype)
        rows += [
            _cut((half / temperature).softmax(-1), top_p).double(),
            _cut((half / temperature).softmax(-1).double(), top_p),
            _cut((half / temperature).double().softmax(-1), top_p),
            _cut((half.double() / temperature).softmax(-1), top_p),
        ]
    return rows


def _suspects(case: _Case) -> dict[str, Tensor | None]:
    """Misconception -> the distribution that it gives."""
    logits, temperature, top_p = case[0].double(), *case[1:]
    warm = (logits / temperature).softmax(-1)
    cold = logits.softmax(-1)
    hot = (logits * temperature).softmax(-1)
    kept = warm * _front(warm, top_p)
    tempered, strict = cold / temperature, warm * _within(warm, top_p, first=False)
    # Whether a rounded sum of everything stays below 1, within it or above, nobody knows.
    crosses = top_p < 1.0
    possible = bool((warm > 0.0).all())  # else a softmax gives something to what has no probability
    tie = top_p < 1.0 and bool(torch.isclose(warm, top_p * warm.max()).any())  # rounding decides
    wrong: dict[str, Tensor | None] = {
        "the logits are multiplied by the temperature; divide, so that a low one makes the likely "
        "likelier.": _cut(hot, top_p),
        "the temperature is not used.": _cut(cold, top_p),
        "the probabilities are divided by the temperature, not the logits.": _cut(cold, top_p)
        / temperature,
        "the probabilities are divided by the temperature, not the logits. Dividing by their sum takes "
        "it out again, and only the cut is another.": _renewed(tempered * _front(tempered, top_p)),
        "the softmax is taken twice: of the logits, and of probabilities divided by the temperature.": (
            _cut(tempered.softmax(-1), top_p) if possible else None
        ),
        "the temperature is used for the cut only. What is kept needs it as well.": _renewed(
            cold * _front(warm, top_p)
        ),
        "a softmax is missing: these are logits, divided by their sum.": (
            _renewed(logits / temperature) if possible else None
        ),
        "top-p is not used.": warm,
        "what was kept is not divided by its sum.": kept,
        "what was kept is divided by its sum, which is seldom just top_p.": kept / top_p,
        "the likeliest tokens are kept up to a sum of top_p, not of 1 - top_p.": (
            _cut(warm, 1.0 - top_p) if top_p < 1.0 else None
        ),
        "a logit of 0 drops nothing: it is one like any other. Minus infinity would, or a probability "
        "of 0.": ((logits / temperature * _front(warm, top_p)).softmax(-1) if possible else None),
        "top-p is applied before the temperature. First the temperature, then the cut.": _renewed(
            warm * _front(cold, top_p)
        ),
        "top-p is applied to the logits' own probabilities, and the temperature afterwards.": _renewed(
            (_cut(cold, top_p)) ** (1 / temperature)
        ),
        "the token that crosses the limit is still kept: the sum has to *reach* top_p.": (
            _renewed(warm * _within(warm, top_p)) if crosses else None
        ),
        "the token that crosses the limit is still kept, even if it is the first: the sum has to "
        "*reach* top_p.": _renewed(strict) if crosses else None,
        "the token that crosses the limit is still kept. And divide what is kept by its sum.": (
            strict if crosses else None
        ),
        "the token that crosses the limit is kept with all of its probability.": _up_to(warm, top_p),
        "tokens are kept by their own probability: those of at least top_p.": _renewed(
            warm * (warm >= top_p)
        ),
        "tokens are kept by their own probability: those of at least 1 - top_p.": _renewed(
            warm * (warm >= 1 - top_p)
        ),
        "tokens are kept by their own probability: those of at most top_p.": _renewed(
            warm * (warm <= top_p)
        ),
        "what should be kept is dropped, and what should be dropped is kept.": (
            _renewed(warm - kept) if bool((warm > kept).any()) else None
        ),
        "the *least* likely tokens are kept: sort with the likeliest first.": _renewed(
            warm * _front(warm, top_p, likeliest_first=False)
        ),
        "the kept tokens are in sorted order. Put each back to its own place.": _cut(warm, top_p)
        .sort(descending=True)
        .values,
        "what is kept is put back the wrong way: `row[tokens]` sorts once more, `row[tokens] = ...` "
        "puts back.": _wrong_way_back(warm, top_p),
        "the softmax is taken again, of probabilities. Divide by their sum.": (
            kept.masked_fill(kept == 0, float("-inf")).softmax(-1) if possible else None
        ),
        "the softmax is taken again, of probabilities. Divide by their sum, and what is dropped gets "
        "0.": kept.softmax(-1),
        "the softmax is taken once more at the end, of what are probabilities already.": (
            _renewed(kept).softmax(-1)
        ),
        "these are logarithms of probabilities.": _renewed(kept).log(),
        "what was dropped goes to the likeliest token. Divide by the sum; then each kept one gets its "
        "share.": torch.where(warm == warm.max(), kept + 1.0 - kept.sum(), kept),
        "what was dropped is shared out evenly. Divide by the sum; then the likelier gets more.": (
            kept + (kept > 0.0) * (1.0 - kept.sum()) / (kept > 0.0).sum() if possible else None
        ),
        "the kept tokens are not all equally likely: divide their probabilities by their sum.": (
            _renewed((kept > 0.0).double()) if possible else None
        ),
        "the temperature is used twice.": _cut((logits / temperature**2).softmax(-1), top_p),
        "what is kept was found in sorted order. Put it back to the tokens' own places.": _renewed(
            warm * _front(warm, top_p).sort(descending=True).values
        ),
        "sort by probability first: you add up in the order of the vocabulary.": _renewed(
            warm * ((warm.cumsum(-1) - warm) < top_p)
        ),
        "top-p is a probability, not a share of the tokens.": _likeliest(
            warm, max(1, round(top_p * len(warm)))
        ),
        "top-p is a probability, not a share of the tokens, rounded up.": _likeliest(
            warm, math.ceil(top_p * len(warm))
        ),
        "top-p is a probability, not a share of the tokens, rounded down.": _likeliest(
            warm, max(1, int(top_p * len(warm)))
        ),
        "that is the likeliest token alone; all that is kept can be drawn.": _likeliest(warm, 1),
        "tokens are kept by their own probability, beside the likeliest one's. Add up, the likeliest "
        "first.": None if tie else _renewed(warm * (warm >= top_p * warm.max())),
        "one token too many is kept: the one behind the token that crosses the limit.": _renewed(
            warm * _behind(warm, top_p)
        ),
    }
    # Half precision rounds each of them in a way of its own.
    vague = case[0].dtype == torch.bfloat16
    return {text: None if vague else row for text, row in wrong.items()}


def _front(row: Tensor, top_p: float, likeliest_first: bool = True) -> Tensor:
    """Which tokens are kept: those with less than ``top_p`` in front of them."""
    ordered, tokens = row.sort(descending=likeliest_first)
    kept = torch.zeros_like(row, dtype=torch.bool)
    kept[tokens] = (ordered.cumsum(-1) - ordered) < top_p
    return kept


def _within(row: Tensor, top_p: float, first: bool = True) -> Tensor:
    """Those whose sum stays within ``top_p``; the first one in any case."""
    ordered, tokens = row.sort(descending=True)
    kept = torch.zeros_like(row, dtype=torch.bool)
    kept[tokens] = ordered.cumsum(-1) <= top_p
    kept[tokens[0]] |= first
    return kept


def _up_to(row: Tensor, top_p: float) -> Tensor:
    """The sum is exactly ``top_p`` before it is scaled: the last token is kept in part."""
    ordered, tokens = row.sort(descending=True)
    part = torch.zeros_like(row)
    part[tokens] = torch.minimum(ordered, (top_p - ordered.cumsum(-1) + ordered).clamp(min=0.0))
    return _renewed(part)


def _wrong_way_back(row: Tensor, top_p: float) -> Tensor:
    ordered, tokens = row.sort(descending=True)
    return _cut(ordered, top_p)[tokens]


def _behind(row: Tensor, top_p: float) -> Tensor:
    """The front, and one more."""
    kept = _front(row, top_p)
    kept[row.sort(descending=True).indices[: int(kept.sum()) + 1]] = True
    return kept


def _likeliest(row: Tensor, count: int) -> Tensor:
    kept = torch.zeros_like(row)
    kept[row.topk(count).indices] = 1.0
    return _renewed(row * kept)


def _cut(row: Tensor, top_p: float) -> Tensor:
    return _renewed(row * _front(row, top_p))


def _renewed(row: Tensor) -> Tensor:
    return row / row.sum()  # NaN if nothing was kept

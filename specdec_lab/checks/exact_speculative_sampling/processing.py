"""The check of temperature and top-p."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from specdec_lab import distributions, sampling
from specdec_lab.checks import references
from specdec_lab.checks.harness import Attempt, check


@check(
    read="From logits to p",
    closed=(sampling.Sampling, sampling.TargetRows, distributions),
    reference=references.processed,
)
def processed(attempt: Attempt, seed: int | None) -> None:
    """Temperature, softmax, then the likeliest tokens up to the one that crosses top-p."""
    log = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log()
    spread = torch.tensor([1.5, -0.3, 0.9, 2.0, 0.1], dtype=torch.float64)
    cases = [
        (log, 1.0, 0.6),
        (log, 1.0, 0.4),
        (log, 1.0, 1.0),
        (spread, 0.5, 1.0),
        (spread.float(), 2.0, 0.8),
        (torch.tensor([3.0, -1.0, 2.0, 2.25]).bfloat16(), 0.8, 0.9),
        (torch.tensor([0.2, float("-inf"), 1.0], dtype=torch.float64), 1.3, 1.0),
    ]
    if seed is not None:
        random = Random(seed)
        cases = []
        for temperature, top_p in ((1.0, 1.0), (0.6, 0.9), (1.7, 0.5), (0.9, 0.2), (1.2, 0.95)):
            scores = [random.gauss(0.0, 1.5) for _ in range(7)]
            cases.append((torch.tensor(scores, dtype=torch.float64), temperature, top_p))
        cases.append((cases[1][0].bfloat16(), 0.7, 0.85))
    for logits, temperature, top_p in cases:
        yours = attempt(
            logits.clone(),
            temperature,
            top_p,
            shown={"logits": logits.float(), "temperature": temperature, "top_p": top_p},
        )
        if isinstance(yours, Tensor):
            attempt.require(
                yours.dtype in (torch.float32, torch.float64),
                f"it gave {str(yours.dtype).removeprefix('torch.')}, expected float32 or float64: "
                "three significant digits are not enough for a probability.",
            )
        truth = references.processed(logits, temperature, top_p).double()
        if logits.dtype == torch.bfloat16:
            apart = float((attempt.row(yours, len(truth)) - truth).abs().max())
            attempt.require(
                not 1e-5 < apart < 0.02,
                "close, but not equal: the logits come in bfloat16 here. Make them float32 before you "
                "compute with them.",
            )
        attempt.same_distribution(yours, truth, suspects=_suspects(logits.double(), temperature, top_p))


def _suspects(logits: Tensor, temperature: float, top_p: float) -> dict[str, Tensor]:
    warm = (logits / temperature).softmax(-1)
    cold = logits.softmax(-1)
    hot = (logits * temperature).softmax(-1)
    kept = warm * _front(warm, top_p)
    return {
        "the logits are multiplied by the temperature; divide, so that a low one makes the likely "
        "likelier.": _cut(hot, top_p),
        "the temperature is not used.": _cut(cold, top_p),
        "the probabilities are divided by the temperature, not the logits.": _cut(cold, top_p)
        / temperature,
        "top-p is not used.": warm,
        "what was kept is not divided by its sum.": kept,
        "top-p is applied before the temperature. First the temperature, then the cut.": _renewed(
            warm * _front(cold, top_p)
        ),
        "top-p is applied to the logits' own probabilities, and the temperature afterwards.": _renewed(
            (_cut(cold, top_p)) ** (1 / temperature)
        ),
        "the token that crosses the limit is still kept: the sum has to *reach* top_p.": (
            _renewed(warm * _within(warm, top_p))
        ),
        "tokens are kept by their own probability: those of at least top_p.": _renewed(
            warm * (warm >= top_p)
        ),
        "tokens are kept by their own probability: those of at least 1 - top_p.": _renewed(
            warm * (warm >= 1 - top_p)
        ),
        "the *least* likely tokens are kept: sort with the likeliest first.": _renewed(
            warm * _front(warm, top_p, likeliest_first=False)
        ),
        "the kept tokens are in sorted order. Put each back to its own place.": _cut(warm, top_p)
        .sort(descending=True)
        .values,
        "the softmax is taken again, of probabilities. Divide by their sum.": kept.masked_fill(
            kept == 0, float("-inf")
        ).softmax(-1),
    }


def _front(row: Tensor, top_p: float, likeliest_first: bool = True) -> Tensor:
    """Which tokens are kept: those with less than ``top_p`` in front of them."""
    ordered, tokens = row.sort(descending=likeliest_first)
    kept = torch.zeros_like(row, dtype=torch.bool)
    kept[tokens] = (ordered.cumsum(-1) - ordered) < top_p
    return kept


def _within(row: Tensor, top_p: float) -> Tensor:
    """Those whose sum stays within ``top_p``; the first one in any case."""
    ordered, tokens = row.sort(descending=True)
    kept = torch.zeros_like(row, dtype=torch.bool)
    kept[tokens] = ordered.cumsum(-1) <= top_p
    kept[tokens[0]] = True
    return kept


def _cut(row: Tensor, top_p: float) -> Tensor:
    return _renewed(row * _front(row, top_p))


def _renewed(row: Tensor) -> Tensor:
    return row / row.sum() if row.sum() > 0.0 else row

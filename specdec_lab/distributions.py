"""The mathematics of exact speculative sampling, on probability vectors.

Throughout the library **p is the target's** next-token distribution and **q the draft's**
(the naming of Leviathan et al. 2023, arXiv 2211.17192; some code bases swap the two letters).

A distribution is a float32 or float64 tensor of shape ``[vocab]`` that sums to 1. Half precision is
never used here: eight bits of mantissa cannot hold an acceptance probability.
"""

from __future__ import annotations

import torch
from torch import Tensor


def wide(values: Tensor) -> Tensor:
    """``values`` in float32, or left alone where it is float64 already."""
    return values if values.dtype == torch.float64 else values.float()


def softmax(logits: Tensor) -> Tensor:
    """Probabilities ``[..., vocab]`` of ``logits [..., vocab]``, in float32 or wider."""
    return torch.softmax(wide(logits), dim=-1)


def one_hot(token: int, like: Tensor) -> Tensor:
    """All mass on ``token``: shape, dtype and device as ``like [vocab]``."""
    distribution = torch.zeros_like(like)
    distribution[token] = 1.0
    return distribution


def acceptance_probability(p: float, q: float) -> float:
    """min(1, p(x) / q(x)), the chance to keep a token x that was drawn from the draft.

    Args:
        p: the target's probability of x.
        q: the draft's probability of x; x was drawn from it, so it cannot be 0.

    Raises:
        ValueError: if ``q`` is not positive, or ``p`` is NaN.

    Source: Leviathan et al. 2023, algorithm 1.
    """
    if not p >= 0.0:
        raise ValueError(f"p: got {p}, expected a probability: the target's logits hold NaN")
    if not q > 0.0:
        raise ValueError(
            f"q: got {q} for a token that was drafted, expected a positive probability: "
            "the q handed over is not the distribution the token was drawn from"
        )
    return min(1.0, p / q)


def residual(p: Tensor, q: Tensor, token_ids: Tensor | None = None) -> Tensor:
    """max(0, p - q), normalised: what the replacement of a rejected token is drawn from, ``[vocab]``.

    Args:
        p: ``[vocab]``.
        q: ``[vocab]``; or ``[kept]``, its entries at ``token_ids``, where it is zero everywhere else.
        token_ids: ``[kept]``, all different.

    Where p <= q holds everywhere (up to rounding), p and q are the same distribution and nothing
    is left over; a rejection there is itself a rounding accident, and p is returned.

    Source: Leviathan et al. 2023, section 2.3; Chen et al. 2023 (arXiv 2302.01318), where the letters
    are swapped.
    """
    difference = p - q if token_ids is None else p.index_add(0, token_ids, q.to(p.dtype), alpha=-1)
    leftover = difference.clamp_(min=0.0)
    mass = leftover.sum()
    if mass <= 0.0:
        return p
    return leftover / mass


def alpha(p: Tensor, q: Tensor) -> float:
    """Expected acceptance at one position: the overlap, sum of min(p, q).

    Equals ``1 - total_variation(p, q)``. Source: Leviathan et al. 2023, corollary 3.6.
    """
    return float(torch.minimum(p, q).sum())


def total_variation(p: Tensor, q: Tensor) -> float:
    """Half the L1 distance between two distributions, between 0 and 1."""
    return float((p - q).abs().sum() / 2)


def require_distributions(name: str, rows: Tensor, tolerance: float = 1e-4) -> None:
    """Refuse ``rows [n, vocab]`` that are not distributions.

    The default tolerance is far above float32 rounding over a vocabulary of 10^5 entries (about
    1e-6) and far below what any real mistake in a distribution amounts to.

    Raises:
        ValueError: names the row, and whether it has a negative entry, a NaN or the wrong sum.
    """
    if rows.numel() == 0:
        return
    sums, lowest = rows.sum(dim=-1).tolist(), rows.amin(dim=-1).tolist()
    for row, (total, smallest) in enumerate(zip(sums, lowest, strict=True)):
        if not (abs(total - 1.0) <= tolerance and smallest >= 0.0):
            raise ValueError(
                f"{name}: row {row} sums to {total:.6g} with smallest entry {smallest:.6g}, "
                "expected a distribution: no negative entries and a sum of 1"
            )

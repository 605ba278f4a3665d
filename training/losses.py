"""What the draft is trained on: how far its distribution is from the target's, at many positions.

Two measures. The cross-entropy (forward KL up to a constant) has a gradient everywhere, which an
untrained draft needs. The overlap, sum of min(p, q), is the acceptance rate itself (Leviathan et al.
2023, corollary 3.6), so in the end it is what counts (as in DistillSpec, Zhou et al. 2023, arXiv
2310.08461, which trains on the total variation among others).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

ROWS_AT_ONCE = 128
"""Positions whose rows are in memory at a time: their q and p stay in the processor's cache."""


@dataclass(frozen=True)
class TargetHead:
    """The target's probabilities of the tokens that the draft's head covers.

    Args:
        weight: the target's head, ``[kept, width]``.
    """

    weight: Tensor

    def probabilities(self, hidden: Tensor, log_sum: Tensor) -> Tensor:
        """p ``[n, kept]``, normalised over the whole vocabulary, so that a row sums to at most 1."""
        logits = (hidden.to(self.weight.dtype) @ self.weight.T).float()
        return logits.sub_(log_sum[:, None]).exp_()


class _Distance(torch.autograd.Function):
    """Head, softmax and both losses in one, with their gradients, a few rows at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        head: Tensor,
        target: TargetHead,
        hidden: Tensor,
        log_sum: Tensor,
        overlap_share: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        weight = head.to(states.dtype)
        d_logits = states.new_empty(len(states), len(head))
        cross_entropy, overlap = 0.0, 0.0
        for start in range(0, len(states), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            logits = (states[rows] @ weight.T).float()
            p = target.probabilities(hidden[rows], log_sum[rows])
            log_q_sum = logits.logsumexp(dim=-1, keepdim=True)
            p_mass = p.sum(dim=-1, keepdim=True)
            cross_entropy += float((p_mass * log_q_sum).sum() - p.flatten().dot(logits.flatten()))
            q = logits.sub_(log_q_sum).exp_()
            # d(1 - sum min(p, q)) / d logit = -q (1[q < p] - sum of q where q < p)
            below = q * (q < p)
            below_mass = below.sum(dim=-1, keepdim=True)
            overlap += float(torch.minimum(p, q).sum())
            gradient = q.mul_((1.0 - overlap_share) * p_mass + overlap_share * below_mass)
            gradient.sub_(p, alpha=1.0 - overlap_share).sub_(below, alpha=overlap_share)
            d_logits[rows] = gradient
        ctx.save_for_backward(d_logits @ weight, d_logits.T @ states)
        ctx.count = len(states)
        mean_cross_entropy = states.new_tensor(cross_entropy / len(states), dtype=torch.float32)
        mean_overlap = states.new_tensor(overlap / len(states), dtype=torch.float32)
        loss = (1.0 - overlap_share) * mean_cross_entropy + overlap_share * (1.0 - mean_overlap)
        ctx.mark_non_differentiable(mean_cross_entropy, mean_overlap)
        return loss, mean_cross_entropy, mean_overlap

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor, *unused: Any) -> tuple[Any, ...]:
        d_states, d_head = ctx.saved_tensors
        scale = d_loss / ctx.count
        return d_states * scale.to(d_states.dtype), d_head.float() * scale, None, None, None, None


def distance(
    states: Tensor,
    head: Tensor,
    target: TargetHead,
    hidden: Tensor,
    log_sum: Tensor,
    overlap_share: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """How far the draft is from the target, a mean over positions.

    Args:
        states: the draft's last hidden states, ``[n, width]``.
        head: its head, ``[kept, width]``.
        target: the target's head over the same tokens.
        hidden, log_sum: the target's scores at these positions, ``[n, width]`` and ``[n]``.
        overlap_share: 0 is the cross-entropy alone, 1 is one minus the overlap alone.

    Returns:
        The loss, which has a gradient; the cross-entropy; and the overlap, alpha at temperature 1.
    """
    loss, cross_entropy, overlap = _Distance.apply(  # type: ignore[no-untyped-call]
        states, head, target, hidden, log_sum, overlap_share
    )
    return loss, cross_entropy, overlap

"""A linear layer that reads its weights in 8 bits when it multiplies a row or two.

A product with one row takes as long as reading the weights does, and a drafting step is made of such
products. Half the bytes, about half the time.
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn


class EightBitLinear(nn.Linear):
    """A linear layer without bias that uses the 8-bit weights it was made from where that pays.

    ``weight`` says the same, rounded once more to its dtype. The 8 bits are for inference: training
    ``weight`` would leave them behind.

    Args:
        weight: ``[rows, columns]``.
    """

    FEW = 4
    """Rows of input up to which it pays."""
    ALIGNED = 32
    """Bytes. torch's product crashes, unchecked, on rows that do not begin at such an address."""

    codes: Tensor | None
    scale: Tensor | None

    def __init__(self, weight: Tensor) -> None:
        rows, columns = weight.shape
        super().__init__(columns, rows, bias=False, device="meta")
        self.weight = nn.Parameter(weight)
        self.register_buffer("codes", None, persistent=False)
        self.register_buffer("scale", None, persistent=False)

    def read_from(self, codes: Tensor, scale: Tensor) -> Self:
        """Use these where it pays.

        Args:
            codes: ``[rows, columns]``, int8.
            scale: ``[rows, 1]``; ``codes * scale`` is the weight.
        """
        self.weight.requires_grad_(False)
        if codes.shape[1] % self.ALIGNED == 0:
            self.codes = codes.to(self.weight.device, copy=True)  # a tensor from a file lies anywhere
            self.scale = scale[:, 0].to(self.weight)
        return self

    def forward(self, hidden: Tensor) -> Tensor:
        """``[..., columns]`` -> ``[..., rows]``."""
        if self.codes is None or not self._pays(hidden):
            return super().forward(hidden)
        few = hidden.reshape(-1, self.in_features).contiguous()
        if few.data_ptr() % self.ALIGNED:
            few = few.clone()
        made: Tensor = torch.ops.aten._weight_int8pack_mm(few, self.codes, self.scale)
        return made.view(*hidden.shape[:-1], self.out_features)

    def _pays(self, hidden: Tensor) -> bool:
        # torch has a fast product for 8-bit weights on a CPU in bfloat16; in float32 it has a slow one.
        return (
            hidden.dtype == torch.bfloat16
            and hidden.device.type == "cpu"
            and hidden.numel() <= self.FEW * self.in_features
        )

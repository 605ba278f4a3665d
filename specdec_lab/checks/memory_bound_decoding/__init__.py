"""Checks of ``01_memory_bound_decoding``."""

from specdec_lab.checks.memory_bound_decoding.counting import (
    attainable_flops,
    batch_intensity,
    forward_bytes,
    forward_flops,
    matrix_weights,
)
from specdec_lab.checks.memory_bound_decoding.decoding_loops import cached_decode, naive_decode
from specdec_lab.checks.memory_bound_decoding.timing import (
    median_seconds,
    predicted_v8,
    verification_cost,
)

__all__ = [
    "attainable_flops",
    "batch_intensity",
    "cached_decode",
    "forward_bytes",
    "forward_flops",
    "matrix_weights",
    "median_seconds",
    "naive_decode",
    "predicted_v8",
    "verification_cost",
]

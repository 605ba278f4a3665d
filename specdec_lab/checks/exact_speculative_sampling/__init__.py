"""Checks of ``03_exact_speculative_sampling``."""

from specdec_lab.checks.exact_speculative_sampling.judging import exact_verify
from specdec_lab.checks.exact_speculative_sampling.on_paper import by_hand
from specdec_lab.checks.exact_speculative_sampling.one_step import (
    acceptance_probability,
    overlap,
    residual,
)
from specdec_lab.checks.exact_speculative_sampling.processing import processed
from specdec_lab.checks.exact_speculative_sampling.proposing import propose
from specdec_lab.checks.exact_speculative_sampling.step_laws import step_law
from specdec_lab.checks.exact_speculative_sampling.whole_decoder import (
    predicted_worst,
    speculative_sample,
)

__all__ = [
    "acceptance_probability",
    "by_hand",
    "exact_verify",
    "overlap",
    "predicted_worst",
    "processed",
    "propose",
    "residual",
    "speculative_sample",
    "step_law",
]

"""Checks of ``04_speed_experiments``."""

from specdec_lab.checks.speed_experiments.lengths import best_gamma, least_alpha
from specdec_lab.checks.speed_experiments.numbers import my_numbers, predictions, slower
from specdec_lab.checks.speed_experiments.promises import expected_speedup, tokens_per_round
from specdec_lab.checks.speed_experiments.racing import paired_speedup
from specdec_lab.checks.speed_experiments.waiting import latency

__all__ = [
    "best_gamma",
    "expected_speedup",
    "latency",
    "least_alpha",
    "my_numbers",
    "paired_speedup",
    "predictions",
    "slower",
    "tokens_per_round",
]

"""Checks of ``02_greedy_draft_verify``."""

from specdec_lab.checks.greedy_draft_verify.look_up import predicted_passes, prompt_lookup
from specdec_lab.checks.greedy_draft_verify.matching import literal_matching_law
from specdec_lab.checks.greedy_draft_verify.one_by_one import by_hand, cut, one_round, verify
from specdec_lab.checks.greedy_draft_verify.whole_loop import speculative_decode

__all__ = [
    "by_hand",
    "cut",
    "literal_matching_law",
    "one_round",
    "predicted_passes",
    "prompt_lookup",
    "speculative_decode",
    "verify",
]

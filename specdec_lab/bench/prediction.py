"""What theory promises for a run, and where the measured speedup parts from it.

A speedup is tokens over time. So the gap between promise and measurement is that of a round's tokens
(theory takes acceptance to be the same at every position) times that of its time; and the time is the
sum of drafting, verifying and everything else (theory takes both forwards to cost in a round what they
cost apart, and all else to cost nothing).
"""

from __future__ import annotations

from dataclasses import dataclass

from specdec_lab.adaptive import Costs
from specdec_lab.bench.results import Row
from specdec_lab.theory import expected_tokens_per_round


@dataclass(frozen=True)
class Prediction:
    """A run's speedup by theory, and what was measured in its place; times in plain steps.

    Args:
        tokens: of a round, the bonus or replacement included: Leviathan et al. 2023, equation (1).
        draft: time of drafting in a round.
        verify: time of the verifying forward.
        tokens_measured, draft_measured, verify_measured, rest_measured: the same in the run; the rest
            is nothing in theory.
    """

    tokens: float
    draft: float
    verify: float
    tokens_measured: float
    draft_measured: float
    verify_measured: float
    rest_measured: float

    @property
    def speedup(self) -> float:
        """By theory: theorem 3.8 with the cost of verifying in it."""
        return self.tokens / (self.draft + self.verify)

    @property
    def speedup_measured(self) -> float:
        """Wall clock."""
        return self.tokens_measured / (self.draft_measured + self.verify_measured + self.rest_measured)

    @property
    def miss(self) -> float:
        """Measured over predicted."""
        return self.speedup_measured / self.speedup

    @property
    def miss_of_tokens(self) -> float:
        """The part of the miss that comes from acceptance that is not the same everywhere."""
        return self.tokens_measured / self.tokens


def predict(run: Row, plain: Row, costs: Costs) -> Prediction | None:
    """From a run's alpha, the lengths that it drafted, and costs measured apart.

    Args:
        run, plain: rows of ``runs.described``, of the same turns.
        costs: of the run's drafter.

    Returns:
        None if no drafted token was judged.
    """
    if run["alpha"] is None:
        return None
    rounds, step = run["rounds"], plain["seconds_per_token"]
    lengths = {int(n): count for n, count in run["drafted"].items()}

    def mean_over_rounds(values: dict[int, float]) -> float:
        return sum(count * values[n] for n, count in lengths.items()) / rounds

    return Prediction(
        tokens=mean_over_rounds({n: expected_tokens_per_round(run["alpha"], n) for n in lengths}),
        draft=mean_over_rounds({n: n * costs.c for n in lengths}),
        verify=mean_over_rounds({n: costs.of(n) - n * costs.c for n in lengths}),
        tokens_measured=run["tokens_per_round"],
        draft_measured=run["draft_seconds"] / step,
        verify_measured=run["verify_seconds"] / step,
        rest_measured=run["rest_seconds"] / step,
    )

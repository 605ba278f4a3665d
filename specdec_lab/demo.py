"""The main job in one call: decode speculatively, decode plainly, compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specdec_lab.drafters import Drafter
from specdec_lab.pretrained import Pair
from specdec_lab.records import Generation, Round
from specdec_lab.sampling import Sampling
from specdec_lab.simulation import Simulation


@dataclass(frozen=True)
class Demo:
    """A speculative run and, on the same prompt in the same process, the plain one.

    Args:
        speculative: the run with the drafter.
        baseline: cached autoregressive decoding by the target alone; None in a simulation.
        gamma: the draft length asked for.
        speedup: measured, tokens per second over the baseline's; in a simulation, counted in steps.
        matches_target: whether both runs gave the same tokens; None when sampling.
    """

    speculative: Generation
    baseline: Generation | None
    gamma: int
    speedup: float | None
    matches_target: bool | None

    def to_json(self) -> dict[str, Any]:
        """One object with the text, the counts, the speeds and where they come from."""
        metrics = self.speculative.metrics
        measured = not self.speculative.simulated
        return {
            "text": self.speculative.text,
            "tokens": self.speculative.tokens,
            "new_tokens": metrics.new_tokens,
            "stop_reason": self.speculative.stop_reason,
            "gamma": self.gamma,
            "target_forwards": metrics.target_forwards,
            "drafted": metrics.drafted,
            "accepted": metrics.accepted,
            "acceptance_rate": metrics.acceptance_rate,
            "block_efficiency": metrics.block_efficiency,
            "tokens_per_second": metrics.tokens_per_second if measured else None,
            "baseline_tokens_per_second": (
                self.baseline.metrics.tokens_per_second if self.baseline else None
            ),
            "speedup": self.speedup,
            "time_to_first_token": metrics.time_to_first_token if measured else None,
            "inter_token_p50": metrics.inter_token_p50 if measured else None,
            "inter_token_p95": metrics.inter_token_p95 if measured else None,
            "matches_target": self.matches_target,
            "provenance": self.speculative.provenance,
        }


def run_demo(
    pair: Pair,
    prompt: str,
    *,
    drafter: Drafter,
    chat: bool = False,
    gamma: int | None = None,
    sampling: Sampling | None = None,
    seed: int | None = None,
    max_new_tokens: int = 64,
    on_round: Callable[[Round], None] | None = None,
    progress: bool = False,
) -> Demo:
    """Decode ``prompt`` with the drafter, then without it.

    Both follow a short run that is thrown away, so that neither pays for what happens only once
    (memory first touched, kernels chosen). Arguments as in ``generate``; ``progress`` shows a bar
    while the plain run, which is not streamed, goes on.
    """
    sampling = sampling or Sampling()
    options: dict[str, Any] = {"chat": chat, "sampling": sampling, "seed": seed}
    for warm_up in (drafter, None):
        pair.generate(prompt, drafter=warm_up, gamma=gamma, max_new_tokens=4, **options)
    options["max_new_tokens"] = max_new_tokens
    speculative = pair.generate(prompt, drafter=drafter, gamma=gamma, on_round=on_round, **options)
    baseline = pair.generate(prompt, drafter=None, progress=progress, **options)
    return Demo(
        speculative,
        baseline,
        gamma=drafter.default_gamma if gamma is None else gamma,
        speedup=_ratio(speculative, baseline),
        matches_target=speculative.tokens == baseline.tokens if sampling.greedy else None,
    )


def simulated_demo(simulation: Simulation) -> Demo:
    """A scripted run in the same form."""
    return Demo(
        simulation.generation,
        baseline=None,
        gamma=simulation.gamma,
        speedup=simulation.counted_speedup,
        matches_target=True,
    )


def _ratio(speculative: Generation, baseline: Generation) -> float | None:
    ours = speculative.metrics.tokens_per_second
    plain = baseline.metrics.tokens_per_second
    return ours / plain if ours and plain else None

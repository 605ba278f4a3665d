"""The time outside the models' forward passes: the loop, the verdicts, the sampling."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

from transformers import PreTrainedModel

from specdec_lab.bench.prompts import CONVERSATION
from specdec_lab.bench.results import Row
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair
from specdec_lab.sampling import Sampling

MODES = {
    "greedy": Sampling(),
    "temperature 1": Sampling(1.0),
    "temperature 1, top-p 0.95": Sampling(1.0, top_p=0.95),
}


@dataclass
class ForwardClock:
    """Seconds in a model's forward passes, and how many there were."""

    seconds: float = 0.0
    calls: int = 0


@contextmanager
def timed_forwards(model: PreTrainedModel) -> Iterator[ForwardClock]:
    """Time each forward pass of a model within the block; the device must not run behind."""
    clock, inner = ForwardClock(), model.forward

    @functools.wraps(inner)
    def timed(*args: Any, **kwargs: Any) -> Any:
        started = perf_counter()
        made = inner(*args, **kwargs)
        clock.seconds += perf_counter() - started
        clock.calls += 1
        return made

    model.forward = timed
    try:
        yield clock
    finally:
        del model.forward  # the class's own again


def own_time(pair: Pair, gamma: int, budget: int, turns: int) -> Row:
    """For each way to sample: milliseconds of a round, and those outside the forwards; medians.

    A round has ``gamma`` drafting steps (none without a draft model: then plain decoding is looked at).
    """
    return {
        "gamma": gamma if pair.draft is not None else 0,
        "modes": {name: _own_time(pair, mode, gamma, budget, turns) for name, mode in MODES.items()},
    }


def _own_time(pair: Pair, sampling: Sampling, gamma: int, budget: int, turns: int) -> dict[str, float]:
    drafter = None if pair.draft is None else pair.drafter("model")
    models: list[HFCausalLM] = [pair.target] if pair.draft is None else [pair.target, pair.draft]
    whole, outside = list[float](), list[float]()
    options: dict[str, Any] = {"max_new_tokens": budget, "seed": 1, "sampling": sampling}
    for prompt in CONVERSATION[:turns]:
        clocks = [timed_forwards(one.model) for one in models]
        with clocks[0] as target_clock, clocks[-1] as last_clock:
            started = perf_counter()
            made = pair.generate(prompt, drafter=drafter, gamma=gamma, chat=True, **options)
            seconds = perf_counter() - started
        inside = target_clock.seconds + (last_clock.seconds if len(models) > 1 else 0.0)
        whole.append(1000.0 * seconds / len(made.rounds))
        outside.append(1000.0 * (seconds - inside) / len(made.rounds))
    return {"round_ms": median(whole), "outside_ms": median(outside)}

"""The time outside the models' forward passes: the loop, the verdicts, the sampling."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

from specdec_lab.bench.prompts import CONVERSATION
from specdec_lab.bench.results import Row
from specdec_lab.bench.setup import prompt_ids
from specdec_lab.benchmark import nothing
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair
from specdec_lab.records import Round
from specdec_lab.sampling import Sampling

MODES = {
    "greedy": Sampling(),
    "temperature 1": Sampling(1.0),
    "temperature 1, top-p 0.95": Sampling(1.0, top_p=0.95),
}


@dataclass
class CallClock:
    """Seconds in some calls, and how many there were; a call within a call is part of it."""

    seconds: float = 0.0
    calls: int = 0
    running: bool = False


@contextmanager
def timed_calls(
    owner: Any, *names: str, finished: Callable[[], object] = nothing
) -> Iterator[CallClock]:
    """Time these methods of one object within the block; ``finished`` waits for its device."""
    clock = CallClock()

    def timed(inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def call(*args: Any, **kwargs: Any) -> Any:
            if clock.running:
                return inner(*args, **kwargs)
            clock.running, started = True, perf_counter()
            try:
                made = inner(*args, **kwargs)
                finished()
                return made
            finally:
                clock.seconds += perf_counter() - started
                clock.calls += 1
                clock.running = False

        return call

    for name in names:
        setattr(owner, name, timed(getattr(owner, name)))
    try:
        yield clock
    finally:
        for name in names:
            delattr(owner, name)  # the class's own again


def timed_forwards(model: HFCausalLM) -> AbstractContextManager[CallClock]:
    """Time a model's forward passes, until its device has finished them."""
    return timed_calls(model, "_forward", "_forward_kept", finished=model.synchronize)


def own_time(pair: Pair, gamma: int, budget: int, prompts: int) -> Row:
    """For each way to sample: milliseconds of a round, and those outside the forwards.

    Medians over prompts of means over the rounds behind the first one, which reads the prompt. A round
    has ``gamma`` drafting steps (none without a draft model: then plain decoding is looked at).
    """
    return {
        "gamma": gamma if pair.draft is not None else 0,
        "modes": {name: _own_time(pair, mode, gamma, budget, prompts) for name, mode in MODES.items()},
    }


def _own_time(
    pair: Pair, sampling: Sampling, gamma: int, budget: int, prompts: int
) -> dict[str, float]:
    drafter = None if pair.draft is None else pair.drafter("model")
    models = [one for one in (pair.target, pair.draft) if one is not None]
    whole, outside = list[float](), list[float]()
    options: dict[str, Any] = {"max_new_tokens": budget, "seed": 1, "sampling": sampling}
    for text in CONVERSATION[:prompts]:
        with ExitStack() as stack:
            clocks = [stack.enter_context(timed_forwards(one)) for one in models]
            inside: list[float] = []  # seconds in forwards at the end of each round

            def note(_: Round, inside: list[float] = inside, clocks: Any = clocks) -> None:
                inside.append(sum(clock.seconds for clock in clocks))

            options["on_round"] = note
            made = pair.generate(prompt_ids(pair, text), drafter=drafter, gamma=gamma, **options)
        rounds = made.rounds[1:]
        seconds = sum(one.seconds.total for one in rounds)
        whole.append(1000.0 * seconds / len(rounds))
        outside.append(1000.0 * (seconds - inside[-1] + inside[0]) / len(rounds))
    return {"round_ms": median(whole), "outside_ms": median(outside)}

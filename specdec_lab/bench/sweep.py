"""Experiment 3: speed over the draft length, for every drafter, on six kinds of prompts.

On each prompt all contenders take turns, plain decoding among them. What theory promises, from the
acceptance that was measured here and from costs that are measured apart, stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from tqdm.auto import tqdm

from specdec_lab.bench.prompts import SIX_KINDS
from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.runs import Decode, decode_in_turns, described
from specdec_lab.bench.setup import Setup, context_of
from specdec_lab.bench.timing import take_turns
from specdec_lab.drafters import CorruptedDrafter, Drafter, LayerSkipDrafter, ModelDrafter, NGramDrafter
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair
from specdec_lab.sampling import Sampling
from specdec_lab.theory import expected_tokens_per_round

EXPERIMENT = "sweep"
GAMMAS = (1, 2, 4, 8)
TEMPERATURES = (0.0, 1.0)
NOISES = (0.2, 0.5)
CONTEXT = 128
COSTS = "costs"
"""The key of the row with c and v(n); the others are prompts."""


@dataclass(frozen=True)
class Task:
    """A prompt at a temperature."""

    kind: str
    number: int
    prompt: str
    temperature: float

    @property
    def key(self) -> str:
        return f"{self.kind} {self.number} at {self.temperature:g}"


def run(setup: Setup, dtype: str = "bfloat16") -> Result:
    """Measure it, or what is missing of it."""
    pair = setup.pair(dtype)
    of_each, budget, turns = (1, 24, 1) if setup.quick else (3, 32, 2)
    gammas = (2, 4) if setup.quick else GAMMAS
    drafters = drafters_of(pair)
    settings = {
        "dtype": dtype,
        "gammas": gammas,
        "drafters": list(drafters),
        "temperatures": TEMPERATURES,
        "prompts_of_each_kind": of_each,
        "max_new_tokens": budget,
        "turns": turns,
    }
    ledger = setup.ledger(EXPERIMENT, settings, pair)
    if ledger.missing([COSTS]):
        ledger.add(COSTS, costs(pair.target, drafters, gammas, 3 if setup.quick else 9))
    tasks = {task.key: task for task in tasks_of(of_each)}
    todo = ledger.missing(tasks)
    for key in tqdm(todo, desc=EXPERIMENT, unit="prompt", disable=not setup.progress):
        ledger.add(key, one_prompt(pair, tasks[key], drafters, gammas, budget, turns))
    return ledger.result


def tasks_of(of_each: int) -> list[Task]:
    """The prompts in an order in which an interrupted run has seen all kinds."""
    return [
        Task(kind, number, prompts[number], temperature)
        for number in range(of_each)
        for kind, prompts in SIX_KINDS.items()
        for temperature in TEMPERATURES
    ]


def drafters_of(pair: Pair) -> dict[str, Drafter]:
    """All that this pair can draft with: from the cheapest to the target itself."""
    target = pair.target
    drafters: dict[str, Drafter] = {"n-gram": NGramDrafter(target.vocab_size)}
    if pair.draft is not None:
        drafters["draft model"] = ModelDrafter(pair.draft)
        for noise in NOISES:
            drafters[f"draft model, noise {noise:g}"] = CorruptedDrafter(
                ModelDrafter(pair.draft), noise
            )
    depth = target.model.config.get_text_config(decoder=True).num_hidden_layers
    drafters["layer-skip"] = LayerSkipDrafter(target, depth * 2 // 3)
    drafters["the target itself"] = ModelDrafter(HFCausalLM(target.model, target.vocab_size))
    return drafters


def one_prompt(
    pair: Pair,
    task: Task,
    drafters: Mapping[str, Drafter],
    gammas: tuple[int, ...],
    budget: int,
    turns: int,
) -> Row:
    """Decode it in every way, in turns."""
    options: dict[str, Any] = {
        "chat": True,
        "max_new_tokens": budget,
        "sampling": Sampling(task.temperature),
        "seed": 1,
    }

    def with_drafter(drafter: Drafter | None, gamma: int | None) -> Decode:
        return lambda: pair.generate(task.prompt, drafter=drafter, gamma=gamma, **options)

    contenders = {"plain": with_drafter(None, None)}
    for name, drafter in drafters.items():
        for gamma in gammas:
            contenders[f"{name}, {gamma}"] = with_drafter(drafter, gamma)
    made = decode_in_turns(contenders, turns)
    plain = described(made["plain"])
    runs = []
    for name in drafters:
        for gamma in gammas:
            row = described(made[f"{name}, {gamma}"])
            row["speedup"] = plain["seconds_per_token"] / row["seconds_per_token"]
            runs.append({"drafter": name, "gamma": gamma, **row})
    return {
        "prompt_kind": task.kind,
        "prompt": task.prompt,
        "temperature": task.temperature,
        "plain": plain,
        "runs": runs,
    }


def costs(
    target: HFCausalLM, drafters: Mapping[str, Drafter], gammas: tuple[int, ...], turns: int
) -> Row:
    """c of each drafting model, and v(n) at the lengths that the drafts need; interleaved."""
    models = {
        name: drafter.model for name, drafter in drafters.items() if isinstance(drafter, ModelDrafter)
    }
    lengths = sorted({1, *(gamma + 1 for gamma in gammas)})
    context = context_of(CONTEXT, target.vocab_size)
    for model in (target, *models.values()):
        model.reset()
        model.extend(context, rows=1)

    def forward(model: Any, count: int) -> Callable[[], None]:
        def step() -> None:
            if count == 1:
                model.extend_kept([7])
            else:
                model.extend([7] * count)
            model.rewind(CONTEXT)

        return step

    contenders = {f"v {n}": forward(target, n) for n in lengths}
    contenders |= {f"c {name}": forward(model, 1) for name, model in models.items()}
    seconds = take_turns(contenders, turns, synchronize=target.synchronize)
    one = median(seconds["v 1"])
    for model in (target, *models.values()):
        model.reset()
    return {
        "target_seconds": one,
        "v": {str(n): median(seconds[f"v {n}"]) / one for n in lengths},
        "c": {name: median(seconds[f"c {name}"]) / one for name in models},
    }


def predicted(run: Row, costs: Row) -> float | None:
    """The speedup that theory promises from this run's alpha and from c and v measured apart.

    Leviathan et al. 2023, theorem 3.8, with the cost of verifying in it. None for a drafter without a
    step of its own to time.
    """
    drafter, gamma = run["drafter"], run["gamma"]
    if drafter not in costs["c"] or run["alpha"] is None:
        return None
    cost = gamma * costs["c"][drafter] + costs["v"][str(gamma + 1)]
    return expected_tokens_per_round(run["alpha"], gamma) / float(cost)

"""Experiment 6: a draft length that follows what happens, beside fixed ones and beside none at all."""

from __future__ import annotations

from statistics import mean
from typing import Any

from tqdm.auto import tqdm

from specdec_lab.adaptive import AdaptiveGamma, measure_costs
from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.runs import Decode, decode_in_turns, seconds_per_token, steady
from specdec_lab.bench.setup import Setup, prompt_ids
from specdec_lab.bench.sweep import Task, described_tasks, tasks_for
from specdec_lab.decoding import Gamma
from specdec_lab.drafters import Drafter, ModelDrafter, NGramDrafter
from specdec_lab.pretrained import Pair
from specdec_lab.sampling import Sampling

EXPERIMENT = "adaptive"
UNSURE = 0.4
LONGEST = {"draft model": 8, "n-gram": 24}
FIXED = 8
"""A draft length that is too long for most prompts, as one would choose for an easy one."""
Way = tuple[Drafter | None, Gamma | None]
"""Who drafts, and how far."""


def run(setup: Setup, dtype: str = "bfloat16") -> Result:
    """Measure it, or what is missing of it."""
    pair = setup.pair(dtype)
    tasks = tasks_for(setup)
    budget, turns = (16, 1) if setup.quick else (32, 2)
    ways = ways_of(pair)
    settings = {
        "dtype": dtype,
        "ways": list(ways),
        "unsure": UNSURE,
        "longest": LONGEST,
        **described_tasks(tasks),
        "max_new_tokens": budget,
        "turns": turns,
    }
    ledger = setup.ledger(EXPERIMENT, settings, pair)
    for key in tqdm(ledger.missing(tasks), desc=EXPERIMENT, unit="prompt", disable=not setup.progress):
        ledger.add(key, one_prompt(pair, tasks[key], ways, budget, turns))
    return ledger.result


def ways_of(pair: Pair) -> dict[str, Way]:
    """No drafts, fixed lengths, adaptive ones with costs measured now; the last is judged for "off"."""
    target = pair.target
    look_up = NGramDrafter(target.vocab_size)
    costs = measure_costs(target, look_up, LONGEST["n-gram"])
    ways: dict[str, Way] = {
        "plain": (None, None),
        f"n-gram, {look_up.default_gamma}": (look_up, look_up.default_gamma),
        "n-gram, adaptive": (look_up, AdaptiveGamma(costs, LONGEST["n-gram"])),
    }
    if pair.draft is not None:
        drafter, wary = ModelDrafter(pair.draft), ModelDrafter(pair.draft, unsure=UNSURE)
        costs = measure_costs(target, drafter, LONGEST["draft model"])
        ways |= {
            f"draft model, {drafter.default_gamma}": (drafter, drafter.default_gamma),
            f"draft model, {FIXED}": (drafter, FIXED),
            "draft model, adaptive": (wary, AdaptiveGamma(costs, LONGEST["draft model"])),
        }
    return ways


def one_prompt(pair: Pair, task: Task, ways: dict[str, Way], budget: int, turns: int) -> Row:
    """Decode it in every way, in turns."""
    prompt = prompt_ids(pair, task.prompt)
    options: dict[str, Any] = {"max_new_tokens": budget, "seed": 1}

    def decode(way: Way) -> Decode:
        drafter, gamma = way
        sampling = Sampling(task.temperature)
        return lambda: pair.generate(prompt, drafter=drafter, gamma=gamma, sampling=sampling, **options)

    made = decode_in_turns({name: decode(way) for name, way in ways.items()}, turns, between=3)
    last = steady(made[list(ways)[-1]][0])
    return {
        "prompt_kind": task.kind,
        "prompt": task.prompt,
        "temperature": task.temperature,
        "seconds_per_token": {name: mean(map(seconds_per_token, runs)) for name, runs in made.items()},
        "off": sum(one.drafted == 0 for one in last) / len(last),
    }

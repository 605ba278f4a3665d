"""Experiment 6: a draft length that follows what happens, beside fixed ones and beside none at all."""

from __future__ import annotations

from statistics import mean
from typing import Any

from tqdm.auto import tqdm

from specdec_lab.adaptive import AdaptiveGamma
from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.runs import Decode, decode_in_turns, seconds_per_token, steady
from specdec_lab.bench.setup import Setup, prompt_ids
from specdec_lab.bench.sweep import COSTS, Task, costs, costs_of, digest, tasks_for
from specdec_lab.decoding import Gamma
from specdec_lab.drafters import Drafter, ModelDrafter, NGramDrafter
from specdec_lab.pretrained import Pair
from specdec_lab.sampling import Sampling

EXPERIMENT = "adaptive"
UNSURE = 0.4
LONGEST = {"draft model": 8, "n-gram": 24}
COPYING = 0.9
TOLD = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24)
"""The draft lengths whose cost the policies are told."""
FIXED = 8
"""A draft length that is too long for most prompts, as one would choose for an easy one."""
Way = tuple[Drafter | None, Gamma | None]
"""Who drafts, and how far."""


def run(setup: Setup, dtype: str = "bfloat16") -> Result:
    """Measure it, or what is missing of it."""
    pair = setup.pair(dtype)
    tasks = tasks_for(setup)
    budget = 16 if setup.quick else 32
    settings = {
        "dtype": dtype,
        "unsure": UNSURE,
        "copying": COPYING,
        "longest": LONGEST,
        "prompts": digest(tasks),
        "max_new_tokens": budget,
    }
    ledger = setup.ledger(EXPERIMENT, [COSTS, *tasks], settings, pair)
    if COSTS in ledger.missing:
        # Measured once, so that a resumed run decides alike.
        drafters = {} if pair.draft is None else {"draft model": ModelDrafter(pair.draft)}
        ledger.add(COSTS, costs(pair.target, drafters, TOLD, 5 if setup.quick else 25))
    ways = ways_of(pair, ledger.result.of(key=COSTS)[0])
    for key in tqdm(ledger.missing, desc=EXPERIMENT, unit="prompt", disable=not setup.progress):
        ledger.add(key, one_prompt(pair, tasks[key], ways, budget))
    return ledger.result


def ways_of(pair: Pair, told: Row) -> dict[str, Way]:
    """No drafts, fixed lengths and adaptive ones; the last is the one that is looked at for "off"."""
    look_up = NGramDrafter(pair.target.vocab_size)
    # Where a look-up finds something, its first guess is a copy that goes on.
    copying = AdaptiveGamma(costs_of("n-gram", told), LONGEST["n-gram"], first_guess=COPYING)
    ways: dict[str, Way] = {
        "plain": (None, None),
        f"n-gram, {look_up.default_gamma}": (look_up, look_up.default_gamma),
        "n-gram, adaptive": (look_up, copying),
    }
    if pair.draft is not None:
        drafter, wary = ModelDrafter(pair.draft), ModelDrafter(pair.draft, unsure=UNSURE)
        gamma = AdaptiveGamma(costs_of("draft model", told), LONGEST["draft model"])
        ways |= {
            f"draft model, {drafter.default_gamma}": (drafter, drafter.default_gamma),
            f"draft model, {FIXED}": (drafter, FIXED),
            "draft model, adaptive": (wary, gamma),
        }
    return ways


def one_prompt(pair: Pair, task: Task, ways: dict[str, Way], budget: int) -> Row:
    """Decode it in every way, in turns."""
    prompt = prompt_ids(pair, task.prompt)
    options: dict[str, Any] = {"max_new_tokens": budget, "seed": 1}

    def decode(way: Way) -> Decode:
        drafter, gamma = way
        sampling = Sampling(task.temperature)
        return lambda: pair.generate(prompt, drafter=drafter, gamma=gamma, sampling=sampling, **options)

    contenders = {name: decode(way) for name, way in ways.items()}
    made = decode_in_turns(contenders, between=2, backwards=task.number % 2 == 1)
    last = steady(made[list(ways)[-1]][0])[:-1]  # the last round may have no room for a draft
    return {
        **task.row,
        "seconds_per_token": {name: mean(map(seconds_per_token, runs)) for name, runs in made.items()},
        "off": sum(one.drafted == 0 for one in last) / max(len(last), 1),
    }

"""Experiment 8: both dtypes in turns. Which is faster without drafts, and which with them?

All other experiments divide by plain decoding in the same dtype. But a dtype decides what a plain step
costs *and* what verifying costs, so drafts may gain most where the plain step is at its worst.
"""

from __future__ import annotations

from statistics import mean
from typing import Any

from tqdm.auto import tqdm

from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.runs import Decode, decode_in_turns, seconds_per_token
from specdec_lab.bench.setup import Setup, dtypes_of, prompt_ids
from specdec_lab.bench.sweep import Task, digest, tasks_for
from specdec_lab.pretrained import Pair

EXPERIMENT = "dtypes"
PER_KIND = 2
"""Prompts of each kind, decoded greedily."""
AGAIN = "plain again"
"""Plain decoding once more, as if it were a contender: how far a ratio is from 1 by chance alone."""


def run(setup: Setup) -> Result:
    """Measure it, or what is missing of it."""
    dtypes = dtypes_of(setup.pair("bfloat16").target.device)
    pairs = {dtype: setup.pair(dtype) for dtype in dtypes}
    tasks = {
        key: task
        for key, task in tasks_for(setup).items()
        if task.temperature == 0.0 and task.number < PER_KIND
    }
    budget = 8 if setup.quick else 32
    plain = f"{dtypes[0]}, plain"
    settings = {
        "plain": plain,
        "prompts": digest(tasks),
        "max_new_tokens": budget,
    }
    ledger = setup.ledger(EXPERIMENT, tasks, settings, pairs["bfloat16"])
    for key in tqdm(ledger.missing, desc=EXPERIMENT, unit="prompt", disable=not setup.progress):
        ledger.add(key, one_prompt(pairs, tasks[key], plain, budget))
    return ledger.result


def one_prompt(pairs: dict[str, Pair], task: Task, plain: str, budget: int) -> Row:
    """Seconds per token of every dtype and drafter, behind the round that reads the prompt."""

    def decode(pair: Pair, drafter: str | None) -> Decode:
        options: dict[str, Any] = {"max_new_tokens": budget, "drafter": drafter}
        prompt = prompt_ids(pair, task.prompt)
        return lambda: pair.generate(prompt, **options)

    contenders: dict[str, Decode] = {}
    for dtype, pair in pairs.items():
        contenders[f"{dtype}, plain"] = decode(pair, None)
        contenders[f"{dtype}, n-gram"] = decode(pair, "ngram")
        if pair.draft is not None:
            contenders[f"{dtype}, draft model"] = decode(pair, "model")
    contenders[f"{plain.removesuffix('plain')}{AGAIN}"] = decode(pairs[plain.split(", ")[0]], None)
    made = decode_in_turns(contenders, plain=plain, between=2, backwards=task.number % 2 == 1)
    return {
        **task.row,
        "seconds_per_token": {name: mean(map(seconds_per_token, runs)) for name, runs in made.items()},
    }

"""Experiment 7: this library and transformers' own generation, on the same pair, in turns.

Whole calls are timed, the prompt's forward included, because transformers' cannot be taken apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel
from transformers.utils import logging

from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.setup import Setup, prompt_ids
from specdec_lab.bench.sweep import Task, described_tasks, tasks_for
from specdec_lab.benchmark import take_turns
from specdec_lab.drafters import Drafter, ModelDrafter, NGramDrafter
from specdec_lab.pretrained import Pair
from specdec_lab.sampling import Sampling

EXPERIMENT = "compare"
GAMMAS = (1, 2, 4)
LOOK_UPS = (5, 10, 24)
UNSURE, LONGEST = 0.4, 5
"""A draft that ends where the draft model is unsure: what transformers does by default, and we can."""
Call = Callable[[], int]
"""Decodes once; how many tokens it made."""


@dataclass(frozen=True)
class Lengths:
    """The draft lengths that are tried, of a draft model and of transformers' prompt look-up."""

    gammas: tuple[int, ...] = GAMMAS
    look_ups: tuple[int, ...] = LOOK_UPS


def run(setup: Setup, dtype: str = "bfloat16") -> Result:
    """Measure it, or what is missing of it."""
    pair = setup.pair(dtype)
    tasks = tasks_for(setup)
    budget, turns = (16, 1) if setup.quick else (32, 2)
    lengths = Lengths((2,), (10,)) if setup.quick else Lengths()
    settings = {
        "dtype": dtype,
        **asdict(lengths),
        **described_tasks(tasks),
        "max_new_tokens": budget,
        "turns": turns,
    }
    ledger = setup.ledger(EXPERIMENT, settings, pair)
    todo = ledger.missing(tasks)
    if todo:  # what happens only once is paid for here
        one_prompt(pair, tasks[todo[0]], lengths, budget=8, turns=1)
    for key in tqdm(todo, desc=EXPERIMENT, unit="prompt", disable=not setup.progress):
        ledger.add(key, one_prompt(pair, tasks[key], lengths, budget, turns))
    return ledger.result


def one_prompt(pair: Pair, task: Task, lengths: Lengths, budget: int, turns: int) -> Row:
    """Seconds per token of everybody on one prompt: the mean over the turns."""
    calls = contenders(pair, task, lengths, budget)
    made: dict[str, int] = {}

    def noted(name: str) -> Callable[[], None]:
        def call() -> None:
            made[name] = calls[name]()

        return call

    seconds = take_turns(
        {name: noted(name) for name in calls}, turns, warmup=0, synchronize=pair.target.synchronize
    )
    return {
        "prompt_kind": task.kind,
        "prompt": task.prompt,
        "temperature": task.temperature,
        "seconds_per_token": {name: mean(times) / made[name] for name, times in seconds.items()},
    }


def contenders(pair: Pair, task: Task, lengths: Lengths, budget: int) -> dict[str, Call]:
    """Name -> call; "ours" and "theirs", then how it drafts, then the draft length."""
    calls = {
        "ours, plain": _ours(pair, task, budget, None, None),
        "theirs, plain": _theirs(pair, task, budget),
    }
    if pair.draft is not None:
        draft = pair.draft.model
        for gamma in lengths.gammas:
            calls[f"ours, draft model, {gamma}"] = _ours(pair, task, budget, "model", gamma)
            calls[f"theirs, draft model, {gamma}"] = _theirs(
                pair, task, budget, assistant=draft, gamma=gamma
            )
        calls["theirs, draft model, default"] = _theirs(pair, task, budget, assistant=draft)
        wary = ModelDrafter(pair.draft, unsure=UNSURE)
        calls[f"ours, draft model, {LONGEST} if sure"] = _ours(pair, task, budget, wary, LONGEST)
    default = NGramDrafter.default_gamma
    calls[f"ours, n-gram, {default}"] = _ours(pair, task, budget, "ngram", default)
    for length in lengths.look_ups:
        calls[f"theirs, n-gram, {length}"] = _theirs(
            pair, task, budget, prompt_lookup_num_tokens=length
        )
    return calls


def _ours(
    pair: Pair, task: Task, budget: int, drafter: Drafter | str | None, gamma: int | None
) -> Call:
    prompt = prompt_ids(pair, task.prompt)
    options: dict[str, Any] = {"max_new_tokens": budget, "seed": 1, "gamma": gamma}
    options |= {"sampling": Sampling(task.temperature)}
    return lambda: len(pair.generate(prompt, drafter=drafter, **options).tokens)


def _theirs(
    pair: Pair,
    task: Task,
    budget: int,
    assistant: PreTrainedModel | None = None,
    gamma: int | None = None,
    **options: Any,
) -> Call:
    model = pair.target.model
    ids = torch.tensor([prompt_ids(pair, task.prompt)], device=model.device)
    options |= {"attention_mask": torch.ones_like(ids), "pad_token_id": 0, "max_new_tokens": budget}
    options |= {"do_sample": task.temperature > 0.0}
    if task.temperature > 0.0:
        options |= {"temperature": task.temperature, "top_k": 0, "top_p": 1.0}
    if assistant is not None:
        options["assistant_model"] = assistant

    def call() -> int:
        with _quietly(), _draft_length(assistant, gamma):
            torch.manual_seed(1)
            made: Any = model.generate(ids, **options)
        return int(made.shape[1] - ids.shape[1])

    return call


@contextmanager
def _draft_length(assistant: PreTrainedModel | None, gamma: int | None) -> Iterator[None]:
    """Let transformers draft ``gamma`` tokens in every round: it reads that from the draft model."""
    if assistant is None or gamma is None:
        yield
        return
    config: Any = assistant.generation_config
    wanted = {
        "num_assistant_tokens": gamma,
        "num_assistant_tokens_schedule": "constant",
        "assistant_confidence_threshold": 0.0,
    }
    before = {name: getattr(config, name) for name in wanted}
    try:
        for name, value in wanted.items():
            setattr(config, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)


@contextmanager
def _quietly() -> Iterator[None]:
    """transformers warns about settings that are meant."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)

"""Experiment 7: this library and transformers' own generation, on the same pair, in turns.

Whole calls are timed, the prompt's forward included, because transformers' cannot be taken apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel
from transformers.utils import logging

from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.setup import Setup
from specdec_lab.bench.sweep import Task, tasks_of
from specdec_lab.drafters import NGramDrafter
from specdec_lab.pretrained import Pair
from specdec_lab.sampling import Sampling
from specdec_lab.text import encode

EXPERIMENT = "compare"
GAMMAS = (1, 2, 3, 4, 5, 6)
LOOK_UPS = (5, 10, 16, 24)
Call = Callable[[], int]
"""Decodes once; how many tokens it made."""


def run(setup: Setup, dtype: str = "bfloat16") -> Result:
    """Measure it, or what is missing of it."""
    pair = setup.pair(dtype)
    of_each, budget, turns = (1, 24, 1) if setup.quick else (3, 48, 2)
    settings = {
        "dtype": dtype,
        "gammas": GAMMAS,
        "look_ups": LOOK_UPS,
        "prompts_of_each_kind": of_each,
        "max_new_tokens": budget,
        "turns": turns,
    }
    ledger = setup.ledger(EXPERIMENT, settings, pair)
    tasks = {task.key: task for task in tasks_of(of_each)}
    todo = ledger.missing(tasks)
    for key in tqdm(todo, desc=EXPERIMENT, unit="prompt", disable=not setup.progress):
        ledger.add(key, one_prompt(pair, tasks[key], budget, turns))
    return ledger.result


def one_prompt(pair: Pair, task: Task, budget: int, turns: int) -> Row:
    """Seconds per token of everybody on one prompt: the mean over the turns, after a warm-up."""
    calls = contenders(pair, task, budget)
    spent = dict.fromkeys(calls, 0.0)
    for turn in range(-1, turns):
        names = list(calls)
        for name in names if turn % 2 == 0 else reversed(names):
            started = perf_counter()
            tokens = calls[name]()
            pair.target.synchronize()
            if turn >= 0:
                spent[name] += (perf_counter() - started) / tokens / turns
    return {
        "prompt_kind": task.kind,
        "prompt": task.prompt,
        "temperature": task.temperature,
        "seconds_per_token": spent,
    }


def contenders(pair: Pair, task: Task, budget: int) -> dict[str, Call]:
    """Name -> call; "ours" and "theirs", then how it drafts, then the draft length."""
    calls = {
        "ours, plain": _ours(pair, task, budget, None, None),
        "theirs, plain": _theirs(pair, task, budget),
    }
    if pair.draft is not None:
        draft = pair.draft.model
        for gamma in GAMMAS:
            calls[f"ours, draft model, {gamma}"] = _ours(pair, task, budget, "model", gamma)
            calls[f"theirs, draft model, {gamma}"] = _theirs(
                pair, task, budget, assistant=draft, gamma=gamma
            )
        calls["theirs, draft model, default"] = _theirs(pair, task, budget, assistant=draft)
    default = NGramDrafter.default_gamma
    calls[f"ours, n-gram, {default}"] = _ours(pair, task, budget, "ngram", default)
    for length in LOOK_UPS:
        calls[f"theirs, n-gram, {length}"] = _theirs(
            pair, task, budget, prompt_lookup_num_tokens=length
        )
    return calls


def _ours(pair: Pair, task: Task, budget: int, drafter: str | None, gamma: int | None) -> Call:
    options: dict[str, Any] = {"chat": True, "max_new_tokens": budget, "seed": 1}
    options |= {"sampling": Sampling(task.temperature), "gamma": gamma}
    return lambda: len(pair.generate(task.prompt, drafter=drafter, **options).tokens)


def _theirs(
    pair: Pair,
    task: Task,
    budget: int,
    assistant: PreTrainedModel | None = None,
    gamma: int | None = None,
    **options: Any,
) -> Call:
    model = pair.target.model
    ids = torch.tensor([encode(pair.tokenizer, task.prompt, chat=True)], device=model.device)
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

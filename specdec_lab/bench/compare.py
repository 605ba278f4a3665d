"""Experiment 7: this library and transformers' own generation, on the same pair, in turns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

import torch
from tqdm.auto import tqdm
from transformers import GenerationConfig, PreTrainedModel
from transformers.utils import logging

from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.setup import Setup, prompt_ids
from specdec_lab.bench.sweep import Task, digest, tasks_for
from specdec_lab.benchmark import take_turns
from specdec_lab.drafters import Drafter, ModelDrafter
from specdec_lab.pretrained import Pair
from specdec_lab.sampling import Sampling

EXPERIMENT = "compare"
GAMMAS = (1, 2, 4)
LOOK_UPS = (5, 10, 24)
UNSURE, LONGEST = 0.4, 5
"""A draft that ends where the draft model is unsure. transformers looks at the probability of the last
token, this library at the product of the largest ones so far."""
OUR_PLAIN = "ours, plain"
"""The contender that all are compared with."""
Call = Callable[[], int]
"""Decodes once; how many tokens it made."""


@dataclass(frozen=True)
class Lengths:
    """The draft lengths that are tried, with a draft model and with look-up."""

    gammas: tuple[int, ...] = GAMMAS
    look_ups: tuple[int, ...] = LOOK_UPS


def run(setup: Setup, dtype: str = "bfloat16") -> Result:
    """Measure it, or what is missing of it."""
    pair = setup.pair(dtype)
    tasks = tasks_for(setup)
    budget = 16 if setup.quick else 32
    lengths = Lengths((2,), (10,)) if setup.quick else Lengths()
    settings = {
        "dtype": dtype,
        **asdict(lengths),
        "prompts": digest(tasks),
        "max_new_tokens": budget,
    }
    ledger = setup.ledger(EXPERIMENT, tasks, settings, pair)
    todo = ledger.missing
    if todo:  # what happens only once is paid for here
        one_prompt(pair, tasks[todo[0]], lengths, budget=8)
    for key in tqdm(todo, desc=EXPERIMENT, unit="prompt", disable=not setup.progress):
        ledger.add(key, one_prompt(pair, tasks[key], lengths, budget))
    return ledger.result


def one_prompt(pair: Pair, task: Task, lengths: Lengths, budget: int, turns: int = 1) -> Row:
    """Seconds per token of everybody on one prompt, behind the first token: that reads the prompt.

    What is timed is a whole call, because transformers' cannot be taken apart; the time of a call for
    one token, by the same library and without drafts, is taken off (a contender that a disturbance of
    that call leaves no time is left out). Every other prompt goes backwards.
    """
    calls = contenders(pair, task, lengths, budget)
    if task.number % 2 == 1:
        calls = dict(reversed(calls.items()))
    made: dict[str, int] = {}

    def noted(name: str) -> Callable[[], None]:
        def call() -> None:
            made[name] = calls[name]()

        return call

    timed = take_turns(
        {name: noted(name) for name in calls}, turns, warmup=0, synchronize=pair.target.synchronize
    )
    seconds = {name: mean(times) for name, times in timed.items()}
    behind = {
        name: spent - seconds[f"{name.split(', ')[0]}, one token"] for name, spent in seconds.items()
    }
    return {
        **task.row,
        "seconds": seconds,
        "tokens": made,
        "seconds_per_token": {
            name: spent / (made[name] - 1)
            for name, spent in behind.items()
            if made[name] > 1 and spent > 0.0
        },
    }


def contenders(pair: Pair, task: Task, lengths: Lengths, budget: int) -> dict[str, Call]:
    """Name -> call; "ours" and "theirs", then how it drafts, then the draft length."""
    calls = {
        "ours, one token": _ours(pair, task, 1, None, None),
        "theirs, one token": _theirs(pair, task, 1),
        OUR_PLAIN: _ours(pair, task, budget, None, None),
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
        calls[f"theirs, draft model, {LONGEST} if sure"] = _theirs(
            pair, task, budget, assistant=draft, gamma=LONGEST, unsure=UNSURE
        )
    for length in lengths.look_ups:
        calls[f"ours, n-gram, {length}"] = _ours(pair, task, budget, "ngram", length)
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
    unsure: float = 0.0,
    **options: Any,
) -> Call:
    model = pair.target.model
    ids = torch.tensor([prompt_ids(pair, task.prompt)], device=model.device)
    # Nothing is taken over from the model's own settings but its end tokens: neither do we.
    settings = GenerationConfig(
        max_new_tokens=budget, pad_token_id=0, eos_token_id=sorted(pair.target.end_ids) or None
    )
    if task.temperature > 0.0:
        settings.update(do_sample=True, temperature=task.temperature, top_k=0, top_p=1.0)
    options |= {"attention_mask": torch.ones_like(ids), "generation_config": settings}
    if assistant is not None:
        options["assistant_model"] = assistant

    def call() -> int:
        with _quietly(), draft_length(assistant, gamma, unsure):
            torch.manual_seed(1)
            made: Any = model.generate(ids, **options)
        return int(made.shape[1] - ids.shape[1])

    return call


@contextmanager
def draft_length(
    assistant: PreTrainedModel | None, gamma: int | None, unsure: float = 0.0
) -> Iterator[None]:
    """Let transformers draft ``gamma`` tokens in a round: it reads that from the draft model."""
    if assistant is None or gamma is None:
        yield
        return
    config: Any = assistant.generation_config
    wanted = {
        "num_assistant_tokens": gamma,
        "num_assistant_tokens_schedule": "constant",
        "assistant_confidence_threshold": unsure,
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

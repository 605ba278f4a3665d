"""Experiment 3: speed over the draft length, for every drafter, on six kinds of prompts.

On each prompt all contenders take turns, plain decoding among them. What theory promises, from the
acceptance that was measured here and from costs that are measured apart, stands beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tqdm.auto import tqdm

from specdec_lab.adaptive import Costs, time_steps
from specdec_lab.bench.own_time import own_time
from specdec_lab.bench.prompts import SIX_KINDS
from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.runs import Decode, decode_in_turns, described
from specdec_lab.bench.setup import Setup, ancestors_of, prompt_ids
from specdec_lab.benchmark import FEWEST
from specdec_lab.drafters import CorruptedDrafter, Drafter, LayerSkipDrafter, ModelDrafter, NGramDrafter
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair
from specdec_lab.records import Generation
from specdec_lab.sampling import Sampling

EXPERIMENT = "sweep"
GAMMAS = (1, 2, 4, 8)
TEMPERATURES = (0.0, 1.0)
NOISES = (0.2, 0.5)
COPIED = (17, 25)
"""What the forward behind a draft that copies a text reads."""
MAIN = ("n-gram", "draft model")
HOPELESS = ("layer-skip", "the target itself", "draft model, 50% noise")
"""Too slow or too weak to gain anything: measured greedily only, on the first prompt of each kind."""
COSTS = "costs"
"""The key of the row with c and v(n); the others are prompts."""
OWN_TIME = "own time"
"""The key of the row with the time outside the forwards."""


@dataclass(frozen=True)
class Task:
    """A prompt, a user's chat turn or token ids, at a temperature."""

    kind: str
    number: int
    prompt: str | list[int]
    temperature: float

    @property
    def key(self) -> str:
        return f"{self.kind} {self.number} at {self.temperature:g}"

    @property
    def row(self) -> Row:
        """What each of its rows says of it."""
        return {"prompt_kind": self.kind, "prompt": self.prompt, "temperature": self.temperature}


def run(setup: Setup, dtype: str = "bfloat16") -> Result:
    """Measure it, or what is missing of it."""
    pair = setup.pair(dtype)
    tasks = tasks_for(setup)
    budget = 16 if setup.quick else 32
    gammas = (2, 4) if setup.quick else GAMMAS
    drafters = drafters_of(pair)
    if setup.quick:
        drafters = {name: one for name, one in drafters.items() if name in MAIN}
    settings = {
        "dtype": dtype,
        "gammas": gammas,
        "drafters": list(drafters),
        "greedily_on_the_first_prompts_only": [name for name in drafters if name in HOPELESS],
        "prompts": digest(tasks),
        "max_new_tokens": budget,
    }
    ledger = setup.ledger(EXPERIMENT, [COSTS, OWN_TIME, *tasks], settings, pair)
    if COSTS in ledger.missing:
        ledger.add(COSTS, costs(pair.target, drafters, gammas, 3 if setup.quick else 25))
    if OWN_TIME in ledger.missing:
        ledger.add(OWN_TIME, own_time(pair, 2, budget, prompts=1 if setup.quick else 8))
    todo = ledger.missing
    for key in tqdm(todo, desc=EXPERIMENT, unit="prompt", disable=not setup.progress):
        task = tasks[key]
        everything = task.number == 0 and task.temperature == 0.0
        mine = {name: one for name, one in drafters.items() if everything or name not in HOPELESS}
        ledger.add(key, one_prompt(pair, task, mine, gammas, budget))
    return ledger.result


def tasks_for(setup: Setup) -> dict[str, Task]:
    """Six prompts of each kind; or, to be quick, one of every other kind, greedily."""
    of_each = 1 if setup.quick else FEWEST
    temperatures = TEMPERATURES[:1] if setup.quick else TEMPERATURES
    kinds = list(SIX_KINDS)[:: 2 if setup.quick else 1]
    tasks = [
        Task(kind, number, SIX_KINDS[kind][number], temperature)
        for number in range(min(of_each, *map(len, SIX_KINDS.values())))
        for kind in kinds
        for temperature in temperatures
    ]
    return {task.key: task for task in tasks}


def digest(tasks: Mapping[str, Task]) -> str:
    """Tells the tasks from others, for the settings of a result."""
    return hashlib.sha256(repr(list(tasks.values())).encode()).hexdigest()[:12]


def drafters_of(pair: Pair) -> dict[str, Drafter]:
    """All that this pair can draft with: from the cheapest to the target itself."""
    target = pair.target
    drafters: dict[str, Drafter] = {"n-gram": NGramDrafter(target.vocab_size)}
    if pair.draft is not None:
        drafters["draft model"] = ModelDrafter(pair.draft)
        for age, model in list(ancestors_of(pair).items())[:1]:
            drafters[f"draft model, {age}"] = ModelDrafter(model)
        for noise in NOISES:
            drafters[f"draft model, {noise:.0%} noise"] = CorruptedDrafter(
                ModelDrafter(pair.draft), noise
            )
    depth = target.model.config.get_text_config(decoder=True).num_hidden_layers
    drafters["layer-skip"] = LayerSkipDrafter(target, depth * 2 // 3)
    drafters["the target itself"] = ModelDrafter(HFCausalLM(target.model, target.vocab_size))
    return drafters


def lengths_for(drafter: Drafter, gammas: tuple[int, ...]) -> tuple[int, ...]:
    """The draft lengths to try: a copied text is worth a longer one, up to the drafter's default."""
    return (*gammas, drafter.default_gamma) if isinstance(drafter, NGramDrafter) else gammas


def one_prompt(
    pair: Pair,
    task: Task,
    drafters: Mapping[str, Drafter],
    gammas: tuple[int, ...],
    budget: int,
) -> Row:
    """Decode it in every way; on every other prompt backwards."""
    options: dict[str, Any] = {
        "max_new_tokens": budget,
        "sampling": Sampling(task.temperature),
        "seed": 1,
    }

    prompt = prompt_ids(pair, task.prompt)

    def with_drafter(drafter: Drafter | None, gamma: int | None) -> Decode:
        return lambda: pair.generate(prompt, drafter=drafter, gamma=gamma, **options)

    contenders = {"plain": with_drafter(None, None)}
    for name, drafter in drafters.items():
        for gamma in lengths_for(drafter, gammas):
            contenders[f"{name}, {gamma}"] = with_drafter(drafter, gamma)
    made = decode_in_turns(contenders, backwards=task.number % 2 == 1)
    runs = []
    for name, drafter in drafters.items():
        for gamma in lengths_for(drafter, gammas):
            runs.append({"drafter": name, "gamma": gamma, **described(made[f"{name}, {gamma}"])})
    return {
        **task.row,
        "plain": described(made["plain"]),
        "look_up_limit": look_up_limit(made["plain"][0]),
        "runs": runs,
    }


def look_up_limit(plain: Generation) -> float:
    """Tokens per round, of all rounds, that no look-up could exceed on this output.

    In each round the longest piece of the output that stands anywhere in the text before it, and the
    token behind it: a look-up that always knew where to look.
    """
    text, end = plain.prompt_tokens + plain.tokens, len(plain.prompt_tokens) + len(plain.tokens)
    place, rounds = len(plain.prompt_tokens), 0
    while place < end:
        rounds += 1
        place += 1 + max(_agreeing(text, source, place) for source in range(place))
    return len(plain.tokens) / rounds


def _agreeing(text: list[int], source: int, place: int) -> int:
    """How many tokens from ``source`` on are the same as those from ``place`` on; one less than all."""
    count = 0
    while place + count + 1 < len(text) and text[source + count] == text[place + count]:
        count += 1
    return count


def costs(
    target: HFCausalLM, drafters: Mapping[str, Drafter], gammas: tuple[int, ...], turns: int
) -> Row:
    """c of each drafting model, and v(n) at the lengths that the drafts need."""
    models = {
        name: drafter.model for name, drafter in drafters.items() if isinstance(drafter, ModelDrafter)
    }
    lengths = sorted({*(gamma + 1 for gamma in gammas), *COPIED})
    found = time_steps(target, models, lengths, repeats=turns)
    return {
        "v": {str(n): value for n, value in found["v"].v.items()},
        "c": {name: found[name].c for name in models},
    }


def costs_of(drafter: str, costs: Row) -> Costs:
    """What a drafter costs, from the row of ``costs``; looking n-grams up takes no forward.

    Raises:
        KeyError: for a drafter that was not timed. A corrupted one drafts anew behind each token that
            it spoils, so a step of its model says little about it.
    """
    v = {int(n): value for n, value in costs["v"].items()}
    return Costs(0.0 if drafter == "n-gram" else costs["c"][drafter], v)

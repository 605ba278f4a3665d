"""What the course's notebook 04 measures: experiment 3 on a few prompts, and a reader's waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import mean
from typing import Any

from tqdm.auto import tqdm

from specdec_lab.bench.results import Row
from specdec_lab.bench.runs import Decode, decode_in_turns
from specdec_lab.bench.sweep import HOPELESS, Task, drafters_of, one_prompt
from specdec_lab.drafters import CorruptedDrafter, Drafter
from specdec_lab.pretrained import Pair
from specdec_lab.records import Generation

SKIPPED = "draft model, 20% noise"
"""One noisy drafter is enough to see what noise does."""


def sweep(
    pair: Pair,
    prompts: Mapping[str, str],
    gammas: Sequence[int],
    budget: int,
    costs: Mapping[str, Mapping[str, float]],
) -> dict[str, Any]:
    """Every drafter at every draft length, once on each prompt, greedily; plain decoding among them.

    Args:
        pair: the models.
        prompts: kind -> a user's chat turn.
        gammas: draft lengths.
        budget: new tokens of a run.
        costs: what ``bench.sweep.costs`` measured: ``c`` by drafter, ``v`` by n.

    Returns:
        ``costs``, ``prompts`` (the rows of ``sweep.one_prompt``) and ``runs``, which has for each
        drafter and length what is pooled over the prompts: ``alpha``, ``c``, ``v`` (of the verifying
        forward), ``tokens_per_round``, ``plain_ms`` and ``drafted_ms`` for one token behind the first
        round, ``speedup`` (their ratio), and the times of a round in plain steps: ``draft``,
        ``verify``, ``rest``. ``c`` is None for a drafter whose steps cannot be timed apart.
    """
    drafters = {name: one for name, one in drafters_of(pair).items() if name != SKIPPED}
    pair.generate("Warm up.", chat=True, max_new_tokens=4)
    rows = []
    for number, (kind, text) in enumerate(tqdm(prompts.items(), desc="sweep", leave=False)):
        mine = {name: one for name, one in drafters.items() if number == 0 or name not in HOPELESS}
        task = Task(kind, number, text, 0.0)
        rows.append(one_prompt(pair, task, mine, tuple(gammas), budget))
    runs = []
    for name, drafter in drafters.items():
        c = None if isinstance(drafter, CorruptedDrafter) else costs["c"].get(name, 0.0)
        runs += [_pooled(rows, name, gamma, c, costs["v"]) for gamma in gammas]
    return {"costs": costs, "prompts": rows, "runs": runs}


def waits(
    pair: Pair, prompt: Sequence[int], settings: Sequence[tuple[str, int]], budget: int, turns: int
) -> dict[str, Any]:
    """What somebody who reads along waits for, plainly and with drafts, in turns, greedily.

    Args:
        pair: the models.
        prompt: token ids.
        settings: (drafter of ``bench.sweep.drafters_of``, draft length).
        budget: new tokens of a run.
        turns: how often each decodes.

    Returns:
        ``ways``: for plain decoding and each setting its runs, each a list of (tokens, seconds) of its
        rounds, the first of which reads the prompt.
    """
    drafters = drafters_of(pair)
    bar = tqdm(total=turns * (len(settings) + 2), desc="turns", leave=False)

    def decode(drafter: Drafter | None, gamma: int | None) -> Generation:
        bar.update()
        return pair.generate(prompt, drafter=drafter, gamma=gamma, max_new_tokens=budget)

    contenders: dict[str, Decode] = {"plain": partial(decode, None, None)}
    for name, gamma in settings:
        contenders[f"{name}, gamma {gamma}"] = partial(decode, drafters[name], gamma)
    pair.generate("Warm up.", chat=True, max_new_tokens=4)
    with bar:
        made = decode_in_turns(contenders, turns)
    return {
        "ways": {
            name: [[(len(one.tokens), one.seconds.total) for one in run.rounds] for run in runs]
            for name, runs in made.items()
        }
    }


def _pooled(
    rows: Sequence[Row], drafter: str, gamma: int, c: float | None, v: Mapping[str, float]
) -> Row:
    """A drafter at a length, over the prompts on which it ran; each prompt counts the same."""
    pairs = [
        (row["plain"], run)
        for row in rows
        for run in row["runs"]
        if (run["drafter"], run["gamma"]) == (drafter, gamma)
    ]
    runs = [run for _, run in pairs]
    judged = sum(here[0] for run in runs for here in run["judged_at"])
    accepted = sum(here[1] for run in runs for here in run["judged_at"])
    plain = mean(row["seconds_per_token"] for row, _ in pairs)
    drafted = mean(run["seconds_per_token"] for run in runs)
    rounds = sum(run["rounds"] for run in runs)
    parts = {
        part: sum(run["rounds"] * run[f"{part}_seconds"] for run in runs) / rounds / plain
        for part in ("draft", "verify", "rest")
    }
    return {
        "drafter": drafter,
        "gamma": gamma,
        "prompts": len(pairs),
        "alpha": accepted / judged if judged else None,
        "c": c,
        "v": v[str(gamma + 1)],
        "tokens_per_round": sum(run["rounds"] * run["tokens_per_round"] for run in runs) / rounds,
        "plain_ms": 1000.0 * plain,
        "drafted_ms": 1000.0 * drafted,
        "speedup": plain / drafted,
        **parts,
    }

"""The sweep of the course's notebook 04: experiment 3 on a few prompts, pooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from tqdm.auto import tqdm

from specdec_lab.bench.results import Row
from specdec_lab.bench.sweep import HOPELESS, Task, costs, drafters_of, one_prompt
from specdec_lab.drafters import CorruptedDrafter
from specdec_lab.pretrained import Pair

SKIPPED = "draft model, 20% noise"
"""One noisy drafter is enough to see what noise does."""


def sweep(
    pair: Pair, prompts: Mapping[str, str], gammas: Sequence[int], budget: int, turns: int = 9
) -> dict[str, Any]:
    """Every drafter at every draft length, on each prompt in turns with plain decoding, greedily.

    Args:
        pair: the models.
        prompts: kind -> a user's chat turn.
        gammas: draft lengths.
        budget: new tokens of a run.
        turns: how often each step is timed for c and v.

    Returns:
        ``costs`` (c by drafter, v by n), ``prompts`` (the rows of ``sweep.one_prompt``) and ``runs``,
        which has for each drafter and length what is pooled over the prompts: ``alpha``, ``c``, ``v``
        (of the verifying forward), ``tokens_per_round``, ``plain_ms`` and ``drafted_ms`` for one token
        behind the first round, ``speedup`` (their ratio), and the times of a round in plain steps:
        ``draft``, ``verify``, ``rest``. ``c`` is None for a drafter whose steps cannot be timed apart.
    """
    drafters = {name: one for name, one in drafters_of(pair).items() if name != SKIPPED}
    timed = costs(pair.target, drafters, tuple(gammas), turns)
    pair.generate("Warm up.", chat=True, max_new_tokens=4)
    rows = []
    for number, (kind, text) in enumerate(tqdm(prompts.items(), desc="sweep", leave=False)):
        mine = {name: one for name, one in drafters.items() if number == 0 or name not in HOPELESS}
        task = Task(kind, number, text, 0.0)
        rows.append(one_prompt(pair, task, mine, tuple(gammas), budget))
    runs = []
    for name, drafter in drafters.items():
        apart = None if isinstance(drafter, CorruptedDrafter) else timed["c"].get(name, 0.0)
        runs += [_pooled(rows, name, gamma, apart, timed["v"]) for gamma in gammas]
    return {"costs": timed, "prompts": rows, "runs": runs}


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

"""Experiment 5: what is left of speculation when a batch fills the machine?

The same prompts are decoded together, with and without drafts, in batches of growing size; and the
cost of verifying is measured for each size, because it is what the speedup falls with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean, median
from typing import Any

from tqdm.auto import tqdm

from specdec_lab.adaptive import Costs
from specdec_lab.batch import generate_batch
from specdec_lab.batched_model import BatchedLM
from specdec_lab.bench.prompts import CONVERSATION, MATHEMATICS, QUESTIONS, TRANSLATION
from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.runs import steady
from specdec_lab.bench.setup import Setup, prompt_ids
from specdec_lab.benchmark import context_of, paired_ratio, take_turns
from specdec_lab.decoding import generate
from specdec_lab.drafters import Drafter, ModelDrafter, NGramDrafter
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair
from specdec_lab.records import Generation, Round

EXPERIMENT = "batch"
SIZES = (1, 2, 4, 8, 16)
GAMMAS = (1, 2, 4)
CONTEXT = 128
EQUALITY = "equality in float32"
"""The key of the row that says whether a batch makes what each sequence makes alone."""


def run(setup: Setup, dtype: str = "bfloat16") -> Result:
    """Measure it, or what is missing of it."""
    pair = setup.pair(dtype)
    sizes = (1, 8) if setup.quick else SIZES
    gammas = (2,) if setup.quick else GAMMAS
    budget = 8 if setup.quick else 32
    prompts = short_prompts(pair, max(sizes))
    drafter = drafter_of(pair)
    settings = {
        "dtype": dtype,
        "drafter": "n-gram" if pair.draft is None else "draft model",
        "gammas": gammas,
        "prompts": prompts,
        "max_new_tokens": budget,
        "context": CONTEXT,
    }
    # float32 costs memory that a large pair on a GPU does not leave.
    checked = [EQUALITY] if pair.target.device.type == "cpu" else []
    keys = [*(f"batch of {size}" for size in sizes), *checked]
    ledger = setup.ledger(EXPERIMENT, keys, settings, pair)
    for key in tqdm(ledger.missing, desc=EXPERIMENT, unit="size", disable=not setup.progress):
        if key == EQUALITY:
            ledger.add(key, equality(setup.pair("float32"), prompts[:8], budget))
            continue
        size = int(key.rpartition(" ")[2])
        groups = [prompts[start : start + size] for start in range(0, len(prompts), size)]
        # As many batches of each size, and of the same prompts in all.
        groups *= 1 if setup.quick else max(1, 8 // len(groups))
        ledger.add(key, {"size": size, **one_size(pair.target, drafter, groups, gammas, budget)})
    return ledger.result


def drafter_of(pair: Pair) -> Drafter:
    """The pair's draft model, or look-up if there is none."""
    return NGramDrafter(pair.target.vocab_size) if pair.draft is None else ModelDrafter(pair.draft)


def equality(pair: Pair, prompts: Sequence[list[int]], budget: int) -> Row:
    """Is each sequence of a speculative batch the one that greedy decoding makes of it alone?

    A forward over a batch adds up in another order than one over a single row. Where that decides
    between two tokens, the gap between their logits says how near a tie it was.
    """
    options: dict[str, Any] = {"max_new_tokens": budget, "end_ids": []}
    together = generate_batch(pair.target, prompts, drafter=drafter_of(pair), gamma=2, **options)
    near_ties = []
    for number, (prompt, made) in enumerate(zip(prompts, together, strict=True)):
        alone = generate(pair.target, prompt, **options).tokens
        pairs = enumerate(zip(alone, made.tokens, strict=True))
        place = next((i for i, (one, other) in pairs if one != other), None)
        if place is not None:
            logits = pair.target.uncached_logits(prompt + alone[:place], 1)[0]
            gap = float((logits[alone[place]] - logits[made.tokens[place]]).abs())
            near_ties.append({"prompt": number, "place": place, "gap": gap})
    return {"sequences": len(prompts), "tokens": budget, "near_ties": near_ties}


def one_size(
    target: HFCausalLM,
    drafter: Drafter,
    groups: Sequence[Sequence[Sequence[int]]],
    gammas: tuple[int, ...],
    budget: int,
) -> Row:
    """Each group as a batch, in turns with and without drafts; and the costs of a batch's forwards."""
    made: dict[int | None, list[list[Generation]]] = {None: [], **{gamma: [] for gamma in gammas}}
    for number, group in enumerate(groups):
        order = list(made)
        for gamma in order if number % 2 == 0 else reversed(order):
            made[gamma].append(
                generate_batch(
                    target,
                    group,
                    drafter=None if gamma is None else drafter,
                    gamma=gamma,
                    max_new_tokens=budget,
                    end_ids=[],
                )
            )
    seconds = {gamma: [batch_seconds_per_token(one) for one in runs] for gamma, runs in made.items()}
    costs = batch_costs(target, drafter, len(groups[0]), gammas, turns=len(groups))
    runs = []
    for gamma in gammas:
        ratio = paired_ratio(seconds[None], seconds[gamma])
        rounds = [one for batch in made[gamma] for rows in full_rounds(batch) for one in rows]
        runs.append(
            {
                "gamma": gamma,
                "tokens_per_second": 1.0 / median(seconds[gamma]),
                "speedup": ratio.value,
                "speedup_low": ratio.low,
                "speedup_high": ratio.high,
                "tokens_per_round": sum(len(one.tokens) for one in rounds) / len(rounds),
                **split_of(made[gamma]),
            }
        )
    return {
        "plain_tokens_per_second": 1.0 / median(seconds[None]),
        "plain": split_of(made[None]),
        "runs": runs,
        "c": costs.c,
        "v": {str(n): value for n, value in costs.v.items()},
    }


def full_rounds(made: Sequence[Generation]) -> list[list[Round]]:
    """For each sequence its rounds while all were there, behind the one that reads the prompts.

    Sequences that accept more are done earlier. What the others do afterwards is the work of
    a smaller batch; a server would have put new sequences beside them.
    """
    count = min(len(steady(sequence)) for sequence in made)
    return [steady(sequence)[:count] for sequence in made]


def batch_seconds_per_token(made: Sequence[Generation]) -> float:
    """Seconds for one token of any sequence, while all are there; a round's seconds are the batch's."""
    rounds = full_rounds(made)
    tokens = sum(len(one.tokens) for sequence in rounds for one in sequence)
    return sum(one.seconds.total for one in rounds[0]) / tokens


def split_of(runs: Sequence[Sequence[Generation]]) -> Row:
    """Seconds of a whole batch's round in drafting, verifying and the rest: means."""
    rounds = [one.seconds for made in runs for one in full_rounds(made)[0]]
    return {
        f"{part}_seconds": mean(getattr(one, part) for one in rounds)
        for part in ("draft", "verify", "rest")
    }


def short_prompts(pair: Pair, size: int) -> list[list[int]]:
    """Short prompts of several kinds in turn, from the beginning again when there are no more."""
    columns = zip(CONVERSATION, QUESTIONS, MATHEMATICS, TRANSLATION, strict=True)
    texts = [text for column in columns for text in column]
    return [prompt_ids(pair, texts[i % len(texts)]) for i in range(size)]


def batch_costs(
    target: HFCausalLM, drafter: Drafter, size: int, gammas: Sequence[int], turns: int
) -> Costs:
    """c and v(n) of a batch: its forwards over n tokens each, over the target's over one token each."""
    contenders = {f"v {n}": _forward(target, size, n) for n in (1, *(gamma + 1 for gamma in gammas))}
    if isinstance(drafter, ModelDrafter) and isinstance(drafter.model, HFCausalLM):
        contenders["c"] = _forward(drafter.model, size, 1)
    seconds = take_turns(contenders, turns, synchronize=target.synchronize)
    one = median(seconds["v 1"])
    v = {int(name[2:]): median(times) / one for name, times in seconds.items() if name != "c"}
    return Costs(median(seconds["c"]) / one if "c" in seconds else 0.0, v)


def _forward(model: HFCausalLM, size: int, count: int) -> Callable[[], None]:
    batch = BatchedLM(model, size)
    batch.extend([context_of(CONTEXT, model.vocab_size)] * size, rows=[1] * size)

    def step() -> None:
        batch.extend([[7] * count] * size, rows=[count] * size)
        for sequence in batch.sequences:
            sequence.rewind(CONTEXT)

    return step

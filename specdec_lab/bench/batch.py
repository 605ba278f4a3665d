"""Experiment 5: what is left of speculation when a batch fills the machine?

The same prompts are decoded together, with and without drafts, in batches of growing size; and the
cost of verifying is measured for each size, because it is what the speedup falls with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from tqdm.auto import tqdm

from specdec_lab.batch import generate_batch
from specdec_lab.batched_model import BatchedLM
from specdec_lab.bench.prompts import SIX_KINDS
from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.setup import Setup, context_of
from specdec_lab.bench.timing import paired_ratio, take_turns
from specdec_lab.drafters import Drafter, ModelDrafter, NGramDrafter
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair
from specdec_lab.records import Generation
from specdec_lab.text import encode

EXPERIMENT = "batch"
SIZES = (1, 2, 4, 8, 16, 32)
GAMMAS = (1, 2, 4)
CONTEXT = 128


def run(setup: Setup, dtype: str = "bfloat16") -> Result:
    """Measure it, or what is missing of it."""
    pair = setup.pair(dtype)
    sizes = (1, 4, 16) if setup.quick else SIZES
    budget, turns = (16, 1) if setup.quick else (32, 3)
    settings = {
        "dtype": dtype,
        "sizes": sizes,
        "gammas": GAMMAS,
        "max_new_tokens": budget,
        "turns": turns,
        "context": CONTEXT,
    }
    ledger = setup.ledger(EXPERIMENT, settings, pair)
    for key in tqdm(
        ledger.missing([f"batch of {size}" for size in sizes]),
        desc=EXPERIMENT,
        unit="size",
        disable=not setup.progress,
    ):
        size = int(key.rpartition(" ")[2])
        ledger.add(key, {"size": size, **one_size(pair, size, budget, turns)})
    return ledger.result


def one_size(pair: Pair, size: int, budget: int, turns: int) -> Row:
    """Times of whole batches in turns, and of a verifying forward over one and over more tokens."""
    prompts = prompts_of(pair, size)
    drafters: dict[str, Drafter] = {"n-gram": NGramDrafter(pair.target.vocab_size)}
    if pair.draft is not None:
        drafters["draft model"] = ModelDrafter(pair.draft)
    last: dict[str, list[Generation]] = {}

    def decoded(name: str, drafter: Drafter | None, gamma: int | None) -> Callable[[], None]:
        def call() -> None:
            last[name] = generate_batch(
                pair.target, prompts, drafter=drafter, gamma=gamma, max_new_tokens=budget, end_ids=[]
            )

        return call

    contenders = {"plain": decoded("plain", None, None)}
    for drafter_name, drafter in drafters.items():
        for gamma in GAMMAS:
            name = f"{drafter_name}, {gamma}"
            contenders[name] = decoded(name, drafter, gamma)
    seconds = take_turns(contenders, turns, synchronize=pair.target.synchronize)
    tokens = size * budget
    runs = []
    for drafter_name in drafters:
        for gamma in GAMMAS:
            name = f"{drafter_name}, {gamma}"
            ratio = paired_ratio(seconds["plain"], seconds[name])
            rounds = [len(made.rounds) for made in last[name]]
            runs.append(
                {
                    "drafter": drafter_name,
                    "gamma": gamma,
                    "tokens_per_second": tokens / median(seconds[name]),
                    "speedup": ratio.value,
                    "speedup_low": ratio.low,
                    "speedup_high": ratio.high,
                    "block_efficiency": tokens / sum(rounds),
                }
            )
    return {
        "plain_tokens_per_second": tokens / median(seconds["plain"]),
        "runs": runs,
        "v": verifying(pair.target, size, turns),
    }


def prompts_of(pair: Pair, size: int) -> list[list[int]]:
    """Prompts of all kinds in turn, from the beginning again when there are no more."""
    columns = zip(*SIX_KINDS.values(), strict=True)
    texts = [text for column in columns for text in column]
    return [encode(pair.tokenizer, texts[i % len(texts)], chat=True) for i in range(size)]


def verifying(target: HFCausalLM, size: int, turns: int) -> dict[str, float]:
    """v(n) of a batch: its forward over n tokens each, over its forward over one token each."""
    batch = BatchedLM(target, size)
    context = context_of(CONTEXT, target.vocab_size)
    batch.extend([context] * size, rows=[1] * size)

    def forward(count: int) -> Callable[[], None]:
        def step() -> None:
            batch.extend([[7] * count] * size, rows=[count] * size)
            for sequence in batch.sequences:
                sequence.rewind(CONTEXT)

        return step

    lengths: Sequence[int] = (1, *(gamma + 1 for gamma in GAMMAS))
    seconds = take_turns(
        {str(n): forward(n) for n in lengths}, 3 * turns, synchronize=target.synchronize
    )
    return {n: median(times) / median(seconds["1"]) for n, times in seconds.items()}

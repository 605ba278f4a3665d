"""Experiment 2: what does it cost to verify? The curve v(n), and its knee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from tqdm.auto import tqdm

from specdec_lab.bench.results import Result
from specdec_lab.bench.setup import Setup, dtypes_of
from specdec_lab.benchmark import FEWEST, context_of, paired_ratio, take_turns
from specdec_lab.language_model import HFCausalLM

EXPERIMENT = "verify"
CONTEXT = 128
LENGTHS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64)
DEAR = 1.25
"""The knee: the first length whose forward takes this many times as long as that of one token."""


def run(setup: Setup) -> Result:
    """Measure it, or what is missing of it."""
    turns = FEWEST if setup.quick else 15
    pair = setup.pair("bfloat16")
    settings = {"context": CONTEXT, "lengths": LENGTHS, "turns": turns}
    ledger = setup.ledger(EXPERIMENT, dtypes_of(pair.target.device), settings, pair)
    for dtype in ledger.missing:
        target = setup.pair(dtype).target
        target.reset()
        target.extend(context_of(CONTEXT, target.vocab_size), rows=1)
        forwards = {str(n): _forward(target, n) for n in LENGTHS}
        with tqdm(total=turns + 1, desc=f"v(n), {dtype}", disable=not setup.progress) as bar:
            seconds = take_turns(
                forwards, turns, synchronize=target.synchronize, on_turn=lambda: bar.update()
            )
        target.reset()
        one = seconds["1"]
        curve = {n: paired_ratio(times, one) for n, times in seconds.items()}
        ledger.add(
            dtype,
            {
                "seconds": {n: median(times) for n, times in seconds.items()},
                "v": {n: ratio.value for n, ratio in curve.items()},
                "v_low": {n: ratio.low for n, ratio in curve.items()},
                "v_high": {n: ratio.high for n, ratio in curve.items()},
                "knee": knee({int(n): ratio.value for n, ratio in curve.items()}),
            },
        )
    return ledger.result


def knee(curve: Mapping[int, float]) -> int | None:
    """The first n from which on every v(n) is at least ``DEAR``; None if the curve stays below."""
    dear = None
    for n in sorted(curve, reverse=True):
        if curve[n] < DEAR:
            break
        dear = n
    return dear


def _forward(target: HFCausalLM, count: int) -> Callable[[], None]:
    def forward() -> None:
        target.extend([7] * count)
        target.rewind(CONTEXT)

    return forward

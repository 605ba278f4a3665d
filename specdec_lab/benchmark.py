"""Measure: a time that can be trusted, the cost of verifying, and what this machine can do.

A shared computer is faster in one minute than in the next. Contenders that take turns meet the same
disturbances, and a ratio of two times from one turn hardly feels them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

from specdec_lab.language_model import CausalLM, HFCausalLM

SHAPES: dict[str, dict[str, Any]] = {
    "0.5B": {
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "1.5B": {
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "8B": {
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
    },
}
"""Sizes like those of Qwen2.5-0.5B, Qwen2.5-1.5B and Qwen3-8B, for random weights."""


def nothing() -> None:
    """The ``synchronize`` of a device that is never behind, such as a CPU."""


def median_seconds(
    run: Callable[[], object],
    repeats: int = 7,
    warmup: int = 2,
    clock: Callable[[], float] = perf_counter,
    synchronize: Callable[[], object] = nothing,
) -> float:
    """The median time of ``run()`` in seconds.

    Args:
        run: what to time.
        repeats: how many runs are timed.
        warmup: how many runs go before, untimed: the first ones pay for what happens only once.
        clock: reads the time in seconds.
        synchronize: waits until the device has finished. A GPU works behind the program's back: without
            this, the clock sees how long it takes to *ask* for the work.
    """
    for _ in range(warmup):
        run()
    times = []
    for _ in range(repeats):
        synchronize()
        started = clock()
        run()
        synchronize()
        times.append(clock() - started)
    return median(times)


FEWEST = 6
"""Ratios for an interval. All of n lie on one side of the true median in one of 2^(n-1) cases: with 6,
the widest interval that there is misses it in 3 %; with 5, in 6 %."""


@dataclass(frozen=True)
class Ratio:
    """A median of ratios, with a bootstrap interval (95 %); without one if there were too few."""

    value: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.low is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def take_turns(
    contenders: Mapping[str, Callable[[], object]],
    turns: int,
    warmup: int = 1,
    clock: Callable[[], float] = perf_counter,
    synchronize: Callable[[], object] = nothing,
    on_turn: Callable[[], object] = nothing,
) -> dict[str, list[float]]:
    """Time each contender once a turn; every other turn goes through them backwards.

    Args:
        contenders: name -> what to time; it makes its own fresh state.
        turns: how often each is timed.
        warmup: turns before, untimed: the first ones pay for what happens only once.
        clock: reads the time in seconds.
        synchronize: waits until the device has finished.
        on_turn: called after each turn, to show progress.

    Raises:
        ValueError: for fewer than one turn.
    """
    if turns < 1:
        raise ValueError(f"turns: got {turns}, expected 1 or more")
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(-warmup, turns):
        names = list(contenders)
        for name in names if turn % 2 == 0 else reversed(names):
            synchronize()
            started = clock()
            contenders[name]()
            synchronize()
            if turn >= 0:
                seconds[name].append(clock() - started)
        on_turn()
    return seconds


def paired_ratio(
    slower: Sequence[float], faster: Sequence[float], resamples: int = 2_000, seed: int = 0
) -> Ratio:
    """How many times as fast: the median of ``slower[i] / faster[i]``, each of another prompt or turn.

    Args:
        slower: seconds of the one it is compared with.
        faster: seconds of the one that is praised, of the same turns.
        resamples: of the bootstrap (Efron 1979), which draws pairs with replacement.
        seed: of the bootstrap.

    Raises:
        ValueError: for none, another number of each, or times that are not above 0.
    """
    if not slower or len(slower) != len(faster):
        raise ValueError(
            f"slower, faster: got {len(slower)} and {len(faster)} times, expected as many, at least one"
        )
    for name, times in (("slower", slower), ("faster", faster)):
        if not all(0.0 < one < float("inf") for one in times):
            raise ValueError(f"{name}: got {min(times)} s among its times, expected all above 0")
    ratios = np.asarray(slower, dtype=float) / np.asarray(faster, dtype=float)
    if len(ratios) < FEWEST:
        return Ratio(median(ratios.tolist()))
    draws = np.random.default_rng(seed).integers(len(ratios), size=(resamples, len(ratios)))
    low, high = np.quantile(np.median(ratios[draws], axis=1), (0.025, 0.975))
    return Ratio(median(ratios.tolist()), float(low), float(high))


def context_of(length: int, vocab_size: int) -> list[int]:
    """Some tokens to stand in the cache when a forward is timed: which ones makes no difference."""
    return [(1000 + 7 * place) % vocab_size for place in range(length)]


def verification_cost(
    model: CausalLM,
    tokens: Sequence[int],
    lengths: Sequence[int],
    seconds_of: Callable[[Callable[[], object]], float],
    progress: bool = False,
) -> dict[int, float]:
    """v(n) for each n in ``lengths``: time of a forward over n tokens / over one.

    Args:
        model: has read its context; it is left as it was.
        tokens: what to read behind it; the first n of them, and one for the comparison.
        lengths: the values of n.
        seconds_of: times a call, such as ``median_seconds``.
        progress: show a bar.
    """
    context = model.length

    def read(count: int) -> float:
        def forward() -> None:
            model.extend(tokens[:count])
            model.rewind(context)

        return seconds_of(forward)

    one = read(1)
    return {n: read(n) / one for n in tqdm(lengths, desc="v(n)", disable=not progress, leave=False)}


@dataclass(frozen=True)
class Machine:
    """What one device reached in this process: the roof of its roofline.

    Args:
        peak_flops: FLOP/s in a large matrix product.
        bandwidth: bytes/s while a large matrix is read once.
    """

    peak_flops: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """FLOPs per byte at which computing takes as long as moving."""
        return self.peak_flops / self.bandwidth


def measure_machine(
    device: torch.device, dtype: torch.dtype = torch.float32, repeats: int = 7
) -> Machine:
    """Time a large matrix product and a large matrix-vector product (about 3 s, 0.3 GB)."""
    on_gpu = device.type == "cuda"
    side = 8192 if on_gpu else 1536
    square = torch.randn(side, side, device=device).to(dtype)
    # Far larger than any cache, so that every product reads it from memory.
    rows = 16384 if on_gpu else 8192
    tall = torch.randn(rows, rows, device=device).to(dtype)
    vector = torch.randn(rows, device=device).to(dtype)
    wait: Callable[[], object] = torch.cuda.synchronize if on_gpu else nothing
    with torch.inference_mode():
        product = median_seconds(lambda: square @ square, repeats, synchronize=wait)
        reading = median_seconds(lambda: tall @ vector, repeats, synchronize=wait)
    return Machine(2.0 * side**3 / product, tall.numel() * tall.element_size() / reading)


def random_large_target(
    device: torch.device, size: str = "1.5B", dtype: torch.dtype = torch.bfloat16, **changes: Any
) -> HFCausalLM:
    """A Llama of one of the ``SHAPES`` with random weights, for timing only; what it writes is noise.

    A model of 135M parameters on a GPU waits for kernel launches, not for memory; 1.5B are bound by
    memory there.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = SHAPES[size] | {"vocab_size": 151936, "max_position_embeddings": 8192} | changes
    config = LlamaConfig(**shape, bos_token_id=None, eos_token_id=None)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)  # the 8B ones would not fit twice
    try:
        with torch.device(device):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return HFCausalLM(model, name=f"{size}, random weights")

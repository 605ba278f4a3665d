"""Experiment 1: is decoding bound by memory here?

One cached step, at several context lengths and without the cache, beside what the machine itself can
read and compute, measured in the same run.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile
from tqdm.auto import tqdm

from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.setup import Setup, context_of, dtypes_of
from specdec_lab.benchmark import measure_machine, take_turns
from specdec_lab.language_model import HFCausalLM
from specdec_lab.roofline import ModelShape, attainable_flops, forward_bytes, forward_flops

EXPERIMENT = "decode"
PRODUCTS = ("aten::mm", "aten::addmm", "aten::linear", "aten::_weight_int8pack_mm", "mkldnn::_linear")
"""What torch's profiler calls the products with weight matrices; attention's are called otherwise."""


def run(setup: Setup) -> Result:
    """Measure it, or what is missing of it."""
    contexts = (16, 512) if setup.quick else (16, 128, 512, 1024, 1792)
    turns = 5 if setup.quick else 15
    device = setup.pair(dtypes_of(torch.device("cpu"))[0]).target.device
    first = setup.pair(dtypes_of(device)[0])
    settings = {"contexts": contexts, "turns": turns, "dtypes": dtypes_of(device)}
    ledger = setup.ledger(EXPERIMENT, settings, first)
    todo = ledger.missing(dtypes_of(device))
    for dtype in tqdm(todo, desc=EXPERIMENT, unit="dtype", disable=not setup.progress):
        target = setup.pair(dtype).target
        machine = measure_machine(target.device, target.dtype)
        steps = _steps(target, contexts, turns)
        for step in steps:
            roof = attainable_flops(step["intensity"], machine.peak_flops, machine.bandwidth)
            step["share_of_roof"] = step["flops_per_second"] / roof
        ledger.add(
            dtype,
            {
                "bandwidth": machine.bandwidth,
                "peak_flops": machine.peak_flops,
                "ridge": machine.ridge,
                "share_in_weight_products": _share_in_products(target),
                "steps": steps,
            },
        )
    return ledger.result


def _steps(target: HFCausalLM, contexts: tuple[int, ...], turns: int) -> list[Row]:
    """Seconds of one step behind each context, with the cache and without."""
    shape, size = ModelShape.of(target.model.config), target.dtype.itemsize
    rows = []
    for context in contexts:
        tokens = context_of(context, target.vocab_size)
        target.reset()
        target.extend(tokens, rows=1)
        seconds = take_turns(
            {"cached": _cached(target, context), "uncached": _uncached(target, tokens)},
            turns,
            synchronize=target.synchronize,
        )
        step = median(seconds["cached"])
        flops, moved = forward_flops(shape, 1, context), forward_bytes(shape, 1, context, size)
        rows.append(
            {
                "context": context,
                "seconds": step,
                "seconds_without_cache": median(seconds["uncached"]),
                "bytes": moved,
                "flops": flops,
                "intensity": flops / moved,
                "bytes_per_second": moved / step,
                "flops_per_second": flops / step,
            }
        )
    target.reset()
    return rows


def _cached(target: HFCausalLM, context: int) -> Callable[[], None]:
    def step() -> None:
        target.extend([7], rows=1)
        target.rewind(context)

    return step


def _uncached(target: HFCausalLM, tokens: list[int]) -> Callable[[], object]:
    return lambda: target.uncached_logits([*tokens, 7], 1)


def _share_in_products(target: HFCausalLM, steps: int = 5) -> float:
    """The share of a cached step's time that goes into products with weight matrices."""
    on_gpu = target.device.type == "cuda"
    target.reset()
    target.extend(context_of(128, target.vocab_size), rows=1)
    step = _cached(target, 128)
    step()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities) as seen:
        for _ in range(steps):
            step()
    clock = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    times = {event.key: float(getattr(event, clock)) for event in seen.key_averages()}
    target.reset()
    return sum(time for name, time in times.items() if name.startswith(PRODUCTS)) / sum(times.values())

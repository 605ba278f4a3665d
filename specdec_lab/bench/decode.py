"""Experiment 1: is decoding bound by memory here?

One cached step, at several context lengths and without the cache, beside what the machine itself can
read and compute, measured in the same run.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile
from tqdm.auto import tqdm

from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.setup import Setup, dtypes_of
from specdec_lab.benchmark import context_of, measure_machine, median_seconds, take_turns
from specdec_lab.language_model import HFCausalLM
from specdec_lab.roofline import ModelShape, attainable_flops, forward_bytes, forward_flops

EXPERIMENT = "decode"
PRODUCTS = ("aten::mm", "aten::addmm", "aten::_weight_int8pack_mm")
"""What torch's profiler calls the products with weight matrices; attention's are called otherwise."""


def run(setup: Setup) -> Result:
    """Measure it, or what is missing of it."""
    turns = 5 if setup.quick else 15
    pair = setup.pair("bfloat16")
    limit = pair.target.context_limit
    wanted = (16, 512) if setup.quick else (16, 128, 512, 1024, 1792)
    contexts = [n for n in wanted if limit is None or n < limit]
    settings = {"contexts": contexts, "turns": turns}
    ledger = setup.ledger(EXPERIMENT, dtypes_of(pair.target.device), settings, pair)
    for dtype in ledger.missing:
        target = setup.pair(dtype).target
        machine = measure_machine(target.device, target.dtype)
        bar = tqdm(contexts, f"{EXPERIMENT}, {dtype}", unit="context", disable=not setup.progress)
        steps = [_step(target, context, turns) for context in bar]
        for step in steps:
            roof = attainable_flops(step["intensity"], machine.peak_flops, machine.bandwidth)
            step["share_of_roof"] = step["flops_per_second"] / roof
        ledger.add(
            dtype,
            {
                "bandwidth": machine.bandwidth,
                "peak_flops": machine.peak_flops,
                "ridge": machine.ridge,
                **_profiled(target),
                "steps": steps,
            },
        )
    return ledger.result


def _step(target: HFCausalLM, context: int, turns: int) -> Row:
    """Seconds of one step behind a context, with the cache and without."""
    shape = ModelShape.of(target.model.config.get_text_config(decoder=True))
    size = target.dtype.itemsize
    tokens = context_of(context, target.vocab_size)
    target.reset()
    target.extend(tokens, rows=1)
    seconds = take_turns(
        {"cached": _cached(target, context), "uncached": _uncached(target, tokens)},
        turns,
        synchronize=target.synchronize,
    )
    target.reset()
    step = median(seconds["cached"])
    flops, moved = forward_flops(shape, 1, context), forward_bytes(shape, 1, context, size)
    return {
        "context": context,
        "seconds": step,
        "seconds_without_cache": median(seconds["uncached"]),
        "bytes": moved,
        "flops": flops,
        "intensity": flops / moved,
        "bytes_per_second": moved / step,
        "flops_per_second": flops / step,
    }


def _cached(target: HFCausalLM, context: int) -> Callable[[], None]:
    def step() -> None:
        target.extend([7], rows=1)
        target.rewind(context)

    return step


def _uncached(target: HFCausalLM, tokens: list[int]) -> Callable[[], object]:
    return lambda: target.uncached_logits([*tokens, 7], 1)


def _profiled(target: HFCausalLM, steps: int = 5) -> Row:
    """Where a cached step's time goes, by torch's profiler.

    ``share_in_weight_products`` is of the time in kernels. ``share_of_launching``, on a GPU only, is
    that of the wall clock in which it had nothing to do but wait to be told.
    """
    on_gpu = target.device.type == "cuda"
    target.reset()
    target.extend(context_of(128, target.vocab_size), rows=1)
    step = _cached(target, 128)
    wall = median_seconds(step, steps, synchronize=target.synchronize)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities) as seen:
        for _ in range(steps):
            step()
        target.synchronize()
    target.reset()
    events = seen.key_averages()
    # On a GPU an operator's time is that of the kernels it launched, and those are listed too.
    clock = "device_time_total" if on_gpu else "self_cpu_time_total"
    products = sum(float(getattr(one, clock)) for one in events if one.key in PRODUCTS)
    kernels = [one for one in events if not on_gpu or one.device_type == DeviceType.CUDA]
    busy = sum(float(getattr(one, "self_" + clock.removeprefix("self_"))) for one in kernels)
    return {
        "share_in_weight_products": products / busy,
        "share_of_launching": max(0.0, 1.0 - busy / steps / (1e6 * wall)) if on_gpu else None,
    }

"""What this library's own code costs, against transformers' generate on the same models.

    python -m benchmarks.overhead [--quick] [--out FILE]

Three comparisons, each interleaved (A B A B ...) in one process after a warm-up, medians of several
repeats, reported as ratios: an absolute time says more about the machine than about the code.

1. Plain cached decoding of the 135M model: ours over transformers'.
2. Prompt look-up on copying and summarising: ours over transformers', each at its best draft
   length, and over our own plain decoding.
3. Time per round that is not spent in a model's forward pass, on two random models of about a million
   parameters, where nothing hides it: ours and transformers' assisted generation.

With a GPU, the first comparison runs there on a 1.5B architecture with random weights (a small model
on a GPU waits for kernel launches, not for memory), and no weights are needed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from tqdm.auto import tqdm
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from benchmarks.prompts import PROMPTS
from specdec_lab.bench.own_time import CallClock, timed_calls
from specdec_lab.benchmark import random_large_target
from specdec_lab.decoding import generate
from specdec_lab.drafters import ModelDrafter, NGramDrafter
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import load_pair
from specdec_lab.provenance import provenance
from specdec_lab.sampling import Sampling
from specdec_lab.text import encode

RESULTS = Path(__file__).parent / "results" / "overhead.json"
DRAFT_LENGTHS = (5, 10, 16, 24, 32)
Contender = Callable[[], int]
"""Decodes once and returns how many tokens it made."""


def seconds_per_token(contender: Contender) -> float:
    """Wall-clock seconds of one run over the tokens it made."""
    started = perf_counter()
    tokens = contender()
    return (perf_counter() - started) / tokens


def interleaved(
    contenders: dict[str, Contender],
    repeats: int,
    label: str,
    measure: Callable[[Contender], float] = seconds_per_token,
) -> dict[str, float]:
    """Median of a measure of each contender, run in turns after one warm-up each."""
    measured: dict[str, list[float]] = {name: [] for name in contenders}
    with tqdm(total=(repeats + 1) * len(contenders), desc=label, leave=False) as bar:
        for repeat in range(repeats + 1):
            for name, contender in contenders.items():
                value = measure(contender)
                if repeat > 0:
                    measured[name].append(value)
                bar.update()
    return {name: median(values) for name, values in measured.items()}


def ours(target: HFCausalLM, ids: list[int], budget: int, **options: Any) -> Contender:
    """This library on ``ids``, greedily unless told otherwise; runs to the budget or the end token."""
    return lambda: len(generate(target, ids, max_new_tokens=budget, **options).tokens)


def theirs(model: PreTrainedModel, ids: list[int], budget: int, **options: Any) -> Contender:
    """transformers' generate on the same."""
    input_ids = torch.tensor([ids], device=model.device)
    mask = torch.ones_like(input_ids)
    options = {"do_sample": False} | options

    def run() -> int:
        output: Any = model.generate(  # type: ignore[operator]
            input_ids, attention_mask=mask, max_new_tokens=budget, pad_token_id=0, **options
        )
        return int(output.shape[1]) - len(ids)

    return run


def plain_decoding(
    target: HFCausalLM, ids_of: dict[str, list[int]], repeats: int
) -> list[dict[str, Any]]:
    """Cached autoregressive decoding, ours against theirs."""
    rows = []
    for name, ids in ids_of.items():
        contenders = {
            "ours": ours(target, ids, 48, end_ids=[]),
            "theirs": theirs(target.model, ids, 48, eos_token_id=None),
        }
        times = interleaved(contenders, repeats, f"plain decoding, {name}")
        rows.append({"prompt": name, **_rates(times), "ratio": times["theirs"] / times["ours"]})
    return rows


def prompt_lookup(
    target: HFCausalLM, ids_of: dict[str, list[int]], repeats: int
) -> list[dict[str, Any]]:
    """n-gram drafting, ours against theirs, each at every draft length."""
    rows = []
    for name, ids in ids_of.items():
        contenders: dict[str, Contender] = {"plain": ours(target, ids, 96)}
        for gamma in DRAFT_LENGTHS:
            drafter = NGramDrafter(target.vocab_size)
            contenders[f"ours {gamma}"] = ours(target, ids, 96, drafter=drafter, gamma=gamma)
            contenders[f"theirs {gamma}"] = theirs(
                target.model, ids, 96, prompt_lookup_num_tokens=gamma
            )
        times = interleaved(contenders, repeats, f"prompt look-up, {name}")
        best_ours = min((f"ours {gamma}" for gamma in DRAFT_LENGTHS), key=times.__getitem__)
        best_theirs = min((f"theirs {gamma}" for gamma in DRAFT_LENGTHS), key=times.__getitem__)
        default = f"ours {NGramDrafter.default_gamma}"
        rows.append(
            {
                "prompt": name,
                **_rates(times),
                "best": [best_ours, best_theirs],
                "ratio_to_theirs": times[best_theirs] / times[best_ours],
                "default_ratio_to_theirs": times[best_theirs] / times[default],
                "speedup_over_plain": times["plain"] / times[best_ours],
                "default_speedup_over_plain": times["plain"] / times[default],
                "their_speedup_over_our_plain": times["plain"] / times[best_theirs],
            }
        )
    return rows


def loop_overhead(repeats: int) -> list[dict[str, Any]]:
    """Milliseconds per round outside the models' forward passes."""
    target, draft = million_parameters(seed=0), million_parameters(seed=1)
    with timed_calls(target, "forward") as target_clock, timed_calls(draft, "forward") as draft_clock:
        return _loop_overhead(repeats, target, draft, target_clock, draft_clock)


def _loop_overhead(
    repeats: int,
    target: PreTrainedModel,
    draft: PreTrainedModel,
    target_clock: CallClock,
    draft_clock: CallClock,
) -> list[dict[str, Any]]:
    def milliseconds_per_round(contender: Contender) -> float:
        for clock in (target_clock, draft_clock):
            clock.seconds, clock.calls = 0.0, 0
        started = perf_counter()
        contender()
        outside = perf_counter() - started - target_clock.seconds - draft_clock.seconds
        return 1000.0 * outside / target_clock.calls

    lm, drafter = HFCausalLM(target), ModelDrafter(HFCausalLM(draft))
    ids, gamma, budget = list(range(1, 33)), 4, 96
    draft.generation_config.num_assistant_tokens = gamma
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0
    rows = []
    for mode, temperature in (("greedy", 0.0), ("sampling", 1.0)):
        sampling, do_sample = Sampling(temperature), temperature > 0.0
        look_up = NGramDrafter(lm.vocab_size)
        contenders = {
            "ours": ours(lm, ids, budget, drafter=drafter, gamma=gamma, sampling=sampling, end_ids=[]),
            "ours, n-gram": ours(lm, ids, budget, drafter=look_up, sampling=sampling, end_ids=[]),
            "theirs": theirs(
                target, ids, budget, assistant_model=draft, do_sample=do_sample, eos_token_id=None
            ),
        }
        times = interleaved(contenders, repeats, f"loop overhead, {mode}", milliseconds_per_round)
        rows.append({"mode": mode} | {f"{name} [ms per round]": ms for name, ms in times.items()})
    return rows


def million_parameters(seed: int) -> PreTrainedModel:
    """A random Llama of about a million parameters."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=1024,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        bos_token_id=None,
        eos_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


def _rates(times: dict[str, float]) -> dict[str, Any]:
    return {"tokens_per_second": {name: 1.0 / seconds for name, seconds in times.items()}}


def measure_all(quick: bool) -> dict[str, Any]:
    """All three comparisons, with their provenance."""
    repeats = 3 if quick else 7
    if torch.cuda.is_available():
        target = random_large_target(torch.device("cuda"))
        ids_of = {"random": list(range(100, 164))}
        results: dict[str, Any] = {"plain decoding": plain_decoding(target, ids_of, repeats)}
    else:
        pair = load_pair("embedded")
        target = pair.target
        ids = {one.name: encode(pair.tokenizer, one.text, one.chat) for one in PROMPTS}
        plain = {name: ids[name] for name in ("capital", "explain", "summarise river")}
        repeating = {one.name: ids[one.name] for one in PROMPTS if one.kind in ("copy", "summarise")}
        results = {
            "plain decoding": plain_decoding(target, plain, repeats),
            "prompt look-up": prompt_lookup(target, repeating, repeats),
        }
    results["loop overhead"] = loop_overhead(repeats)
    return {"repeats": repeats, "provenance": provenance(target, None), **results}


def show(results: dict[str, Any]) -> None:
    """The ratios and the overheads, as tables."""
    console = Console()
    for section in ("plain decoding", "prompt look-up", "loop overhead"):
        rows = results.get(section)
        if not rows:
            continue
        columns = [key for key, value in rows[0].items() if not isinstance(value, dict | list)]
        table = Table(*columns, title=section, title_justify="left")
        for row in rows:
            table.add_row(
                *(f"{v:.2f}" if isinstance(v, float) else str(v) for v in map(row.get, columns))
            )
        console.print(table)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="3 repeats instead of 7 (about 5 minutes)")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help=f"({RESULTS.name})")
    options = parser.parse_args()
    results = measure_all(options.quick)
    show(results)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()

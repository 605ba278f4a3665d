"""Judge a draft model on the held-out prompts: how much it agrees, what it costs, what it gains.

    python -m training.evaluate                   the shipped draft (about 40 minutes on two cores)
    python -m training.evaluate --only agreement  one part: agreement, costs or speed
    python -m training.card                       write the model card from the results

Finished measurements are kept as they come, in the user's cache: a run that was killed goes on.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any

import torch
from tqdm.auto import tqdm

from benchmarks.held_out import HELD_OUT, KINDS
from benchmarks.prompts import Prompt
from specdec_lab.benchmark import median_seconds, verification_cost
from specdec_lab.draft_model import stored_drafts
from specdec_lab.files import replacing
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair, load_pair
from specdec_lab.provenance import provenance
from specdec_lab.records import Generation
from specdec_lab.sampling import Sampling
from specdec_lab.text import encode
from training.held_out import reply_to
from training.teacher import cache_folder

RESULTS = Path(__file__).parent / "results"
TEMPERATURES = (0.0, 0.7, 1.0)
GAMMAS = (1, 2, 3, 4, 5, 6)
BUDGET = 64
"""Tokens of a timed run."""
CONTEXT = 128
"""Tokens in the cache when a forward is timed."""
LENGTHS = (2, 3, 4, 5, 6, 7, 8, 12, 16)

Row = dict[str, Any]


def agreement(pair: Pair, prompts: Sequence[Prompt]) -> list[Row]:
    """Alpha at every position of the target's replies; at temperature 0, whether the argmax agrees."""
    draft = _draft(pair)
    rows = []
    for temperature in TEMPERATURES:
        encoded = [encode(pair.tokenizer, prompt.text, prompt.chat) for prompt in prompts]
        replies = reply_to(pair, encoded, temperature, seed=123_456_789)
        for prompt, ids, reply in zip(prompts, encoded, replies, strict=True):
            alphas = _alphas(pair.target, draft, ids, reply, temperature)
            rows.append({"prompt": prompt.name, "kind": prompt.kind, "temperature": temperature})
            rows[-1] |= {"alphas": [round(value, 4) for value in alphas]}
    return rows


def _alphas(
    target: HFCausalLM, draft: HFCausalLM, ids: list[int], reply: list[int], temperature: float
) -> list[float]:
    """Sum of min(p, q) at each position of ``reply``, with the one-hot p and q of temperature 0."""
    text = (ids + reply)[:-1]
    p_logits = target.uncached_logits(text, len(reply)).float()
    q_logits = draft.uncached_logits(text, len(reply)).float()
    if temperature == 0.0:
        return (p_logits.argmax(dim=-1) == q_logits.argmax(dim=-1)).double().tolist()
    p, q = ((logits / temperature).softmax(dim=-1) for logits in (p_logits, q_logits))
    alphas: list[float] = torch.minimum(p, q).sum(dim=-1).tolist()
    return alphas


def costs(pair: Pair, repeats: int = 15) -> Row:
    """c, and the verification cost curve v(n): medians, behind a context of 128 tokens."""
    models = {"target": pair.target, "draft": _draft(pair)}
    context = [token % pair.target.vocab_size for token in range(1000, 1000 + CONTEXT)]

    def step(model: HFCausalLM) -> Callable[[], object]:
        def forward() -> None:
            model.extend_kept([7])
            model.rewind(CONTEXT)

        return forward

    seconds: dict[str, list[float]] = defaultdict(list)
    for model in models.values():
        model.reset()
        model.extend(context, rows=1)
    for _ in range(repeats):
        for name, model in models.items():
            seconds[name].append(median_seconds(step(model), repeats=3, warmup=1))
    curve = verification_cost(pair.target, [7] * max(LENGTHS), LENGTHS, median_seconds)
    target, draft = median(seconds["target"]), median(seconds["draft"])
    return {
        "target_ms": 1000 * target,
        "draft_ms": 1000 * draft,
        "c": draft / target,
        "v": {str(n): value for n, value in curve.items()},
        "provenance": provenance(pair.target, pair.drafter("model")),
    }


def speed(pair: Pair, prompts: Sequence[Prompt], temperature: float, kept: Path) -> list[Row]:
    """Seconds per token with each draft length and without a draft, one after the other per prompt."""
    rows = _lines(kept)
    done = {row["prompt"] for row in rows}
    _time_one(pair, prompts[0], temperature)  # what happens only once is paid for here
    for prompt in tqdm(prompts, desc=kept.stem, unit="prompt"):
        if prompt.name in done:
            continue
        rows.append(_time_one(pair, prompt, temperature))
        with kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(rows[-1]) + "\n")
    return rows


def _time_one(pair: Pair, prompt: Prompt, temperature: float) -> Row:
    """One prompt: the plain loop before and after, and every draft length between."""
    drafter = pair.drafter("model")
    options: dict[str, Any] = {"max_new_tokens": BUDGET, "sampling": Sampling(temperature), "seed": 1}
    options["chat"] = prompt.chat

    def run(gamma: int | None) -> tuple[float, Generation]:
        started = perf_counter()
        made = pair.generate(
            prompt.text, drafter=None if gamma is None else drafter, gamma=gamma, **options
        )
        return (perf_counter() - started) / len(made.tokens), made

    plain = [run(None)[0]]
    timed = {gamma: run(gamma) for gamma in GAMMAS}
    plain.append(run(None)[0])
    return {
        "prompt": prompt.name,
        "kind": prompt.kind,
        "temperature": temperature,
        "plain": mean(plain),
        "seconds_per_token": {str(gamma): seconds for gamma, (seconds, _) in timed.items()},
        "block_efficiency": {
            str(gamma): made.metrics.block_efficiency for gamma, (_, made) in timed.items()
        },
        "judged": _judged(timed[max(GAMMAS)][1]),
    }


def _judged(made: Generation) -> list[list[int]]:
    """For each place in the draft: how many tokens there were judged, and how many accepted."""
    counts = [[0, 0] for _ in range(max(GAMMAS))]
    for one in made.rounds:
        for place, position in enumerate(one.positions):
            if position.accepted is not None:
                counts[place][0] += 1
                counts[place][1] += position.accepted
    return counts


def _draft(pair: Pair) -> HFCausalLM:
    if pair.draft is None:
        raise SystemExit("draft: expected a pair with a draft model")
    return pair.draft


def _lines(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def best_gamma(rows: Sequence[Row]) -> tuple[int, float]:
    """The one draft length with the highest median speedup over these prompts, and that speedup."""
    medians = {gamma: median(speedup(row, gamma) for row in rows) for gamma in GAMMAS}
    best = max(medians, key=medians.__getitem__)
    return best, medians[best]


def speedup(row: Row, gamma: int) -> float:
    """How many times as fast as the plain loop on the same prompt."""
    return float(row["plain"] / row["seconds_per_token"][str(gamma)])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draft", default="embedded", help="a shipped draft's name (embedded)")
    parser.add_argument("--only", choices=("agreement", "costs", "speed"))
    options = parser.parse_args()
    file = RESULTS / f"{options.draft}.json"
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    for part in [options.only] if options.only else ["agreement", "costs", "speed"]:
        results[part] = _measure(part, options.draft)
        with replacing(file) as whole:
            whole.write_text(json.dumps(results) + "\n", encoding="utf-8")
    print(f"written to {file}")


def _measure(part: str, draft: str) -> Any:
    if part == "agreement":
        return agreement(load_pair(target="embedded", draft=draft, progress=False), HELD_OUT)
    if part == "costs":
        return {
            dtype: costs(load_pair(target="embedded", draft=draft, dtype=dtype, progress=False))
            for dtype in ("float32", "bfloat16")
        }
    pair = load_pair(target="embedded", draft=draft, dtype="bfloat16", progress=False)
    prompts = sorted(HELD_OUT, key=lambda prompt: KINDS.index(prompt.kind))
    name = f"speed-{draft}-{stored_drafts()[draft].sha256[:8]}"
    rows = []
    for temperature in (0.0, 1.0):
        kept = cache_folder() / f"{name}-{temperature:g}.jsonl"
        rows += speed(pair, prompts, temperature, kept)
    return {"rows": rows, "provenance": provenance(pair.target, pair.drafter("model"))}


if __name__ == "__main__":
    main()

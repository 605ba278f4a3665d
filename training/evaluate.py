"""Judge the shipped drafts on the held-out prompts: how much they agree, what they cost and gain.

    python -m training.evaluate                   everything (about an hour on two cores)
    python -m training.evaluate --only agreement  one part: agreement, costs or speed
    python -m training.card                       write the model card from the results

Agreement is measured for the finished draft and its two ancestors, the rest for the finished one. All
of it runs on the CPU. Parts that are there for the very drafts that are shipped are not measured
again, and timed prompts are kept as they come: a run that was killed goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import torch
from tqdm.auto import tqdm

from benchmarks.held_out import HELD_OUT, KINDS
from benchmarks.prompts import Prompt
from specdec_lab.bench.runs import seconds_per_token
from specdec_lab.benchmark import median_seconds
from specdec_lab.draft_model import EMBEDDED_DRAFTS, stored_drafts
from specdec_lab.files import replacing
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair, load_pair
from specdec_lab.provenance import provenance
from specdec_lab.records import Generation
from specdec_lab.sampling import Sampling
from specdec_lab.text import encode
from training.held_out import reply_to
from training.publish import RESULTS
from training.teacher import cache_folder

TEMPERATURES = (0.0, 0.7, 1.0)
GAMMAS = (1, 2, 3, 4, 5)
BUDGET = 48
"""Most tokens of a timed run; it ends at the target's end token if that comes first."""
CONTEXT = 128
"""Tokens in the cache when a forward is timed."""
LENGTHS = (2, 3, 4, 5, 6, 7, 8, 12, 16)
PARTS = {"agreement": EMBEDDED_DRAFTS, "costs": EMBEDDED_DRAFTS[:1], "speed": EMBEDDED_DRAFTS[:1]}
"""What is measured, and of which drafts."""

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
    """c, and the verification cost curve v(n): medians, interleaved, behind 128 tokens."""
    context = [token % pair.target.vocab_size for token in range(1000, 1000 + CONTEXT)]
    for model in (pair.target, _draft(pair)):
        model.reset()
        model.extend(context, rows=1)

    def forward(model: HFCausalLM, count: int) -> Callable[[], object]:
        def run() -> None:
            if count == 1:
                model.extend_kept([7])  # as in drafting: no more of the head than it has
            else:
                model.extend([7] * count)
            model.rewind(CONTEXT)

        return run

    runs = {str(n): forward(pair.target, n) for n in (1, *LENGTHS)}
    runs["draft"] = forward(_draft(pair), 1)
    seconds: dict[str, list[float]] = defaultdict(list)
    for _ in range(repeats):
        for name, run in runs.items():
            seconds[name].append(median_seconds(run, repeats=3, warmup=1))
    target, draft = median(seconds["1"]), median(seconds["draft"])
    return {
        "target_ms": 1000 * target,
        "draft_ms": 1000 * draft,
        "c": draft / target,
        "v": {str(n): median(seconds[str(n)]) / target for n in LENGTHS},
    }


def speed(pair: Pair, prompts: Sequence[Prompt], temperature: float, kept: Path) -> list[Row]:
    """Seconds per token with each draft length and without a draft, one after the other per prompt."""
    done = {row["prompt"]: row for row in _lines(kept)}
    left = [prompt for prompt in prompts if prompt.name not in done]
    if left:
        _time_one(pair, left[0], temperature)  # what happens only once is paid for here
    for prompt in tqdm(left, desc=f"speed at temperature {temperature:g}", unit="prompt"):
        done[prompt.name] = _time_one(pair, prompt, temperature)
        with replacing(kept) as whole:
            whole.write_text("".join(json.dumps(row) + "\n" for row in done.values()), encoding="utf-8")
    return [done[prompt.name] for prompt in prompts]


def _time_one(pair: Pair, prompt: Prompt, temperature: float) -> Row:
    """One prompt: the plain loop before and after, and every draft length between."""
    drafter = pair.drafter("model")
    options: dict[str, Any] = {"max_new_tokens": BUDGET, "sampling": Sampling(temperature), "seed": 1}
    options["chat"] = prompt.chat
    made: dict[int | None, list[Generation]] = defaultdict(list)
    for gamma in (None, *GAMMAS, None):
        one = None if gamma is None else drafter
        made[gamma].append(pair.generate(prompt.text, drafter=one, gamma=gamma, **options))
    seconds = {gamma: mean(map(seconds_per_token, runs)) for gamma, runs in made.items()}
    return {
        "prompt": prompt.name,
        "kind": prompt.kind,
        "temperature": temperature,
        "plain": seconds[None],
        "seconds_per_token": {str(gamma): seconds[gamma] for gamma in GAMMAS},
        "block_efficiency": {str(gamma): made[gamma][0].metrics.block_efficiency for gamma in GAMMAS},
        "judged": _judged(made[max(GAMMAS)][0]),
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
    parser.add_argument("--only", choices=tuple(PARTS))
    only = parser.parse_args().only
    for part in [only] if only else PARTS:
        for draft in PARTS[part]:
            measure_part(part, draft)


def measure_part(part: str, draft: str) -> None:
    """Measure one part of one draft into its results file, unless it is there already."""
    file, sha256 = RESULTS / f"{draft}.json", stored_drafts()[draft].sha256
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if results.get("sha256") != sha256:
        results = {"sha256": sha256}
    if part in results:
        return
    results[part] = _measure(part, draft, sha256)
    with replacing(file) as whole:
        whole.write_text(json.dumps(results) + "\n", encoding="utf-8")
    print(f"{part} of {draft}: written to {file}")


def _measure(part: str, draft: str, sha256: str) -> Row:
    def load(dtype: str) -> Pair:
        return load_pair(target="embedded", draft=draft, dtype=dtype, device="cpu", progress=False)

    pair = load("bfloat16" if part == "speed" else "float32")
    found: Row = {"provenance": provenance(pair.target, pair.drafter("model"))}
    if part == "agreement":
        found["rows"] = agreement(pair, HELD_OUT)
    elif part == "costs":
        found |= {dtype: costs(load(dtype)) for dtype in ("float32", "bfloat16")}
    else:
        prompts = sorted(HELD_OUT, key=lambda prompt: KINDS.index(prompt.kind))
        found["rows"] = [
            row
            for temperature in (0.0, 1.0)
            for row in speed(pair, prompts, temperature, _kept(sha256, temperature))
        ]
    return found


def _kept(sha256: str, temperature: float) -> Path:
    """Where timed prompts wait; another name whenever something about the measurement is another."""
    settings = (sha256, temperature, BUDGET, GAMMAS, torch.get_num_threads(), HELD_OUT)
    key = hashlib.sha256(repr(settings).encode()).hexdigest()[:12]
    return cache_folder() / f"speed-{key}.jsonl"


if __name__ == "__main__":
    main()

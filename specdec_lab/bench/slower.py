"""Experiment 4: when is speculation slower, and which number says so beforehand?

Each case is predicted first, from an acceptance measured on other prompts and from costs timed apart;
then it is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tqdm.auto import tqdm

from specdec_lab.adaptive import Costs, measure_costs
from specdec_lab.batch import generate_batch
from specdec_lab.bench.batch import batch_costs, batch_seconds_per_token, short_prompts
from specdec_lab.bench.prompts import CONVERSATION, MATHEMATICS, PASSAGES, QUESTIONS
from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.runs import decode_in_turns, judged_tokens, seconds_per_token
from specdec_lab.bench.setup import Setup, ancestors_of, prompt_ids
from specdec_lab.benchmark import paired_ratio
from specdec_lab.decoding import generate
from specdec_lab.drafters import Drafter, LayerSkipDrafter, ModelDrafter
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair
from specdec_lab.records import Generation
from specdec_lab.theory import expected_speedup

EXPERIMENT = "slower"
BATCH = 16
Prompts = list[list[int]]


@dataclass(frozen=True)
class Case:
    """A way to lose.

    Args:
        key: its name.
        what: the setting, in a few words.
        target, drafter, gamma: who decodes.
        calibration, prompts: what alpha is measured on before, and what is timed: token ids.
        context: tokens in the cache when c and v are timed.
        because: the number that predicts it: "alpha", "c" or "v".
        batch: sequences decoded together.
    """

    key: str
    what: str
    target: HFCausalLM
    drafter: Drafter
    gamma: int
    calibration: Prompts
    prompts: Prompts
    because: str
    context: int = 128
    batch: int = 1


def run(setup: Setup, dtype: str = "bfloat16") -> Result:
    """Measure it, or what is missing of it."""
    pair = setup.pair(dtype)
    budget, turns = (16, 1) if setup.quick else (32, 3)
    cases = {case.key: case for case in cases_of(pair)}
    settings = {"dtype": dtype, "cases": list(cases), "max_new_tokens": budget, "turns": turns}
    ledger = setup.ledger(EXPERIMENT, settings, pair)
    for key in tqdm(ledger.missing(cases), desc=EXPERIMENT, unit="case", disable=not setup.progress):
        ledger.add(key, one_case(cases[key], budget, turns, most=1 if setup.quick else 3))
    return ledger.result


def cases_of(pair: Pair) -> Iterator[Case]:
    """Those that this pair allows."""

    def chats(texts: Sequence[str]) -> Prompts:
        return [prompt_ids(pair, text) for text in texts]

    target = pair.target
    calibration, prompts = chats(CONVERSATION[4:]), chats(CONVERSATION[:3])
    itself = ModelDrafter(HFCausalLM(target.model, target.vocab_size))
    yield Case(
        "a costly draft", "the target drafts for itself", target, itself, 4, calibration, prompts, "c"
    )
    if pair.draft is None:
        return
    ancestors = list(ancestors_of(pair).values())
    if ancestors:
        weak, what = ModelDrafter(ancestors[-1]), "the draft model from early in its training"
        yield Case("a weak draft, drafting far", what, target, weak, 8, calibration, prompts, "alpha")
    small = HFCausalLM(pair.draft.model, target.vocab_size, pair.draft.name)
    depth = small.model.config.num_hidden_layers
    if depth > 1:
        half, what = (
            LayerSkipDrafter(small, depth // 2),
            "the draft model decodes, half of its layers draft",
        )
        yield Case("a small target", what, small, half, 2, calibration, prompts, "c")
    drafter = ModelDrafter(pair.draft)
    yield Case(
        "a large batch", f"{BATCH} sequences together", target, drafter, 4,
        calibration, short_prompts(pair, BATCH), "v", batch=BATCH,
    )  # fmt: skip
    asked = [
        chats([long_text(question)]) for question in ("How fast does a glacier flow?", QUESTIONS[0])
    ]
    yield Case(
        "a long context", f"behind {len(asked[0][0])} tokens", target, drafter, 4,
        asked[1], asked[0], "alpha", context=len(asked[0][0]),
    )  # fmt: skip


def long_text(question: str) -> str:
    """All that these experiments have in the way of prose, and a question behind it."""
    notes = "\n".join((*PASSAGES, *CONVERSATION, *QUESTIONS, *MATHEMATICS))
    return f"These are my notes.\n{notes}\n\nNow answer one question only: {question}"


def one_case(case: Case, budget: int, turns: int, most: int) -> Row:
    """Predict, then run; ``most`` prompts on either side."""
    if case.batch == 1:
        case = replace(case, calibration=case.calibration[:most], prompts=case.prompts[:most])
    alpha, costs = measured_alpha(case, budget), costs_of(case)
    v = costs.of(case.gamma) - case.gamma * costs.c
    predicted = expected_speedup(alpha, case.gamma, costs.c, v)
    plain, drafted = timed(case, budget, turns)
    ratio = paired_ratio(plain, drafted)
    return {
        "what": case.what,
        "gamma": case.gamma,
        "alpha": alpha,
        "c": costs.c,
        "v": v,
        "predicted": predicted,
        "speedup": ratio.value,
        "speedup_low": ratio.low,
        "speedup_high": ratio.high,
        "because": case.because,
    }


def measured_alpha(case: Case, budget: int) -> float:
    """Accepted over judged tokens on the calibration prompts, drafted one at a time."""
    judged = accepted = 0
    for prompt in case.calibration:
        made = generate(case.target, prompt, drafter=case.drafter, gamma=1, max_new_tokens=budget)
        found = judged_tokens(made.rounds)
        judged, accepted = judged + found[0], accepted + found[1]
    return accepted / max(judged, 1)


def costs_of(case: Case) -> Costs:
    """c and v(gamma + 1) where the case decodes: behind its context, in its batch."""
    if case.batch > 1:
        return batch_costs(case.target, case.drafter, case.batch, (case.gamma,), turns=5)
    if isinstance(case.drafter, LayerSkipDrafter):
        plain = ModelDrafter(case.drafter.model)
        return measure_costs(case.target, plain, case.gamma, case.context, repeats=9)
    return measure_costs(case.target, case.drafter, case.gamma, case.context, repeats=9)


def timed(case: Case, budget: int, turns: int) -> tuple[list[float], list[float]]:
    """Seconds per token without and with drafts, of each prompt and turn (a batch is one prompt)."""
    options: dict[str, Any] = {"max_new_tokens": budget, "end_ids": []}
    if case.batch > 1:
        return _timed_batch(case, options, turns)
    plain, drafted = list[float](), list[float]()
    for prompt in case.prompts:

        def decoded(drafter: Drafter | None, prompt: list[int] = prompt) -> Callable[[], Generation]:
            return lambda: generate(case.target, prompt, drafter=drafter, gamma=case.gamma, **options)

        made = decode_in_turns({"plain": decoded(None), "drafted": decoded(case.drafter)}, turns)
        plain += map(seconds_per_token, made["plain"])
        drafted += map(seconds_per_token, made["drafted"])
    return plain, drafted


def _timed_batch(case: Case, options: dict[str, Any], turns: int) -> tuple[list[float], list[float]]:
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for drafter, times in zip((None, case.drafter), seconds, strict=True):
            gamma = None if drafter is None else case.gamma
            made = generate_batch(case.target, case.prompts, drafter=drafter, gamma=gamma, **options)
            times.append(batch_seconds_per_token(made))
    return seconds

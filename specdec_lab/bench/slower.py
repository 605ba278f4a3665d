"""Experiment 4: when is speculation slower, and which number says so beforehand?

Each case is predicted first, from an acceptance measured on other prompts and from costs timed apart;
then it is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from tqdm.auto import tqdm

from specdec_lab.adaptive import Costs, measure_costs
from specdec_lab.batch import generate_batch
from specdec_lab.bench.batch import batch_costs, batch_seconds_per_token, short_prompts
from specdec_lab.bench.prompts import CONVERSATION, MATHEMATICS, PASSAGES, QUESTIONS
from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.runs import decode_in_turns, judged_tokens, seconds_per_token
from specdec_lab.bench.setup import Setup, ancestors_of, prompt_ids
from specdec_lab.benchmark import FEWEST, paired_ratio
from specdec_lab.decoding import generate
from specdec_lab.drafters import Drafter, LayerSkipDrafter, ModelDrafter
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair
from specdec_lab.records import Generation
from specdec_lab.theory import expected_speedup

EXPERIMENT = "slower"
BATCH = 16
USUAL = "the usual case"
"""What the others are compared with."""
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
        batch: sequences decoded together.
    """

    key: str
    what: str
    target: HFCausalLM
    drafter: Drafter
    gamma: int
    calibration: Prompts
    prompts: Prompts
    context: int = 128
    batch: int = 1


def run(setup: Setup, dtype: str = "bfloat16") -> Result:
    """Measure it, or what is missing of it."""
    pair = setup.pair(dtype)
    budget, most, repeats = (12, 1, 3) if setup.quick else (32, FEWEST, 15)
    cases = {case.key: case for case in cases_of(pair)}
    settings = {"dtype": dtype, "max_new_tokens": budget, "prompts": most}
    ledger = setup.ledger(EXPERIMENT, cases, settings, pair)
    for key in tqdm(ledger.missing, desc=EXPERIMENT, unit="case", disable=not setup.progress):
        usual = ledger.result.of(key=USUAL)
        ledger.add(key, one_case(cases[key], budget, most, repeats, usual[0] if usual else None))
    return ledger.result


def cases_of(pair: Pair) -> Iterator[Case]:
    """The usual one, and those to lose that this pair allows."""

    def ids(texts: Sequence[str]) -> Prompts:
        return [prompt_ids(pair, text) for text in texts]

    target = pair.target
    calibration, prompts = ids(CONVERSATION[FEWEST:]), ids(CONVERSATION[:FEWEST])
    if pair.draft is not None:
        drafter, what = ModelDrafter(pair.draft), "the draft model on short chats"
        yield Case(USUAL, what, target, drafter, 2, calibration, prompts)
    itself = ModelDrafter(HFCausalLM(target.model, target.vocab_size))
    what = "the target drafts for itself"
    yield Case("a costly draft", what, target, itself, 4, calibration, prompts)
    if pair.draft is None:
        return
    ancestors = list(ancestors_of(pair).items())
    if ancestors:
        age, weak = ancestors[-1]
        what = f"the draft model {age}"
        yield Case("a weak draft", what, target, ModelDrafter(weak), 8, calibration, prompts)
    small = HFCausalLM(pair.draft.model, target.vocab_size, pair.draft.name)
    depth = small.model.config.get_text_config(decoder=True).num_hidden_layers
    if depth > 1:
        half, what = LayerSkipDrafter(small, depth // 2), "the draft model; half of its layers draft"
        yield Case("a small target", what, small, half, 2, calibration, prompts)
    together, what = short_prompts(pair, BATCH), f"{BATCH} sequences together"
    yield Case("a large batch", what, target, drafter, 4, calibration, together, batch=BATCH)
    *asked, other = ids([long_text(question) for question in QUESTIONS[: FEWEST + 1]])
    context = len(asked[0])
    if target.context_limit is None or context + 64 < target.context_limit:
        what = f"behind {context} tokens"
        yield Case("a long context", what, target, drafter, 4, [other], asked, context=context)


def long_text(question: str) -> str:
    """All that these experiments have in the way of prose, and a question behind it."""
    notes = "\n".join((*PASSAGES, *CONVERSATION, *QUESTIONS, *MATHEMATICS))
    return f"These are my notes.\n{notes}\n\nNow answer one question only: {question}"


def one_case(case: Case, budget: int, most: int, repeats: int, usual: Row | None) -> Row:
    """Predict from costs timed so often, then run; at most so many prompts on either side, or turns of
    a batch.
    """
    if case.batch == 1:
        case = replace(case, calibration=case.calibration[:most], prompts=case.prompts[:most])
    alpha, costs = measured_alpha(case, budget), costs_of(case, repeats)
    v = costs.of(case.gamma) - case.gamma * costs.c
    plain, drafted = timed(case, budget, most)
    ratio = paired_ratio(plain, drafted)
    return {
        "what": case.what,
        "gamma": case.gamma,
        "alpha": alpha,
        "c": costs.c,
        "v": v,
        "predicted": expected_speedup(alpha, case.gamma, costs.c, v),
        "speedup": ratio.value,
        "speedup_low": ratio.low,
        "speedup_high": ratio.high,
        "curve": {str(n): value for n, value in costs.v.items()},
        "because": None if usual is None else to_blame(alpha, case.gamma, costs.c, v, usual),
    }


def to_blame(alpha: float, gamma: int, c: float, v: float, usual: Row) -> str:
    """Which of alpha, c and v, put back to what it usually is, would raise the prediction the most."""
    curve = {int(n): value for n, value in usual["curve"].items()}
    usual_v = Costs(0.0, curve).of(gamma)
    back = {
        "alpha": expected_speedup(usual["alpha"], gamma, c, v),
        "c": expected_speedup(alpha, gamma, usual["c"], v),
        "v": expected_speedup(alpha, gamma, c, usual_v),
    }
    return max(back, key=back.__getitem__)


def measured_alpha(case: Case, budget: int) -> float:
    """Accepted over judged tokens on the calibration prompts, drafted one at a time."""
    judged = accepted = 0
    for prompt in case.calibration:
        made = generate(case.target, prompt, drafter=case.drafter, gamma=1, max_new_tokens=budget)
        found = judged_tokens(made.rounds)
        judged, accepted = judged + found[0], accepted + found[1]
    return accepted / max(judged, 1)


def costs_of(case: Case, repeats: int) -> Costs:
    """c and v(gamma + 1) where the case decodes: behind its context, in its batch."""
    if case.batch > 1:  # its forwards take longer
        return batch_costs(
            case.target, case.drafter, case.batch, (case.gamma,), max(3, repeats * 3 // 5)
        )
    longest = 8 if case.key == USUAL else case.gamma
    return measure_costs(case.target, case.drafter, longest, case.context, repeats)


def timed(case: Case, budget: int, turns: int) -> tuple[list[float], list[float]]:
    """Seconds per token without and with drafts, of each prompt, or of each turn of a batch."""
    if case.batch > 1:
        return _timed_batch(case, budget, turns)
    plain, drafted = list[float](), list[float]()
    for number, prompt in enumerate(case.prompts):

        def decoded(drafter: Drafter | None, prompt: list[int] = prompt) -> Callable[[], Generation]:
            return lambda: generate(
                case.target, prompt, drafter=drafter, gamma=case.gamma, max_new_tokens=budget
            )

        contenders = {"plain": decoded(None), "drafted": decoded(case.drafter)}
        made = decode_in_turns(contenders, backwards=number % 2 == 1)
        plain.append(mean(map(seconds_per_token, made["plain"])))
        drafted.append(mean(map(seconds_per_token, made["drafted"])))
    return plain, drafted


def _timed_batch(case: Case, budget: int, turns: int) -> tuple[list[float], list[float]]:
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(turns):
        for drafts in (False, True) if turn % 2 == 0 else (True, False):
            made = generate_batch(
                case.target,
                case.prompts,
                drafter=case.drafter if drafts else None,
                gamma=case.gamma if drafts else None,
                max_new_tokens=budget,
                end_ids=[],
            )
            seconds[drafts].append(batch_seconds_per_token(made))
    return seconds[False], seconds[True]

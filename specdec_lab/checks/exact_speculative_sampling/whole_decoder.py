"""The check of the learner's own decoder: its exact law beside the target's, and its passes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import torch
from torch import Tensor

from specdec_lab import batch, decoding, verification
from specdec_lab.audit.decoder import DecoderAudit, audit_decoder
from specdec_lab.audit.gallery.member import PLAIN, with_draft
from specdec_lab.checks import references
from specdec_lab.checks.exact_speculative_sampling.laws import (
    MOST_PATHS,
    SECONDS_PER_PATH,
    AskedChooser,
    Failures,
    Law,
    apart,
    law_of,
    walk,
)
from specdec_lab.checks.exact_speculative_sampling.overseeing import Handed, Limited, verify_of
from specdec_lab.checks.exact_speculative_sampling.suspect_decoders import (
    DraftLength,
    Suspect,
    suspects,
)
from specdec_lab.checks.failure import CheckFailed
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.enumeration import Enumeration, Misconduct
from specdec_lab.language_model import CausalLM
from specdec_lab.randomness import Chooser
from specdec_lab.sampling import Sampling

VOCAB = 3
MOST_PASS_PATHS = 256
MOST_QUESTIONS = 300
"""To the chooser, in one run. The longest one here needs some 70."""
MOST_ODD_PATHS = 60


@dataclass(frozen=True)
class _Toy:
    """A pair of toy models, and what to ask of a decoder on it."""

    target: int
    draft: int
    prompt: tuple[int, ...]
    gamma: int
    length: int
    sampling: Sampling = PLAIN
    zeros: float = 0.0

    def process(self, logits: Tensor) -> Tensor:
        """What both models' logits go through; ``sampling`` does the same, more slowly."""
        temperature, top_p = self.sampling.temperature, self.sampling.top_p
        if top_p is None:
            return (logits / temperature).softmax(dim=-1)
        return references.processed(logits, temperature, top_p)

    def models(self, attempt: Attempt | None = None) -> tuple[Limited, Limited]:
        """Target and draft model, which have read nothing yet."""
        both = Limited(VOCAB, self.target, self.zeros), Limited(VOCAB, self.draft, self.zeros)
        for model in both:
            model.attempt = attempt
        return both


def _toys(seed: int | None) -> list[_Toy]:
    if seed is None:
        return [
            _Toy(1, 1001, (0, 1), 2, 3),
            _Toy(1, 1001, (2,), 3, 1),
            _Toy(1, 1, (1, 0), 2, 2),
            _Toy(4, 1004, (2, 0), 2, 3, Sampling(0.5), zeros=1 / VOCAB),
        ]
    random = Random(seed)
    one, other = random.randrange(10**6), random.randrange(10**6)
    prompt = tuple(random.randrange(VOCAB) for _ in range(random.randint(1, 4)))
    return [
        _Toy(one, other, prompt, 2, 3),
        _Toy(one, other, prompt, 1, 3, Sampling(1.4)),
        _Toy(one, other, prompt, 3, 2, zeros=1 / VOCAB),
        _Toy(one, other, prompt, 2, 3, Sampling(0.7, top_p=0.9)),
        _Toy(other, one, (0,), 4, 1, zeros=1 / VOCAB),
    ]


class _Yours:
    """The learner's decoder, in the form that the audit takes."""

    def __init__(self, attempt: Attempt, toy: _Toy, overseen: bool = False) -> None:
        self._attempt = attempt
        self._toy = toy
        self._overseen = overseen
        self.failures = Failures()
        self.oddity = ""

    def __call__(
        self,
        target: CausalLM,
        draft_model: CausalLM,
        prompt: Sequence[int],
        length: int,
        chooser: Chooser,
    ) -> list[int]:
        toy, asked = self._toy, AskedChooser(self._attempt, chooser, MOST_QUESTIONS)
        handed = Handed(toy.models()[0], prompt, toy.gamma, toy.process, asked)
        propose, verify = references.propose, verify_of(self._attempt)
        if self._overseen:
            propose, verify = handed.propose, handed.verify
        try:
            yours = self._attempt(
                target,
                draft_model,
                list(prompt),
                toy.gamma,
                length,
                self._process,
                asked,
                propose,
                verify,
                shown={
                    "prompt": list(prompt),
                    "gamma": toy.gamma,
                    "max_new_tokens": length,
                    "...": "toy models",
                },
            )
            return self._attempt.tokens(yours)
        except CheckFailed as failure:
            raise self.failures.note(failure, chooser) from None
        finally:
            self.oddity = self.oddity or handed.oddity

    def _process(self, logits: Tensor) -> Tensor:
        self._attempt.require(
            isinstance(logits, Tensor) and logits.ndim == 1,
            "`process` takes one row of logits, [vocab]. Go through the rows one by one.",
        )
        return self._toy.process(logits)


@check(
    read="The whole decoder",
    closed=(decoding, verification, batch),
    reference=references.speculative_sample,
)
def speculative_sample(attempt: Attempt, seed: int | None) -> None:
    """Exactly the target's law, and gamma + 1 tokens a pass where the draft is always right."""
    toys = _toys(seed)
    for toy in (toys[0], replace(toys[0], draft=toys[0].target)):
        for length in (0, 1, 5):
            _judge_budget(attempt, toy, length)
    audits: list[_Audited] = []
    wrong: _Audited | None = None
    for toy in toys:
        # Behind the first wrong one, the others are for finding out what is wrong.
        with contextlib.suppress(*([CheckFailed] if wrong else [])):
            audits.append(_audit(attempt, toy))
            wrong = wrong or (audits[-1] if audits[-1].audit.verdict != "exact" else None)
    if wrong is not None:
        _tell(attempt, wrong, audits)
    for gamma in (2, 4) if seed is None else (2, 3, 4):
        _judge_passes(attempt, gamma)


def _judge_budget(attempt: Attempt, toy: _Toy, length: int) -> None:
    """The likeliest run first: what it raises or returns is told in the learner's own terms."""
    decoder = _Yours(attempt, toy)

    def run(chooser: Chooser) -> list[int]:
        target, draft = toy.models(attempt)
        return decoder(target, draft, toy.prompt, length, chooser)

    for made in walk(attempt, run, decoder.failures, max_paths=1):
        _require_length(attempt, made, length, toy)


def _require_length(attempt: Attempt, made: Sequence[int], length: int, toy: _Toy) -> None:
    prompt = len(toy.prompt)
    if len(made) == length:
        return
    problem = f"the answer has length {len(made)}, expected max_new_tokens = {length}."
    if tuple(made[:prompt]) == toy.prompt and len(made) >= prompt + length:
        problem = "the prompt is in your answer; return the new tokens only."
        if length == 0:
            problem += " (Is it `tokens[-0:]`? That is the whole list.)"
    elif len(made) > length:
        problem += " A round may emit several tokens: look at the budget before it is exceeded."
    elif len(made) == max(0, length - prompt):
        problem += " Do you count the prompt as well?"
    attempt.fail(problem, yours=str(list(made)))


@dataclass(frozen=True)
class _Audited:
    """A toy, and the verdict on the learner's decoder there."""

    toy: _Toy
    audit: DecoderAudit


def _audit(attempt: Attempt, toy: _Toy) -> _Audited:
    """The verdict; on shorter texts if there are too many paths to walk them all."""
    decoder = _Yours(attempt, toy)
    target, draft = toy.models()
    audit = audit_decoder(
        with_draft(decoder, draft),
        target,
        toy.prompt,
        toy.length,
        sampling=toy.sampling,
        max_paths=MOST_PATHS,
        seconds_per_path=SECONDS_PER_PATH,
    )
    if audit.fault is not None:
        decoder.failures.explain(attempt, audit.fault, audit.message)
    for tokens in audit.law:
        _require_length(attempt, tokens, toy.length, toy)
    if audit.verdict != "undecided":
        return _Audited(toy, audit)
    if toy.length == 1:
        attempt.fail("your decoder asks the chooser so often that its paths cannot all be walked.")
    return _audit(attempt, replace(toy, length=toy.length - 1))


def _tell(attempt: Attempt, wrong: _Audited, audits: Sequence[_Audited]) -> None:
    """Fail, with what is wrong if it can be found out."""
    audit, problem = wrong.audit, "your decoder is not exact."
    suspect = _suspect(audits)
    if suspect is not None:
        problem += f" Its law is, digit for digit, that of a decoder which {suspect.what}."
    elif len(audit.law) == 1:
        problem += " No chance is left in it: it always emits the same. Is a likeliest token taken?"
    elif audit.reason.startswith("every output begins"):
        problem = "the prompt is in your answer; return the new tokens only."
    elif oddity := _oddity(attempt, wrong.toy):
        problem += f" Look at this: {oddity}"
    elif wrong.toy.draft == wrong.toy.target:
        problem += " (Here the draft model is equal to the target.)"
    tokens = max(audit.differences, key=lambda key: abs(audit.differences[key]))
    attempt.fail(
        problem,
        sequence=str(list(tokens)),
        yours=f"comes with probability {audit.law.get(tokens, 0.0):.6f}",
        expected=f"{audit.target.get(tokens, 0.0):.6f}",
    )


def _suspect(audits: Sequence[_Audited]) -> Suspect | None:
    """Whose law is the learner's on every toy? Short texts, which have few paths, come first."""
    short_first = sorted(audits, key=lambda one: one.toy.length)
    for suspect, draft_length in suspects():
        if all(_does_the_same(suspect, draft_length, one) for one in short_first):
            return suspect
    return None


def _does_the_same(suspect: Suspect, draft_length: DraftLength, one: _Audited) -> bool:
    law = _law(suspect, draft_length, one.toy)
    return law is not None and not apart(one.audit.law, law)


def _oddity(attempt: Attempt, toy: _Toy) -> str:
    """The first odd thing on the likeliest paths, if it uses what it is handed."""
    decoder = _Yours(attempt, toy, overseen=True)

    def run(chooser: Chooser) -> None:
        decoder(*toy.models(attempt), toy.prompt, toy.length, chooser)

    with contextlib.suppress(CheckFailed, Misconduct):
        for _ in Enumeration(run, max_paths=MOST_ODD_PATHS):
            if decoder.oddity:
                break
    return decoder.oddity


@cache
def _law(suspect: Suspect, draft_length: DraftLength, toy: _Toy) -> Law | None:
    """Kept, because whoever mends a decoder runs the check again; None if it cannot decode this toy."""
    target, draft = toy.models()

    def run(chooser: Chooser) -> tuple[int, ...]:
        target.reset()
        draft.reset()
        return suspect.decode(
            target, draft, toy.prompt, toy.gamma, toy.length, toy.process, chooser, draft_length
        )

    try:
        return law_of(run, max_paths=MOST_PATHS)
    except (ArithmeticError, ValueError, Misconduct):
        return None


def _judge_passes(attempt: Attempt, gamma: int) -> None:
    """On models that are certain of the next token, and agree.

    Who decides by chance how long a draft is may do so: the best of the paths counts.
    """
    length = (gamma + 1) * (gamma + 2)  # a round more than with drafts of gamma + 1
    toy = _Toy(7, 7, (1, 2), gamma, length, zeros=(VOCAB - 1) / VOCAB)
    truth = references.speculative_sample(
        *toy.models(), toy.prompt, gamma, length, toy.process, _Certain()
    )
    wanted, fewest, drafted = length // (gamma + 1), length + 10**6, 0
    decoder = _Yours(attempt, toy)

    def run(chooser: Chooser) -> tuple[int, int]:
        target, draft = toy.models(attempt)
        attempt.same_tokens(decoder(target, draft, toy.prompt, length, chooser), truth)
        return target.passes, draft.passes

    for passes in walk(attempt, run, decoder.failures, MOST_PASS_PATHS):
        if passes[0] < fewest:
            fewest, drafted = passes
        if fewest <= wanted:
            break
    if fewest == wanted:
        return
    oddity = _oddity(attempt, toy)
    attempt.fail(
        _why_so_many(fewest, drafted, gamma, length) + (oddity and f" Look at this: {oddity}"),
        yours=f"{fewest} passes",
        expected=f"{wanted} for {length} tokens",
    )


def _why_so_many(passes: int, drafted: int, gamma: int, length: int) -> str:
    wanted = length // (gamma + 1)
    problem = (
        "the draft model is equal to the target here and sure of itself, so each pass should yield "
        f"gamma + 1 = {gamma + 1} tokens."
    )
    if passes < wanted:
        return f"with so few passes of the target, somebody drafts more than gamma = {gamma} tokens."
    if not drafted:
        return (
            "the draft model was never asked. Without drafts (or with the target's own) the result is "
            "exact, but there is a pass of the target for every token."
        )
    if passes >= length:
        return (
            "the target makes a pass for every token, as in plain decoding. The whole draft is read in "
            "*one* pass."
        )
    if passes == wanted + 1:
        return f"{problem} There is one pass too many. Does the prompt have one of its own?"
    if passes == -(-length // gamma):
        return (
            f"{problem} It is as if each yielded only {gamma}. Is the bonus token missing, or is a "
            "draft one token too short?"
        )
    if passes == 2 * wanted:
        return f"{problem} There are two passes of the target in each round; one is enough."
    return problem


class _Certain(Chooser):
    """Answers where there is only one answer."""

    def accept(self, probability: float) -> bool:
        return probability > 0.5

    def sample(self, distribution: Tensor) -> int:
        return int(torch.argmax(distribution))


@check(read="Which is the furthest off?")
def predicted_worst(attempt: Attempt, seed: int | None) -> None:
    """Any of the three: the point is for having predicted."""
    answer = attempt.value
    attempt.require(
        isinstance(answer, str) and answer.strip().lower() in ("a", "b", "c"),
        'expected one of "a", "b" and "c".',
        yours=f"{answer!r:.60}",
    )

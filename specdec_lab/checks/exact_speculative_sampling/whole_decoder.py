"""The check of the learner's own decoder: its exact law beside the target's, and its passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from torch import Tensor

from specdec_lab import batch, decoding, verification
from specdec_lab.audit.decoder import DecoderAudit, audit_decoder
from specdec_lab.audit.gallery import GALLERY
from specdec_lab.audit.gallery.member import PLAIN, with_draft
from specdec_lab.checks import references
from specdec_lab.checks.failure import CheckFailed
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.enumeration import EnumeratingChooser, Misconduct
from specdec_lab.language_model import CausalLM, RandomLM
from specdec_lab.randomness import Chooser, SeededChooser
from specdec_lab.sampling import Sampling

SAME_LAW = 1e-9
"""Total variation up to which two wrong decoders are taken to be wrong in the same way."""
VOCAB = 3


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
        """What both models' logits go through."""
        return self.sampling.distribution([], logits)


def _toys(seed: int | None) -> list[_Toy]:
    if seed is None:
        return [
            _Toy(1, 1001, (0, 1), 2, 3),
            _Toy(1, 1001, (2,), 3, 1),
            _Toy(1, 1, (1, 0), 2, 2),
        ]
    random = Random(seed)
    one, other = random.randrange(10**6), random.randrange(10**6)
    prompt = tuple(random.randrange(VOCAB) for _ in range(random.randint(1, 4)))
    return [
        _Toy(one, other, prompt, 1, 3),
        _Toy(one, other, prompt, 2, 3, zeros=1 / VOCAB),
        _Toy(one, other, prompt, 3, 3, Sampling(0.7, top_p=0.9)),
        _Toy(other, one, (0,), 4, 2),
    ]


class _Yours:
    """The learner's decoder, in the form that the audit takes."""

    def __init__(self, attempt: Attempt, toy: _Toy) -> None:
        self._attempt = attempt
        self._toy = toy
        self.failure: CheckFailed | None = None

    def __call__(
        self,
        target: CausalLM,
        draft_model: CausalLM,
        prompt: Sequence[int],
        length: int,
        chooser: Chooser,
    ) -> list[int]:
        try:
            yours = self._attempt(
                target,
                draft_model,
                list(prompt),
                self._toy.gamma,
                length,
                self._toy.process,
                chooser,
                references.propose,
                references.exact_verify,
                shown={
                    "prompt": list(prompt),
                    "gamma": self._toy.gamma,
                    "max_new_tokens": length,
                    "...": "toy models",
                },
            )
            return self._attempt.tokens(yours)
        except CheckFailed as failure:
            # An auditor's chooser ends hopeless paths by an exception of its own, which is no failure.
            raised = chooser.raised if isinstance(chooser, EnumeratingChooser) else None
            if raised is None or isinstance(raised, Misconduct):
                self.failure = self.failure or failure
            raise


@check(
    read="The whole decoder",
    closed=(decoding, verification, batch),
    reference=references.speculative_sample,
)
def speculative_sample(attempt: Attempt, seed: int | None) -> None:
    """Exactly the target's law, and gamma + 1 tokens a pass where the draft is always right."""
    _judge_budget(attempt, _toys(seed)[0])
    for toy in _toys(seed):
        _judge_law(attempt, toy)
    for gamma, length in ((2, 9), (4, 10)) if seed is None else ((1, 8), (3, 8), (5, 12)):
        _judge_passes(attempt, gamma, length)


def _judge_budget(attempt: Attempt, toy: _Toy) -> None:
    """Plain runs first: what they raise or return is told in the learner's own terms."""
    for length in (0, 1, 5):
        decoder = _Yours(attempt, toy)
        target, draft = RandomLM(VOCAB, toy.target), RandomLM(VOCAB, toy.draft)
        made = decoder(target, draft, toy.prompt, length, SeededChooser(length))
        problem = f"{len(made)} tokens came out, expected max_new_tokens = {length}."
        if made[: len(toy.prompt)] == list(toy.prompt) and len(made) >= len(toy.prompt) + length:
            problem = "the prompt is in your answer; return the new tokens only."
        elif len(made) > length:
            problem += " A round may emit several: look at the budget before it is exceeded."
        attempt.require(len(made) == length, problem, yours=str(made))


def _judge_law(attempt: Attempt, toy: _Toy) -> None:
    decoder = _Yours(attempt, toy)
    audit = _audit(decoder, toy)
    if decoder.failure is not None:
        raise decoder.failure
    if audit.verdict == "exact":
        return
    if audit.verdict == "undecided":
        attempt.fail("your decoder asks the chooser so often that its paths cannot all be walked.")
    if audit.fault:
        attempt.fail(f"{audit.reason}.")
    tokens = max(audit.differences, key=lambda key: abs(audit.differences[key]))
    problem = "your decoder is not exact."
    known = _known_rogue(audit, toy)
    if known:
        problem += f" Its law is, digit for digit, that of a decoder which {known}."
    elif toy.draft == toy.target:
        problem += " (Here the draft model is equal to the target.)"
    attempt.fail(
        problem,
        sequence=str(list(tokens)),
        yours=f"comes with probability {audit.law.get(tokens, 0.0):.6f}",
        expected=f"{audit.target.get(tokens, 0.0):.6f}",
    )


def _audit(decoder: _Yours, toy: _Toy) -> DecoderAudit:
    return audit_decoder(
        with_draft(decoder, RandomLM(VOCAB, toy.draft, toy.zeros)),
        RandomLM(VOCAB, toy.target, toy.zeros),
        toy.prompt,
        toy.length,
        sampling=toy.sampling,
    )


def _known_rogue(audit: DecoderAudit, toy: _Toy) -> str | None:
    """What the decoder of the gallery does that is wrong in the same way, if there is one."""
    for member in GALLERY:
        if member.expected != "not exact" or member.sampling != toy.sampling or member.end_ids:
            continue
        rogue = audit_decoder(
            with_draft(member.decoder, RandomLM(VOCAB, toy.draft, toy.zeros)),
            RandomLM(VOCAB, toy.target, toy.zeros),
            toy.prompt,
            toy.length,
            max_paths=1000,
        )
        if rogue.fault:
            continue
        every = rogue.law | audit.law
        if sum(abs(rogue.law.get(key, 0.0) - audit.law.get(key, 0.0)) for key in every) < SAME_LAW:
            return member.what
    return None


class _Counted(RandomLM):
    """A toy target that counts its passes."""

    passes = 0

    def extend(self, tokens: Sequence[int], rows: int | None = None) -> Tensor:
        self.passes += 1
        return super().extend(tokens, rows)


def _judge_passes(attempt: Attempt, gamma: int, length: int) -> None:
    """On models that are certain of the next token, and agree."""
    toy = _Toy(7, 7, (1, 2), gamma, length, zeros=(VOCAB - 1) / VOCAB)
    target, draft = _Counted(VOCAB, 7, toy.zeros), RandomLM(VOCAB, 7, toy.zeros)
    made = _Yours(attempt, toy)(target, draft, toy.prompt, length, SeededChooser(0))
    truth = references.speculative_sample(
        RandomLM(VOCAB, 7, toy.zeros),
        RandomLM(VOCAB, 7, toy.zeros),
        toy.prompt,
        gamma,
        length,
        toy.process,
        SeededChooser(0),
    )
    attempt.same_tokens(made, truth)
    wanted = -(-length // (gamma + 1))
    if target.passes == wanted:
        return
    problem = (
        "the draft model is equal to the target here and sure of itself, so each pass should yield "
        f"gamma + 1 = {gamma + 1} tokens."
    )
    if target.passes >= length:
        problem = (
            "the target makes a pass for every token, as in plain decoding. The whole draft is read in "
            "*one* pass."
        )
    elif target.passes == wanted + 1:
        problem += " There is one pass too many. Does the prompt have one of its own?"
    elif target.passes < wanted:
        problem = f"with so few passes of the target, somebody drafts more than gamma = {gamma} tokens."
    attempt.fail(problem, yours=f"{target.passes} passes", expected=f"{wanted} for {length} tokens")


@check(read="Which is the furthest off?")
def predicted_worst(attempt: Attempt, seed: int | None) -> None:
    """Any of the three: the point is for having predicted."""
    answer = attempt.value
    attempt.require(
        isinstance(answer, str) and answer.strip().lower() in ("a", "b", "c"),
        'expected one of "a", "b" and "c".',
        yours=f"{answer!r:.60}",
    )

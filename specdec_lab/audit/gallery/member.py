"""The gallery's frame: what a member is, and the small parts that members are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from specdec_lab.audit.decoder import Verdict
from specdec_lab.audit.law import Decoder
from specdec_lab.decoding import speculative
from specdec_lab.distributions import acceptance_probability, residual
from specdec_lab.drafters import Drafter, ModelDrafter
from specdec_lab.language_model import CausalLM
from specdec_lab.randomness import Chooser
from specdec_lab.records import Draft, Position
from specdec_lab.sampling import Sampling, TargetRows
from specdec_lab.stopping import StopRule
from specdec_lab.verification import Verdict as RoundVerdict
from specdec_lab.verification import Verifier, verify_by_sampling

DraftedDecoder = Callable[[CausalLM, CausalLM, Sequence[int], int, Chooser], Sequence[int]]
"""(target, draft model, prompt, max_new_tokens, chooser) -> the new tokens; both models come reset."""

PLAIN = Sampling(1.0)
GAMMA = 2
END = 2
"""The end token of the members that mind one."""


@dataclass(frozen=True)
class Member:
    """A decoder of the gallery.

    Args:
        name: a few words.
        what: what is wrong with it, or unusual about it, in one line.
        decoder: the decoder itself.
        expected: the verdict that it deserves.
        sampling: how it is meant to sample.
        end_ids: where it is meant to end.
    """

    name: str
    what: str
    decoder: DraftedDecoder
    expected: Verdict
    sampling: Sampling = PLAIN
    end_ids: tuple[int, ...] = ()

    @property
    def honest(self) -> bool:
        """True if its output has exactly the target's law."""
        return self.expected == "exact"


def with_draft(decoder: DraftedDecoder, draft: CausalLM) -> Decoder:
    """The decoder with its draft model given, reset before each run."""

    def decode(target: CausalLM, prompt: Sequence[int], length: int, chooser: Chooser) -> Sequence[int]:
        draft.reset()
        return decoder(target, draft, prompt, length, chooser)

    return decode


def loop(
    *,
    make_drafter: Callable[[CausalLM], Drafter] = ModelDrafter,
    verifier: Verifier = verify_by_sampling,
    sampling: Sampling = PLAIN,
    end_ids: Sequence[int] = (),
    gamma: int = GAMMA,
) -> DraftedDecoder:
    """The library's own loop with another drafter, verifier or sampling put into it."""

    def decode(
        target: CausalLM, draft: CausalLM, prompt: Sequence[int], length: int, chooser: Chooser
    ) -> list[int]:
        rounds = speculative(
            target,
            make_drafter(draft),
            prompt,
            max_new_tokens=length,
            gamma=gamma,
            sampling=sampling,
            chooser=chooser,
            stop=StopRule(end_ids),
            verifier=verifier,
        )
        return [token for one in rounds for token in one.tokens]

    return decode


Acceptance = Callable[[TargetRows, Draft, int], float]
"""(p, draft, i) -> the chance to keep the i-th drafted token."""
Replacement = Callable[[TargetRows, Draft, int], Tensor]
"""(p, draft, i) -> what follows when the i-th was rejected, ``[vocab]``."""
Bonus = Callable[[TargetRows, Draft], Tensor]
"""(p, draft) -> what follows a draft kept whole, ``[vocab]``."""


def exact_acceptance(p: TargetRows, draft: Draft, i: int) -> float:
    """min(1, p(x) / q(x))."""
    token = draft.tokens[i]
    return acceptance_probability(float(p[i][token]), float(draft.q[i][token]))


def exact_replacement(p: TargetRows, draft: Draft, i: int) -> Tensor:
    """max(0, p - q), normalised."""
    return residual(p[i], draft.q[i])


def exact_bonus(p: TargetRows, draft: Draft) -> Tensor:
    """The target's last row."""
    return p[len(draft)]


def judged_by(
    acceptance: Acceptance = exact_acceptance,
    replacement: Replacement = exact_replacement,
    bonus: Bonus = exact_bonus,
) -> Verifier:
    """A verifier put together from its three rules; with the defaults it is the exact one."""

    def verify(p: TargetRows, draft: Draft, chooser: Chooser, trace: bool = False) -> RoundVerdict:
        for i in range(len(draft)):
            if not chooser.accept(acceptance(p, draft, i)):
                return kept(draft, i, chooser.sample(replacement(p, draft, i)))
        return kept(draft, len(draft), chooser.sample(bonus(p, draft)))

    return verify


def kept(draft: Draft, count: int, closing: int) -> RoundVerdict:
    """The verdict that keeps the first ``count`` drafted tokens, and then emits ``closing``."""
    return emitted(draft.tokens[:count], closing)


def emitted(tokens: Sequence[int], closing: int) -> RoundVerdict:
    """The verdict that emits ``tokens``, and then ``closing``."""
    positions = tuple(Position(token, q=1.0, accepted=True) for token in tokens)
    return RoundVerdict(positions, closing, "replacement")

"""The check of drawing a draft: the q of each token, and the law of all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from specdec_lab import drafters
from specdec_lab.checks import references
from specdec_lab.checks.exact_speculative_sampling.laws import AskedChooser, apart, law_of, law_of_yours
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.language_model import RandomLM

VOCAB = 3


@check(
    read="Draw a draft",
    closed=(drafters.ModelDrafter, drafters.LayerSkipDrafter),
    reference=references.propose,
)
def propose(attempt: Attempt, seed: int | None) -> None:
    """The q of every token, and the law of the draft, whatever stands in the cache."""
    random = Random(5 if seed is None else seed)
    tokens = [random.randrange(VOCAB) for _ in range(3)]
    # What is in the draft model's cache: nothing; part of the text; a rejected draft; another text.
    nothing, part, rejected = list[int](), tokens[:2], [*tokens, 1, 0]
    another = [(tokens[0] + 1) % VOCAB, 1, 0, 2]
    plan: list[tuple[list[int], int, float]] = [
        (nothing, 2, 1.0),
        (rejected, 2, 1.0),
        (nothing, 0, 1.0),
        (another, 1, 0.5),
        (part, 3, 0.8),
    ]
    if seed is not None:
        caches = [nothing, part, rejected, another]
        plan = [(cache, gamma, 0.7) for cache in caches for gamma in (1, 2)] + [(part, 3, 1.4)]
        plan.append((rejected, 0, 1.0))
    for cache, gamma, temperature in plan:
        _Trial(attempt, random.randrange(10**6), tokens, cache, gamma, temperature).judge()


class _Model(RandomLM):
    """A toy draft model, with a name for failures."""

    shown = "<draft model>"


@dataclass(frozen=True)
class _Trial:
    """One text, and what stands in the draft model's cache."""

    attempt: Attempt
    model_seed: int
    tokens: list[int]
    cache: list[int]
    gamma: int
    temperature: float

    def judge(self) -> None:
        """Fail if a q is wrong, or the tokens are not drawn from it."""
        # One question for each drafted token is enough.
        law = law_of_yours(self.attempt, self._draft, most_questions=40)
        truth = law_of(
            lambda chooser: tuple(
                references.propose(
                    RandomLM(VOCAB, self.model_seed), self.tokens, self.gamma, self._process, chooser
                )[0]
            )
        )
        far = apart(law, truth)
        if far:
            draft = next(iter(far))
            self.attempt.fail(
                "the likeliest token is taken, and q says that it was drawn. Draw it: "
                "`chooser.sample(q)`."
                if len(law) == 1
                else "the tokens are not drawn from the q that is handed over.",
                draft=str(list(draft)),
                yours=f"comes with probability {law.get(draft, 0.0):.4f}",
                expected=f"{truth.get(draft, 0.0):.4f}",
            )

    def _process(self, logits: Tensor) -> Tensor:
        self.attempt.require(
            isinstance(logits, Tensor) and logits.ndim == 1,
            "`process` takes one row of logits, [vocab]: that of the last token that was read.",
        )
        return (logits / self.temperature).softmax(-1)

    def _row_behind(self, text: Sequence[int]) -> Tensor:
        return RandomLM(VOCAB, self.model_seed).extend(text, rows=1)[0]

    def _q_behind(self, text: Sequence[int]) -> Tensor:
        return self._process(self._row_behind(text))

    def _draft(self, chooser: AskedChooser) -> tuple[int, ...]:
        """What the learner's code drafts, if its form and its q are right."""
        attempt, tokens, gamma = self.attempt, self.tokens, self.gamma
        model = _Model(VOCAB, self.model_seed)
        if self.cache:
            model.extend(self.cache)
        yours = attempt(
            model,
            list(tokens),
            gamma,
            self._process,
            chooser,
            shown={
                "model": f"<draft model, cache {self.cache}>",
                "tokens": tokens,
                "gamma": gamma,
                "process": "...",
                "chooser": "...",
            },
        )
        if not isinstance(yours, tuple | list) or len(yours) != 2:
            attempt.fail("expected two things: the drafted tokens, and their distributions q.")
        attempt.require(
            not all(
                isinstance(one, tuple | list) and [*map(_is_row, one)] == [False, True] for one in yours
            ),
            "those are pairs, a token with its q. Expected two lists: the tokens, and their q.",
        )
        attempt.require(
            not isinstance(yours[0], int),
            "expected two things: the *list* of the drafted tokens, and the list of their q.",
        )
        attempt.require(
            not isinstance(yours[0], list | tuple) or not any(_is_row(token) for token in yours[0]),
            "the two are in the wrong order: first the drafted tokens, then their q.",
        )
        draft = attempt.tokens(yours[0])
        if draft[: len(tokens)] == tokens and len(draft) == len(tokens) + gamma:
            attempt.fail("the text is in the draft; give the new tokens only.", yours=str(draft))
        attempt.require(
            len(draft) == gamma,
            f"the draft has length {len(draft)}, expected gamma = {gamma}.",
            yours=str(draft),
        )
        attempt.require(
            hasattr(yours[1], "__len__") and len(yours[1]) == gamma,
            f"expected one distribution q for each drafted token, {gamma} in all.",
        )
        for place, q in enumerate(yours[1]):
            self._judge_q(q, draft, place)
        return tuple(draft)

    def _judge_q(self, q: object, draft: list[int], place: int) -> None:
        before = [*self.tokens, *draft[:place]]
        logits = self._row_behind(before)
        if isinstance(q, int | float) or (isinstance(q, Tensor) and q.ndim == 0):
            self.attempt.fail(
                "that is one token's q. The residual will need the whole distribution, [vocab]."
            )
        if isinstance(q, Tensor):
            self.attempt.require(
                q.dtype in (torch.float32, torch.float64),
                f"q is {str(q.dtype).removeprefix('torch.')}, expected float32 or float64.",
            )
        expected = self._process(logits)
        if not torch.allclose(self.attempt.row(q, VOCAB), expected, atol=1e-5):
            self.attempt.same_distribution(
                q,
                expected,
                f"the q of drafted token {place} is not what the model says behind {before}. What "
                "stands in its cache?",
                suspects=self._suspects(before, draft[place], place),
            )

    def _suspects(self, before: list[int], drafted: int, place: int) -> dict[str, Tensor]:
        """What is wrong, and the q that it gives."""
        logits = self._row_behind(before)
        suspects = {
            "those are logits; `process` makes a distribution of them.": logits,
            "the temperature is missing: `process` makes the distribution.": logits.softmax(-1),
            "`process` is applied twice.": self._process(self._process(logits)),
            "that is the first token's q. Each has its own, behind those before it.": (
                self._q_behind(self.tokens)
            ),
            "all of the probability is on one token. The token is drawn, from all of them.": (
                logits == logits.max()
            ).double(),
            "that is q one token too late: what the model says *behind* the drafted token. It was "
            "drawn from the row before.": self._q_behind([*before, drafted]),
        }
        if place:
            suspects |= {
                "that is q one token further back. Read the drafted token before you ask for the "
                "next.": (self._q_behind(before[:-1]))
            }
        suspects |= {
            f"that is what the model says behind {before[:end]}. Take the *last* row, "
            "`model.extend(...)[-1]`, and read all of the text.": self._q_behind(before[:end])
            for end in range(1, len(before))
        }
        suspects |= {
            f"that is what the model says behind {stale}. There are tokens in its cache that the text "
            "does not have; `rewind_to_match` forgets them.": self._q_behind(stale)
            for stale in self._stale(before)
        }
        return suspects

    def _stale(self, before: list[int]) -> list[list[int]]:
        """What may have been read by somebody who does not forget."""
        drafted = before[len(self.tokens) :]
        kept = [[*self.cache, *before[start:]] for start in range(len(self.tokens))]
        kept += [[*self.cache[:end], *before[end:]] for end in range(1, len(self.tokens))]
        read = [*kept, [*before, *before], [*self.tokens, *before], [*self.cache, *drafted]]
        return [text for text in read if text and text != before]


def _is_row(thing: object) -> bool:
    return isinstance(thing, Tensor) and thing.ndim > 0

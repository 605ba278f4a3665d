"""What a learner's decoder is handed, and what it does with it that looks odd.

An oddity alone is no fault: a decoder may go its own ways and be exact. It is looked for only when the
law has turned out to be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from specdec_lab.checks import references
from specdec_lab.checks.exact_speculative_sampling.laws import AskedChooser
from specdec_lab.checks.harness import Attempt
from specdec_lab.language_model import CausalLM, RandomLM
from specdec_lab.randomness import Chooser

MOST_PASSES = 1500
ROWS_OF_P = "one in front of each drafted token, and one behind the last"


class Limited(RandomLM):
    """A toy model that counts its passes, and loses patience."""

    attempt: Attempt | None = None
    passes = 0
    shown = "<toy model>"

    def extend(self, tokens: Sequence[int], rows: int | None = None) -> Tensor:
        if len(tokens) == 0:
            raise ValueError(
                f"the model is given nothing to read; it has read {self.length} tokens already. Are "
                "there any in its cache that were rejected? `rewind_to_match` forgets them"
            )
        self.passes += 1
        if self.attempt is not None:
            self.attempt.require(
                self.passes <= MOST_PASSES,
                f"a model has made {MOST_PASSES} passes, and there is no end in sight. A loop that "
                "never ends? Each round has to add a token at least.",
            )
        return super().extend(tokens, rows)


def verify_of(attempt: Attempt) -> references.ExactVerify:
    """The reference's verdict, on as many rows as it needs."""

    def verify(
        draft: Sequence[int],
        q: Sequence[Tensor],
        p: Sequence[Tensor],
        chooser: Chooser,
        *rules: Any,
        **named_rules: Any,
    ) -> tuple[int, int]:
        drafted, given = len(draft), (len(q), len(p))
        attempt.require(
            given != (drafted + 1, drafted),
            "`verify` was handed p for q and q for p: `verify(draft, q, p, chooser)`.",
        )
        attempt.require(
            given[0] >= drafted and given[1] > drafted,
            f"`verify` was handed {given[0]} rows of q and {given[1]} of p for a draft of {drafted}. "
            f"Expected {drafted} of q, and {drafted + 1} of p: {ROWS_OF_P}.",
        )
        return references.exact_verify(draft, q, p, chooser, *rules, **named_rules)

    return verify


class Handed:
    """``propose`` and ``verify`` for one run, with an eye on how they are used.

    Args:
        target: a model with the same rows as the run's target.
        prompt, gamma, process: the run's.
        chooser: knows what was drawn from what.
    """

    def __init__(
        self,
        target: RandomLM,
        prompt: Sequence[int],
        gamma: int,
        process: references.Process,
        chooser: AskedChooser,
    ) -> None:
        self._target = target
        self._prompt = list(prompt)
        self._gamma = gamma
        self._process = process
        self._chooser = chooser
        self._text: list[int] | None = None
        self._expected: list[int] | None = None
        self._round = ""
        self.oddity = ""
        """The first thing that looked odd."""

    def propose(
        self,
        model: CausalLM,
        tokens: Sequence[int],
        gamma: int,
        process: references.Process,
        chooser: Chooser,
    ) -> tuple[list[int], list[Tensor]]:
        """The reference's draft."""
        text = [int(token) for token in tokens]
        if text[: len(self._prompt)] != self._prompt:
            self._note(f"`propose` wants the whole text, the prompt included, and was shown {text}.")
        elif self._expected is not None and text != self._expected:
            self._note(f"{self._round}, so the text is {self._expected} then; yours is {text}.")
        if gamma > self._gamma:
            self._note(f"`propose` was asked for {gamma} tokens; gamma is {self._gamma}.")
        self._text, self._expected = text, None
        return references.propose(model, tokens, gamma, process, chooser)

    def verify(
        self,
        draft: Sequence[int],
        q: Sequence[Tensor],
        p: Sequence[Tensor],
        chooser: Chooser,
        *rules: Any,
        **named_rules: Any,
    ) -> tuple[int, int]:
        """The reference's verdict."""
        drafted = [int(token) for token in draft]
        self._look_at_q(drafted, q)
        self._look_at_p(drafted, p)
        accepted, following = references.exact_verify(draft, q, p, chooser, *rules, **named_rules)
        if self._text is not None:
            self._expected = [*self._text, *drafted[:accepted], following]
            self._round = (
                f"behind {self._text}, `verify` gave ({accepted}, {following}) for the draft {drafted}"
            )
        return accepted, following

    def _note(self, oddity: str) -> None:
        self.oddity = self.oddity or oddity

    def _look_at_q(self, draft: list[int], q: Sequence[Tensor]) -> None:
        if len(q) != len(draft):
            self._note(f"`verify` was handed {len(q)} rows of q for {len(draft)} drafted tokens.")
            return
        for i, (token, row) in enumerate(zip(draft, q, strict=True)):
            drawn = (mine for mine, drawn in self._chooser.drawn if drawn == token)
            if not any(_same(mine, row) for mine in drawn):
                self._note(f"q[{i}] is not a distribution that a {token} was drawn from.")

    def _look_at_p(self, draft: list[int], p: Sequence[Tensor]) -> None:
        if len(p) != len(draft) + 1:
            self._note(
                f"`verify` was handed {len(p)} rows of p for a draft of {len(draft)}, expected "
                f"{len(draft) + 1}: {ROWS_OF_P}."
            )
        if self._text is None:
            return
        for i, row in enumerate(p[: len(draft) + 1]):
            text = [*self._text, *draft[:i]]
            logits = self._row_behind(text)
            if _same(row, self._process(logits)):
                continue
            if _same(row, logits):
                self._note(f"p[{i}] are logits; `process` makes a distribution of them.")
            elif _same(row, logits.softmax(-1)):
                self._note(f"p[{i}] is without the temperature; put the row through `process`.")
            else:
                self._note(
                    f"p[{i}] is not what the target says behind {text}. Which row is it, and what "
                    "stood in the cache?"
                )

    def _row_behind(self, text: Sequence[int]) -> Tensor:
        self._target.reset()
        return self._target.extend(text, rows=1)[0]


def _same(one: object, other: Tensor) -> bool:
    return (
        isinstance(one, Tensor)
        and one.shape == other.shape
        and torch.allclose(one.double(), other.double(), atol=1e-6)
    )

"""Toy models and fake devices that remember what a learner's code did with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from torch import Tensor

from specdec_lab.language_model import TableLM


class SpyLM(TableLM):
    """A random exact model that notes each forward pass and each rewind."""

    shown = "<toy model>"

    @classmethod
    def make(cls, seed: int, vocab: int = 6, order: int = 2) -> SpyLM:
        """Next-token probabilities that depend on the last ``order`` tokens."""
        model = cls.random(vocab, order, seed)
        assert isinstance(model, SpyLM)
        model.reads = []
        model.behind = []
        model.rewinds = []
        return model

    reads: list[list[int]]
    behind: list[int]
    """How much the cache held when each pass began."""
    rewinds: list[int]

    def extend(self, tokens: Sequence[int], rows: int | None = None) -> Tensor:
        self.reads.append([int(token) for token in tokens])
        self.behind.append(self.length)
        return super().extend(self.reads[-1], rows)

    def rewind(self, length: int) -> None:
        self.rewinds.append(length)
        super().rewind(length)

    def forward(self, tokens: Sequence[int]) -> Tensor:
        """Logits ``[n, vocab]`` of a text read from its start, without the cache."""
        self.reads.append([int(token) for token in tokens])
        self.behind.append(0)
        self.tokens.clear()
        rows = TableLM.extend(self, self.reads[-1])
        self.tokens.clear()
        return rows

    @property
    def read_in_all(self) -> int:
        """Tokens read, over all forward passes."""
        return sum(map(len, self.reads))


def greedy(
    model: TableLM, prompt: Sequence[int], max_new_tokens: int, end_tokens: Iterable[int] = ()
) -> list[int]:
    """Greedy decoding in its plainest form, without a trace in the model's cache or notes.

    Toy drafters call it while the library's own decoding is closed to the learner's code.
    """
    plain = TableLM.__new__(TableLM)
    plain.__dict__ |= model.__dict__ | {"tokens": []}
    tokens, ends = list(prompt), set(end_tokens)
    while len(tokens) < len(prompt) + max_new_tokens:
        plain.tokens = tokens[:-1]
        tokens.append(int(plain.extend(tokens[-1:])[-1].argmax()))
        if tokens[-1] in ends:
            break
    return tokens[len(prompt) :]


def random_tokens(random: Random, length: int, vocab: int = 6) -> list[int]:
    """Token ids, all equally likely."""
    return [random.randrange(vocab) for _ in range(length)]


def draft_for(model: SpyLM, text: list[int], right: int, length: int) -> list[int]:
    """A draft whose first ``right`` tokens are the target's own, and whose next is not."""
    draft: list[int] = []
    while len(draft) < length:
        (choice,) = greedy(model, text + draft, 1)
        draft.append(choice if len(draft) != right else (choice + 1) % model.vocab_size)
    return draft


class FakeDevice:
    """A device that works behind the program's back, as a GPU does, with a clock of its own.

    Args:
        durations: seconds of work that each call of ``run`` asks for.
        launch: seconds that asking takes.
    """

    def __init__(self, durations: Sequence[float], launch: float = 1e-4) -> None:
        self.durations = list(durations)
        self.launch = launch
        self.calls = 0
        self.readings = 0
        self.now = 100.0
        self._busy_until = 0.0

    def run(self) -> None:
        """Ask for the next piece of work and return at once."""
        seconds = self.durations[min(self.calls, len(self.durations) - 1)]
        self.calls += 1
        self.now += self.launch
        self._busy_until = max(self._busy_until, self.now) + seconds

    def clock(self) -> float:
        """The time in seconds."""
        self.readings += 1
        return self.now

    def synchronize(self) -> None:
        """Wait for the work to be finished."""
        self.now = max(self.now, self._busy_until)


class ScriptedProposals:
    """A drafter that follows a script and notes what it was asked."""

    def __init__(self, propose: Callable[[list[int], int], list[int]]) -> None:
        self._propose = propose
        self.asked: list[tuple[list[int], int]] = []

    @property
    def shown(self) -> str:
        """How a failure names it."""
        return "<a drafter>"

    def __call__(self, tokens: Sequence[int], gamma: int) -> list[int]:
        self.asked.append((list(tokens), gamma))
        return self._propose(list(tokens), gamma)

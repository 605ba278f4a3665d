"""Who proposes: drafters. They differ in how they come by tokens, and in nothing else.

Whatever a drafter does, the output keeps the target's distribution, provided that the q it returns
is the distribution its tokens were *really* drawn from: after temperature, top-k and top-p, and
one-hot for a drafter that makes no random choice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from specdec_lab.language_model import CausalLM, HFCausalLM
from specdec_lab.randomness import Chooser
from specdec_lab.records import Draft
from specdec_lab.sampling import Sampling


class Drafter(ABC):
    """Proposes tokens.

    Args:
        vocab_size: width of q; the target's.

    A whole drafter, which always says the same:

        class Parrot(Drafter):
            def propose(self, prefix, gamma, chooser):
                return self.certain_draft([42] * gamma)
    """

    name = "drafter"
    default_gamma = 4
    """The draft length to use when none is asked for."""
    simulated = False
    """True for a drafter whose proposals are scripted; everything shown of it says so."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def begin(self, sampling: Sampling) -> None:
        """A new generation starts, with this sampling: forget the last one."""

    @abstractmethod
    def propose(self, prefix: Sequence[int], gamma: int, chooser: Chooser) -> Draft:
        """At most ``gamma`` tokens to follow ``prefix``, with the q ``[n, vocab]`` of each.

        Fewer, or none, if the drafter has nothing to propose; more is an error. ``gamma`` may be 0,
        and near the end of the budget it is less than the draft length that was asked for. Random
        choices are ``chooser``'s alone. q may lie on any device.
        """

    def certain_draft(self, tokens: list[int]) -> Draft:
        """A draft of ``tokens`` that involved no random choice: each row of q is one-hot."""
        q = torch.zeros(len(tokens), self.vocab_size)
        if tokens:
            q.scatter_(1, torch.tensor(tokens)[:, None], 1.0)
        return Draft(tokens, q)


class ModelDrafter(Drafter):
    """A smaller language model over the same vocabulary.

    Args:
        model: the draft model; it needs its own cache.
        sampling: how it draws; None takes over the target's, which agrees with it the most.
        unsure: the draft ends with the token at which the product of q's largest entries, so far, falls
            below this; 0 drafts as many as it is asked for. It depends on what stands before and on q,
            never on what p says, so the output keeps the target's distribution.

    Raises:
        ValueError: if ``unsure`` is not between 0 and 1.
    """

    name = "model"
    default_gamma = 2
    """Short: best, or nearly, for the embedded pair in bfloat16, and in float32 on a CPU verifying five
    tokens is dear. For a draft that agrees with its target more often, ask for more."""

    def __init__(self, model: CausalLM, sampling: Sampling | None = None, unsure: float = 0.0) -> None:
        super().__init__(model.vocab_size)
        if not 0.0 <= unsure <= 1.0:
            raise ValueError(f"unsure: got {unsure}, expected 0 to 1")
        self.model = model
        self.unsure = unsure
        self._fixed_sampling = sampling
        self._sampling = sampling or Sampling()

    def sampling_for(self, target_sampling: Sampling) -> Sampling:
        """How it draws in a generation whose target samples like this."""
        return self._fixed_sampling or target_sampling

    def begin(self, sampling: Sampling) -> None:
        self._sampling = self.sampling_for(sampling)
        self.model.reset()

    def propose(self, prefix: Sequence[int], gamma: int, chooser: Chooser) -> Draft:
        if self.model.context_limit is not None:
            gamma = min(gamma, self.model.context_limit - len(prefix) + 1)
        if gamma <= 0:
            return Draft([], torch.zeros(0, self.vocab_size))
        # What the model has not read yet: the prompt at first, later what the last round emitted. After
        # a draft accepted whole that is two tokens, since its own last token was never fed back to it.
        unread = self.model.rewind_to_match(prefix)
        # A head over some tokens only leaves less to normalise, to draw from and to compare, unless a
        # processor has to see every token in its place.
        token_ids = None if self._sampling.reads_tokens else self.model.token_ids
        tokens, q_rows = list(prefix), list[Tensor]()
        sureness = 1.0
        for _ in range(gamma):
            if token_ids is None:
                logits = self.model.extend(unread, rows=1)[0]  # [vocab]
            else:
                logits = self.model.extend_kept(unread)  # [kept]
            if self._sampling.greedy:
                choice = self._sampling.argmax(tokens, logits)
            else:
                q_rows.append(self._sampling.distribution(tokens, logits))
                choice = chooser.sample(q_rows[-1])
            tokens.append(choice if token_ids is None else int(token_ids[choice]))
            unread = tokens[-1:]
            if self.unsure > 0.0:
                sureness *= float(q_rows[-1].max() if q_rows else logits.float().softmax(dim=-1).max())
                if sureness < self.unsure:
                    break
        drafted = tokens[len(prefix) :]
        return Draft(drafted, torch.stack(q_rows), token_ids) if q_rows else self.certain_draft(drafted)


class LayerSkipDrafter(ModelDrafter):
    """The target's own first layers, its final norm and its head: an early exit.

    It shares the weights, and the keys and values that the target has computed in those layers, so it
    never reads the prompt itself. Before the target has read the prompt it proposes nothing.

    Args:
        target: the target of the generation; no other.
        layers: how many of its layers to run.
    """

    name = "layer-skip"

    def __init__(self, target: HFCausalLM, layers: int, sampling: Sampling | None = None) -> None:
        super().__init__(target.early_exit(layers), sampling)
        self._early_exit: HFCausalLM = self.model  # type: ignore[assignment]
        self._target = target

    def propose(self, prefix: Sequence[int], gamma: int, chooser: Chooser) -> Draft:
        if self._target.length == 0 or gamma == 0:
            return Draft([], torch.zeros(0, self.vocab_size))
        self._early_exit.borrow_cache(self._target)
        return super().propose(prefix, gamma, chooser)


class NGramDrafter(Drafter):
    """Prompt look-up: find where the last few tokens stood before, and propose what followed there.

    The longest match is tried first, because the more context agrees, the likelier is what follows.
    Among equally long matches the most recent one is preferred: text repeats what it just did (a
    name, a loop body, a list's format) more than what it did long ago. A copy that runs past the end
    of the text goes on into the draft itself, so that a repeating pattern is continued.

    For the same reason the draft is no longer than two to the power of the match: 2 tokens behind a
    match of one, 16 behind a match of four, the whole draft length behind five. One token agrees by
    accident all the time, and a long draft behind it costs more to verify than it brings; behind five,
    the text is being copied.

    Args:
        vocab_size: the target's.
        longest: most tokens to match.
        shortest: fewest tokens to match; with less agreement, nothing is proposed.

    Source of the idea: Saxena 2023, "Prompt lookup decoding"; Yang et al. 2023 (arXiv 2304.04487).
    The length rule is this library's; it was chosen over fixed lengths on ``benchmarks/prompts.py``.
    """

    name = "n-gram"
    default_gamma = 24

    def __init__(self, vocab_size: int, longest: int = 5, shortest: int = 1) -> None:
        super().__init__(vocab_size)
        if not 1 <= shortest <= longest:
            raise ValueError(
                f"shortest, longest: got {shortest} and {longest}, expected 1 <= shortest <= longest"
            )
        self._sizes = range(longest, shortest - 1, -1)
        self._text: list[int] = []
        self._followed_at: dict[tuple[int, ...], int] = {}

    def begin(self, sampling: Sampling) -> None:
        self._text, self._followed_at = [], {}

    def propose(self, prefix: Sequence[int], gamma: int, chooser: Chooser) -> Draft:
        self._index(list(prefix))
        source, size = self._longest_match(prefix)
        tokens = list(prefix)
        for position in range(source, source + min(gamma, 2**size if size else 0)):
            tokens.append(tokens[position])
        return self.certain_draft(tokens[len(prefix) :])

    def _longest_match(self, prefix: Sequence[int]) -> tuple[int, int]:
        """Where the continuation of the longest, most recent match starts, and how long it is."""
        for size in self._sizes:
            source = self._followed_at.get(tuple(prefix[-size:]))
            if source is not None:
                return source, size
        return 0, 0

    def _index(self, text: list[int]) -> None:
        """Note for each n-gram the position behind its last occurrence that something follows."""
        if self._text != text[: len(self._text)]:
            self._text, self._followed_at = [], {}
        for end in range(max(1, len(self._text)), len(text)):
            for size in self._sizes:
                if size <= end:
                    self._followed_at[tuple(text[end - size : end])] = end
        self._text = text


class CorruptedDrafter(Drafter):
    """Another drafter made worse on purpose: the quality knob of the speed experiments.

    Each token is drawn from ``(1 - noise) * q + noise * uniform``; the draft is as long as the other
    drafter's. A spoilt token makes the other drafter propose anew behind it, so look at the quality of
    its drafts, not at their cost.

    Args:
        drafter: the drafter to spoil.
        noise: share of the uniform distribution, 0 (the drafter itself) to 1 (nothing but noise).
    """

    name = "corrupted"

    def __init__(self, drafter: Drafter, noise: float) -> None:
        super().__init__(drafter.vocab_size)
        if not 0.0 <= noise <= 1.0:
            raise ValueError(f"noise: got {noise}, expected 0 to 1")
        self.drafter = drafter
        self.noise = noise
        self.name = f"corrupted {drafter.name} (noise {noise:g})"
        self.default_gamma = drafter.default_gamma
        self.simulated = drafter.simulated

    def begin(self, sampling: Sampling) -> None:
        self.drafter.begin(sampling)

    def propose(self, prefix: Sequence[int], gamma: int, chooser: Chooser) -> Draft:
        tokens, q_rows = list(prefix), list[Tensor]()
        clean = self.drafter.propose(prefix, gamma, chooser)
        length, used = len(clean), 0
        while used < len(clean):
            # In float64: q has to be the very distribution drawn from, and a mixture rounds.
            token, q = clean.tokens[used], clean.row(used, self.vocab_size).double()
            if self.noise > 0.0 and chooser.accept(self.noise):
                tokens.append(chooser.sample(torch.full_like(q, 1.0 / self.vocab_size)))
            else:
                tokens.append(token)
            q_rows.append((1.0 - self.noise) * q + self.noise / self.vocab_size)
            used += 1
            if tokens[-1] != token:
                # The rest of the clean draft follows a token that is not there any more.
                clean = self.drafter.propose(tokens, length - len(q_rows), chooser)
                used = 0
        return Draft(tokens[len(prefix) :], torch.stack(q_rows)) if q_rows else clean


class ScriptedDrafter(Drafter):
    """Proposes a continuation it was given: a simulation, and labelled so everywhere.

    Args:
        vocab_size: the target's.
        continuation: the token to propose for each new token's place, right or wrong; where it ends,
            nothing more is proposed.
    """

    name = "scripted"
    simulated = True

    def __init__(self, vocab_size: int, continuation: Sequence[int]) -> None:
        super().__init__(vocab_size)
        self._continuation = list(continuation)
        self._prompt_length: int | None = None

    def begin(self, sampling: Sampling) -> None:
        self._prompt_length = None

    def propose(self, prefix: Sequence[int], gamma: int, chooser: Chooser) -> Draft:
        if self._prompt_length is None:
            self._prompt_length = len(prefix)
        place = len(prefix) - self._prompt_length
        return self.certain_draft(self._continuation[place : place + gamma])


def require_same_width(target: CausalLM, drafter: Drafter) -> None:
    """Refuse a drafter whose q has another width than the target's rows."""
    if drafter.vocab_size != target.vocab_size:
        raise ValueError(
            f"drafter: got a vocabulary of {drafter.vocab_size}, expected {target.vocab_size}, "
            "the target's"
        )

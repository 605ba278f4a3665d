"""Speculative decoding of several sequences at once.

The loop is that of ``decoding.speculative``, with a row for each sequence: one forward of the target
verifies all drafts, and each row accepts as many tokens as it does on its own. The more rows, the less
is gained: a forward over many rows is bound by computing, not by memory, and then verifying n tokens
costs n times as much as one.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from tqdm.auto import tqdm

from specdec_lab.batched_model import BatchedLM, BatchSequence
from specdec_lab.decoding import Run, Stopwatch, verifier_for
from specdec_lab.drafters import Drafter, ModelDrafter, NGramDrafter, require_same_width
from specdec_lab.language_model import HFCausalLM
from specdec_lab.provenance import provenance
from specdec_lab.randomness import Chooser, SeededChooser
from specdec_lab.records import Draft, Generation, Round, Seconds
from specdec_lab.sampling import Sampling, TargetRows
from specdec_lab.stopping import StopRule


def generate_batch(
    target: HFCausalLM,
    prompts: Sequence[Sequence[int]],
    *,
    drafter: Drafter | None = None,
    max_new_tokens: int = 64,
    gamma: int | None = None,
    sampling: Sampling | None = None,
    seeds: Sequence[int] | None = None,
    end_ids: Iterable[int] | None = None,
    progress: bool = False,
) -> list[Generation]:
    """Decode all prompts together; each comes out as it does alone.

    Up to rounding, that is: a forward over a batch may add up in another order than one over a single
    row, and where two tokens are almost equally likely that decides. With the same seed for a row as
    for a run of its own, the same random numbers are drawn.

    Args:
        target: the model.
        prompts: token ids of each.
        drafter: a draft model's or an n-gram drafter; None decodes autoregressively.
        max_new_tokens: the budget of each.
        gamma: draft length; None is the drafter's default.
        sampling: how tokens are chosen; None is greedy.
        seeds: one for each prompt; None takes fresh ones and reports them.
        end_ids: None is the model's own end tokens; an empty list is none at all.
        progress: show a progress bar over the tokens of all.

    Raises:
        ValueError: for an argument that cannot work, by name.
        CannotRewind: for a model whose layers do not all attend to everything.
    """
    if not prompts:
        raise ValueError("prompts: got none, expected at least one")
    if seeds is not None and len(seeds) != len(prompts):
        raise ValueError(f"seeds: got {len(seeds)} for {len(prompts)} prompts, expected one for each")
    given: Sequence[int | None] = [None] * len(prompts) if seeds is None else seeds
    choosers = [SeededChooser(seed) for seed in given]
    rounds: list[list[Round]] = [[] for _ in prompts]
    batch = speculative_batch(
        target,
        drafter,
        prompts,
        max_new_tokens=max_new_tokens,
        gamma=gamma,
        sampling=sampling,
        choosers=choosers,
        stop=StopRule(target.end_ids if end_ids is None else end_ids),
    )
    with tqdm(total=max_new_tokens * len(prompts), unit="token", disable=not progress) as bar:
        for made in batch:
            for row, one in made.items():
                rounds[row].append(one)
                bar.update(len(one.tokens))
    return [
        Generation(
            prompt_tokens=list(prompt),
            tokens=[token for one in record for token in one.tokens],
            text=None,
            rounds=record,
            stop_reason=(record[-1].stop_reason if record else None) or "budget",
            seed=chooser.seed,
            provenance=provenance(target, drafter, seed=chooser.seed),
        )
        for prompt, record, chooser in zip(prompts, rounds, choosers, strict=True)
    ]


def speculative_batch(
    target: HFCausalLM,
    drafter: Drafter | None,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    gamma: int | None = None,
    sampling: Sampling | None = None,
    choosers: Sequence[Chooser],
    stop: StopRule | None = None,
) -> Iterator[dict[int, Round]]:
    """The loop: one target forward for a round of every sequence that is not finished.

    Yields:
        For each row that took part, its ``Round``; the seconds in it are those of the whole batch.
    """
    sampling = sampling or Sampling()
    verify = verifier_for(sampling)
    batch = BatchedLM(target, len(prompts))
    runs = [
        Run(sequence, prompt, max_new_tokens, stop)
        for sequence, prompt in zip(batch.sequences, prompts, strict=True)
    ]
    drafting = _side_by_side(target, drafter, len(prompts), sampling)
    wanted = drafting.default_gamma if gamma is None else gamma
    if wanted < 0:
        raise ValueError(f"gamma: got {wanted}, expected 0 or more drafted tokens per round")
    active = [row for row, run in enumerate(runs) if run.remaining > 0]
    if len(active) < len(runs):
        batch.keep(active)
        drafting.keep(active)
    while active:
        clock = Stopwatch(target)
        lengths = [min(wanted, runs[row].remaining - 1) for row in active]
        drafts = drafting.propose(
            [runs[row].tokens for row in active], lengths, [choosers[row] for row in active]
        )
        drafts = [draft.until(runs[row].end_ids) for row, draft in zip(active, drafts, strict=True)]
        draft_seconds = clock.lap()

        unread = [runs[row].target.rewind_to_match(runs[row].tokens) for row in active]
        logits = batch.extend(
            [first + draft.tokens for first, draft in zip(unread, drafts, strict=True)],
            rows=[len(draft) + 1 for draft in drafts],
        )
        verdicts = [
            verify(
                TargetRows(sampling, runs[row].tokens + draft.tokens, rows), draft, choosers[row], False
            )
            for row, draft, rows in zip(active, drafts, logits, strict=True)
        ]
        verify_seconds = clock.lap()
        made = {
            row: runs[row].commit(
                verdict, len(first) + len(draft), draft_seconds, verify_seconds, clock
            )
            for row, verdict, first, draft in zip(active, verdicts, unread, drafts, strict=True)
        }
        going_on = [place for place, row in enumerate(active) if runs[row].remaining > 0]
        if len(going_on) < len(active):
            active = [active[place] for place in going_on]
            if active:
                batch.keep(going_on)
                drafting.keep(going_on)
        # Each row's rest is its own part of the batch's so far.
        rest = sum(one.seconds.rest for one in made.values()) + clock.lap()
        yield {
            row: replace(one, seconds=Seconds(draft_seconds, verify_seconds, rest))
            for row, one in made.items()
        }


class _Drafting(ABC):
    """Drafts for every sequence of a batch."""

    default_gamma = 0

    @abstractmethod
    def propose(
        self, prefixes: Sequence[list[int]], lengths: Sequence[int], choosers: Sequence[Chooser]
    ) -> list[Draft]:
        """For each prefix a draft of at most its length."""

    @abstractmethod
    def keep(self, which: Sequence[int]) -> None:
        """Go on with these sequences only."""


def _side_by_side(
    target: HFCausalLM, drafter: Drafter | None, count: int, sampling: Sampling
) -> _Drafting:
    if drafter is None:
        return _NoDrafts(target.vocab_size)
    require_same_width(target, drafter)
    if type(drafter) is NGramDrafter:
        return _Alone(drafter, count, sampling)
    if type(drafter) is ModelDrafter and isinstance(drafter.model, HFCausalLM):
        if drafter.unsure > 0.0:
            raise ValueError(f"drafter: got unsure={drafter.unsure:g}, expected 0 in a batch")
        return _Together(drafter.model, drafter, count, sampling)
    raise ValueError(
        f"drafter: got {type(drafter).__name__}, expected a ModelDrafter or an NGramDrafter; others "
        "draft for one sequence at a time"
    )


class _NoDrafts(_Drafting):
    def __init__(self, vocab_size: int) -> None:
        self._none = Draft([], torch.zeros(0, vocab_size))

    def propose(
        self, prefixes: Sequence[list[int]], lengths: Sequence[int], choosers: Sequence[Chooser]
    ) -> list[Draft]:
        return [self._none for _ in prefixes]

    def keep(self, which: Sequence[int]) -> None:
        pass


class _Alone(_Drafting):
    """A drafter of its own for each sequence."""

    def __init__(self, drafter: Drafter, count: int, sampling: Sampling) -> None:
        self._drafters = [copy.copy(drafter) for _ in range(count)]
        self.default_gamma = drafter.default_gamma
        for one in self._drafters:
            one.begin(sampling)

    def propose(
        self, prefixes: Sequence[list[int]], lengths: Sequence[int], choosers: Sequence[Chooser]
    ) -> list[Draft]:
        return [
            one.propose(prefix, length, chooser)
            for one, prefix, length, chooser in zip(
                self._drafters, prefixes, lengths, choosers, strict=True
            )
        ]

    def keep(self, which: Sequence[int]) -> None:
        self._drafters = [self._drafters[i] for i in which]


class _Together(_Drafting):
    """One draft model reads all sequences: gamma forwards of it, however many there are."""

    def __init__(
        self, model: HFCausalLM, drafter: ModelDrafter, count: int, sampling: Sampling
    ) -> None:
        self._batch = BatchedLM(model, count)
        self._drafter = drafter
        self._sampling = drafter.sampling_for(sampling)
        self.default_gamma = drafter.default_gamma

    def keep(self, which: Sequence[int]) -> None:
        self._batch.keep(which)

    def propose(
        self, prefixes: Sequence[list[int]], lengths: Sequence[int], choosers: Sequence[Chooser]
    ) -> list[Draft]:
        limit = self._batch.lm.context_limit
        if limit is not None:
            lengths = [
                max(0, min(length, limit - len(prefix) + 1))
                for length, prefix in zip(lengths, prefixes, strict=True)
            ]
        texts = [list(prefix) for prefix in prefixes]
        q_rows: list[list[Tensor]] = [[] for _ in prefixes]
        for step in range(max(lengths)):
            unread = [
                self._unread(sequence, text, drafts=step < length)
                for sequence, text, length in zip(self._batch.sequences, texts, lengths, strict=True)
            ]
            logits = self._batch.extend(unread, rows=[1] * len(unread))
            for i, (row, text) in enumerate(zip(logits, texts, strict=True)):
                if step >= lengths[i]:
                    continue
                if self._sampling.greedy:
                    text.append(self._sampling.argmax(text, row[0]))
                else:
                    q_rows[i].append(self._sampling.distribution(text, row[0]))
                    text.append(choosers[i].sample(q_rows[i][-1]))
        drafts = []
        for text, prefix, q in zip(texts, prefixes, q_rows, strict=True):
            tokens = text[len(prefix) :]
            drafts.append(Draft(tokens, torch.stack(q)) if q else self._drafter.certain_draft(tokens))
        return drafts

    @staticmethod
    def _unread(sequence: BatchSequence, text: list[int], drafts: bool) -> list[int]:
        """What the draft model has to read; any token for one that drafts no more, near the end."""
        if drafts:
            return sequence.rewind_to_match(text)
        sequence.rewind(0)
        return text[-1:]

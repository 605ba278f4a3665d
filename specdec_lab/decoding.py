"""The two loops: autoregressive and speculative decoding.

Both are generators of ``Round``s, so that streaming, progress and recording are a ``for`` loop
around them. ``generate`` is that loop, for callers who want the finished text.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any, TypeVar

import torch
from tqdm.auto import tqdm

from specdec_lab.drafters import Drafter, require_same_width
from specdec_lab.language_model import CausalLM
from specdec_lab.provenance import provenance
from specdec_lab.randomness import Chooser, SeededChooser
from specdec_lab.records import Draft, Generation, Round, Seconds, StopReason
from specdec_lab.sampling import Sampling, TargetRows
from specdec_lab.stopping import StopRule
from specdec_lab.text import Tokenizer, decoder, encode, transcribe
from specdec_lab.verification import Verdict, Verifier, verify_by_sampling, verify_greedily

Returned = TypeVar("Returned")
Gamma = int | Callable[[Sequence[Round]], int]
"""A draft length, or a function from the rounds so far to the next round's draft length."""


def speculative(
    target: CausalLM,
    drafter: Drafter,
    prompt: Sequence[int],
    *,
    max_new_tokens: int,
    gamma: Gamma | None = None,
    sampling: Sampling | None = None,
    chooser: Chooser | None = None,
    stop: StopRule | None = None,
    verifier: Verifier | None = None,
    trace: bool = False,
) -> Iterator[Round]:
    """Speculative decoding: draft cheaply, verify the whole draft in one target forward.

    Between rounds the target's cache holds every token so far *but the last*. That one is pending: it
    was emitted from a row of logits and has not been read yet, so the next forward starts with it.

    Args:
        target: the model whose distribution is kept; any state it has is reset first.
        drafter: proposes tokens over the same vocabulary.
        prompt: token ids, at least one.
        max_new_tokens: the budget; also bounded by the target's context.
        gamma: draft length, or a function of the rounds so far; None is the drafter's default.
        sampling: how tokens are chosen; None is greedy.
        chooser: the source of random choices; None draws from a fresh seed.
        stop: end tokens and stop strings; None stops at the budget only.
        verifier: None is the greedy verifier at temperature 0 and the exact sampling one otherwise.
        trace: also record the largest entries of p, q and the residual at each position.

    Yields:
        One ``Round`` per target forward; the last carries ``stop_reason``. The prompt is read in the
        first round's forward. A closed or interrupted generator leaves both models reusable, and a
        model used for something else between two rounds reads again what it has forgotten.

    Raises:
        ValueError: for a prompt, budget, draft length or vocabulary that cannot work, by name. Like
            any generator's, errors come with the first round, not with the call.

    Source: Leviathan et al. 2023, algorithm 1.
    """
    require_same_width(target, drafter)
    sampling, chooser = sampling or Sampling(), chooser or SeededChooser()
    verify = verifier or verifier_for(sampling)
    run = Run(target, prompt, max_new_tokens, stop)
    drafter.begin(sampling)
    while run.remaining > 0:
        clock = Stopwatch(target)
        draft = _propose(drafter, run, gamma, chooser)
        draft_seconds = clock.lap()

        unread = target.rewind_to_match(run.tokens)
        logits = target.extend(unread + draft.tokens, rows=len(draft) + 1)  # [gamma + 1, vocab]
        p = TargetRows(sampling, run.tokens + draft.tokens, logits)
        verdict = verify(p, draft, chooser, trace)
        verify_seconds = clock.lap()

        yield run.commit(verdict, len(unread) + len(draft), draft_seconds, verify_seconds, clock)


def autoregressive(
    target: CausalLM,
    prompt: Sequence[int],
    *,
    max_new_tokens: int,
    sampling: Sampling | None = None,
    chooser: Chooser | None = None,
    stop: StopRule | None = None,
    trace: bool = False,
) -> Iterator[Round]:
    """Plain cached decoding, one token per target forward: what every speedup is measured against.

    Arguments, rounds and errors as in ``speculative``; a round here is a round without a draft.
    """
    sampling, chooser = sampling or Sampling(), chooser or SeededChooser()
    verify = verifier_for(sampling)
    run = Run(target, prompt, max_new_tokens, stop)
    no_draft = Draft([], torch.zeros(0, target.vocab_size))
    while run.remaining > 0:
        clock = Stopwatch(target)
        unread = target.rewind_to_match(run.tokens)
        logits = target.extend(unread, rows=1)  # [1, vocab]
        p = TargetRows(sampling, run.tokens, logits)
        verdict = verify(p, no_draft, chooser, trace)
        yield run.commit(verdict, len(unread), 0.0, clock.lap(), clock)


def generate(
    target: CausalLM,
    prompt: str | Sequence[int],
    *,
    drafter: Drafter | None = None,
    tokenizer: Tokenizer | None = None,
    chat: bool = False,
    max_new_tokens: int = 64,
    gamma: Gamma | None = None,
    sampling: Sampling | None = None,
    seed: int | None = None,
    chooser: Chooser | None = None,
    end_ids: Iterable[int] | None = None,
    stop_strings: Sequence[str] = (),
    trace: bool = False,
    progress: bool = False,
    on_round: Callable[[Round], None] | None = None,
) -> Generation:
    """Decode to the end and return everything about the run.

    Args:
        target: the model.
        prompt: text (needs ``tokenizer``) or token ids.
        drafter: None decodes autoregressively.
        tokenizer: any transformers tokenizer.
        chat: wrap a text prompt in the tokenizer's chat template, as the user's turn.
        max_new_tokens: the budget.
        gamma, sampling, trace: as in ``speculative``.
        seed: one seed for the whole generation; None takes a fresh one and reports it.
        chooser: instead of ``seed``, another source of random choices.
        end_ids: None is the model's own end tokens; an empty list is none at all.
        stop_strings: the text ends right behind the first of them.
        progress: show a progress bar over the token budget.
        on_round: called with each round as soon as it is done, to stream.

    Raises:
        ValueError: for an argument that cannot work, by name.
    """
    steps = stepwise(
        target,
        prompt,
        drafter=drafter,
        tokenizer=tokenizer,
        chat=chat,
        max_new_tokens=max_new_tokens,
        gamma=gamma,
        sampling=sampling,
        seed=seed,
        chooser=chooser,
        end_ids=end_ids,
        stop_strings=stop_strings,
        trace=trace,
    )
    return to_the_end(steps, max_new_tokens, progress, on_round)


def to_the_end(
    steps: Generator[Round, None, Returned],
    total: int,
    progress: bool = True,
    on_round: Callable[[Round], None] | None = None,
    label: str | None = None,
) -> Returned:
    """Take every round of a generator; what it returns is returned.

    Args:
        steps: of ``stepwise``, or made of several.
        total: tokens to expect, at most.
        progress: show a progress bar over them.
        on_round: called with each round as soon as it is done.
        label: what the bar says.
    """
    with tqdm(total=total, unit="token", desc=label, disable=not progress, leave=False) as bar:
        while True:
            try:
                one = next(steps)
            except StopIteration as end:
                bar.total = bar.n  # an early end is an end, too
                returned: Returned = end.value
                return returned
            bar.update(len(one.tokens))
            if on_round is not None:
                on_round(one)


def stepwise(
    target: CausalLM,
    prompt: str | Sequence[int],
    *,
    drafter: Drafter | None = None,
    tokenizer: Tokenizer | None = None,
    chat: bool = False,
    max_new_tokens: int = 64,
    gamma: Gamma | None = None,
    sampling: Sampling | None = None,
    seed: int | None = None,
    chooser: Chooser | None = None,
    end_ids: Iterable[int] | None = None,
    stop_strings: Sequence[str] = (),
    trace: bool = False,
) -> Generator[Round, None, Generation]:
    """``generate``, a round at a time, for callers who do something else between two rounds.

    Arguments and errors as there. The generator yields each round and returns the ``Generation``.
    """
    if chooser is not None and seed is not None:
        raise ValueError(f"seed: got {seed} beside a chooser, expected one of the two")
    prompt_tokens = encode(tokenizer, prompt, chat)
    decode = decoder(tokenizer) if tokenizer is not None else None
    stop = StopRule(target.end_ids if end_ids is None else end_ids, stop_strings, decode)
    seeded = SeededChooser(seed)
    options: dict[str, Any] = {
        "max_new_tokens": max_new_tokens,
        "sampling": sampling,
        "chooser": chooser or seeded,
        "stop": stop,
        "trace": trace,
    }
    if drafter is None:
        rounds = autoregressive(target, prompt_tokens, **options)
    else:
        rounds = speculative(target, drafter, prompt_tokens, gamma=gamma, **options)
    record = []
    for one in rounds:
        record.append(one)
        yield one
    tokens = [token for one in record for token in one.tokens]
    simulated = drafter is not None and drafter.simulated
    used_seed = seeded.seed if chooser is None else None
    return Generation(
        prompt_tokens=prompt_tokens,
        tokens=tokens,
        text=transcribe(tokens, decode, stop_strings) if decode else None,
        rounds=record,
        stop_reason=(record[-1].stop_reason if record else None) or "budget",
        seed=used_seed,
        simulated=simulated,
        provenance=provenance(target, drafter, simulated=simulated, seed=used_seed),
    )


class Run:
    """What both loops keep between rounds: the tokens so far, the budget, the watch for a stop."""

    def __init__(
        self, target: CausalLM, prompt: Sequence[int], max_new_tokens: int, stop: StopRule | None
    ) -> None:
        self.target = target
        self.tokens = list(prompt)
        self.rounds: list[Round] = []
        self.remaining, self._budget_reason = _budget(target, self.tokens, max_new_tokens)
        stop = stop or StopRule()
        self.end_ids = stop.end_ids
        self._watch = stop.watch()
        target.reset()

    def commit(
        self,
        verdict: Verdict,
        fed: int,
        draft_seconds: float,
        verify_seconds: float,
        clock: Stopwatch,
    ) -> Round:
        """Take over a verdict's tokens up to a stop, and rewind the cache to all but the last."""
        count, reason = self._watch.read(verdict.tokens)
        self.tokens += verdict.tokens[:count]
        self.target.rewind(len(self.tokens) - 1)
        self.remaining = 0 if reason else self.remaining - count
        if self.remaining == 0 and reason is None:
            reason = self._budget_reason
        self.rounds.append(
            Round(
                positions=verdict.positions,
                closing=verdict.closing,
                closing_kind=verdict.closing_kind,
                fed=fed,
                seconds=Seconds(draft_seconds, verify_seconds, clock.lap()),
                closing_top=verdict.closing_top,
                stop_reason=reason,
            ).cut(count)
        )
        return self.rounds[-1]


class Stopwatch:
    """Seconds since the last lap, read when the target's device has finished its work."""

    def __init__(self, target: CausalLM) -> None:
        self._target = target
        self._last = perf_counter()

    def lap(self) -> float:
        self._target.synchronize()
        now = perf_counter()
        seconds, self._last = now - self._last, now
        return seconds


def verifier_for(sampling: Sampling) -> Verifier:
    return verify_greedily if sampling.greedy else verify_by_sampling


def _propose(drafter: Drafter, run: Run, gamma: Gamma | None, chooser: Chooser) -> Draft:
    """A draft of the wanted length, or shorter where the budget or an end token ends it."""
    wanted = gamma(run.rounds) if callable(gamma) else gamma
    wanted = drafter.default_gamma if wanted is None else wanted
    if wanted < 0:
        raise ValueError(f"gamma: got {wanted}, expected 0 or more drafted tokens per round")
    # A round emits one token more than it accepts, so a longer draft would overrun the budget.
    length = min(wanted, run.remaining - 1)
    draft = drafter.propose(run.tokens, length, chooser)
    if len(draft) > length:
        raise ValueError(f"drafter: proposed {len(draft)} tokens, expected at most {length}")
    return draft.until(run.end_ids)


def _budget(target: CausalLM, prompt: Sequence[int], max_new_tokens: int) -> tuple[int, StopReason]:
    """How many tokens may be emitted, and what it is called when they have been."""
    if not prompt:
        raise ValueError("prompt: got no tokens, expected at least one")
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens: got {max_new_tokens}, expected 0 or more")
    if target.context_limit is None:
        return max_new_tokens, "budget"
    room = target.context_limit - len(prompt)
    if room <= 0 < max_new_tokens:
        raise ValueError(
            f"prompt: got {len(prompt)} tokens, expected fewer than {target.context_limit}, "
            "the model's context: there is no room for a new token"
        )
    return (max_new_tokens, "budget") if max_new_tokens <= room else (room, "context limit")

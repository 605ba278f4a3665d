"""The check of the whole loop, with drafters of every quality."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from specdec_lab import decoding, verification
from specdec_lab.checks import references
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.toys import ScriptedProposals, SpyLM, draft_for, greedy, random_tokens

_LIBRARY = (decoding, verification)


_Maker = Callable[[SpyLM, Random], ScriptedProposals]


def _runs(seed: int | None) -> list[tuple[int, list[int], int, int, set[int], _Maker]]:
    """(model's seed, prompt, gamma, max_new_tokens, end tokens, how to make a drafter)."""
    if seed is None:
        return [
            (7, [3, 1, 4], 3, 10, set(), _often_right),
            (1, [2, 5], 2, 0, set(), _often_right),
            (2, [1], 4, 1, set(), _always_right),
            (3, [1, 2], 4, 12, {0}, _always_right),
            (4, [4], 2, 7, set(), _silent),
        ]
    random = Random(seed)
    kinds: list[tuple[int, int, set[int], _Maker]] = [
        (3, 11, set(), _always_right),
        (5, 9, {1}, _often_right),
        (2, 6, set(), _never_right),
        (4, 8, {2, 3}, _silent),
        (4, 13, set(), _short),
        (0, 5, set(), _often_right),
        (3, 0, set(), _always_right),
    ]
    return [
        (random.randrange(1000), random_tokens(random, random.randint(1, 5)), *kind) for kind in kinds
    ]


def _always_right(model: SpyLM, random: Random) -> ScriptedProposals:
    return ScriptedProposals(lambda tokens, gamma: greedy(model, tokens, gamma))


def _often_right(model: SpyLM, random: Random) -> ScriptedProposals:
    """How good a draft is depends on the length of the text only, however the drafter is called."""
    quality = random_tokens(random, 40)

    def propose(tokens: list[int], gamma: int) -> list[int]:
        return draft_for(model, tokens, quality[len(tokens) % 40], gamma)

    return ScriptedProposals(propose)


def _never_right(model: SpyLM, random: Random) -> ScriptedProposals:
    return ScriptedProposals(lambda tokens, gamma: draft_for(model, tokens, 0, gamma))


def _silent(model: SpyLM, random: Random) -> ScriptedProposals:
    return ScriptedProposals(lambda tokens, gamma: [])


def _short(model: SpyLM, random: Random) -> ScriptedProposals:
    """Fewer tokens than asked for, sometimes none."""
    length = random_tokens(random, 40, 4)
    return ScriptedProposals(
        lambda tokens, gamma: greedy(model, tokens, min(length[len(tokens) % 40], gamma))
    )


class _Handed:
    """What a loop is handed: the drafter, the round and the cut, and how they may be called."""

    def __init__(
        self, attempt: Attempt, prompt: list[int], gamma: int, proposals: ScriptedProposals
    ) -> None:
        self._attempt = attempt
        self._prompt = prompt
        self._gamma = gamma
        self._proposals = proposals
        self._drafted_for = 0
        self._finished = False

    def propose(self, tokens: Sequence[int], gamma: int) -> list[int]:
        text = [int(token) for token in tokens]
        self._attempt.require(
            gamma <= self._gamma,
            f"the drafter was asked for {gamma} tokens, gamma is only {self._gamma}.",
        )
        self._attempt.require(
            text[: len(self._prompt)] == self._prompt,
            "the drafter wants the whole text so far, the prompt included.",
            yours=str(text),
        )
        self._attempt.require(
            len(text) > self._drafted_for,
            "the drafter was shown the same text twice; it has grown since.",
            yours=str(text),
        )
        self._drafted_for = len(text)
        return self._proposals(text, gamma)

    def one_round(
        self,
        model: SpyLM,
        tokens: Sequence[int],
        draft: Sequence[int],
        verify: references.Verify = references.verify,
    ) -> list[int]:
        self._attempt.require(
            not self._finished, "`cut` said that decoding is finished, and yet there is another round."
        )
        text = [int(token) for token in tokens]
        self._attempt.require(
            text[: len(self._prompt)] == self._prompt,
            "`one_round` wants the whole text so far, the prompt included.",
            yours=str(text),
        )
        self._attempt.require(
            model.length < len(text) and model.tokens == text[: model.length],
            "`one_round` got a text that does not fit the cache. It wants the whole text so far, whose "
            "last token has not been read yet.",
            yours=str(text),
            cache=str(model.tokens),
        )
        return references.one_round(model, text, draft, verify)

    def cut(
        self, emitted: Sequence[int], end_tokens: set[int], remaining: int
    ) -> tuple[list[int], bool]:
        self._attempt.require(
            remaining >= 1,
            f"`cut` was called with remaining = {remaining}, and it takes at least 1. What remains of "
            "`max_new_tokens` shrinks with each new token (not with those of the prompt), and where "
            "nothing remains there is no round.",
        )
        kept, self._finished = references.cut(emitted, end_tokens, remaining)
        return kept, self._finished


@check(read="The whole loop", closed=_LIBRARY, reference=references.speculative_decode)
def speculative_decode(attempt: Attempt, seed: int | None) -> None:
    """The same tokens as greedy decoding, in as few target forwards as the drafts allow."""
    for model_seed, prompt, gamma, budget, ends, make in _runs(seed):
        model = SpyLM.make(model_seed)
        proposals = make(model, Random(model_seed))
        handed = _Handed(attempt, prompt, gamma, proposals)
        yours = attempt(
            model,
            handed.propose,
            list(prompt),
            gamma,
            budget,
            set(ends),
            handed.one_round,
            handed.cut,
            shown={
                "model": model,
                "propose": proposals,
                "prompt": prompt,
                "gamma": gamma,
                "max_new_tokens": budget,
                "end_tokens": sorted(ends),
            },
        )
        truth = greedy(model, prompt, budget, ends)
        unlimited = greedy(model, prompt, budget)
        made = len(attempt.tokens(yours))
        attempt.same_tokens(
            yours,
            truth,
            "these are not the tokens of greedy decoding. Speculation must not change them.",
            suspects={
                "the prompt is in your answer; return the new tokens only.": prompt + truth,
                "decoding goes on behind an end token.": unlimited,
                "that is more than `max_new_tokens`.": greedy(
                    model, prompt, max(budget + 1, made), ends
                ),
                "the budget is for the new tokens; those of the prompt do not count.": truth[
                    : max(0, budget - len(prompt))
                ],
                "the last token is missing.": truth[:-1],
                "that is less than `max_new_tokens`, and no end token stopped it.": truth[:made],
            },
        )
        twin = SpyLM.make(model_seed)
        theirs = make(twin, Random(model_seed))
        references.speculative_decode(twin, theirs, prompt, gamma, budget, ends)
        _judge_rounds(attempt, model, proposals, prompt, min(gamma, budget - 1), len(twin.reads))


def _judge_rounds(
    attempt: Attempt,
    model: SpyLM,
    proposals: ScriptedProposals,
    prompt: list[int],
    useful: int,
    expected: int,
) -> None:
    """The drafts are as long as is useful, and there are as many passes as the reference makes."""
    passes = len(model.reads)
    asked = max((wanted for _, wanted in proposals.asked), default=0)
    problem = "the tokens are right, but the number of target passes is not."
    if not expected:
        problem = "nothing was to be decoded, and yet the target read something."
    elif not passes:
        problem = "the target made no pass at all, so nobody has verified the draft."
    elif passes == expected + 1 and model.reads[0] in (prompt, prompt[:-1]):
        problem = "the prompt has a pass of its own. The first round reads it, together with the draft."
    attempt.require(
        passes == 0 or asked >= useful,
        f"the drafter was never asked for gamma tokens, only for {asked}."
        if proposals.asked
        else "the drafter was never asked.",
    )
    attempt.require(
        passes == expected, problem, yours=f"{passes} passes", expected=f"{expected} passes"
    )

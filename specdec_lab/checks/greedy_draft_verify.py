"""Checks of ``02_greedy_draft_verify``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

import torch
from torch import Tensor

from specdec_lab import decoding, drafters, verification
from specdec_lab.checks import references
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.toys import ScriptedProposals, SpyLM, greedy, random_tokens

BY_HAND_DRAFT = ["on", "the", "red", "mat"]
BY_HAND_CHOICES = ["on", "the", "warm", "mat", "and"]
"""The target's argmax behind the text, then behind each drafted token."""
BY_HAND_TEXT = ["the", "cat", "sat"]
_LIBRARY = (decoding, verification)


@check(read="One round by hand")
def by_hand(attempt: Attempt, seed: int | None) -> None:
    """The worked round. What is expected is not shown: it is the answer."""
    answer = attempt.value
    if not isinstance(answer, Mapping) or set(answer) != {"accepted", "emitted", "cache_length"}:
        attempt.fail("expected the three entries accepted, emitted and cache_length.")
    if any(value is None for value in answer.values()):
        attempt.fail("not implemented yet: fill in all three entries.")
    for key in ("accepted", "cache_length"):
        attempt.require(type(answer[key]) is int, f'expected a whole number for "{key}", such as 1.')
    accepted, length = answer["accepted"], answer["cache_length"]
    emitted = answer["emitted"]
    if not isinstance(emitted, list | tuple) or not all(type(word) is str for word in emitted):
        attempt.fail('expected a list of words for "emitted", such as ["on", "the"].')
    attempt.require(
        accepted != 3,
        '"accepted": the third drafted token is not the target\'s, so the fourth was proposed behind a '
        "text that will not exist. That it agrees means nothing.",
    )
    matching, closing = 2, BY_HAND_CHOICES[2]
    attempt.require(accepted == matching, '"accepted": compare word by word, from the left.')
    kept = BY_HAND_DRAFT[:matching]
    attempt.require(
        list(emitted) != kept,
        '"emitted": the target has said what comes instead of the rejected word. That word is free.',
    )
    attempt.require(
        BY_HAND_DRAFT[matching] not in emitted, '"emitted": the rejected word itself is not kept.'
    )
    attempt.require(
        list(emitted) != [*kept, BY_HAND_CHOICES[-1]],
        '"emitted": that is the last row\'s choice. That row has read the rejected word.',
    )
    attempt.require(
        list(emitted[: matching + 1]) != [*kept, closing] or len(emitted) == matching + 1,
        '"emitted": nothing comes behind the target\'s own word. What was proposed there stands behind '
        "a text that will not exist.",
    )
    attempt.require(
        list(emitted) == [*kept, closing], '"emitted": the accepted words, then one from the target.'
    )
    in_text = len(BY_HAND_TEXT) + matching
    attempt.require(
        length != in_text + 1,
        '"cache_length": the last word was chosen from a row of logits. No pass has read it yet.',
    )
    attempt.require(
        length != len(BY_HAND_TEXT) + len(BY_HAND_DRAFT),
        '"cache_length": the pass left the whole draft in the cache. What was rejected has to go.',
    )
    attempt.require(
        length == in_text, '"cache_length": the text before the round, and what was accepted.'
    )


def _rows_with(choices: Sequence[int], random: Random, vocab: int = 8) -> Tensor:
    """Random logits ``[n, vocab]`` whose argmax are ``choices``."""
    rows = torch.tensor([[random.uniform(-3.0, 0.0) for _ in range(vocab)] for _ in choices])
    for row, choice in zip(rows, choices, strict=True):
        row[choice] = 1.0 + random.random()
    return rows


@check(read="Verify a draft", closed=_LIBRARY, reference=references.verify)
def verify(attempt: Attempt, seed: int | None) -> None:
    """The longest matching prefix, and the target's own token behind it."""
    cases = [
        ([3, 3, 1, 4, 0, 5], [3, 3, 1, 6, 0, 5, 2]),
        ([3, 1, 4], [3, 1, 4, 2]),
        ([3, 1, 4], [0, 1, 4, 2]),
        ([], [6]),
    ]
    random = Random(0 if seed is None else seed)
    if seed is not None:
        cases = []
        # How many tokens, and how many of the first places may hold the mismatch.
        for length, places in ((1, 0), (2, 2), (4, 4), (4, 4), (5, 4), (0, 0)):
            choices = random_tokens(random, length + 1, 8)
            draft = choices[:length]
            if places:
                wrong = random.randrange(places)
                draft = [*draft[:wrong], (draft[wrong] + 1) % 8, *draft[wrong + 1 :]]
            cases.append((draft, choices))
    for draft, choices in cases:
        rows = _rows_with(choices, random)
        yours = attempt(
            list(draft),
            rows,
            shown={"draft": draft, "rows": f"<logits whose argmax are {choices}>"},
        )
        _judge_verdict(attempt, yours, draft, choices, rows)


def _judge_verdict(
    attempt: Attempt, yours: object, draft: list[int], choices: list[int], rows: Tensor
) -> None:
    if not isinstance(yours, tuple | list) or len(yours) != 2:
        attempt.fail(
            "expected two things: how many drafted tokens are kept, and the token that follows."
        )
    bonus = (
        "the whole draft is kept, and there is one more row: what the target says behind the last "
        "drafted token. That is the bonus token."
    )
    accepted, truth = attempt.whole_number(yours[0]), references.verify(draft, rows)
    attempt.require(accepted != len(draft) or yours[1] is not None, bonus, yours=f"{accepted}, None")
    following = attempt.whole_number(yours[1])
    matches = [mine == theirs for mine, theirs in zip(draft, choices, strict=False)]
    shifted = [mine == theirs for mine, theirs in zip(draft, choices[1:], strict=True)]
    if (accepted, following) == truth:
        return
    details = {"yours": f"{accepted}, {following}", "expected": f"{truth[0]}, {truth[1]}"}
    if accepted != truth[0]:
        problem = "this is not how many drafted tokens are kept."
        if (accepted, following) == references.verify(draft, rows.T):
            problem = (
                "the likeliest token is looked for along the wrong dimension: each row has its own."
            )
        elif accepted == sum(matches):
            problem = (
                "you count all matches. A token behind the first mismatch was proposed behind a text "
                "that will not exist; only the matching *prefix* counts."
            )
        elif accepted == [*shifted, False].index(False):
            problem = (
                "you compare drafted token i with row i + 1. Row i is what the target says behind the "
                "text and i drafted tokens, so it judges drafted token i."
            )
        elif accepted == truth[0] + 1:
            problem = "one too many: the token at the mismatch itself is not kept."
        elif accepted == len(draft):
            problem = "the whole draft is kept, verified or not. Compare token by token, from the left."
        elif accepted == truth[0] - 1:
            problem = "one too few: you stop before the last token that agrees."
        elif accepted == 0:
            problem = "nothing is kept, though the draft begins as the target would."
        attempt.fail(problem, **details)
    problem = "the count is right, the token that follows is not."
    if accepted < len(draft) and following == draft[accepted]:
        problem = "the draft's token is kept at the mismatch. The target's own token takes its place."
    elif accepted < len(draft) and following == choices[-1]:
        problem = (
            "the token comes from the last row. That row has read the rejected tokens; take the row at "
            "the mismatch."
        )
    elif accepted == len(draft):
        problem = bonus
    elif following == choices[accepted + 1]:
        problem = (
            "that row is one too far: it has read the rejected token. Take the row at the mismatch."
        )
    attempt.fail(problem, **details)


def _rounds(seed: int | None) -> list[tuple[int, list[int], int, int, int]]:
    """(model's seed, text, tokens in the cache, right tokens in the draft, length of the draft)."""
    if seed is None:
        return [(2, [3, 1, 4, 1, 5], 4, 2, 5), (1, [2, 5], 1, 3, 3), (0, [1, 1, 0, 2], 0, 0, 2)]
    random = Random(seed)
    cases = []
    for right, length in ((0, 3), (1, 1), (2, 5), (4, 4), (0, 0)):
        text = random_tokens(random, random.randint(2, 6))
        cached = 0 if length == 5 else random.choice([len(text) - 1, random.randrange(len(text))])
        cases.append((random.randrange(1000), text, cached, right, length))
    return cases


def _draft_for(model: SpyLM, text: list[int], right: int, length: int) -> list[int]:
    """A draft whose first ``right`` tokens are the target's own, and whose next is not."""
    draft: list[int] = []
    while len(draft) < length:
        (choice,) = greedy(model, text + draft, 1)
        draft.append(choice if len(draft) != right else (choice + 1) % model.vocab_size)
    return draft


@check(read="One round", closed=_LIBRARY, reference=references.one_round)
def one_round(attempt: Attempt, seed: int | None) -> None:
    """One forward over what is unread and the draft; the verdict; the rewind."""
    for model_seed, text, cached, right, length in _rounds(seed):
        model = SpyLM.make(model_seed)
        draft = _draft_for(model, text, right, length)
        if cached:
            model.extend(text[:cached])
            model.reads.clear()
        yours = attempt(
            model,
            list(text),
            list(draft),
            _with_rows_judged(attempt, model, text, cached, draft),
            shown={
                "model": model,
                "tokens": text,
                "draft": draft,
                "cache": f"<{cached} tokens>",
            },
        )
        truth = greedy(model, text, right + 1)
        _judge_pass(attempt, model, text, cached, draft)
        attempt.same_tokens(
            yours,
            truth,
            "these are not the tokens of the round.",
            suspects={
                "the token from the target is missing: the replacement, or the bonus.": truth[:-1],
                "the draft's token is kept at the mismatch.": [
                    *truth[:-1],
                    *draft[right : right + 1],
                ],
                "the whole draft is kept, verified or not.": [*draft, truth[-1]],
                "the whole draft is emitted, and it only.": draft,
                "the last token comes from the last row. That row has read the rejected tokens; take "
                "the row at the mismatch.": [*truth[:-1], *greedy(model, text + draft, 1)],
                "only the target's own token is there; the accepted ones are emitted, too.": truth[-1:],
                "return the new tokens only, without the text.": text + truth,
            },
        )
        wanted = text + truth[:-1]
        details = {"yours": f"{model.length} tokens", "expected": f"{len(wanted)} tokens"}
        if model.length == len(text) + len(draft):
            attempt.require(
                model.tokens == wanted,
                "the cache still holds the rejected tokens. The next round would read on behind them.",
                **details,
            )
        misplaced = {
            right: "`rewind` counts from the start of the text, not from the start of the draft.",
            len(draft) - right: "`rewind` takes the number of tokens to keep, not of those to forget.",
            len(text): "the rewind forgets the accepted tokens, too. They were read, and they stay.",
            len(wanted) + 1: "the rewind leaves one token too many: the first one that was rejected.",
            len(wanted) - 1: "the rewind goes one token too far: an accepted token is forgotten.",
        }
        if model.tokens != wanted and model.length in misplaced:
            attempt.fail(misplaced[model.length], **details)
        attempt.require(
            model.tokens == wanted,
            "afterwards the cache should hold every token but the last, which nothing has read yet.",
            **details,
        )


def _with_rows_judged(
    attempt: Attempt, model: SpyLM, text: list[int], cached: int, draft: list[int]
) -> references.Verify:
    """The reference's ``verify``, which first looks at the pass and at how many rows it gets."""

    def verify(yours: Sequence[int], rows: Tensor) -> tuple[int, int]:
        _judge_pass(attempt, model, text, cached, draft)
        drafted = len(draft)
        problem = f"`verify` got {len(rows)} rows for {drafted} drafted tokens, expected {drafted + 1}"
        if len(rows) == drafted:
            problem += ": that of the token before each drafted one, and that of the last."
        elif len(rows) == drafted + len(text) - cached:
            problem += ": the rows of the unread text judge nothing, except for the last of them."
        attempt.require(len(rows) == drafted + 1, problem)
        return references.verify(yours, rows)

    return verify


def _judge_pass(attempt: Attempt, model: SpyLM, text: list[int], cached: int, draft: list[int]) -> None:
    expected = text[cached:] + draft
    details = {"yours": f"reads {model.reads}", "expected": f"reads {[expected]}"}
    attempt.require(
        len(model.reads) == 1,
        f"the target made {len(model.reads)} passes, expected one for the whole draft: that is what "
        "makes it fast.",
        **details,
    )
    read = model.reads[0]
    attempt.require(
        read != draft or not text[cached:],
        "only the draft was read. The last token of the text is not in the cache yet, so the first row "
        "would judge the second drafted token.",
        **details,
    )
    attempt.require(
        read != text + draft or cached == 0,
        "the whole text was read again behind what the cache holds of it. `model.length` tells how "
        "much that is.",
        **details,
    )
    attempt.require(
        read == expected, "the pass should read what the cache lacks, then the draft.", **details
    )


@check(read="When to stop", closed=_LIBRARY, reference=references.cut)
def cut(attempt: Attempt, seed: int | None) -> None:
    """Up to the first end token, and never more than remain."""
    cases: list[tuple[list[int], set[int], int]] = [
        ([4, 2, 5], {9}, 10),
        ([4, 9, 5], {9}, 10),
        ([4, 2, 5], {9}, 2),
        ([4, 2, 5], set(), 3),
        ([4, 2, 9, 8], {8, 9}, 2),
        ([4, 9, 8, 5], {8, 9}, 10),
    ]
    if seed is not None:
        random = Random(seed)
        cases = [
            (
                random_tokens(random, random.randint(1, 7), 9),
                {random.randrange(9), 8},
                random.randint(1, 7),
            )
            for _ in range(12)
        ] + [
            ([8, 1], {8}, 1),
            ([1, 8], {8}, 2),
            ([1, 8], {8}, 1),
            (random_tokens(random, 4, 7), {7, 8}, 4),
            ([*random_tokens(random, 2, 7), 8, 7, 1], {7, 8}, 9),
        ]
    for emitted, end_tokens, remaining in cases:
        yours = attempt(
            list(emitted),
            set(end_tokens),
            remaining,
            shown={
                "emitted": emitted,
                "end_tokens": sorted(end_tokens),
                "remaining": remaining,
            },
        )
        if not isinstance(yours, tuple | list) or len(yours) != 2:
            attempt.fail("expected two things: the tokens to keep, and whether decoding is finished.")
        kept, finished = references.cut(emitted, end_tokens, remaining)
        ends = [place for place, token in enumerate(emitted) if token in end_tokens]
        suspects = {
            "the end token is ignored: nothing comes behind it.": emitted[:remaining],
            "the budget is overshot: at most `remaining` tokens may be kept.": emitted[: ends[0] + 1]
            if ends
            else emitted,
            "the end token itself is part of the output: keep it, and nothing behind it.": emitted[
                : ends[0]
            ][:remaining]
            if ends
            else emitted,
            "the text ends at the first end token, not at the last.": emitted[: ends[-1] + 1][
                :remaining
            ]
            if ends
            else emitted,
            "that is one token less than remain.": kept[:-1],
        }
        attempt.same_tokens(yours[0], kept, "these are not the tokens to keep.", suspects)
        answer = yours[1]
        if isinstance(answer, Tensor) and answer.ndim == 0:
            answer = answer.item()
        attempt.require(
            type(answer).__name__ in ("bool", "bool_"),
            f"whether decoding is finished is {answer!r:.40}, expected True or False.",
        )
        attempt.require(
            bool(answer) == finished,
            "the tokens are right, but is decoding finished? It is, once an end token or the last "
            "token of the budget is kept.",
            yours=str(bool(answer)),
            expected=str(finished),
        )


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
        return _draft_for(model, tokens, quality[len(tokens) % 40], gamma)

    return ScriptedProposals(propose)


def _never_right(model: SpyLM, random: Random) -> ScriptedProposals:
    return ScriptedProposals(lambda tokens, gamma: _draft_for(model, tokens, 0, gamma))


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


@check(
    read="A drafter that needs no model",
    closed=(drafters.NGramDrafter,),
    reference=references.prompt_lookup,
)
def prompt_lookup(attempt: Attempt, seed: int | None) -> None:
    """What followed one of the longest matches, whichever of them."""
    cases = [
        ([1, 2, 3, 4, 5, 1, 2, 3], 2, 3),
        ([7, 8, 9], 4, 3),
        ([2, 7, 1, 2, 9, 3, 2, 8, 1, 2], 2, 3),
        ([9, 4, 4], 3, 3),
        ([1, 2, 3, 4, 5, 6, 2, 3, 4, 1, 5, 6, 1, 2, 3, 4], 2, 4),
        ([5], 3, 3),
    ]
    if seed is not None:
        random = Random(seed)
        for _ in range(10):
            pattern = random_tokens(random, random.randint(3, 6), 20)
            noise = random_tokens(random, random.randint(0, 5), 20)
            tokens = pattern + noise + pattern[: random.randint(1, 3)]
            cases.append((tokens, random.randint(1, 5), random.randint(1, 4)))
        a, b, c, d, e, f = random.sample(range(20), 6)
        cases += [
            ([a, b, c, d, e, f, b, c, d, a, e, f, a, b, c, d], 2, 4),
            ([a, b, b], 2, 3),
            ([a, a, a, a], 3, 2),
            ([], 3, 3),
        ]
    for tokens, gamma, longest in cases:
        yours = attempt(
            list(tokens),
            gamma,
            longest,
            shown={"tokens": tokens, "gamma": gamma, "longest": longest},
        )
        proposed = attempt.tokens(yours)
        size, allowed = _continuations(tokens, gamma, longest)
        if proposed in allowed:
            continue
        details = {"yours": str(proposed), "expected": " or ".join(map(str, allowed))}
        problem = "this is not what followed the last tokens before."
        ending = tokens[-size:] if size else []
        if size and proposed and proposed[:size] == ending[: len(proposed)]:
            problem = "the proposal starts with the match itself; start with what followed it."
        elif len(proposed) > gamma:
            problem = f"{len(proposed)} tokens proposed, expected at most gamma = {gamma}."
        elif not proposed and size < longest:
            problem = (
                f"nothing proposed, though {ending}, the end of the text, stood before. Where the last "
                f"{longest} tokens never did, try fewer."
            )
        elif not proposed:
            problem = (
                "nothing proposed, though the last tokens stood before. (The match at the very end of "
                "the text is the text itself; nothing follows it.)"
            )
        elif size == 0:
            problem = (
                "no part of the end of this text stood before, so there is nothing to propose: []."
            )
        elif any(proposed in _continuations(tokens, gamma, shorter)[1] for shorter in range(1, size)):
            problem = "a longer match is there. The more of the text agrees, the better: try it first."
        attempt.fail(problem, **details)


def _continuations(tokens: list[int], gamma: int, longest: int) -> tuple[int, list[list[int]]]:
    """The size of the longest match, and every draft that a reasonable rule would take from there."""
    for size in range(min(longest, len(tokens) - 1), 0, -1):
        starts = [
            start
            for start in range(len(tokens) - size)
            if tokens[start : start + size] == tokens[-size:]
        ]
        if starts:
            drafts: list[list[int]] = []
            for start in starts:
                source = start + size
                copied = list(tokens)
                for offset in range(gamma):
                    copied.append(copied[source + offset])
                drafts += [tokens[source : source + gamma], copied[len(tokens) :]]
            return size, [draft for i, draft in enumerate(drafts) if draft not in drafts[:i]]
    return 0, [[]]


@check(read="What will happen?")
def predicted_passes(attempt: Attempt, seed: int | None) -> None:
    """Any number of passes between one and the tokens made: the point is for having predicted."""
    guess = attempt.number(attempt.value)
    attempt.require(
        1 <= guess <= 64,
        f"{guess:g} target passes for 64 tokens? Write a number between 1 and 64.",
    )


@check(read="What matching cannot do", reference=references.literal_matching_law)
def literal_matching_law(attempt: Attempt, seed: int | None) -> None:
    """The law of what comes out, not a sample of it."""
    pairs = [([0.5, 0.3, 0.2], [0.6, 0.3, 0.1]), ([0.2, 0.7, 0.1], [0.5, 0.25, 0.25])]
    if seed is not None:
        random = Random(seed)
        pairs = [(_distribution(random, 5), _distribution(random, 5)) for _ in range(4)]
        pairs.append(([0.1, 0.2, 0.7], [0.5, 0.5, 0.0]))
    for p_list, q_list in pairs:
        p = torch.tensor(p_list, dtype=torch.float64)
        q = torch.tensor(q_list, dtype=torch.float64)
        yours = attempt(p.clone(), q.clone(), shown={"p": p_list, "q": q_list})
        top, likeliest = int(p.argmax()), torch.zeros_like(p)
        likeliest[top] = 1.0
        q_top, own = int(q.argmax()), torch.zeros_like(p)
        own[q_top] = 1.0
        kept, rejected = q[top] * likeliest, 1 - q[top]
        rest, residual = p * (1.0 - likeliest), (p - q).clamp(min=0.0)
        attempt.same_distribution(
            yours,
            references.literal_matching_law(p, q),
            suspects={
                "that is p itself. It would be, if the rule were exact; work out both ways in which a "
                "token can come out.": p,
                "that is q. What the drafter draws comes out only if it is p's likeliest token.": q,
                "after a rejection the token is drawn from all of p, and may be its likeliest "
                "token again.": kept + rejected * rest / rest.sum(),
                "the rest of p does not sum to one. After a rejection the token is drawn from all of "
                "p, and may be its likeliest token again.": kept + rejected * rest,
                "that draws from what p has more of than q. Here a token is drawn from all of p.": kept
                + rejected * residual / residual.sum(),
                "the draft is kept if it is the likeliest token of *p*, the target's.": q[q_top] * own
                + (1 - q[q_top]) * p,
                "these do not sum to one: the way over a kept draft is missing.": rejected * p,
                "these do not sum to one: a token is drawn from p only if the draft is not kept.": kept
                + p,
                "that sums to one, but dividing does not mend it: a token is drawn from p only if the "
                "draft is not kept.": (kept + p) / (1 + q[top]),
                "that keeps any draft with probability min(1, p/q). Here nothing but p's likeliest "
                "token is kept.": torch.minimum(p, q) + (1 - torch.minimum(p, q).sum()) * p,
                "the draft is the likeliest token with probability q, not p.": p[top] * likeliest
                + (1 - p[top]) * p,
                "the two ways are weighted the wrong way round.": rejected * likeliest + q[top] * p,
            },
        )


def _distribution(random: Random, vocab: int) -> list[float]:
    weights = [random.random() ** 2 + 0.01 for _ in range(vocab)]
    return [weight / sum(weights) for weight in weights]

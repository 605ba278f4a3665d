"""Checks of the parts of a round: by hand, verification, the round itself, the stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import torch
from torch import Tensor

from specdec_lab import decoding, verification
from specdec_lab.checks import references
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.toys import SpyLM, draft_for, greedy, random_tokens

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


@check(read="One round", closed=_LIBRARY, reference=references.one_round)
def one_round(attempt: Attempt, seed: int | None) -> None:
    """One forward over what is unread and the draft; the verdict; the rewind."""
    for model_seed, text, cached, right, length in _rounds(seed):
        model = SpyLM.make(model_seed)
        draft = draft_for(model, text, right, length)
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

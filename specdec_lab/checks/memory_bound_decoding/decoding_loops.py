"""Checks of the two decoding loops."""

from __future__ import annotations

from random import Random

from specdec_lab import decoding
from specdec_lab.checks import references
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.toys import SpyLM, greedy, random_tokens


def _texts(seed: int | None) -> list[tuple[int, list[int], int]]:
    """(seed of the model, prompt, max_new_tokens) to decode."""
    if seed is None:
        return [(0, [3, 1, 4], 4), (1, [2], 1), (2, [5, 0], 0)]
    random = Random(seed)
    return [
        (random.randrange(1000), random_tokens(random, length), budget)
        for length, budget in ((4, 7), (1, 5), (6, 1), (3, 0), (2, 12))
    ]


@check(read="The loop, without a cache", closed=(decoding,), reference=references.naive_decode)
def naive_decode(attempt: Attempt, seed: int | None) -> None:
    """Reads the whole text for each token, takes the argmax of the last row."""
    for model_seed, prompt, budget in _texts(seed):
        model = SpyLM.make(model_seed)
        truth = greedy(model, prompt, budget)
        yours = attempt(
            model.forward,
            list(prompt),
            budget,
            shown={"forward": model, "prompt": prompt, "max_new_tokens": budget},
        )
        first_row = _variant(model, prompt, budget, row=0)
        attempt.same_tokens(
            yours,
            truth,
            suspects={
                "the prompt is in your answer; return the new tokens only.": prompt + truth,
                "that is one token too many for `max_new_tokens`.": greedy(model, prompt, budget + 1),
                "the last token is missing: `max_new_tokens` of them are asked for.": truth[:-1],
                "you take the first row of the logits. It predicts the second token of the text; "
                "the last row predicts the next.": first_row,
                "each pass sees the last token only. Without a cache it has to see the whole "
                "text.": _variant(model, prompt, budget, seen=1),
                "each pass predicts the same token again. The text has to grow by each new token, and "
                "the row to read is that of its last one.": truth[:1] * budget,
            },
        )
        expected = [prompt + truth[:count] for count in range(budget)]
        attempt.require(
            model.reads == expected,
            "the tokens are right, but the passes are not one per new token, each over the whole text.",
            yours=_passes(model.reads),
            expected=_passes(expected),
        )


def _variant(
    model: SpyLM, prompt: list[int], budget: int, row: int = -1, seen: int | None = None
) -> list[int]:
    """Greedy decoding gone wrong: another row of the logits, or only the last tokens seen."""
    tokens = list(prompt)
    for _ in range(budget):
        notes = list(model.reads)
        tokens.append(int(model.forward(tokens[-seen:] if seen else tokens)[row].argmax()))
        model.reads = notes
    return tokens[len(prompt) :]


def _passes(reads: list[list[int]]) -> str:
    lengths = [len(read) for read in reads]
    return f"{len(reads)} passes" + (f", over {lengths} tokens" if lengths else "")


@check(read="The same loop, with a cache", closed=(decoding,), reference=references.cached_decode)
def cached_decode(attempt: Attempt, seed: int | None) -> None:
    """Reads each token once: the prompt in one pass, then one token per pass."""
    for model_seed, prompt, budget in _texts(seed):
        model = SpyLM.make(model_seed)
        truth = greedy(model, prompt, budget)
        yours = attempt(
            model,
            list(prompt),
            budget,
            shown={"model": model, "prompt": prompt, "max_new_tokens": budget},
        )
        expected = [prompt, *([token] for token in truth[:-1])] if budget else []
        _judge_reads(attempt, model, prompt, expected)
        attempt.same_tokens(
            yours,
            truth,
            suspects={
                "the prompt is in your answer; return the new tokens only.": prompt + truth,
                "the last token is missing: `max_new_tokens` of them are asked for.": truth[:-1],
                "that is one token too many for `max_new_tokens`.": greedy(model, prompt, budget + 1),
                "you take the first row of the prefill. It predicts the second token of the prompt; "
                "the last row predicts the next.": _from_first_row(model, prompt, budget),
            },
        )
        if budget:
            attempt.require(
                model.reads == expected,
                "the tokens are right, but there is a pass too many. The last new token need not be "
                "read: nothing follows it."
                if model.reads[:-1] == expected
                else "the tokens are right, but the passes are not: one over the prompt, then one over "
                "each new token but the last.",
                yours=_passes(model.reads),
                expected=_passes(expected),
            )


def _from_first_row(model: SpyLM, prompt: list[int], budget: int) -> list[int]:
    first = greedy(model, prompt[:1], min(budget, 1))
    return first + greedy(model, prompt + first, budget - 1)


def _judge_reads(attempt: Attempt, model: SpyLM, prompt: list[int], expected: list[list[int]]) -> None:
    reads = model.reads
    details = {"yours": _passes(reads), "expected": _passes(expected)}
    longer = [read for read in reads[1:] if len(read) > 1]
    attempt.require(
        not longer,
        "a later pass reads the text again, though the cache has it. Unless you rewind, it then stands "
        "there twice, and the model sees a text that nobody wrote. Give `extend` the new token only.",
        **details,
    )
    if not reads or reads[0] == prompt:
        return
    attempt.require(
        reads[0] != prompt[: len(reads[0])],
        "the prompt is not read in one pass. `extend` takes all of it at once, at about the price of "
        "one token.",
        **details,
    )
    attempt.require(
        reads[0] != prompt[-1:],
        "the prompt is not read whole: only its last token reaches the model.",
        **details,
    )

"""Checks of the drafter that needs no model, and of the prediction about it."""

from __future__ import annotations

from random import Random

from specdec_lab import drafters
from specdec_lab.checks import references
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.toys import random_tokens


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

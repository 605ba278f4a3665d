"""The check of drawing a draft: the q of each token, and the law of all of them together."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from torch import Tensor

from specdec_lab import drafters
from specdec_lab.checks import references
from specdec_lab.checks.exact_speculative_sampling.laws import apart, law_of
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.language_model import RandomLM
from specdec_lab.randomness import Chooser


@check(
    read="Draw a draft",
    closed=(drafters.ModelDrafter, drafters.LayerSkipDrafter),
    reference=references.propose,
)
def propose(attempt: Attempt, seed: int | None) -> None:
    """The q of every token, and the law of the draft, whatever stands in the cache."""
    random = Random(5 if seed is None else seed)
    tokens = [random.randrange(3) for _ in range(3)]
    junk = [(tokens[0] + 1) % 3, 1, 0, 2]
    # What is in the draft model's cache: nothing; part of the text; a rejected draft; another text.
    caches = [[], tokens[:2], [*tokens, 1, 0], junk]
    plan: list[tuple[list[int], int, float]] = [
        (caches[0], 2, 1.0),
        (caches[2], 2, 1.0),
        (caches[0], 0, 1.0),
        (caches[3], 1, 0.5),
    ]
    if seed is not None:
        plan = [(cache, gamma, 0.7) for cache in caches for gamma in (1, 2)] + [(caches[1], 3, 1.4)]
    for cache, gamma, temperature in plan:
        _judge_propose(attempt, random.randrange(10**6), tokens, cache, gamma, temperature)


def _judge_propose(
    attempt: Attempt,
    model_seed: int,
    tokens: list[int],
    cache: list[int],
    gamma: int,
    temperature: float,
) -> None:
    def process(logits: Tensor) -> Tensor:
        attempt.require(
            isinstance(logits, Tensor) and logits.ndim == 1,
            "`process` takes one row of logits, [vocab]: that of the last token that was read.",
        )
        return (logits / temperature).softmax(-1)

    def row_behind(text: list[int]) -> Tensor:
        return RandomLM(3, model_seed).extend(text, rows=1)[0]

    def run(chooser: Chooser) -> tuple[int, ...]:
        model = _Model(3, model_seed)
        if cache:
            model.extend(cache)
        yours = attempt(
            model,
            list(tokens),
            gamma,
            process,
            chooser,
            shown={
                "model": f"<draft model, cache {cache}>",
                "tokens": tokens,
                "gamma": gamma,
                "process": "...",
                "chooser": "...",
            },
        )
        if not isinstance(yours, tuple | list) or len(yours) != 2:
            attempt.fail("expected two things: the drafted tokens, and their distributions q.")
        draft = attempt.tokens(yours[0])
        if draft[: len(tokens)] == tokens and len(draft) == len(tokens) + gamma:
            attempt.fail("the text is in the draft; give the new tokens only.", yours=str(draft))
        attempt.require(
            len(draft) == gamma, f"{len(draft)} tokens were drafted, expected gamma = {gamma}."
        )
        attempt.require(
            hasattr(yours[1], "__len__") and len(yours[1]) == gamma,
            f"expected one distribution q for each of the {gamma} drafted tokens.",
        )
        for place, q in enumerate(yours[1]):
            _judge_q(attempt, q, tokens, draft[:place], row_behind, process)
        return tuple(draft)

    law = law_of(run)
    truth = law_of(
        lambda chooser: tuple(
            references.propose(RandomLM(3, model_seed), tokens, gamma, process, chooser)[0]
        )
    )
    far = apart(law, truth)
    if far:
        draft = next(iter(far))
        attempt.fail(
            "the likeliest token is taken, and q says that it was drawn. Draw it: `chooser.sample(q)`."
            if len(law) == 1
            else "the tokens are not drawn from the q that is handed over.",
            draft=str(list(draft)),
            yours=f"comes with probability {law.get(draft, 0.0):.4f}",
            expected=f"{truth.get(draft, 0.0):.4f}",
        )


class _Model(RandomLM):
    """A toy draft model, with a name for failures."""

    shown = "<draft model>"


def _judge_q(
    attempt: Attempt,
    q: object,
    tokens: list[int],
    before: list[int],
    row_behind: Callable[[list[int]], Tensor],
    process: references.Process,
) -> None:
    logits = row_behind(tokens + before)
    first = process(row_behind(tokens))
    suspects = {
        "those are logits; `process` makes a distribution of them.": logits,
        "the temperature is missing: `process` makes the distribution.": logits.softmax(-1),
        "that is the first token's q. Each has its own, behind those before it.": first,
        "all of the probability is on one token. The token is drawn, from all of them.": (
            logits == logits.max()
        ).double(),
    }
    if before:
        suspects |= {
            "that is q one token further back. Read the drafted token before you ask for the next.": (
                process(row_behind(tokens + before[:-1]))
            )
        }
    attempt.same_distribution(
        q,
        process(logits),
        f"the q of drafted token {len(before)} is not what the model says behind {tokens + before}. "
        "What stands in its cache?",
        suspects=suspects,
    )

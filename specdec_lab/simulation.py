"""The idea of speculative decoding without any model: a scripted run, labelled as such.

A made-up target knows one sentence, and a made-up drafter proposes it with one mistake. The loop, the
verification and the counts are the real ones; the times are not measured but counted in target steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from specdec_lab.decoding import generate
from specdec_lab.drafters import ScriptedDrafter
from specdec_lab.language_model import TableLM
from specdec_lab.records import Generation
from specdec_lab.text import transcribe
from specdec_lab.theory import expected_speedup

PROMPT = ["The", " capital"]
CONTINUATION = [" of", " France", " is", " Paris", ".", " It", " is", " beautiful", "."]
MISTAKE = " today"
"""What the drafter proposes in place of the last token."""
VOCABULARY = [*PROMPT, *CONTINUATION, MISTAKE]
"""One id for each place of the sentence: the two " is" are two tokens, and so are the full stops."""

_SENTENCE = list(range(len(PROMPT) + len(CONTINUATION)))
_END, _MISTAKEN = _SENTENCE[-1], len(VOCABULARY) - 1


@dataclass(frozen=True)
class Simulation:
    """A scripted run and what its costs would amount to.

    Args:
        generation: the run; ``simulated`` is set.
        draft_cost: c, assumed: one draft step in target steps.
        gamma: draft length.
        counted_speedup: tokens over rounds + drafted * c, counted in this run. Every verifying
            forward is taken to cost as much as a one-token forward.
        expected_speedup: what theory says at this run's acceptance rate, on average over many runs.
    """

    generation: Generation
    draft_cost: float
    gamma: int
    counted_speedup: float
    expected_speedup: float


def decode(tokens: list[int]) -> str:
    """Token ids of the made-up vocabulary to text."""
    return "".join(VOCABULARY[token] for token in tokens)


def simulate(gamma: int = 4, draft_cost: float = 0.15) -> Simulation:
    """Play the script with draft length ``gamma`` and an assumed ``draft_cost`` (c).

    Raises:
        ValueError: if ``gamma`` is below 1 or ``draft_cost`` negative.
    """
    if gamma < 1:
        raise ValueError(f"gamma: got {gamma}, expected 1 or more in the scripted run")
    prompt, continuation = _SENTENCE[: len(PROMPT)], _SENTENCE[len(PROMPT) :]
    generation = generate(
        _target(),
        prompt,
        drafter=ScriptedDrafter(len(VOCABULARY), [*continuation[:-1], _MISTAKEN]),
        gamma=gamma,
        # More than the sentence needs, so that the budget does not shorten the last draft.
        max_new_tokens=len(continuation) + gamma,
        seed=0,
        end_ids=[_END],
        trace=True,
    )
    generation = replace(generation, text=transcribe(generation.tokens, decode))
    metrics = generation.metrics
    cost = metrics.target_forwards + metrics.drafted * draft_cost
    rate = metrics.accepted / metrics.drafted
    return Simulation(
        generation,
        draft_cost,
        gamma,
        counted_speedup=metrics.new_tokens / cost,
        expected_speedup=expected_speedup(rate, gamma, draft_cost),
    )


def _target() -> TableLM:
    """A model that is certain of the sentence."""
    table: dict[tuple[int, ...], list[float]] = {(): _certain(0)}
    table |= {(token,): _certain(token + 1) for token in _SENTENCE[:-1]}
    return TableLM(table)


def _certain(token: int) -> list[float]:
    return [float(token == other) for other in range(len(VOCABULARY))]

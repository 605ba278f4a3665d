"""The audit of a decoder on toy models: the library's own, or anybody's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specdec_lab.audit.decoder import DecoderAudit, audit_decoder
from specdec_lab.audit.gallery.member import DraftedDecoder, loop, with_draft
from specdec_lab.audit.law import MAX_PATHS
from specdec_lab.language_model import RandomLM
from specdec_lab.sampling import Sampling

PROMPT, OTHER_PROMPT = (0, 1), (1, 0, 0)


@dataclass(frozen=True)
class _Case:
    """A pair of toy models, a prompt and a length to try a decoder on."""

    name: str
    target: RandomLM
    draft: RandomLM
    prompt: tuple[int, ...]
    length: int


def _cases(vocab: int, length: int, seed: int) -> list[_Case]:
    """One mistake shows on one of them, another on another."""
    other = seed + 1000
    plain, some = RandomLM(vocab, seed), 1 / vocab
    return [
        _Case("different models", plain, RandomLM(vocab, other), PROMPT, length),
        _Case("one token", plain, RandomLM(vocab, other), OTHER_PROMPT, min(length, 1)),
        _Case(
            "impossible tokens",
            RandomLM(vocab, seed, zeros=some),
            RandomLM(vocab, other, zeros=some),
            PROMPT,
            length,
        ),
        _Case(
            "very unlikely tokens",
            RandomLM(vocab, seed, sharpness=16.0),
            RandomLM(vocab, other),
            OTHER_PROMPT,
            length,
        ),
        _Case("a draft like the target", plain, RandomLM(vocab, seed), PROMPT, length),
    ]


def audit_cases(
    decoder: DraftedDecoder,
    *,
    name: str | None = None,
    vocab: int = 3,
    length: int = 3,
    seed: int = 1,
    sampling: Sampling | None = None,
    end_ids: tuple[int, ...] = (),
    max_paths: int | None = None,
    progress: bool = False,
) -> Iterator[DecoderAudit]:
    """Audit a decoder on five pairs of toy models; one mistake shows on one, another on another.

    All models give random distributions behind every prefix. The pairs are: two different models; the
    same behind another prompt, for a single token; two models with impossible tokens, not the same
    ones; a target with tokens of 1e-4 and below; a draft model equal to the target.

    Args:
        decoder: (target, draft model, prompt, max_new_tokens, chooser) -> the new tokens.
        name: what to call it; None is its own name.
        vocab: tokens of the toy models, 2 at least.
        length: new tokens.
        seed: other models.
        sampling: what the decoder is meant to do with the logits; None is temperature 1.
        end_ids: end tokens that it is meant to stop at; the target has them as its ``end_ids``.
        max_paths: the budget for each pair.
        progress: show bars.

    Yields:
        An audit for each pair, as soon as it is done.
    """
    if vocab < 2:
        raise ValueError(f"vocab: got {vocab}, expected 2 or more")
    wrong = [token for token in end_ids if not 0 <= token < vocab]
    if wrong:
        raise ValueError(f"end_ids: got {wrong[0]}, expected 0 to {vocab - 1}")
    title = name or getattr(decoder, "__name__", "the decoder")
    for case in _cases(vocab, length, seed):
        case.target.end_ids = frozenset(end_ids)
        yield audit_decoder(
            with_draft(decoder, case.draft),
            case.target,
            case.prompt,
            case.length,
            sampling=sampling,
            end_ids=end_ids,
            name=f"{title}, {case.name}",
            max_paths=MAX_PATHS if max_paths is None else max_paths,
            progress=progress,
        )


def audit_own_decoder(
    vocab: int = 3,
    length: int = 4,
    gamma: int = 3,
    *,
    max_paths: int = MAX_PATHS,
    progress: bool = False,
) -> DecoderAudit:
    """The audit of ``speculative()`` with a draft model: the very code that decodes real models."""
    return audit_decoder(
        with_draft(loop(gamma=gamma), RandomLM(vocab, seed=1001)),
        RandomLM(vocab, seed=1),
        PROMPT,
        length,
        name=f"speculative(), {length} tokens, gamma {gamma}",
        max_paths=max_paths,
        progress=progress,
    )

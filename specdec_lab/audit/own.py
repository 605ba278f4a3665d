"""The audit of a decoder on toy models: the library's own, or anybody's."""

from __future__ import annotations

from collections.abc import Iterator

from specdec_lab.audit.decoder import DecoderAudit, audit_decoder
from specdec_lab.audit.gallery.member import DraftedDecoder, loop, with_draft
from specdec_lab.audit.law import MAX_PATHS
from specdec_lab.language_model import RandomLM
from specdec_lab.sampling import Sampling

PROMPT = (0, 1)


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
    """Audit a decoder on three pairs of toy models; one mistake shows on one, another on another.

    The models give random distributions behind every prefix. The pairs are: two different models; two
    models with impossible tokens, not the same ones; a draft model equal to the target.

    Args:
        decoder: (target, draft model, prompt, max_new_tokens, chooser) -> the new tokens.
        name: what to call it; None is its own name.
        vocab: tokens of the toy models, 2 at least.
        length: new tokens.
        seed: other models.
        sampling: what the decoder is meant to do with the logits; None is temperature 1.
        end_ids: end tokens that it is meant to stop at.
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
    pairs = {
        "different models": (RandomLM(vocab, seed), RandomLM(vocab, seed + 1000)),
        "impossible tokens": (
            RandomLM(vocab, seed, zeros=1 / vocab),
            RandomLM(vocab, seed + 1000, zeros=1 / vocab),
        ),
        "a draft like the target": (RandomLM(vocab, seed), RandomLM(vocab, seed)),
    }
    for case, (target, draft) in pairs.items():
        yield audit_decoder(
            with_draft(decoder, draft),
            target,
            PROMPT,
            length,
            sampling=sampling,
            end_ids=end_ids,
            name=f"{title}, {case}",
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

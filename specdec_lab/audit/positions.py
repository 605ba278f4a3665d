"""The one-step audit at the positions of real texts: how alike are p and q there, and is p kept?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

import torch
from torch import Tensor
from tqdm.auto import tqdm

from specdec_lab.audit.decoder import small_number
from specdec_lab.distributions import alpha, residual
from specdec_lab.drafters import Drafter, require_same_width
from specdec_lab.language_model import CausalLM
from specdec_lab.provenance import provenance
from specdec_lab.randomness import SeededChooser
from specdec_lab.sampling import Sampling
from specdec_lab.sheet import Sheet, Shown, Toned
from specdec_lab.text import Decode, Tokenizer, Transcript, decoder, encode

KINDS = ("token", "sentence start", "name", "word", "inside a word", "number", "punctuation", "end")
ROUNDING = 1e-12
"""L1 that float64 leaves over a vocabulary of 10^5; 1e-15 is usual."""


@dataclass(frozen=True)
class AuditedPosition:
    """One position of a text.

    Args:
        token: the token that stands there, drawn from p.
        text: its text.
        kind: one of ``KINDS``; "token" where there is no tokenizer to read text with.
        alpha: expected acceptance there; None where the drafter proposed nothing.
        l1_error: of the one-step reconstruction in float64.
        l1_error_decoding: of the same with the rounding of decoding itself (float32 on most models).
    """

    token: int
    text: str
    kind: str
    alpha: float | None
    l1_error: float
    l1_error_decoding: float


@dataclass(frozen=True)
class PositionsAudit(Shown):
    """Every position of some texts, audited.

    Args:
        texts: one tuple of positions per prompt.
        prompts: the prompts.
        provenance: where the numbers come from.
    """

    texts: tuple[tuple[AuditedPosition, ...], ...]
    prompts: tuple[str, ...]
    provenance: dict[str, Any]

    @property
    def positions(self) -> list[AuditedPosition]:
        """All positions of all texts."""
        return [position for text in self.texts for position in text]

    @property
    def judged(self) -> list[AuditedPosition]:
        """Those at which the drafter proposed something."""
        return [position for position in self.positions if position.alpha is not None]

    @property
    def alpha(self) -> float | None:
        """The mean over all judged positions."""
        return mean(_alphas(self.judged)) if self.judged else None

    @property
    def l1_error(self) -> float:
        """The largest error of a reconstruction in float64."""
        return max((position.l1_error for position in self.judged), default=0.0)

    @property
    def l1_error_decoding(self) -> float:
        """The largest error with the rounding of decoding itself."""
        return max((position.l1_error_decoding for position in self.judged), default=0.0)

    @property
    def exact(self) -> bool:
        """Whether something was judged, and p restored there up to the rounding of float64."""
        return bool(self.judged) and self.l1_error <= ROUNDING

    def to_json(self) -> dict[str, Any]:
        """Every position, for machines."""
        return {
            "l1_error": self.l1_error,
            "l1_error_decoding": self.l1_error_decoding,
            "alpha": self.alpha,
            "positions": len(self.positions),
            "judged": len(self.judged),
            "alpha_by_kind": {kind: mean(_alphas(found)) for kind, found in self._by_kind().items()},
            "texts": [
                [{"text": one.text, "kind": one.kind, "alpha": one.alpha} for one in text]
                for text in self.texts
            ],
            "provenance": self.provenance,
        }

    def sheet(self) -> Sheet:
        """Alpha by kind of position: where does the draft fail?"""
        rows = tuple(
            (kind, str(len(found)), f"{mean(_alphas(found)):.2f}", f"{min(_alphas(found)):.2f}")
            for kind, found in self._by_kind().items()
        )
        silent = len(self.positions) - len(self.judged)
        notes: list[str | Toned] = [
            self._verdict(),
            f"alpha is {_number(self.alpha)} on average over {len(self.judged)} positions"
            + (f"; at {silent} more the drafter proposed nothing" if silent else ""),
            f"measured: target {self.provenance['target']}, drafter {self.provenance['drafter']}, "
            f"{self.provenance['dtype']} on {self.provenance['device']}",
        ]
        return Sheet(
            title="Alpha at the positions of real texts",
            columns=("at", "positions", "alpha", "lowest"),
            rows=rows,
            notes=tuple(notes),
        )

    def _verdict(self) -> Toned:
        if not self.judged:
            return Toned("nothing was judged: the drafter proposed nothing", "unsure")
        if not self.exact:
            return Toned(f"p is NOT restored: L1 {small_number(self.l1_error)}", "bad")
        return Toned(
            f"p is restored everywhere: L1 at most {small_number(self.l1_error)} in float64; "
            f"{small_number(self.l1_error_decoding)} with the rounding of decoding itself",
            "good",
        )

    def _by_kind(self) -> dict[str, list[AuditedPosition]]:
        found = {kind: [one for one in self.judged if one.kind == kind] for kind in KINDS}
        return {kind: positions for kind, positions in found.items() if positions}


def audit_positions(
    target: CausalLM,
    drafter: Drafter,
    prompts: Iterable[str | Sequence[int]],
    *,
    tokenizer: Tokenizer | None = None,
    chat: bool = False,
    max_new_tokens: int = 48,
    sampling: Sampling | None = None,
    seed: int = 0,
    progress: bool = False,
) -> PositionsAudit:
    """Audit p and q at every position of texts that the target writes.

    Each text is drawn from the target alone, so that it does not depend on the drafter; at each of its
    positions the drafter is asked for one token, and the step from q to p is reconstructed over the
    whole vocabulary. Time: a target forward and a draft step for each position.

    Args:
        target: the model.
        drafter: proposes; any.
        prompts: texts (these need ``tokenizer``) or token ids.
        tokenizer: any transformers tokenizer.
        chat: wrap text prompts in the tokenizer's chat template.
        max_new_tokens: length of each text, which also ends at an end token.
        sampling: None is temperature 1.
        seed: of the texts.
        progress: show a bar.
    """
    require_same_width(target, drafter)
    chosen = sampling or Sampling(1.0)
    decode = decoder(tokenizer) if tokenizer is not None else None
    texts, shown = [], []
    given = list(prompts)
    with tqdm(
        total=len(given) * max_new_tokens, desc="positions", disable=not progress, leave=False
    ) as bar:
        for number, prompt in enumerate(given):
            tokens = encode(tokenizer, prompt, chat)
            walk = _Walk(target, drafter, chosen, SeededChooser(seed + number), decode)
            texts.append(tuple(walk.positions(tokens, max_new_tokens, bar)))
            shown.append(prompt if isinstance(prompt, str) else " ".join(map(str, prompt)))
    return PositionsAudit(tuple(texts), tuple(shown), provenance(target, drafter, seed=seed))


class _Walk:
    """Along one text, position by position."""

    def __init__(
        self,
        target: CausalLM,
        drafter: Drafter,
        sampling: Sampling,
        chooser: SeededChooser,
        decode: Decode | None,
    ) -> None:
        self._target = target
        self._drafter = drafter
        self._sampling = sampling
        self._chooser = chooser
        self._decode = decode

    def positions(self, prompt: list[int], length: int, bar: Any) -> Iterable[AuditedPosition]:
        tokens = list(prompt)
        self._target.reset()
        self._drafter.begin(self._sampling)
        drafting = SeededChooser(self._chooser.seed)
        reader = _Reader(self._decode, prompt)
        for _ in range(min(length, _room(self._target, prompt))):
            draft = self._drafter.propose(tokens, 1, drafting)
            logits = self._target.extend(self._target.rewind_to_match(tokens), rows=1)[0]
            p = self._sampling.distribution(tokens, logits)  # [vocab]
            token = self._chooser.sample(p)
            tokens.append(token)
            ends = token in self._target.end_ids
            piece, kind = reader.read(token)
            judged = _judge(p, draft.row(0, len(p)).to(p.device)) if len(draft) else (None, 0.0, 0.0)
            yield AuditedPosition(token, piece, "end" if ends else kind, *judged)
            bar.update()
            if ends:
                return


class _Reader:
    """The text of each token, in its context: characters and words may span tokens."""

    def __init__(self, decode: Decode | None, prompt: list[int]) -> None:
        self._transcript = Transcript(decode) if decode else None
        for token in prompt:
            self._read(token)

    def read(self, token: int) -> tuple[str, str]:
        """The text that the token completes, and its kind."""
        if self._transcript is None:
            return str(token), "token"
        before = self._transcript.text
        piece = self._read(token)
        return piece, kind_of(piece, before) if piece else "inside a word"

    def _read(self, token: int) -> str:
        return self._transcript.push(token) if self._transcript else ""


def _judge(p: Tensor, q: Tensor) -> tuple[float, float, float]:
    """alpha and both errors."""
    return alpha(p, q), reconstruction_error(p.double(), q.double()), decoding_error(p, q)


def _room(target: CausalLM, prompt: list[int]) -> int:
    """How many positions the target's context has left behind the prompt."""
    if not prompt:
        raise ValueError("prompts: got one without tokens, expected at least one")
    return 10**9 if target.context_limit is None else target.context_limit - len(prompt)


def reconstruction_error(p: Tensor, q: Tensor) -> float:
    """L1 between p ``[vocab]`` and what one step makes of q ``[vocab]``, both normalised first."""
    return decoding_error(p / p.sum(), q / q.sum())


def decoding_error(p: Tensor, q: Tensor) -> float:
    """L1 between p and what one step makes of q, with the residual in its own precision.

    The rest is in float64, as it is when a chooser decides: tokens follow q / sum(q).
    """
    wide_p, wide_q = p.double(), q.double()
    chances = torch.where(wide_q > 0.0, wide_p / wide_q, 0.0).clamp(max=1.0)
    drafted, rest = wide_q / wide_q.sum(), residual(p, q).double()
    rejected = (drafted * (1.0 - chances)).sum()
    final = drafted * chances + rejected * rest / rest.sum()
    return float((final - wide_p / wide_p.sum()).abs().sum())


def kind_of(piece: str, before: str) -> str:
    """What stands at a position, by a rule of thumb over its text and the text before it."""
    core = piece.strip()
    if not any(character.isalnum() for character in core):
        return "punctuation"
    if any(character.isdigit() for character in core):
        return "number"
    starts_word = piece[:1].isspace() or not before or before[-1:].isspace()
    if not starts_word:
        return "inside a word"
    if not before.strip() or before.rstrip()[-1] in ".!?:" or "\n" in piece + before[-1:]:
        return "sentence start"
    return "name" if core[0].isupper() else "word"


def _alphas(positions: Iterable[AuditedPosition]) -> list[float]:
    return [one.alpha for one in positions if one.alpha is not None]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"

"""The rogues' gallery: decoders with one plausible fault each, and honest ones that look odd.

It keeps the audit honest: every rogue has to be condemned, every honest member cleared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tqdm.auto import tqdm

from specdec_lab.audit.decoder import DecoderAudit, audit_decoder, small_number
from specdec_lab.audit.gallery.honest import HONEST
from specdec_lab.audit.gallery.loops import LOOPS
from specdec_lab.audit.gallery.member import Member, with_draft
from specdec_lab.audit.gallery.rules import RULES
from specdec_lab.language_model import RandomLM
from specdec_lab.sheet import Cell, Sheet, Shown, Tone, Toned

__all__ = ["GALLERY", "GalleryAudit", "Member", "audit_gallery", "audit_member", "with_draft"]

GALLERY: list[Member] = [*HONEST, *RULES, *LOOPS]

VOCAB, LENGTH, PROMPT = 3, 3, (0, 1)
MAX_PATHS = 1000
"""Honest members need fewer; two of the rogues have more, and are condemned by then."""


@dataclass(frozen=True)
class GalleryAudit(Shown):
    """The verdict on every member."""

    audits: tuple[tuple[Member, DecoderAudit], ...]

    @property
    def surprises(self) -> list[str]:
        """Names of members whose verdict is not the one they deserve; empty if the audit works."""
        return [member.name for member, audit in self.audits if audit.verdict != member.expected]

    def to_json(self) -> list[dict[str, Any]]:
        """One object per member."""
        return [
            audit.to_json()
            | {"what": member.what, "honest": member.honest, "expected": member.expected}
            for member, audit in self.audits
        ]

    def sheet(self) -> Sheet:
        """One row per member."""
        rows: list[tuple[Cell, ...]] = []
        for member, audit in self.audits:
            surprise = "" if audit.verdict == member.expected else f", expected {member.expected}"
            tone: Tone = "good" if audit.verdict == "exact" else "bad"
            verdict = Toned(audit.verdict + surprise, tone)
            rows.append((member.name, verdict, small_number(audit.l1_error), member.what))
        honest = sum(member.honest for member, _ in self.audits)
        cleared = sum(member.honest and audit.verdict == "exact" for member, audit in self.audits)
        rogues = len(self.audits) - honest
        condemned = sum(not member.honest and audit.verdict != "exact" for member, audit in self.audits)
        good = cleared == honest and condemned == rogues
        return Sheet(
            title="The gallery: honest decoders first, then the rogues",
            columns=("decoder", "verdict", "L1", "what it does"),
            rows=tuple(rows),
            notes=(
                Toned(
                    f"cleared {cleared} of {honest} honest, condemned {condemned} of {rogues} rogues",
                    "good" if good else "bad",
                ),
            ),
            text_columns=(0, 1, 3),
        )


def audit_member(member: Member, seed: int = 1, zeros: float = 0.0) -> DecoderAudit:
    """Audit one member on a pair of random toy models."""
    target = RandomLM(VOCAB, seed, zeros)
    return audit_decoder(
        with_draft(member.decoder, RandomLM(VOCAB, seed + 1000, zeros)),
        target,
        PROMPT,
        LENGTH,
        sampling=member.sampling,
        end_ids=member.end_ids,
        name=member.name,
        max_paths=MAX_PATHS,
    )


def audit_gallery(progress: bool = False) -> GalleryAudit:
    """Audit every member (about ten seconds)."""
    members = tqdm(GALLERY, desc="gallery", disable=not progress, leave=False)
    return GalleryAudit(tuple((member, audit_member(member)) for member in members))

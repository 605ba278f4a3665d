"""What every experiment is given: the models, where results go, and whether it has to be quick."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from specdec_lab.bench.results import Ledger, Result
from specdec_lab.draft_model import EMBEDDED_DRAFTS, stored_drafts
from specdec_lab.drafters import ModelDrafter
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair, embedded_draft
from specdec_lab.provenance import provenance
from specdec_lab.text import encode


@dataclass
class Setup:
    """The machine and the models of a run of experiments.

    Args:
        load: gives the pair in a dtype; called once for each.
        out: the folder of the results.
        quick: minutes instead of an hour: fewer prompts, lengths and turns.
        progress: show progress bars.
    """

    load: Callable[[str], Pair]
    out: Path
    quick: bool = False
    progress: bool = True
    _pairs: dict[str, Pair] = field(default_factory=dict, init=False)

    def pair(self, dtype: str) -> Pair:
        """The models in this dtype."""
        if dtype not in self._pairs:
            self._pairs[dtype] = self.load(dtype)
        return self._pairs[dtype]

    def ledger(
        self, experiment: str, keys: Iterable[str], settings: dict[str, Any], pair: Pair
    ) -> Ledger:
        """The kept result of an experiment: begun, or gone on with."""
        drafter = None if pair.draft is None else ModelDrafter(pair.draft)
        whole = {"quick": self.quick, "draft": _checksum(pair)} | settings | {"keys": list(keys)}
        made = Result(experiment, provenance(pair.target, drafter), whole)
        return Ledger(self.out / f"{experiment}.json", made)


def _checksum(pair: Pair) -> str | None:
    """Of the embedded draft model, whose name says nothing of how it was trained."""
    stored = {one.title: one.sha256 for one in stored_drafts().values()}
    return None if pair.draft is None else stored.get(pair.draft.name)


def prompt_ids(pair: Pair, prompt: str | Sequence[int]) -> list[int]:
    """A prompt's token ids: text as a user's turn if the tokenizer knows of chats, ids as they are."""
    chat = isinstance(prompt, str) and bool(pair.tokenizer.chat_template)
    return encode(pair.tokenizer, prompt, chat)


def ancestors_of(pair: Pair) -> dict[str, HFCausalLM]:
    """The pair's draft model from earlier in its training, the better first; none for most pairs.

    By how much of its training each has had, as its title says.
    """
    newest, *older = EMBEDDED_DRAFTS
    titles = {name: one.title for name, one in stored_drafts().items()}
    if pair.draft is None or pair.draft.name != titles[newest]:
        return {}
    return {titles[name].rpartition(", ")[2]: embedded_draft(pair.target, name) for name in older}


def dtypes_of(device: torch.device) -> tuple[str, ...]:
    """The dtypes that are compared on a device."""
    return ("bfloat16",) if device.type == "cuda" else ("float32", "bfloat16")

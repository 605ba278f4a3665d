"""What every experiment is given: the models, where results go, and whether it has to be quick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from specdec_lab.bench.results import Ledger, Result
from specdec_lab.draft_model import EMBEDDED_DRAFTS, stored_drafts
from specdec_lab.drafters import Drafter
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
        self,
        experiment: str,
        settings: dict[str, Any],
        pair: Pair,
        drafter: Drafter | None = None,
    ) -> Ledger:
        """The kept result of an experiment: begun, or gone on with."""
        whole = {"quick": self.quick} | settings
        made = Result(experiment, provenance(pair.target, drafter), whole)
        return Ledger(self.out / f"{experiment}.json", made)


def prompt_ids(pair: Pair, prompt: str | Sequence[int]) -> list[int]:
    """A prompt's token ids: text as a user's turn if the tokenizer knows of chats, ids as they are."""
    chat = isinstance(prompt, str) and bool(pair.tokenizer.chat_template)
    return encode(pair.tokenizer, prompt, chat)


def ancestors_of(pair: Pair) -> dict[str, HFCausalLM]:
    """The pair's draft model from earlier in its training, the better first; none for most pairs."""
    newest, *older = EMBEDDED_DRAFTS
    if pair.draft is None or pair.draft.name != stored_drafts()[newest].title:
        return {}
    return {name.removeprefix(f"{newest}-"): embedded_draft(pair.target, name) for name in older}


def dtypes_of(device: torch.device) -> tuple[str, ...]:
    """The dtypes that are compared on a device."""
    return ("bfloat16",) if device.type == "cuda" else ("float32", "bfloat16")


def context_of(length: int, vocab_size: int) -> list[int]:
    """Some tokens to stand in the cache when a forward is timed: which ones makes no difference."""
    return [(1000 + 7 * place) % vocab_size for place in range(length)]

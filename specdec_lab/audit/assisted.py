"""transformers' assisted generation, audited on tiny models as an example of a foreign engine.

Twice over. By sampling, as one would audit any black box. And exactly: torch's random functions are
answered by the enumerating chooser while transformers runs, so that its own code walks every path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from tqdm.auto import tqdm
from transformers.utils import logging

from specdec_lab.audit.decoder import (
    NETWORK_TOLERANCE,
    DecoderAudit,
    audit_decoder,
    small_number,
)
from specdec_lab.audit.law import Decoder, target_law
from specdec_lab.audit.samples import FALSE_ALARM, SampleAudit, audit_samples
from specdec_lab.language_model import CausalLM, HFCausalLM, RandomLM
from specdec_lab.provenance import installed
from specdec_lab.randomness import Chooser
from specdec_lab.sheet import Cell, Sheet, Shown, Tone, Toned

if TYPE_CHECKING:
    from transformers import PreTrainedModel

VOCAB, LENGTH, GAMMA = 3, 3, 2
PROMPT = (0, 1)


class DrivenRandomness(TorchFunctionMode):
    """While it is on, ``torch.multinomial`` and ``torch.rand_like`` ask a chooser.

    ``rand_like(x)`` is taken for the uniform numbers that the probabilities x are about to be compared
    with, as transformers' acceptance step does: an accepted one is answered by 0, a rejected one by 1.
    Any other use of it would be driven wrongly.
    """

    def __init__(self, chooser: Chooser) -> None:
        super().__init__()
        self._chooser = chooser

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in (torch.multinomial, torch.Tensor.multinomial):
            return self._multinomial(*args, **(kwargs or {}))
        if func is torch.rand_like:
            return self._uniforms(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _multinomial(self, input: Tensor, num_samples: int, **_: Any) -> Tensor:
        if num_samples != 1:
            raise ValueError(f"num_samples: got {num_samples}, expected 1")
        weights = input.double()  # torch takes weights of any sum
        rows = (weights / weights.sum(dim=-1, keepdim=True)).reshape(-1, input.shape[-1])
        drawn = torch.tensor([self._chooser.sample(row) for row in rows], device=input.device)
        return drawn.reshape(*input.shape[:-1], 1)

    def _uniforms(self, input: Tensor, **_: Any) -> Tensor:
        kept = [self._chooser.accept(chance) for chance in input.flatten().tolist()]
        uniforms = [0.0 if keep else 1.0 for keep in kept]
        return torch.tensor(uniforms, device=input.device).reshape(input.shape)


def assisted_decoder(target: PreTrainedModel, draft: PreTrainedModel, **options: Any) -> Decoder:
    """``target.generate(assistant_model=draft, **options)`` as the audit takes it, driven."""

    def transformers_generate(
        _: CausalLM, prompt: Sequence[int], length: int, chooser: Chooser
    ) -> list[int]:
        with DrivenRandomness(chooser), _quiet():
            return _generate(target, draft, prompt, length, **options)

    return transformers_generate


def acceptance_step(ensemble_weight: float | None = None) -> Decoder:
    """transformers' internal acceptance step inside a plain draft loop over toy models, driven.

    Args:
        ensemble_weight: its ``assistant_ensemble_weight``, which accepts more and is lossy by design.
    """
    from transformers.generation.utils import _speculative_sampling

    draft = RandomLM(VOCAB, seed=1001)

    def decode(target: CausalLM, prompt: Sequence[int], length: int, chooser: Chooser) -> list[int]:
        tokens = list(prompt)
        draft.reset()
        while (left := len(prompt) + length - len(tokens)) > 0:
            drafted, q = list[int](), list[Tensor]()
            for _ in range(max(1, min(GAMMA, left - 1))):
                text = tokens + drafted
                q.append(draft.extend(draft.rewind_to_match(text), rows=1)[0])
                drafted.append(chooser.sample(q[-1].softmax(dim=-1)))
            unread = target.rewind_to_match(tokens)
            p = target.extend(unread + drafted, rows=len(drafted) + 1)
            with DrivenRandomness(chooser):
                emitted, _matches = _speculative_sampling(
                    torch.tensor([tokens + drafted]),
                    torch.stack(q)[None],
                    len(drafted),
                    p[None],
                    ensemble_weight,
                )
            tokens += emitted[0].tolist()
        return tokens[len(prompt) : len(prompt) + length]

    return decode


@dataclass(frozen=True)
class AssistedAudit(Shown):
    """What the audits say about transformers' assisted generation.

    Args:
        version: of transformers.
        step: its acceptance step, by enumeration.
        relaxed_step: the same with its lossy setting ``assistant_ensemble_weight=0.7``.
        generate: ``generate(assistant_model=...)``, by enumeration.
        samples: the same as a black box.
    """

    version: str
    step: DecoderAudit
    relaxed_step: DecoderAudit
    generate: DecoderAudit
    samples: SampleAudit[tuple[int, ...]]

    @property
    def exact(self) -> bool:
        """Whether transformers is cleared in its exact setting, and condemned in its lossy one."""
        cleared = self.step.verdict == self.generate.verdict == "exact" and self.samples.found_nothing
        return cleared and self.relaxed_step.verdict == "not exact"

    def to_json(self) -> dict[str, Any]:
        """The verdicts and the numbers behind them, for machines."""
        return {
            "transformers": self.version,
            "step": self.step.to_json(),
            "relaxed_step": self.relaxed_step.to_json(),
            "generate": self.generate.to_json(),
            "samples": self.samples.to_json(),
        }

    def sheet(self) -> Sheet:
        """One row per audit."""
        rows: list[tuple[Cell, ...]] = [
            _row("acceptance step", self.step, "exact"),
            _row("the same, ensemble weight 0.7", self.relaxed_step, "not exact"),
            _row("generate(assistant_model=...)", self.generate, "exact"),
        ]
        bias = f"TV < {self.samples.detectable:.2f}"
        tone: Tone = "good" if self.samples.found_nothing else "bad"
        sampled = f"{self.samples.samples:,} samples"
        rows.append(("the same, as a black box", Toned(self.samples.verdict, tone), bias, sampled))
        return Sheet(
            title=f"transformers {self.version}, assisted generation on tiny random models",
            columns=("what", "verdict", "L1", "walked"),
            rows=tuple(rows),
            notes=(
                "The ensemble weight is lossy by design: a counter-example, not a fault.",
                f"A black box can only be bounded: a bias of TV {self.samples.detectable:.3f} or more "
                "would have been found with 99 % power, at a false alarm of about "
                f"{self.samples.false_alarm:g}.",
            ),
            text_columns=(0, 1),
        )


def audit_transformers_assisted(
    samples: int = 400, *, seed: int = 0, false_alarm: float = FALSE_ALARM, progress: bool = False
) -> AssistedAudit:
    """Audit transformers' assisted generation on a tiny random pair (vocabulary of 3, 3 new tokens).

    Args:
        samples: how many generations to sample for the black-box test.
        seed: of torch's global generator for the samples; its state is put back afterwards.
        false_alarm: of the black-box test.
        progress: show a bar over the samples.
    """
    target, draft = tiny_pair()
    toy = RandomLM(VOCAB, seed=1)
    model = HFCausalLM(target)
    engine = assisted_decoder(target, draft)
    law = target_law(model, PROMPT, LENGTH)
    with torch.random.fork_rng(devices=[]), _quiet():
        torch.manual_seed(seed)
        bar = tqdm(range(samples), desc="samples", disable=not progress, leave=False)
        drawn = [tuple(_generate(target, draft, PROMPT, LENGTH)) for _ in bar]
    return AssistedAudit(
        version=installed("transformers"),
        step=audit_decoder(acceptance_step(), toy, PROMPT, LENGTH),
        relaxed_step=audit_decoder(acceptance_step(0.7), toy, PROMPT, LENGTH),
        generate=audit_decoder(engine, model, PROMPT, LENGTH, tolerance=NETWORK_TOLERANCE),
        samples=audit_samples(drawn, law, false_alarm=false_alarm),
    )


def tiny_pair() -> tuple[PreTrainedModel, PreTrainedModel]:
    """Two random Llamas of a few hundred parameters with a vocabulary of 3, sharp enough to differ."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        initializer_range=0.7,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    models = []
    with torch.random.fork_rng(devices=[]):
        for seed in (1, 2):
            torch.manual_seed(seed)
            models.append(LlamaForCausalLM(config).eval())
    target, draft = models
    draft.generation_config.num_assistant_tokens = GAMMA
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0
    return target, draft


def _generate(
    target: PreTrainedModel,
    draft: PreTrainedModel,
    prompt: Sequence[int],
    length: int,
    **options: Any,
) -> list[int]:
    """The new tokens that ``generate`` draws, at temperature 1 with nothing truncated by default."""
    output = target.generate(  # type: ignore[operator]
        torch.tensor([list(prompt)]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        assistant_model=draft,
        do_sample=True,
        max_new_tokens=length,
        **{"temperature": 1.0, "top_k": 0, "top_p": 1.0, **options},
    )
    tokens: list[int] = output[0, len(prompt) :].tolist()
    return tokens


@contextmanager
def _quiet() -> Iterator[None]:
    """transformers' advice on its own internal calls kept off the terminal."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _row(name: str, audit: DecoderAudit, hoped: str) -> tuple[Cell, ...]:
    tone: Tone = "plain" if hoped != "exact" else "good" if audit.verdict == "exact" else "bad"
    walked = f"{audit.output.paths:,} paths"
    return name, Toned(audit.verdict, tone), small_number(audit.l1_error), walked

"""Small models and small tools that several tests use."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import torch

from specdec_lab.audit import Decoder
from specdec_lab.decoding import autoregressive, speculative
from specdec_lab.enumeration import enumerate_outcomes
from specdec_lab.language_model import HFCausalLM, RandomLM
from specdec_lab.randomness import Chooser, SeededChooser
from specdec_lab.records import Draft, Round
from specdec_lab.sampling import Sampling

Law = dict[tuple[int, ...], float]

TINY = {"vocab_size": 37, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4}
TINY |= {"max_position_embeddings": 64, "bos_token_id": None, "eos_token_id": None}
TINY |= {"pad_token_id": None, "initializer_range": 0.6}


def tiny_model(architecture: str, seed: int = 0, **changes):
    """A random model with sharp predictions: 'llama', 'gpt2', 'qwen3' or 'mistral' (window of 8)."""
    import transformers as t

    torch.manual_seed(seed)
    options = TINY | {"intermediate_size": 48, "num_key_value_heads": 2} | changes
    if architecture == "gpt2":
        for unknown in ("intermediate_size", "num_key_value_heads"):
            options.pop(unknown)
        return t.GPT2LMHeadModel(t.GPT2Config(**options)).eval()
    if architecture == "llama":
        return t.LlamaForCausalLM(t.LlamaConfig(**options)).eval()
    if architecture == "qwen3":
        return t.Qwen3ForCausalLM(t.Qwen3Config(**options, head_dim=6)).eval()
    return t.MistralForCausalLM(t.MistralConfig(**options, sliding_window=8)).eval()


def tiny_lm(architecture: str = "llama", seed: int = 0, **changes) -> HFCausalLM:
    return HFCausalLM(tiny_model(architecture, seed, **changes))


def near_twin(architecture: str) -> HFCausalLM:
    """A draft for ``tiny_lm(architecture)`` that agrees with it often, but not always."""
    twin = tiny_lm(architecture)
    generator = torch.Generator().manual_seed(0)
    weights = twin.model.get_input_embeddings().weight.data
    weights += 0.05 * torch.randn(weights.shape, generator=generator)
    return twin


class ForcedChooser(SeededChooser):
    """The usual chooser, but every uniform number is the same given one."""

    def __init__(self, uniform: float) -> None:
        super().__init__(0)
        self._forced = uniform

    def uniform(self) -> float:
        self.last_uniform = self._forced
        return self._forced


class CountingChooser(SeededChooser):
    """Counts how many uniform numbers were drawn."""

    drawn = 0

    def uniform(self) -> float:
        self.drawn += 1
        return super().uniform()


class Rows:
    """Given distributions, in the place of a target's."""

    def __init__(self, *rows: Sequence[float]) -> None:
        self.rows = [torch.tensor(row, dtype=torch.float64) for row in rows]

    def __getitem__(self, row: int) -> torch.Tensor:
        return self.rows[row]

    def argmax(self, row: int) -> int:
        return int(self.rows[row].argmax())


def draft(tokens: list[int], *q: Sequence[float]) -> Draft:
    return Draft(tokens, torch.tensor(q, dtype=torch.float64) if tokens else torch.zeros(0, 3))


def law_of(run: Callable[[Chooser], Sequence[int]]) -> Law:
    """The exact law of a random sequence, by enumeration of every path."""
    law: Counter[tuple[int, ...]] = Counter()
    for outcome, probability in enumerate_outcomes(run):
        law[tuple(outcome)] += probability
    return dict(law)


def distance(one: Law, other: Law) -> float:
    """Total variation between two laws."""
    return sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one | other) / 2


def tokens_of(rounds: Iterable[Round]) -> list[int]:
    return [token for one in rounds for token in one.tokens]


class ReducedLM(RandomLM):
    """A toy model that gives no probability to any but some tokens, and says so."""

    def __init__(self, vocab_size: int, token_ids: Sequence[int], seed: int = 0) -> None:
        super().__init__(vocab_size, seed)
        self.token_ids = torch.tensor(token_ids)

    def _make_row(self, prefix):
        row = super()._make_row(prefix)
        impossible = torch.ones_like(row, dtype=torch.bool)
        impossible[self.token_ids] = False
        return row.masked_fill(impossible, float("-inf")).log_softmax(dim=-1)


def decoder_with(make_drafter, gamma=2, sampling=None, stop=None) -> Decoder:
    """``speculative()`` in the form that audits take; ``make_drafter(target)`` makes the drafter."""

    def decode(target, prompt, length, chooser):
        rounds = speculative(
            target,
            make_drafter(target),
            prompt,
            max_new_tokens=length,
            gamma=gamma,
            sampling=sampling or Sampling(1.0),
            chooser=chooser,
            stop=stop,
        )
        return tokens_of(rounds)

    return decode


def plain_decoder(sampling=None, stop=None) -> Decoder:
    """``autoregressive()`` in the same form."""

    def decode(target, prompt, length, chooser):
        options = {"max_new_tokens": length, "sampling": sampling or Sampling(1.0), "stop": stop}
        return tokens_of(autoregressive(target, prompt, chooser=chooser, **options))

    return decode


def byte_decode(tokens: list[int]) -> str:
    """A tokenizer of single bytes: characters beyond ASCII span tokens."""
    return bytes(tokens).decode("utf-8", errors="replace")

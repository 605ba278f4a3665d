"""The target's probabilities over the training text, as cheaply as they can be kept.

Not the probabilities themselves (96 kB a token), nor the largest few (which lose the tail), but the
hidden state behind the last norm (1.2 kB) and the logarithm of the normalising sum. With the target's
head, p over any part of the vocabulary is one small matrix product away, up to bfloat16 rounding.

    python -m training.teacher       score every shard that is there (the trainer does it, too)

Scores lie in the user's cache, not in the repository: they are recomputed in minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from specdec_lab.files import replacing
from specdec_lab.pretrained import load_pair
from specdec_lab.weights import home, sha256_of
from training.texts import load_shard, shards_there

TOKENS_AT_ONCE = 1024
COLUMNS_AT_ONCE = 1024
"""Tokens of the vocabulary whose logits are in memory at a time: a block that stays in the cache."""

Scores = dict[str, Tensor]
"""``hidden [tokens, width]`` bfloat16 and ``log_sum [tokens]`` float32, of a shard's documents one
behind the other, and ``mass [vocab]``, the probability of each token summed over them all."""


def cache_folder() -> Path:
    return home() / "training"


def scores_of(model: PreTrainedModel, shard: Path) -> Scores:
    """The scores of a shard, computed if they are not in the cache."""
    file = cache_folder() / f"scores-{shard.stem}-{sha256_of(shard)[:8]}.safetensors"
    if not file.exists():
        scores = score([one.tokens for one in load_shard(shard)], model)
        with replacing(file) as part:
            save_file(scores, part)
    return load_file(file)


@torch.inference_mode()
def score(documents: Sequence[Sequence[int]], model: PreTrainedModel) -> Scores:
    """What the target makes of each position of ``documents``."""
    order = sorted(range(len(documents)), key=lambda i: len(documents[i]))
    hidden: list[Tensor] = [torch.empty(0)] * len(documents)
    while order:
        rows = [order.pop()]  # the longest left, and as many next to it as fit
        longest = len(documents[rows[0]])
        while order and (len(rows) + 1) * longest <= TOKENS_AT_ONCE:
            rows.append(order.pop())
        padded = torch.zeros(len(rows), longest, dtype=torch.long)
        for i, row in enumerate(rows):
            padded[i, : len(documents[row])] = torch.tensor(documents[row])
        # Padding stands to the right, where a causal model does not look.
        states = model.base_model(padded.to(model.device), use_cache=False).last_hidden_state
        for i, row in enumerate(rows):
            hidden[row] = states[i, : len(documents[row])].cpu().to(torch.bfloat16)
    everything = torch.cat(hidden)
    log_sums, mass = [], torch.zeros(model.config.vocab_size, dtype=torch.float64)
    head = model.get_output_embeddings().weight
    for states in torch.split(everything, TOKENS_AT_ONCE):
        log_sum, here = _log_sum_and_mass(states.to(head), head)
        log_sums.append(log_sum.cpu())
        mass += here.double().cpu()
    return {"hidden": everything, "log_sum": torch.cat(log_sums), "mass": mass}


def _log_sum_and_mass(states: Tensor, head: Tensor) -> tuple[Tensor, Tensor]:
    """Of p's rows: the logarithm of each normalising sum, and the sum over rows ``[vocab]``.

    A block of columns at a time, and each computed twice: whole rows do not fit in the processor's
    cache, and take longer.
    """
    blocks = torch.split(head, COLUMNS_AT_ONCE)
    of_blocks = [(states @ block.T).float().logsumexp(dim=-1) for block in blocks]
    log_sum = torch.stack(of_blocks).logsumexp(dim=0)
    mass = [(states @ block.T).float().sub_(log_sum[:, None]).exp_().sum(dim=0) for block in blocks]
    return log_sum, torch.cat(mass)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worker", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    options = parser.parse_args()
    model = load_pair(target="embedded", dtype="bfloat16").target.model
    for shard in tqdm(shards_there()[options.worker :: options.of], unit="shard"):
        scores_of(model, shard)


if __name__ == "__main__":
    main()

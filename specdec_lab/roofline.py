"""What one forward pass must move and compute, and how fast a machine could do it.

Counts, not measurements: everything here follows from a model's shape. Source of the roofline:
Williams, Waterman, Patterson 2009 (doi 10.1145/1498765.1498785).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a decoder in the Llama family that decide what a forward pass costs.

    Args:
        layers: transformer blocks.
        hidden: width of a token's vector between them.
        intermediate: inner width of the feed-forward part.
        heads: query heads.
        kv_heads: key and value heads; fewer than ``heads`` where several query heads share them.
        head_dim: width of one head.
        vocab: tokens in the vocabulary, and rows of the output head.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int

    @classmethod
    def of(cls, config: Any) -> ModelShape:
        """From a transformers config."""
        heads = config.num_attention_heads
        return cls(
            layers=config.num_hidden_layers,
            hidden=config.hidden_size,
            intermediate=config.intermediate_size,
            heads=heads,
            kv_heads=getattr(config, "num_key_value_heads", None) or heads,
            head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
            vocab=config.vocab_size,
        )


def matrix_weights(shape: ModelShape) -> int:
    """Numbers in the weight matrices that a forward pass multiplies with.

    Per layer: queries and output (hidden x heads*head_dim each), keys and values (hidden x
    kv_heads*head_dim each), and three feed-forward matrices (hidden x intermediate each); and once the
    output head (hidden x vocab). Norms are left out: less than 0.1 %.
    """
    attention = 2 * shape.hidden * (shape.heads + shape.kv_heads) * shape.head_dim
    feed_forward = 3 * shape.hidden * shape.intermediate
    return shape.layers * (attention + feed_forward) + shape.hidden * shape.vocab


def forward_bytes(
    shape: ModelShape, new_tokens: int, context: int, bytes_per_number: float = 4
) -> float:
    """Bytes that a forward pass over ``new_tokens`` behind ``context`` cached tokens must move.

    The matrices once, whatever the number of tokens; one row of the embedding table per new token; the
    keys and values of the context read, those of the new tokens written. Activations are left out:
    they are small and stay in a processor's caches.
    """
    embedding_rows = new_tokens * shape.hidden
    keys_and_values = 2 * shape.layers * shape.kv_heads * shape.head_dim * (context + new_tokens)
    return bytes_per_number * (matrix_weights(shape) + embedding_rows + keys_and_values)


def forward_flops(shape: ModelShape, new_tokens: int, context: int) -> float:
    """Floating-point operations of that pass: a multiplication and an addition count as two.

    Each new token meets every matrix weight once; and in each layer and head it is compared with all
    ``context + new_tokens`` keys and mixes as many values. (A causal kernel may skip the keys behind
    a token; this counts the full rectangle.)
    """
    matrices = 2 * new_tokens * matrix_weights(shape)
    attention = 4 * shape.layers * shape.heads * shape.head_dim * new_tokens * (context + new_tokens)
    return matrices + attention


def attainable_flops(intensity: float, peak_flops: float, bandwidth: float) -> float:
    """The roofline: FLOP/s that a machine can reach at an arithmetic intensity.

    Args:
        intensity: FLOPs per byte moved.
        peak_flops: FLOP/s the machine computes at most.
        bandwidth: bytes/s the machine moves at most.
    """
    return min(peak_flops, intensity * bandwidth)

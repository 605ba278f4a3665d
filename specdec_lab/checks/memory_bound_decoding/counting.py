"""Checks of the counts of weights, bytes and operations, and of the roofline."""

from __future__ import annotations

from random import Random

from specdec_lab import roofline
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.roofline import ModelShape

SMOLLM2 = ModelShape(30, 576, 1536, 9, 3, 64, 49152)
"""The shape of SmolLM2-135M."""


_TINY = ModelShape(layers=2, hidden=10, intermediate=20, heads=4, kv_heads=2, head_dim=2, vocab=50)
"""Here ``hidden`` is not ``heads * head_dim``."""


def _shapes(seed: int | None) -> list[ModelShape]:
    if seed is None:
        return [SMOLLM2, _TINY]
    random = Random(seed)
    shapes = []
    for _ in range(3):
        kv_heads = random.choice([1, 2, 4])
        heads = kv_heads * random.choice([2, 3])
        head_dim = random.choice([8, 16])
        shapes.append(
            ModelShape(
                random.randint(2, 6), 3 * heads * head_dim, random.randint(90, 300), heads, kv_heads,
                head_dim, random.randint(400, 900),
            )
        )  # fmt: skip
    return shapes


@check(read="Counting what a forward pass moves", closed=(roofline,), reference=roofline.matrix_weights)
def matrix_weights(attempt: Attempt, seed: int | None) -> None:
    """All layers' seven matrices and the head."""
    for shape in _shapes(seed):
        truth = roofline.matrix_weights(shape)
        head = shape.hidden * shape.vocab
        queries = shape.hidden * shape.heads * shape.head_dim
        keys = shape.hidden * shape.kv_heads * shape.head_dim
        feed = shape.hidden * shape.intermediate
        attempt.same_number(
            attempt(shape),
            truth,
            "this is not the number of weights in the matrices.",
            suspects={
                "you count keys and values as wide as the queries. They have `kv_heads` heads, which "
                "several query heads share.": truth + shape.layers * 2 * (queries - keys),
                "queries and output are `heads * head_dim` wide on their one side. Only in some models "
                "is that `hidden`.": truth + shape.layers * 2 * (shape.hidden**2 - queries),
                "the output head is missing.": truth - head,
                "the table is counted twice. The embedding is looked up, one row per token; only the "
                "output head is multiplied with.": truth + head,
                "that is one layer; the model has `layers` of them.": (truth - head) / shape.layers
                + head,
                "the feed-forward part has three matrices here (gate, up, down), not two.": truth
                - shape.layers * feed,
                "the attention's output matrix is missing.": truth - shape.layers * queries,
                "keys and values are two matrices.": truth - shape.layers * keys,
                "the head is counted once per layer.": truth + (shape.layers - 1) * head,
                "the norms are counted, too; here they are left out.": truth
                + (2 * shape.layers + 1) * shape.hidden,
            },
            relative=1e-6,
        )


def _passes_to_count(seed: int | None) -> list[tuple[ModelShape, int, int]]:
    """(shape, new tokens, context)."""
    if seed is None:
        return [(SMOLLM2, 1, 1000), (SMOLLM2, 8, 0), (_TINY, 3, 40)]
    random = Random(seed)
    return [(shape, random.randint(2, 9), random.randint(300, 2000)) for shape in _shapes(seed)]


@check(read="Bytes per pass", reference=roofline.forward_bytes)
def forward_bytes(attempt: Attempt, seed: int | None) -> None:
    """Matrices once, embedding rows, keys and values read and written; in bytes."""
    for index, (shape, new, context) in enumerate(_passes_to_count(seed)):
        width = (4, 2)[index % 2]
        truth = roofline.forward_bytes(shape, new, context, width)
        matrices = roofline.matrix_weights(shape)
        pair = 2 * shape.layers * shape.kv_heads * shape.head_dim
        yours = attempt(
            shape,
            new,
            context,
            width,
            shown={
                "shape": shape,
                "new_tokens": new,
                "context": context,
                "bytes_per_number": width,
            },
        )
        attempt.same_number(
            yours,
            truth,
            "this is not the number of bytes.",
            suspects={
                "the cache is missing: the keys and values of the context are read, and those of the "
                "new tokens written.": truth - width * pair * (context + new),
                "the whole embedding table is counted. A forward pass looks up one row of it per new "
                "token.": truth + width * shape.hidden * (shape.vocab - new),
                "the matrices are counted once per token. They are read once for all tokens of the "
                "pass: that is the whole point.": truth + width * matrices * (new - 1),
                "each token pays for a pass of its own. The matrices are read once for all tokens of "
                "the pass, and the context's keys and values, too.": width
                * new
                * (matrices + shape.hidden + pair * (context + new)),
                "these are numbers, not bytes: multiply by `bytes_per_number`.": truth / width,
                "the embedding rows and the cache are numbers so far: they take `bytes_per_number` "
                "each, too.": truth - (width - 1) * (new * shape.hidden + pair * (context + new)),
                "a number does not always take 4 bytes: `bytes_per_number` says how many.": truth
                / width
                * 4,
                "the new tokens' own keys and values, which are written, are missing.": truth
                - width * pair * new,
                "the context's keys and values, which are read, are missing.": truth
                - width * pair * context,
                "keys *and* values: two numbers, not one.": truth - width * pair * (context + new) / 2,
                "the cache has `kv_heads` heads, not `heads`.": truth
                + width * pair * (context + new) * (shape.heads / shape.kv_heads - 1),
                "that is the cache of one layer; every layer has its own.": truth
                - width * pair * (context + new) * (1 - 1 / shape.layers),
                "the embedding rows of the new tokens are missing.": truth - width * new * shape.hidden,
                "one embedding row is counted; there is one for each new token.": truth
                - width * (new - 1) * shape.hidden,
            },
            relative=1e-6,
        )


@check(read="Counting what a forward pass computes", reference=roofline.forward_flops)
def forward_flops(attempt: Attempt, seed: int | None) -> None:
    """Two per weight and token, and the attention's products."""
    for shape, new, context in _passes_to_count(seed):
        truth = roofline.forward_flops(shape, new, context)
        matrices = 2 * new * roofline.matrix_weights(shape)
        attention = truth - matrices
        yours = attempt(
            shape, new, context, shown={"shape": shape, "new_tokens": new, "context": context}
        )
        attempt.same_number(
            yours,
            truth,
            "this is not the number of operations.",
            suspects={
                "a multiplication and an addition are two operations.": truth / 2,
                "the attention is missing: each new token is compared with every key, and mixes every "
                "value.": matrices,
                "that is for one token: the matrix products are done for each new token.": matrices
                / new
                + attention,
                "the attention looks at the context only; the new tokens have keys and values too.": (
                    matrices + attention * context / (context + new)
                ),
                "the attention looks at the new tokens only; the context has keys and "
                "values, too.": matrices + attention * new / (context + new),
                "half of the attention is missing: keys are compared *and* values mixed, each a "
                "multiplication *and* an addition.": matrices + attention / 2,
                "a multiplication and an addition are two operations, in the matrices and in the "
                "attention.": matrices / 2 + attention,
                "three quarters of the attention are missing: keys are compared *and* values mixed, "
                "each a multiplication *and* an addition.": matrices + attention / 4,
                "here a new token is compared with all `context + new_tokens` keys, those behind it "
                "included.": matrices + attention * (context + (new + 1) / 2) / (context + new),
                "the attention is done by all `heads`, even where they share keys and values.": matrices
                + attention * shape.kv_heads / shape.heads,
                "the attention is counted for one new token only.": matrices + attention / new,
                "the attention is counted for one layer only.": matrices + attention / shape.layers,
            },
            relative=1e-6,
        )


@check(read="The roofline", closed=(roofline,), reference=roofline.attainable_flops)
def attainable_flops(attempt: Attempt, seed: int | None) -> None:
    """The lower of the two roofs."""
    cases = [(0.5, 100e9, 20e9), (50.0, 100e9, 20e9), (5.0, 100e9, 20e9)]
    if seed is not None:
        random = Random(seed)
        cases = []
        for _ in range(3):
            peak, bandwidth = random.uniform(1e11, 1e15), random.uniform(1e10, 1e13)
            for of_ridge in (random.uniform(0.01, 0.9), random.uniform(1.1, 20.0)):
                cases.append((of_ridge * peak / bandwidth, peak, bandwidth))
    for intensity, peak, bandwidth in cases:
        yours = attempt(
            intensity,
            peak,
            bandwidth,
            shown={"intensity": intensity, "peak_flops": peak, "bandwidth": bandwidth},
        )
        ramp = intensity * bandwidth
        attempt.same_number(
            yours,
            min(peak, ramp),
            "this is not what the machine can reach.",
            suspects={
                "no machine computes faster than its peak.": ramp,
                "data that has not arrived cannot be computed with: the bandwidth limits, too.": peak,
                "FLOPs per byte times bytes per second gives FLOP/s.": bandwidth / intensity,
                "the bandwidth is in bytes a second. How many operations does each byte that arrives "
                "allow?": bandwidth,
                "that is a share of the peak, not operations a second.": min(1.0, ramp / peak),
                "that is upside down: seconds for each operation.": 1 / min(peak, ramp),
                "moving and computing overlap, so the slower one decides; they do not add up.": 1
                / (1 / peak + 1 / ramp),
            },
        )


@check(read="What a batch does")
def batch_intensity(attempt: Attempt, seed: int | None) -> None:
    """Matrices read once for the whole batch, caches once for each sequence."""
    cases = [(SMOLLM2, 1, 1000), (SMOLLM2, 16, 1000), (_TINY, 4, 50)]
    if seed is not None:
        random = Random(seed)
        cases = [(shape, random.randint(2, 64), random.randint(50, 4000)) for shape in _shapes(seed)]
    for shape, batch, context in cases:
        one = roofline.forward_bytes(shape, 1, context, 4)
        weights = 4 * roofline.matrix_weights(shape)
        flops = roofline.forward_flops(shape, 1, context)
        truth = batch * flops / (weights + batch * (one - weights))
        yours = attempt(
            shape, batch, context, shown={"shape": shape, "batch": batch, "context": context}
        )
        attempt.same_number(
            yours,
            truth,
            "this is not the intensity of the batch.",
            suspects={
                "the batch moves the weights once, not once per sequence.": flops / one,
                "the sequences have a cache each; only the weights are shared.": batch * flops / one,
                "the work is done for each sequence of the batch.": truth / batch,
                "that is upside down: the intensity is FLOPs per byte.": 1 / truth,
                "that is one sequence with a context of all. Here each token looks at its own.": (
                    roofline.forward_flops(shape, batch, batch * context)
                    / roofline.forward_bytes(shape, batch, batch * context, 4)
                ),
                "the weights are numbers; in float32 each takes 4 bytes.": batch
                * flops
                / (weights / 4 + batch * (one - weights / 4)),
                "that is one sequence that reads `batch` tokens. Here each token stands behind a "
                "context of its own.": roofline.forward_flops(shape, batch, context)
                / roofline.forward_bytes(shape, batch, context, 4),
            },
            relative=1e-6,
        )

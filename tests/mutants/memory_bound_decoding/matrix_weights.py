"""Numbers in the weight matrices."""

import torch

from specdec_lab import roofline
from specdec_lab.course.mutants import right, wrong


def _layer(shape):
    queries = shape.hidden * shape.heads * shape.head_dim
    keys = shape.hidden * shape.kv_heads * shape.head_dim
    return 2 * queries + 2 * keys + 3 * shape.hidden * shape.intermediate


@wrong("keys and values for each query head", says="`kv_heads` heads, which several query heads share")
def keys_for_each_head(shape):
    attention = 4 * shape.hidden * shape.heads * shape.head_dim
    feed_forward = 3 * shape.hidden * shape.intermediate
    return shape.layers * (attention + feed_forward) + shape.hidden * shape.vocab


@wrong("queries as wide as hidden", says="wide on their one side")
def square_queries(shape):
    attention = 2 * shape.hidden**2 + 2 * shape.hidden * shape.kv_heads * shape.head_dim
    feed_forward = 3 * shape.hidden * shape.intermediate
    return shape.layers * (attention + feed_forward) + shape.hidden * shape.vocab


@wrong("no output head", says="the output head is missing")
def no_head(shape):
    return shape.layers * _layer(shape)


@wrong("the embedding table counted beside the head", says="the table is counted twice")
def table_and_head(shape):
    return shape.layers * _layer(shape) + 2 * shape.hidden * shape.vocab


@wrong("one layer", says="that is one layer")
def one_layer(shape):
    return _layer(shape) + shape.hidden * shape.vocab


@wrong("a head in each layer", says="the head is counted once per layer")
def head_per_layer(shape):
    return shape.layers * (_layer(shape) + shape.hidden * shape.vocab)


@wrong("no gate in the feed-forward part", says="three matrices here")
def no_gate(shape):
    layer = _layer(shape) - shape.hidden * shape.intermediate
    return shape.layers * layer + shape.hidden * shape.vocab


@wrong("no output matrix in the attention", says="the attention's output matrix is missing")
def no_output(shape):
    layer = _layer(shape) - shape.hidden * shape.heads * shape.head_dim
    return shape.layers * layer + shape.hidden * shape.vocab


@wrong("one matrix for keys and values", says="keys and values are two matrices")
def keys_or_values(shape):
    layer = _layer(shape) - shape.hidden * shape.kv_heads * shape.head_dim
    return shape.layers * layer + shape.hidden * shape.vocab


@wrong("the norms counted, too", says="the norms are counted, too")
def with_norms(shape):
    layer = _layer(shape) + 2 * shape.hidden
    return shape.layers * layer + shape.hidden + shape.hidden * shape.vocab


@wrong("text instead of a number", says="type str, expected a number")
def as_text(shape):
    return f"{shape.layers * _layer(shape) + shape.hidden * shape.vocab:,}"


@wrong("prints instead of returning", says=r"Is there a `return`")
def prints(shape):
    print(shape.layers * _layer(shape) + shape.hidden * shape.vocab)


@wrong("calls the library", says="calls the library's `matrix_weights`")
def calls_the_library(shape):
    return roofline.matrix_weights(shape)


@wrong("lets the library's bytes do the counting", says="calls the library's `forward_bytes`")
def calls_forward_bytes(shape):
    return roofline.forward_bytes(shape, 0, 0, 1)


@right("a list of all matrices")
def listed(shape):
    query_width, key_width = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    layer = [
        (shape.hidden, query_width),
        (shape.hidden, key_width),
        (shape.hidden, key_width),
        (query_width, shape.hidden),
        *[(shape.hidden, shape.intermediate)] * 3,
    ]
    matrices = layer * shape.layers + [(shape.hidden, shape.vocab)]
    return sum(rows * columns for rows, columns in matrices)


@right("a loop over the layers, in floats")
def looped(shape):
    total = float(shape.hidden * shape.vocab)
    for _ in range(shape.layers):
        total += _layer(shape)
    return total


@right("a tensor with one number")
def as_tensor(shape):
    return torch.tensor([shape.layers * _layer(shape), shape.hidden * shape.vocab]).sum()

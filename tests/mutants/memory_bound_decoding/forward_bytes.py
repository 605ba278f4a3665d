"""Bytes that a forward pass must move."""

import torch

from specdec_lab import roofline
from specdec_lab.course.mutants import right, wrong
from specdec_lab.roofline import matrix_weights as count_weights


def _pair(shape):
    return 2 * shape.layers * shape.kv_heads * shape.head_dim


@wrong("no cache", says="the cache is missing")
def no_cache(shape, new_tokens, context, bytes_per_number):
    return bytes_per_number * (count_weights(shape) + new_tokens * shape.hidden)


@wrong("the whole embedding table is read", says="the whole embedding table is counted")
def whole_table(shape, new_tokens, context, bytes_per_number):
    table = shape.vocab * shape.hidden
    cache = _pair(shape) * (context + new_tokens)
    return bytes_per_number * (count_weights(shape) + table + cache)


@wrong("the weights are read for each token", says="the matrices are counted once per token")
def weights_per_token(shape, new_tokens, context, bytes_per_number):
    each = count_weights(shape) + shape.hidden
    return bytes_per_number * (new_tokens * each + _pair(shape) * (context + new_tokens))


@wrong("everything is read for each token", says="each token pays for a pass of its own")
def all_per_token(shape, new_tokens, context, bytes_per_number):
    each = count_weights(shape) + shape.hidden + _pair(shape) * (context + new_tokens)
    return bytes_per_number * new_tokens * each


@wrong("numbers, not bytes", says="these are numbers, not bytes")
def numbers(shape, new_tokens, context, bytes_per_number):
    return count_weights(shape) + new_tokens * shape.hidden + _pair(shape) * (context + new_tokens)


@wrong("only the weights in bytes", says="the embedding rows and the cache are numbers")
def bytes_of_weights_only(shape, new_tokens, context, bytes_per_number):
    cache = _pair(shape) * (context + new_tokens)
    return bytes_per_number * count_weights(shape) + new_tokens * shape.hidden + cache


@wrong("always float32", says="a number does not always take 4 bytes")
def always_four(shape, new_tokens, context, bytes_per_number):
    return 4 * (
        count_weights(shape) + new_tokens * shape.hidden + _pair(shape) * (context + new_tokens)
    )


@wrong("what is written does not count", says="new tokens' own keys and values")
def only_read(shape, new_tokens, context, bytes_per_number):
    embedding = new_tokens * shape.hidden
    return bytes_per_number * (count_weights(shape) + embedding + _pair(shape) * context)


@wrong("only what is written counts", says="the context's keys and values, which are read")
def only_written(shape, new_tokens, context, bytes_per_number):
    embedding = new_tokens * shape.hidden
    return bytes_per_number * (count_weights(shape) + embedding + _pair(shape) * new_tokens)


@wrong("keys without values", says="keys [*]and[*] values")
def keys_only(shape, new_tokens, context, bytes_per_number):
    embedding = new_tokens * shape.hidden
    keys = shape.layers * shape.kv_heads * shape.head_dim * (context + new_tokens)
    return bytes_per_number * (count_weights(shape) + embedding + keys)


@wrong("a cache for each query head", says="`kv_heads` heads, not `heads`")
def query_heads(shape, new_tokens, context, bytes_per_number):
    embedding = new_tokens * shape.hidden
    cache = 2 * shape.layers * shape.heads * shape.head_dim * (context + new_tokens)
    return bytes_per_number * (count_weights(shape) + embedding + cache)


@wrong("keys and values as wide as hidden", says="`kv_heads` heads, not `heads`")
def cache_of_hidden(shape, new_tokens, context, bytes_per_number):
    embedding = new_tokens * shape.hidden
    cache = 2 * shape.layers * shape.hidden * (context + new_tokens)
    return bytes_per_number * (count_weights(shape) + embedding + cache)


@wrong("the cache of one layer", says="that is the cache of one layer")
def one_layer(shape, new_tokens, context, bytes_per_number):
    embedding = new_tokens * shape.hidden
    cache = 2 * shape.kv_heads * shape.head_dim * (context + new_tokens)
    return bytes_per_number * (count_weights(shape) + embedding + cache)


@wrong("no embedding rows", says="the embedding rows of the new tokens are missing")
def no_embedding(shape, new_tokens, context, bytes_per_number):
    return bytes_per_number * (count_weights(shape) + _pair(shape) * (context + new_tokens))


@wrong("one embedding row", says="one embedding row is counted")
def one_row(shape, new_tokens, context, bytes_per_number):
    cache = _pair(shape) * (context + new_tokens)
    return bytes_per_number * (count_weights(shape) + shape.hidden + cache)


@wrong("calls the library", says="calls the library's `forward_bytes`")
def calls_the_library(shape, new_tokens, context, bytes_per_number):
    return roofline.forward_bytes(shape, new_tokens, context, bytes_per_number)


@wrong("True", says="type bool, expected a number")
def a_bool(shape, new_tokens, context, bytes_per_number):
    return True


@right("token by token")
def token_by_token(shape, new_tokens, context, bytes_per_number):
    total = count_weights(shape) * bytes_per_number
    of_one = 2 * shape.layers * shape.kv_heads * shape.head_dim * bytes_per_number
    for _ in range(context):
        total += of_one
    for _ in range(new_tokens):
        total += of_one + shape.hidden * bytes_per_number
    return total


@right("a dict of parts, summed in floats")
def parts(shape, new_tokens, context, bytes_per_number):
    counted = {
        "weights": count_weights(shape),
        "embedding": shape.hidden * new_tokens,
        "read": shape.layers * shape.kv_heads * shape.head_dim * 2 * context,
        "written": shape.layers * shape.kv_heads * shape.head_dim * 2 * new_tokens,
    }
    return sum(float(count) * bytes_per_number for count in counted.values())


@right("a tensor with one number, its own count of the weights")
def as_tensor(shape, new_tokens, context, bytes_per_number):
    widths = torch.tensor([shape.heads, shape.kv_heads, shape.kv_heads, shape.heads]) * shape.head_dim
    layer = (widths.sum() + 3 * shape.intermediate) * shape.hidden
    weights = layer * shape.layers + shape.vocab * shape.hidden
    cache = widths[1:3].sum() * shape.layers * (context + new_tokens)
    return (weights + new_tokens * shape.hidden + cache).float() * bytes_per_number

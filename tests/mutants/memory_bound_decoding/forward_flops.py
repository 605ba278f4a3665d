"""Floating-point operations of a forward pass."""

import numpy as np

from specdec_lab import roofline
from specdec_lab.course.mutants import right, wrong
from specdec_lab.roofline import matrix_weights as count_weights


def _attention(shape, new_tokens, context):
    return 4 * shape.layers * shape.heads * shape.head_dim * new_tokens * (context + new_tokens)


@wrong("a multiplication and an addition count as one", says="are two operations[.]")
def without_factor_two(shape, new_tokens, context):
    attention = 2 * shape.layers * shape.heads * shape.head_dim * new_tokens * (context + new_tokens)
    return new_tokens * count_weights(shape) + attention


@wrong("one operation per weight, two in the attention", says="are two operations, in the matrices")
def matrices_without_factor_two(shape, new_tokens, context):
    return new_tokens * count_weights(shape) + _attention(shape, new_tokens, context)


@wrong("no attention", says="the attention is missing")
def no_attention(shape, new_tokens, context):
    return 2 * new_tokens * count_weights(shape)


@wrong("the matrices for one token", says="done for each new token")
def matrices_once(shape, new_tokens, context):
    return 2 * count_weights(shape) + _attention(shape, new_tokens, context)


@wrong("the new tokens have no keys", says="looks at the context only")
def context_only(shape, new_tokens, context):
    attention = 4 * shape.layers * shape.heads * shape.head_dim * new_tokens * context
    return 2 * new_tokens * count_weights(shape) + attention


@wrong("the new tokens see each other only", says="looks at the new tokens only")
def new_only(shape, new_tokens, context):
    attention = 4 * shape.layers * shape.heads * shape.head_dim * new_tokens * new_tokens
    return 2 * new_tokens * count_weights(shape) + attention


@wrong("the values are not mixed", says="half of the attention is missing")
def no_mixing(shape, new_tokens, context):
    return 2 * new_tokens * count_weights(shape) + _attention(shape, new_tokens, context) // 2


@wrong("the attention in multiplications, keys only", says="three quarters of the attention")
def a_quarter(shape, new_tokens, context):
    return 2 * new_tokens * count_weights(shape) + _attention(shape, new_tokens, context) // 4


@wrong("attention by kv_heads", says="done by all `heads`")
def kv_heads(shape, new_tokens, context):
    attention = 4 * shape.layers * shape.kv_heads * shape.head_dim * new_tokens * (context + new_tokens)
    return 2 * new_tokens * count_weights(shape) + attention


@wrong("the attention of one new token", says="counted for one new token only")
def attention_of_one(shape, new_tokens, context):
    attention = 4 * shape.layers * shape.heads * shape.head_dim * (context + new_tokens)
    return 2 * new_tokens * count_weights(shape) + attention


@wrong("the attention of one layer", says="counted for one layer only")
def attention_of_a_layer(shape, new_tokens, context):
    attention = 4 * shape.heads * shape.head_dim * new_tokens * (context + new_tokens)
    return 2 * new_tokens * count_weights(shape) + attention


@wrong("a token sees nothing behind it", says="those behind it included")
def causal(shape, new_tokens, context):
    seen = sum(context + place for place in range(1, new_tokens + 1))
    attention = 4 * shape.layers * shape.heads * shape.head_dim * seen
    return 2 * new_tokens * count_weights(shape) + attention


@wrong("calls the library and catches the objection", says="calls the library's `forward_flops`")
def calls_the_library(shape, new_tokens, context):
    try:
        return roofline.forward_flops(shape, new_tokens, context)
    except BaseException:
        return 0


@wrong("an infinite number", says="expected a finite number")
def infinite(shape, new_tokens, context):
    return float("inf")


@right("layer by layer, head by head, token by token")
def in_loops(shape, new_tokens, context):
    total = 0
    for _ in range(new_tokens):
        total += 2 * count_weights(shape)
        for _ in range(shape.layers):
            for _ in range(shape.heads):
                compare = mix = 2 * shape.head_dim * (context + new_tokens)
                total += compare + mix
    return total


@right("multiply-adds, doubled at the end, in floats")
def doubled(shape, new_tokens, context):
    multiply_adds = float(count_weights(shape))
    multiply_adds += 2.0 * shape.layers * shape.heads * shape.head_dim * (context + new_tokens)
    return 2.0 * new_tokens * multiply_adds


@right("numpy, a float32")
def with_numpy(shape, new_tokens, context):
    sizes = np.array([shape.layers, shape.heads, shape.head_dim, new_tokens, context + new_tokens])
    return np.float32(2 * new_tokens * count_weights(shape) + 4 * sizes.prod())

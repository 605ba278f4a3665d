"""FLOPs per byte of a pass over a batch."""

import torch

from specdec_lab.course.mutants import right, wrong
from specdec_lab.roofline import forward_bytes as count_bytes
from specdec_lab.roofline import forward_flops as count_flops
from specdec_lab.roofline import matrix_weights as count_weights


@wrong("each sequence reads the weights", says="the batch moves the weights once")
def weights_for_each(shape, batch, context):
    flops = batch * count_flops(shape, 1, context)
    return flops / (batch * count_bytes(shape, 1, context, 4))


@wrong("one cache for all", says="the sequences have a cache each")
def one_cache(shape, batch, context):
    return batch * count_flops(shape, 1, context) / count_bytes(shape, 1, context, 4)


@wrong("the work of one sequence", says="the work is done for each sequence")
def work_of_one(shape, batch, context):
    weights = 4 * count_weights(shape)
    of_each = count_bytes(shape, 1, context, 4) - weights
    return count_flops(shape, 1, context) / (weights + batch * of_each)


@wrong("the batch is a draft", says="one sequence that reads `batch` tokens")
def as_a_draft(shape, batch, context):
    return count_flops(shape, batch, context) / count_bytes(shape, batch, context, 4)


@wrong("one long sequence", says="one sequence with a context of all")
def one_long_sequence(shape, batch, context):
    return count_flops(shape, batch, batch * context) / count_bytes(shape, batch, batch * context, 4)


@wrong("weights as numbers", says="the weights are numbers")
def weights_as_numbers(shape, batch, context):
    weights = count_weights(shape)
    of_each = count_bytes(shape, 1, context, 4) - weights
    return batch * count_flops(shape, 1, context) / (weights + batch * of_each)


@wrong("upside down", says="upside down")
def upside_down(shape, batch, context):
    weights = 4 * count_weights(shape)
    of_each = count_bytes(shape, 1, context, 4) - weights
    return (weights + batch * of_each) / (batch * count_flops(shape, 1, context))


@wrong("bytes and FLOPs, not their ratio", says="a tuple of 2, expected a number")
def both(shape, batch, context):
    return count_flops(shape, batch, context), count_bytes(shape, batch, context, 4)


@right("adds up the sequences in a loop")
def looped(shape, batch, context):
    flops, moved = 0, 4 * count_weights(shape)
    for _ in range(batch):
        flops += count_flops(shape, 1, context)
        moved += count_bytes(shape, 1, context, 4) - 4 * count_weights(shape)
    return flops / moved


@right("all bytes, less the weights that are not read again")
def less_the_weights(shape, batch, context):
    moved = batch * count_bytes(shape, 1, context, 4) - (batch - 1) * 4 * count_weights(shape)
    return torch.tensor(batch * count_flops(shape, 1, context) / moved, dtype=torch.float64)


@right("counts the cache itself")
def own_count(shape, batch, context):
    pair = 2 * shape.layers * shape.kv_heads * shape.head_dim
    numbers = count_weights(shape) + batch * (shape.hidden + pair * (context + 1))
    attention = 4 * shape.layers * shape.heads * shape.head_dim * (context + 1)
    return batch * (2 * count_weights(shape) + attention) / (4 * numbers)

# %% [markdown]
# # 1. Why writing is slow
#
# **You build** two decoding loops, a stopwatch that can be trusted, and a model of what a forward pass costs.
# **Time:** about 120 minutes. **The question:** a model reads a page at a glance. Why does it write so slowly?
#
# By the end you will have drawn the limits of your own computer, and found a gap in them. The rest of the course
# spends that gap.
#
# Run the cells from top to bottom. Each exercise has a cell to fill in and a cell that checks it. The check says what is
# wrong, and you may run it as often as you like. (Where your cell itself stops with an error, it has defined nothing, and
# the check still looks at the version before.) Some of the points come from a second check, on inputs that are not shown.
# If you are stuck, go on: nothing later depends on your solving everything. Words are in the
# [glossary](../../docs/glossary.md).

# %%
import time

import torch
from rich import print as show
from rich.table import Table
from tqdm.auto import tqdm

from specdec_lab import lab, load_pair, plots
from specdec_lab.checks import memory_bound_decoding as check

pair = load_pair("embedded")
text = pair.tokenizer("The river rises in the hills, and in spring").input_ids
print(len(text), "tokens:", text)

# %% [markdown]
# ## Token t+1 needs token t
#
# Give the model a text, and it answers with one **row** of logits per token: a score for every token of its vocabulary.
# The row of a token says what should come *after* it.

# %%
rows = pair.target.uncached_logits(text, rows=len(text))
print("rows, vocabulary:", list(rows.shape))

for position in (1, 4, len(text) - 1):
    before = pair.tokenizer.decode(text[: position + 1])
    likeliest = pair.tokenizer.decode([int(rows[position].argmax())])
    print(f"{before!r:50} -> {likeliest!r}")

# %% [markdown]
# Look at what just happened: *one* pass told us what follows after *every* prefix of the text. Reading is parallel.
#
# Writing is not. To write two tokens the model needs the row behind the first of them, and it cannot have that row before
# the first is chosen. Each token waits for the one before it: a **serial dependency**. No faster chip removes it.

# %% [task] naive_decode title="The loop, without a cache" difficulty=1 minutes=8
# **Greedy decoding** always takes the likeliest token. Write it in its simplest form: read the whole text, take the
# likeliest token of the right row, append it, and start over.
#
# `forward(tokens)` reads a text from its start and gives the logits, one row per token.


# %% [exercise] naive_decode
def naive_decode(forward, prompt, max_new_tokens):
    """Greedy decoding that reads the whole text for each new token.

    forward: takes a list of n token ids, gives logits [n, vocab].
    prompt: list of token ids.
    Returns the list of the max_new_tokens new ids, without the prompt.

    Example: with a model that always says the next number, prompt [3, 4] and
    max_new_tokens 2 give [5, 6], and forward sees [3, 4], then [3, 4, 5].
    """
    ### BEGIN SOLUTION
    tokens = list(prompt)
    for _ in range(max_new_tokens):
        logits = forward(tokens)  # [n, vocab]
        tokens.append(int(logits[-1].argmax()))
    return tokens[len(prompt) :]
    ### END SOLUTION


# %% [check] naive_decode points=1

# %% [hidden check] naive_decode points=1 seed=1101

# %% [markdown]
# <details><summary>Hint: which row?</summary>
#
# The row of a token predicts the token after it, so the row of the last token is the one you want: `logits[-1]`.
# </details>
# <details><summary>I get a tensor instead of numbers</summary>
#
# `logits[-1].argmax()` is a tensor with one number in it. `int(...)` takes the number out.
# </details>

# %% [markdown]
# That loop reads the first token again and again, though nothing about it changes. What the model computes for a token
# depends only on the tokens before it, so it can be kept: the keys and values of each layer, in the **key-value cache**.
# The model object of this course keeps its own:
#
# | | |
# |---|---|
# | `model.extend(tokens)` | reads more tokens in one pass; gives one row of logits for each of *them* |
# | `model.length` | how many tokens the cache holds |
# | `model.rewind(length)` | forgets all but the first `length` |

# %% [task] cached_decode title="The same loop, with a cache" difficulty=1 minutes=10
# Write greedy decoding again, so that no token is read twice. The first pass reads the prompt, all of it at once: the
# **prefill**. Every later pass reads one token.
#
# For `max_new_tokens` new tokens that makes exactly `max_new_tokens` passes.


# %% [exercise] cached_decode
def cached_decode(model, prompt, max_new_tokens):
    """Greedy decoding that reads each token once.

    model: has read nothing yet; see extend above.
    prompt: list of token ids.
    max_new_tokens: may be 0; then nothing has to be read.
    Returns the list of the max_new_tokens new ids, without the prompt.

    Example: for prompt [3, 4] and two new tokens 5 and 6, extend gets [3, 4],
    then [5]. Nobody reads 6: nothing has to follow it.
    """
    ### BEGIN SOLUTION
    new = []
    unread = list(prompt)
    for _ in range(max_new_tokens):
        logits = model.extend(unread)  # [len(unread), vocab]
        token = int(logits[-1].argmax())
        new.append(token)
        unread = [token]
    return new
    ### END SOLUTION


# %% [check] cached_decode points=2

# %% [hidden check] cached_decode points=1 seed=1102

# %% [markdown]
# <details><summary>Hint</summary>
#
# Keep a list of what the model has not read yet. At first that is the prompt; behind each pass it is the one new token.
# </details>
# <details><summary>The check says that the text is read again</summary>
#
# `extend` adds to the cache. If you give it the whole text a second time, the cache holds the text twice.
# </details>

# %% [markdown]
# Both loops, on the real model. (Where your own does not pass its check yet, the library's is used, and it says so.)

# %%
naive = lab.yours_or_reference(check.naive_decode)
cached = lab.yours_or_reference(check.cached_decode)

new_tokens = lab.sized(24, 4)
started = time.perf_counter()
slow = naive(lambda tokens: pair.target.uncached_logits(tokens, len(tokens)), text, new_tokens)
between = time.perf_counter()
pair.target.reset()
fast = cached(pair.target, text, new_tokens)
finished = time.perf_counter()

print(pair.tokenizer.decode(text + fast))
print("the same tokens:", slow == fast)
print(f"measured once: {between - started:.2f} s without a cache, {finished - between:.2f} s with one")

# %% [task] median_seconds title="A time that can be trusted" difficulty=2 minutes=15
# One run is an anecdote: the first is slow because memory is touched for the first time, another because something else
# woke up on your computer. So: run it a few times before you measure (the **warm-up**), then time each of several runs,
# and report the **median**.
#
# And wait before you look at the clock. A GPU works behind the program's back: a call returns as soon as the work is
# *asked for*. `synchronize()` waits until it is done. Call it before you read the clock, at the start *and* at the end.
#
# `clock` and `synchronize` are arguments, so that the check can hand in a clock of its own.


# %% [exercise] median_seconds
def median_seconds(run, repeats, warmup, clock, synchronize):
    """The median time of run() in seconds.

    run: a function without arguments.
    repeats: how many runs are timed, each by itself.
    warmup: how many runs go before them, untimed.
    clock: gives the time in seconds.
    synchronize: waits until the device has finished everything.

    Example: with timed runs of 1.0, 9.0 and 1.2 seconds the answer is 1.2.
    """
    ### BEGIN SOLUTION
    for _ in range(warmup):
        run()
    times = []
    for _ in range(repeats):
        synchronize()
        started = clock()
        run()
        synchronize()
        times.append(clock() - started)
    return sorted(times)[len(times) // 2]
    ### END SOLUTION


# %% [check] median_seconds points=1

# %% [hidden check] median_seconds points=2 seed=1103

# %% [markdown]
# <details><summary>Hint</summary>
#
# In the order of a timed run: `synchronize`, read the clock, `run`, `synchronize`, read the clock. `statistics.median`
# takes a list.
# </details>

# %% [markdown]
# Now a fair comparison: what does *one more token* cost, behind texts of different lengths? Below, one pass over the whole
# text against one pass over its last token, with your stopwatch. On a GPU the 135M model would mostly wait for its
# hundreds of small steps to be started, not for memory. So there a larger architecture with random weights is timed: 1.5
# billion parameters, and what it writes is noise. (About half a minute.)

# %%
from specdec_lab.benchmark import random_large_target

on_gpu = torch.cuda.is_available()
target = random_large_target(torch.device("cuda")) if on_gpu else pair.target
stopwatch = lab.yours_or_reference(check.median_seconds)


def seconds_of(run):
    return stopwatch(run, lab.sized(7, 3), 1, time.perf_counter, target.synchronize)


def measure_one_more_token():
    filler = (text * 60)[: lab.sized(400, 60)]
    without, with_cache = [], []
    lengths = range(len(filler) // 5, len(filler) + 1, len(filler) // 5)
    for length in tqdm(lengths, desc="measuring", leave=False):
        without.append([length, seconds_of(lambda: target.uncached_logits(filler[:length], rows=1))])
        target.reset()
        target.extend(filler[: length - 1], rows=1)

        def read_one():
            target.extend(filler[length - 1 : length])
            target.rewind(length - 1)

        with_cache.append([length, seconds_of(read_one)])
    return {"without": without, "with": with_cache}


one_more_token = lab.experiment("one_more_token", target, measure_one_more_token)
plots.time_per_token(one_more_token)

# %% [markdown]
# Without a cache the price of a token grows with the text. With one it hardly changes. From here on every loop has a
# cache, and so does every loop that we compare with: a speedup over the naive loop would be no achievement.
#
# But the lower line is not at zero. *What is the computer doing in that time?*

# %% [markdown]
# ## Counting what a forward pass moves
#
# To multiply with a weight, the processor has to fetch it from memory. Let us count how many there are.
#
# <details><summary>If it is a while since you met a transformer</summary>
#
# A token's id selects a row of the **embedding** table: a vector of `hidden` numbers. Each **layer** changes that vector in
# two steps. *Attention*: the vector is multiplied with three matrices to give **queries**, **keys** and **values**, cut
# into **heads**; the token's query is compared with the key of every token up to its own, and the values are mixed
# accordingly; a fourth matrix brings the mix back to `hidden` numbers. *Feed-forward*: three more matrices take the vector
# up to `intermediate` numbers and back. Behind the last layer the **output head** turns the vector into a score for each
# token of the vocabulary. Keys and values of earlier tokens never change: they are what the cache keeps. Often several
# query heads share one key and value head, which keeps the cache small.
# </details>

# %% [markdown]
# The model's shape:

# %%
from specdec_lab.roofline import ModelShape

shape = ModelShape.of(pair.target.model.config)
show(shape)

# %% [markdown]
# A layer has seven matrices; a vector of `hidden` numbers goes in and out of it.
#
# | matrix | size | |
# |---|---|---|
# | queries | hidden x (heads · head_dim) | one for each head |
# | keys, values | hidden x (kv_heads · head_dim), each | several query heads share one |
# | output | (heads · head_dim) x hidden | |
# | gate, up, down | hidden x intermediate, each | the feed-forward part |
#
# And once, at the end, the output head: hidden x vocab, a score for each token of the vocabulary. (The norms between
# them are left out: 0.03 % of the numbers.)

# %% [task] matrix_weights title="How many weights?" difficulty=1 minutes=8
# Count the numbers in all matrices that a forward pass multiplies with: those of all layers, and the head.


# %% [exercise] matrix_weights
def matrix_weights(shape):
    """Numbers in the weight matrices of all layers, and in the output head.

    shape: a ModelShape, with layers, hidden, intermediate, heads, kv_heads,
        head_dim and vocab.

    Example: 1 layer, hidden 5, intermediate 6, heads 2, kv_heads 1, head_dim 2,
    vocab 10 make 20 + 10 + 10 + 20 + 3 * 30 + 50 = 200.
    """
    ### BEGIN SOLUTION
    queries = shape.hidden * shape.heads * shape.head_dim
    keys = shape.hidden * shape.kv_heads * shape.head_dim
    feed_forward = 3 * shape.hidden * shape.intermediate
    layer = 2 * queries + 2 * keys + feed_forward
    return shape.layers * layer + shape.hidden * shape.vocab
    ### END SOLUTION


# %% [check] matrix_weights points=1

# %% [markdown]
# Is the count true? The model can tell. In this model the embedding table and the output head are the same matrix, so it
# has no parameters besides those you counted and the norms.

# %%
count_weights = lab.yours_or_reference(check.matrix_weights)
counted = count_weights(shape)
in_the_model = sum(parameter.numel() for parameter in pair.target.model.parameters())

print(f"{counted:,} counted, {in_the_model:,} in the model: {counted / in_the_model:.2%}")

# %% [task] forward_bytes title="Bytes per pass" difficulty=2 minutes=12
# What must a pass move between memory and processor, when `context` tokens are in the cache and `new_tokens` are read?
#
# - Every weight matrix, **once**, however many tokens are read.
# - One row of the embedding table for each new token: `hidden` numbers. (It is looked up, not multiplied with.)
# - The keys and values of all `context` tokens, in every layer: read. Those of the new tokens: written. For one token
#   and one layer that is a key and a value of `kv_heads * head_dim` numbers each.
#
# A number takes `bytes_per_number` bytes: 4 in float32, 2 in bfloat16. `count_weights(shape)` gives the weights.


# %% [exercise] forward_bytes
def forward_bytes(shape, new_tokens, context, bytes_per_number):
    """Bytes that a forward pass must move.

    shape: a ModelShape.
    new_tokens: how many tokens the pass reads.
    context: how many tokens are in the cache already.
    bytes_per_number: 4 for float32.

    Example: with the shape above (200 weights), one token behind an empty
    cache moves 4 * (200 + 5 + 4) = 836 bytes in float32.
    """
    ### BEGIN SOLUTION
    embedding = new_tokens * shape.hidden
    pair_of_one_token = 2 * shape.layers * shape.kv_heads * shape.head_dim
    cache = pair_of_one_token * (context + new_tokens)
    return bytes_per_number * (count_weights(shape) + embedding + cache)
    ### END SOLUTION


# %% [check] forward_bytes points=1

# %% [hidden check] forward_bytes points=2 seed=1105

# %% [markdown]
# <details><summary>Hint: where does the "once" matter?</summary>
#
# Of the three parts, only the first does not depend on `new_tokens`. It is also by far the largest.
# </details>

# %% [task] forward_flops title="Counting what a forward pass computes" difficulty=2 minutes=12
# Now the arithmetic.
#
# - Each new token meets every matrix weight once: one multiplication and one addition, **two operations**.
# - Attention: in every layer and each of the `heads` heads, a new token is compared with all `context + new_tokens` keys
#   and mixes as many values. Either is `head_dim` multiplications and additions per key or value. (A token never looks at
#   those behind it, so this counts a little too much. Most implementations compute the full rectangle all the same.)


# %% [exercise] forward_flops
def forward_flops(shape, new_tokens, context):
    """Floating-point operations of a forward pass.

    shape, new_tokens, context: as in forward_bytes.

    Example: with the shape above, one token behind an empty cache takes
    2 * 200 for the matrices and 2 * 2 * 2 * 2 = 16 for the attention.
    """
    ### BEGIN SOLUTION
    matrices = 2 * new_tokens * count_weights(shape)
    compare_and_mix = 2 * 2 * shape.head_dim * (context + new_tokens)
    return matrices + shape.layers * shape.heads * new_tokens * compare_and_mix
    ### END SOLUTION


# %% [check] forward_flops points=1

# %% [hidden check] forward_flops points=1 seed=1106

# %% [markdown]
# FLOPs over bytes is the **arithmetic intensity**: how much work there is for each byte that is fetched. These numbers
# are counted from the formulas above, so they are *theory*.

# %%
count_bytes = lab.yours_or_reference(check.forward_bytes)
count_flops = lab.yours_or_reference(check.forward_flops)

table = Table("a pass over", "behind", "MB moved", "GFLOPs", "FLOPs per byte", title="theory, float32")
for new, context in ((1, 200), (8, 200), (32, 200), (512, 0)):
    moved, work = count_bytes(shape, new, context, 4), count_flops(shape, new, context)
    table.add_row(
        f"{new} token{'s' * (new > 1)}",
        str(context),
        f"{moved / 1e6:.0f}",
        f"{work / 1e9:.2f}",
        f"{work / moved:.1f}",
    )
show(table)

# %% [markdown]
# Eight tokens move almost the same bytes as one. The work grows; the traffic does not.

# %% [task] attainable_flops title="The roofline" difficulty=1 minutes=5
# A machine has two limits: it computes at most `peak_flops` operations a second, and it moves at most `bandwidth` bytes a
# second. Moving and computing go on at the same time, so the tighter limit decides.
#
# How many operations a second can it reach, at `intensity` operations per byte?


# %% [exercise] attainable_flops
def attainable_flops(intensity, peak_flops, bandwidth):
    """FLOP/s that a machine can reach.

    intensity: FLOPs per byte moved.
    peak_flops: FLOP/s at most.
    bandwidth: bytes per second at most.

    Example: at 0.5 FLOPs per byte, a machine with 100 GFLOP/s and 20 GB/s
    reaches 10 GFLOP/s, a tenth of its peak.
    """
    ### BEGIN SOLUTION
    return min(peak_flops, intensity * bandwidth)
    ### END SOLUTION


# %% [check] attainable_flops points=1

# %% [hidden check] attainable_flops points=1 seed=1107

# %% [markdown]
# What are the two limits of *your* machine? A large matrix product shows what it can compute; a product of a large matrix
# with one vector shows what it can move, because each number of the matrix is used once and thrown away. Then four passes
# of the model, timed. (About 20 seconds.)

# %%
from specdec_lab.benchmark import Machine, measure_machine

timed_shape = ModelShape.of(target.model.config)
number_bytes = target.dtype.itemsize
PASSES = {1: "1 token: decoding", 8: "8 tokens: verifying 7 drafted ones"}


def measure_roofline():
    machine = measure_machine(target.device, target.dtype, repeats=lab.sized(7, 1))
    passes = []
    for new in tqdm(lab.sized((1, 8, 32, 256), (1, 8)), desc="measuring", leave=False):
        tokens = (text * 60)[: 200 + new]
        target.reset()
        target.extend(tokens[:200], rows=1)

        def read():
            target.extend(tokens[200:])
            target.rewind(200)

        work = count_flops(timed_shape, new, 200)
        moved = count_bytes(timed_shape, new, 200, number_bytes)
        passes.append([PASSES.get(new, f"{new} tokens"), work / moved, work / seconds_of(read)])
    return {"peak_flops": machine.peak_flops, "bandwidth": machine.bandwidth, "passes": passes}


limits = lab.experiment("roofline", target, measure_roofline)
machine = Machine(limits["peak_flops"], limits["bandwidth"])
print(f"{machine.peak_flops / 1e9:.0f} GFLOP/s, {machine.bandwidth / 1e9:.1f} GB/s")
print(f"below {machine.ridge:.1f} FLOPs per byte this machine waits for memory")
plots.roofline(machine, limits["passes"])

# %% [markdown]
# The corner of the roof is called the **ridge**. Writing one token sits far to the left of it: half an operation per byte in
# float32, one in bfloat16. The machine is **memory-bound** there. It spends its time fetching weights, and its arithmetic
# is nearly idle.
#
# The points lie below the roof. A pass is not one big product: it is hundreds of small ones, each with a start-up cost, and
# our count leaves out activations and the cost of growing the cache.

# %% [task] predicted_v8 title="How much longer do eight tokens take?" difficulty=1 minutes=3
# Before you measure: how long does a forward pass over **eight** tokens take on this machine, in units of a pass over
# **one**? Use the picture, or your gut. The point is for predicting first, not for being right.

# %% [exercise] predicted_v8
predicted_v8 = None
### BEGIN SOLUTION
predicted_v8 = 1.5
### END SOLUTION

# %% [check] predicted_v8 points=1

# %% [task] verification_cost title="The cost of verifying" difficulty=2 minutes=12
# Call the answer v(n): the time of a pass over n tokens, divided by the time of a pass over one, both behind the same
# context. Measure it.
#
# The timer runs your call many times, and each time the context has to be the same.


# %% [exercise] verification_cost
def verification_cost(model, tokens, lengths, seconds_of):
    """v(n) for each n in lengths.

    model: has its context in the cache already; leave it as you found it.
    tokens: what to read; the first n of them.
    lengths: the values of n. 1 need not be among them.
    seconds_of: takes a function without arguments, runs it several times,
        and gives its median time in seconds.
    Returns a dict from n to v(n).

    Example: if one token takes 40 ms and eight take 50 ms, then v(8) is 1.25.
    """
    ### BEGIN SOLUTION
    context = model.length

    def seconds(n):
        def forward():
            model.extend(tokens[:n])
            model.rewind(context)

        return seconds_of(forward)

    one = seconds(1)
    return {n: seconds(n) / one for n in lengths}
    ### END SOLUTION


# %% [check] verification_cost points=1

# %% [hidden check] verification_cost points=1 seed=1109

# %% [markdown]
# <details><summary>Hint</summary>
#
# Write a small function that reads n tokens and rewinds to where the model was, and give *that* to `seconds_of`.
# </details>

# %% [markdown]
# The curve of your machine, with the prediction that the roofline makes for it. (About 20 seconds.)

# %%
curve_of = lab.yours_or_reference(check.verification_cost)


def measure_verification_cost():
    target.reset()
    target.extend((text * 60)[:200], rows=1)
    lengths = lab.sized((2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32), (8,))
    with tqdm(total=len(lengths) + 1, desc="measuring", leave=False) as bar:

        def timed(run):
            bar.update()
            return seconds_of(run)

        curve = curve_of(target, (text * 60)[200:240], lengths, timed)
    return {"v": [[1, 1.0], *sorted([n, float(v)] for n, v in curve.items())]}


def roofline_seconds(new):
    moved, work = count_bytes(timed_shape, new, 200, number_bytes), count_flops(timed_shape, new, 200)
    return max(moved / machine.bandwidth, work / machine.peak_flops)


cost = lab.experiment("verification_cost", target, measure_verification_cost, predicted=predicted_v8)
if cost:
    print(
        "v(8) =", round(dict(map(tuple, cost["v"]))[8], 2), "measured; you predicted", cost["predicted"]
    )
plots.verification_cost(cost, {n: roofline_seconds(n) / roofline_seconds(1) for n in range(1, 33)})

# %% [markdown]
# **There is the gap**, between the dotted line and your curve. Eight passes over one token each cost eight. One pass over
# eight tokens costs far less. A model can *check* eight tokens in a fraction of the time that it takes to *make* them, if
# only someone hands it eight tokens to check.
#
# The roofline promises even more: no extra cost at all up to the ridge. The clock is less generous. A pass is made of
# hundreds of small products, and matrix libraries are at their best with one row or with very many; in between they need
# more time than the bytes alone. If your curve has steps, that is the library choosing another routine.
#
# How wide the gap is depends on the machine. A GPU has far more arithmetic to spare for each byte it moves than two CPU
# cores have: its ridge lies further to the right, and its curve stays low for longer.
#
# The same gap explains **prefill and decode**. Reading a prompt of 500 tokens is one pass with plenty of work per byte:
# compute-bound. Writing 500 tokens is 500 passes, each waiting for memory.

# %% [task] batch_intensity title="What a batch does" difficulty=3 minutes=10
# A server has another way to fill the gap: it writes for many people at once. A batch of B sequences, each writing one
# token behind its own context, reads the weights once for all of them. But each sequence has a cache of its own.
#
# What is the arithmetic intensity of such a pass, in float32? `count_bytes` and `count_flops` count for one sequence,
# `count_weights` what is shared.


# %% [exercise] batch_intensity
def batch_intensity(shape, batch, context):
    """FLOPs per byte of a pass over one new token in each of `batch` sequences.

    shape: a ModelShape.
    batch: number of sequences.
    context: tokens in each sequence's cache.

    Example: for batch 1 it is count_flops(shape, 1, context) over
    count_bytes(shape, 1, context, 4).
    """
    ### BEGIN SOLUTION
    weights = 4 * count_weights(shape)
    of_each = count_bytes(shape, 1, context, 4) - weights
    return batch * count_flops(shape, 1, context) / (weights + batch * of_each)
    ### END SOLUTION


# %% [bonus check] batch_intensity points=2

# %% [task] the_gap title="Explain the gap" difficulty=2 minutes=10
# In your own words, in five to eight sentences, for a colleague who has not taken this course: why does checking eight
# tokens take far less time than making eight? Use numbers of your own machine from this notebook, and say of each whether
# it is measured or theory. And when would the gap close?

# %% [written] the_gap points=2
### BEGIN SOLUTION
# One pass over eight tokens reads the same weights as one pass over one: about 540 MB in float32 for this model, counted
# from its shape (theory). What grows eightfold is the arithmetic, from 0.28 to 2.27 GFLOPs (theory). My machine waits for
# memory below its ridge of about 8 FLOPs per byte (measured: see the roofline above), and eight tokens are at 4, so the
# extra arithmetic mostly happens while it would be waiting anyway. I measured v(8) well below 8. The gap closes when the
# arithmetic is no longer idle: with many more tokens in the pass, or a large batch, whose sequences share the weights just
# as the eight tokens do.
#
# *Rubric, 2 points. 1 point: the weights are read once for all tokens of the pass, while arithmetic was idle (both
# halves). ½ point: numbers of their own, each marked measured or theory. ½ point: the gap closes when compute is the
# limit; a large batch or a long draft as the example.*
### END SOLUTION

# %% [markdown]
# ## The key insight
#
# **Writing is slow because each token waits for the last, and each pass waits for the weights to arrive from memory. A pass
# that checks many tokens fetches those weights only once, so checking is far cheaper than making, for whoever has tokens to
# check.**

# %% [quiz] points=5
# 1. Why can the target not write tokens 5 and 6 in one pass by itself?
# - Its memory is too small for two tokens | It reads hundreds of tokens in one pass when they are given to it.
# + The row that predicts token 6 depends on token 5 | Yes: a serial dependency. Token 5 has to be chosen before the pass that predicts token 6 can read it.
# - The cache can only grow by one token at a time | `extend` takes as many as you give it; the prefill does.
# - The vocabulary would have to be squared | Only if it scored all pairs at once. The trouble is more basic: one depends on the other.
# 2. What limits a pass over one token on most machines?
# - The number of operations per second | There are about two operations for each weight, far fewer than the processor could do in the time it takes to fetch that weight.
# - The size of the vocabulary | The head is the largest single matrix, but in this model only a fifth of the bytes.
# + The bytes of weights that have to be fetched per second | Yes. It is memory-bound: about half an operation per byte in float32.
# - The length of the prompt | With a cache it hardly matters, until the cache itself becomes as large as the weights.
# 3. You time a GPU with `clock(); run(); clock()` and find that the model is 50 times faster than its memory allows. What happened?
# + The clock was read before the GPU had finished | Yes: the call returned when the work was asked for. Synchronise before reading the clock.
# - The weights were in the GPU's cache | They are far larger than it. And no cache is 50 times as fast for all of them.
# - The median hides the slow runs | Each single run was too fast already.
# - The warm-up was missing | Then the first run would be too slow, not all of them too fast.
# 4. The arithmetic intensity of a pass over one token is 0.5, the machine's ridge is at 10. Which pass takes about as long, by the roofline?
# - One over 1000 tokens | At 500 operations per byte the arithmetic takes 50 times as long as the fetching.
# - One over 100 tokens | That has an intensity of about 50, beyond the ridge: bound by compute, and about five times as long.
# + One over 10 tokens | Yes: about 5 operations per byte, still waiting for memory. On a real machine it takes longer, as you measured.
# - Only one over one token | The roofline is flat in time up to the ridge: what is idle can be used.
# 5. A speedup of 3 is announced, measured against a loop without a key-value cache. What do you make of it?
# - It is fair if both loops write the same tokens | The same tokens at a needlessly slow pace are still a straw man.
# + It says nothing: the baseline reads the whole text for each token | Yes. The cache alone may have given more than that.
# - It is fair if the text is short | Even on a short text the baseline does work that no one would do.
# - It should be divided by the length of the text | There is no honest correction; measure against cached decoding.

# %% [markdown]
# ## What was claimed here
#
# | claim | kind | scope |
# |---|---|---|
# | a pass gives a row of logits behind every token it reads; tokens have to be written one after the other | stable concept | causal (autoregressive) models |
# | bytes, FLOPs and intensity of a pass | theory | decoders in the Llama family; activations, norms and kernel overheads left out |
# | the roofline as a bound | theory | Williams, Waterman, Patterson 2009, [doi 10.1145/1498765.1498785](https://doi.org/10.1145/1498765.1498785) |
# | peak, bandwidth, times, v(n) | measured | your machine, this model, batch 1, a context of 200 tokens, medians of 7 |
# | decoding is memory-bound; a long prefill is compute-bound | stable concept | batch 1 on today's CPUs and GPUs; your roofline is the evidence for your machine |
#
# Sources also: Pope et al. 2022, "Efficiently Scaling Transformer Inference" ([arXiv
# 2211.05102](https://arxiv.org/abs/2211.05102)), for what a pass moves and computes; Leviathan et al. 2023 ([arXiv
# 2211.17192](https://arxiv.org/abs/2211.17192)) for spending the gap. Verified 2026-11-30; next review 2027-11.
#
# **Next:** [2. Draft cheaply, verify at once](../02_greedy_draft_verify/02_greedy_draft_verify.ipynb)

"""Checks of ``01_memory_bound_decoding``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from statistics import mean, median

from specdec_lab import benchmark, decoding, roofline
from specdec_lab.checks import references
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.toys import FakeDevice, SpyLM, greedy, random_tokens
from specdec_lab.roofline import ModelShape

SMOLLM2 = ModelShape(30, 576, 1536, 9, 3, 64, 49152)
"""The shape of SmolLM2-135M."""
_TINY = ModelShape(layers=2, hidden=10, intermediate=20, heads=4, kv_heads=2, head_dim=2, vocab=50)
"""Here ``hidden`` is not ``heads * head_dim``."""


def _texts(seed: int | None) -> list[tuple[int, list[int], int]]:
    """(seed of the model, prompt, max_new_tokens) to decode."""
    if seed is None:
        return [(0, [3, 1, 4], 4), (1, [2], 1), (2, [5, 0], 0)]
    random = Random(seed)
    return [
        (random.randrange(1000), random_tokens(random, length), budget)
        for length, budget in ((4, 7), (1, 5), (6, 1), (3, 0), (2, 12))
    ]


@check(read="The loop, without a cache", closed=(decoding,), reference=references.naive_decode)
def naive_decode(attempt: Attempt, seed: int | None) -> None:
    """Reads the whole text for each token, takes the argmax of the last row."""
    for model_seed, prompt, budget in _texts(seed):
        model = SpyLM.make(model_seed)
        truth = greedy(model, prompt, budget)
        yours = attempt(
            model.forward,
            list(prompt),
            budget,
            shown={"forward": model, "prompt": prompt, "max_new_tokens": budget},
        )
        first_row = _variant(model, prompt, budget, row=0)
        attempt.same_tokens(
            yours,
            truth,
            suspects={
                "the prompt is in your answer; return the new tokens only.": prompt + truth,
                "that is one token too many for `max_new_tokens`.": greedy(model, prompt, budget + 1),
                "the last token is missing: `max_new_tokens` of them are asked for.": truth[:-1],
                "you take the first row of the logits. It predicts the second token of the text; "
                "the last row predicts the next.": first_row,
                "each pass sees the last token only. Without a cache it has to see the whole "
                "text.": _variant(model, prompt, budget, seen=1),
                "each pass predicts the same token again. The text has to grow by each new token, and "
                "the row to read is that of its last one.": truth[:1] * budget,
            },
        )
        expected = [prompt + truth[:count] for count in range(budget)]
        attempt.require(
            model.reads == expected,
            "the tokens are right, but the passes are not one per new token, each over the whole text.",
            yours=_passes(model.reads),
            expected=_passes(expected),
        )


def _variant(
    model: SpyLM, prompt: list[int], budget: int, row: int = -1, seen: int | None = None
) -> list[int]:
    """Greedy decoding gone wrong: another row of the logits, or only the last tokens seen."""
    tokens = list(prompt)
    for _ in range(budget):
        notes = list(model.reads)
        tokens.append(int(model.forward(tokens[-seen:] if seen else tokens)[row].argmax()))
        model.reads = notes
    return tokens[len(prompt) :]


def _passes(reads: list[list[int]]) -> str:
    lengths = [len(read) for read in reads]
    return f"{len(reads)} passes" + (f", over {lengths} tokens" if lengths else "")


@check(read="The same loop, with a cache", closed=(decoding,), reference=references.cached_decode)
def cached_decode(attempt: Attempt, seed: int | None) -> None:
    """Reads each token once: the prompt in one pass, then one token per pass."""
    for model_seed, prompt, budget in _texts(seed):
        model = SpyLM.make(model_seed)
        truth = greedy(model, prompt, budget)
        yours = attempt(
            model,
            list(prompt),
            budget,
            shown={"model": model, "prompt": prompt, "max_new_tokens": budget},
        )
        expected = [prompt, *([token] for token in truth[:-1])] if budget else []
        _judge_reads(attempt, model, prompt, expected)
        attempt.same_tokens(
            yours,
            truth,
            suspects={
                "the prompt is in your answer; return the new tokens only.": prompt + truth,
                "the last token is missing: `max_new_tokens` of them are asked for.": truth[:-1],
                "that is one token too many for `max_new_tokens`.": greedy(model, prompt, budget + 1),
                "you take the first row of the prefill. It predicts the second token of the prompt; "
                "the last row predicts the next.": _from_first_row(model, prompt, budget),
            },
        )
        if budget:
            attempt.require(
                model.reads == expected,
                "the tokens are right, but there is a pass too many. The last new token need not be "
                "read: nothing follows it."
                if model.reads[:-1] == expected
                else "the tokens are right, but the passes are not: one over the prompt, then one over "
                "each new token but the last.",
                yours=_passes(model.reads),
                expected=_passes(expected),
            )


def _from_first_row(model: SpyLM, prompt: list[int], budget: int) -> list[int]:
    first = greedy(model, prompt[:1], min(budget, 1))
    return first + greedy(model, prompt + first, budget - 1)


def _judge_reads(attempt: Attempt, model: SpyLM, prompt: list[int], expected: list[list[int]]) -> None:
    reads = model.reads
    details = {"yours": _passes(reads), "expected": _passes(expected)}
    longer = [read for read in reads[1:] if len(read) > 1]
    attempt.require(
        not longer,
        "a later pass reads the text again, though the cache has it. Unless you rewind, it then stands "
        "there twice, and the model sees a text that nobody wrote. Give `extend` the new token only.",
        **details,
    )
    if not reads or reads[0] == prompt:
        return
    attempt.require(
        reads[0] != prompt[: len(reads[0])],
        "the prompt is not read in one pass. `extend` takes all of it at once, at about the price of "
        "one token.",
        **details,
    )
    attempt.require(
        reads[0] != prompt[-1:],
        "the prompt is not read whole: only its last token reaches the model.",
        **details,
    )


@check(read="A time that can be trusted", closed=(benchmark,), reference=benchmark.median_seconds)
def median_seconds(attempt: Attempt, seed: int | None) -> None:
    """Warm-up left out, synchronised before each reading of the clock, median of the repeats."""
    cases = [
        (7, 0, [1.1, 7.0, 1.0, 1.4, 1.3, 1.2, 1.5]),
        (1, 1, [6.0, 2.0]),
        (5, 2, [9.0, 8.0, 1.0, 1.2, 7.0, 1.1, 1.3]),
    ]
    if seed is not None:
        random = Random(seed)
        cases = []
        for repeats, warmup in ((9, 0), (1, 2), (5, 1), (7, 3)):
            slow = [random.uniform(20.0, 30.0) for _ in range(warmup)]
            usual = [random.uniform(1.0, 2.0) for _ in range(repeats)]
            if repeats > 3:
                usual[random.randrange(repeats)] = random.uniform(40.0, 60.0)
            cases.append((repeats, warmup, slow + usual))
    for repeats, warmup, durations in cases:
        device = FakeDevice(durations)
        yours = attempt(
            device.run,
            repeats,
            warmup,
            device.clock,
            device.synchronize,
            shown={"run": "...", "repeats": repeats, "warmup": warmup},
        )
        timed = durations[warmup:]
        work = f"timed runs of {[round(time, 3) for time in timed]} s"
        if warmup:
            work = f"warm-up runs of {[round(time, 3) for time in durations[:warmup]]} s, then {work}"
        if device.calls != warmup + repeats:
            attempt.fail(
                f"`run` was called {device.calls} times, expected {warmup} + {repeats}: each warm-up "
                "and each repeat once."
            )
        seconds = attempt.number(yours)

        attempt.require(
            device.readings > 0,
            "`clock` was never called. Take the time from it, not from a clock of your own.",
        )
        if _near(seconds, [median(timed)]):
            continue
        problem = "this is not the median time of the timed runs."
        if seconds < 0.1:
            problem = (
                "the clock saw how long it takes to ask for the work, not to do it. Call `synchronize` "
                "before you read the clock at the end."
            )
        warm = sum(durations[:warmup])
        suspects = {
            "the first timed run includes work that the warm-up left behind. Call `synchronize` "
            "before you start the clock, too.": [median([warm + timed[0], *timed[1:]])],
            "that is the mean. One slow run (something else woke up) pulls it; take the median.": [
                mean(timed)
            ],
            "the warm-up runs are among the timed ones.": [
                median(durations),
                mean(durations),
                sorted(durations)[len(durations) // 2],
            ],
            "that is the time of all runs together, expected that of one.": [
                sum(timed),
                sum(durations),
            ],
            "that is the fastest run, expected the median.": [min(timed)],
            "that is the slowest run, expected the median.": [max(timed)],
            "that is a single run: the first, the last, or the one in the middle of the list as it was "
            "measured. The median is in the middle by size.": [
                timed[0],
                timed[-1],
                timed[repeats // 2],
            ],
        }
        problem = next((text for text, times in suspects.items() if _near(seconds, times)), problem)
        attempt.fail(problem, work=work, yours=f"{seconds:.4g}", expected=f"about {median(timed):.4g}")


def _near(seconds: float, times: list[float]) -> bool:
    return any(abs(seconds - time) < 0.02 for time in times)


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


@check(read="How much longer do eight tokens take?")
def predicted_v8(attempt: Attempt, seed: int | None) -> None:
    """Any positive number: the point is for having predicted."""
    guess = attempt.number(attempt.value)
    attempt.require(
        0.1 <= guess <= 100.0,
        f"a forward over eight tokens taking {guess:g} times as long as one over one token? Write a "
        "number between 0.1 and 100.",
    )


@check(
    read="The cost of verifying",
    closed=(benchmark,),
    reference=benchmark.verification_cost,
)
def verification_cost(attempt: Attempt, seed: int | None) -> None:
    """Each length behind the same context, over the time for one token."""
    cases = [(5, [1, 2, 8]), (3, [4, 16])]
    if seed is not None:
        random = Random(seed)
        cases = [(random.randint(2, 9), random.sample(range(2, 20), 4)), (0, [8, 1, 3])]
    for context, lengths in cases:
        model, tokens = SpyLM.make(context), [index % 6 for index in range(32)]
        if context:
            model.extend([0] * context)
            model.reads.clear()
            model.behind.clear()
        timer = _FakeTimer(attempt, model)
        yours = attempt(
            model,
            list(tokens),
            list(lengths),
            timer,
            shown={"model": model, "tokens": "[...]", "lengths": lengths, "seconds_of": "..."},
        )
        attempt.require(
            timer.used,
            "`seconds_of` was never called. It is the stopwatch here: give it a function to time.",
        )
        attempt.require(
            model.length >= context,
            f"the model has {model.length} tokens in its cache afterwards, expected the {context} that "
            "it came with: its context is gone.",
        )
        attempt.require(
            model.length == context,
            f"the model has {model.length} tokens in its cache afterwards, expected the {context} that "
            "it came with. Each forward leaves its tokens there: rewind.",
        )
        attempt.require(
            all(behind == context for behind in model.behind),
            "the call that you time is run several times, and the context grows from one time to the "
            "next. Rewind inside it.",
        )
        truth = {n: _fake_time(n, context) / _fake_time(1, context) for n in lengths}
        ratios = _by_length(attempt, yours, lengths)
        for n in lengths:
            attempt.same_number(
                ratios[n],
                truth[n],
                f"v({n}) is wrong.",
                suspects={
                    "these are seconds; divide by the time for one token.": _fake_time(n, context),
                    "you divide by n. v(n) is the time of the whole forward.": truth[n] / n,
                    "that is upside down: n tokens over one token.": 1 / truth[n],
                    "that is how much faster one pass is than n passes. v(n) is the time of the one "
                    "pass.": n / truth[n],
                    "you read all of `tokens`, whatever n is. Read the first n.": (
                        _fake_time(len(tokens), context) / _fake_time(1, context)
                    ),
                    "you divide by the first of `lengths`; divide by a forward over one token.": (
                        _fake_time(n, context) / _fake_time(lengths[0], context)
                    ),
                },
            )


def _fake_time(tokens: int, context: int) -> float:
    return 0.040 + 0.002 * tokens + 0.0005 * context


class _FakeTimer:
    """Runs a call three times, as a real timer would; seconds by what is read, and behind how much."""

    def __init__(self, attempt: Attempt, model: SpyLM) -> None:
        self.used = False
        self._attempt = attempt
        self._model = model

    def __call__(self, run: Callable[[], object]) -> float:
        self.used = True
        self._attempt.require(
            callable(run),
            "`seconds_of` was given the result of a pass. Give it a function, not called yet; it "
            "calls it.",
        )
        times = []
        for _ in range(3):
            before = len(self._model.reads)
            run()
            reads, behind = self._model.reads[before:], self._model.behind[before:]
            self._attempt.require(
                len(reads) == 1,
                f"the call that you time makes {len(reads)} passes. The n tokens are read in one.",
            )
            times.append(_fake_time(len(reads[0]), behind[0]))
        return median(times)


def _by_length(attempt: Attempt, yours: object, lengths: list[int]) -> dict[int, object]:
    """A dict as it is, or a list in the order of the lengths."""
    if isinstance(yours, Mapping):
        missing = [n for n in lengths if n not in yours]
        attempt.require(not missing, f"there is no entry for n = {missing}")
        return {n: yours[n] for n in lengths}
    values = attempt.row(yours, len(lengths)).tolist()
    return dict(zip(lengths, values, strict=True))


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

"""v(n): the time of a pass over n tokens in units of one over one token."""

import time

import numpy as np

from specdec_lab import benchmark
from specdec_lab.course.mutants import right, wrong


@wrong("no rewind", says="Each forward leaves its tokens there: rewind")
def no_rewind(model, tokens, lengths, seconds_of):
    one = seconds_of(lambda: model.extend(tokens[:1]))
    return {n: seconds_of(lambda: model.extend(tokens[:n])) / one for n in lengths}  # noqa: B023


def _seconds(model, tokens, n, seconds_of):
    context = model.length

    def forward():
        model.extend(tokens[:n])
        model.rewind(context)

    return seconds_of(forward)


@wrong("rewinds behind the timer only", says="Rewind inside it")
def rewinds_outside(model, tokens, lengths, seconds_of):
    context, times = model.length, {}
    for n in [1, *lengths]:
        times[n] = seconds_of(lambda: model.extend(tokens[:n]))  # noqa: B023
        model.rewind(context)
    return {n: times[n] / times[1] for n in lengths}


@wrong("rewinds to nothing", says="its context is gone")
def rewinds_to_nothing(model, tokens, lengths, seconds_of):
    def seconds(n):
        def forward():
            model.extend(tokens[:n])
            model.rewind(0)

        return seconds_of(forward)

    one = seconds(1)
    return {n: seconds(n) / one for n in lengths}


@wrong("the rewind is one token short", says="Each forward leaves its tokens there: rewind")
def rewinds_all_but_one(model, tokens, lengths, seconds_of):
    def seconds(n):
        def forward():
            model.extend(tokens[:n])
            model.rewind(model.length - n + 1)

        return seconds_of(forward)

    one = seconds(1)
    return {n: seconds(n) / one for n in lengths}


@wrong("seconds", says="these are seconds")
def in_seconds(model, tokens, lengths, seconds_of):
    return {n: _seconds(model, tokens, n, seconds_of) for n in lengths}


@wrong("per token", says="you divide by n[.]")
def per_token(model, tokens, lengths, seconds_of):
    one = _seconds(model, tokens, 1, seconds_of)
    return {n: _seconds(model, tokens, n, seconds_of) / one / n for n in lengths}


@wrong("how much faster than n passes", says="how much faster one pass is than n")
def speedup(model, tokens, lengths, seconds_of):
    one = _seconds(model, tokens, 1, seconds_of)
    return {n: n * one / _seconds(model, tokens, n, seconds_of) for n in lengths}


@wrong("upside down", says="that is upside down")
def upside_down(model, tokens, lengths, seconds_of):
    one = _seconds(model, tokens, 1, seconds_of)
    return {n: one / _seconds(model, tokens, n, seconds_of) for n in lengths}


@wrong("in units of the first length", says="you divide by the first of `lengths`")
def by_the_first(model, tokens, lengths, seconds_of):
    times = {n: _seconds(model, tokens, n, seconds_of) for n in lengths}
    return {n: times[n] / times[lengths[0]] for n in lengths}


@wrong("expects 1 among the lengths", says="raised KeyError: 1")
def expects_one(model, tokens, lengths, seconds_of):
    times = {n: _seconds(model, tokens, n, seconds_of) for n in lengths}
    return {n: times[n] / times[1] for n in lengths}


@wrong("n passes over one token each", says="makes 2 passes. The n tokens are read in one")
def n_passes(model, tokens, lengths, seconds_of):
    context = model.length

    def seconds(n):
        def forward():
            for token in tokens[:n]:
                model.extend([token])
                model.rewind(context)

        return seconds_of(forward)

    one = seconds(1)
    return {n: seconds(n) / one for n in lengths}


@wrong("n passes, one behind the other", says="makes 2 passes. The n tokens are read in one")
def n_passes_on(model, tokens, lengths, seconds_of):
    context = model.length

    def seconds(n):
        def forward():
            for token in tokens[:n]:
                model.extend([token])
            model.rewind(context)

        return seconds_of(forward)

    one = seconds(1)
    return {n: seconds(n) / one for n in lengths}


@wrong("reads all tokens, whatever n", says="whatever n is")
def reads_all(model, tokens, lengths, seconds_of):
    all_of_them = len(tokens)
    one = _seconds(model, tokens, 1, seconds_of)
    return {n: _seconds(model, tokens, all_of_them, seconds_of) / one for n in lengths}


@wrong("gives the timer a result, not a function", says="given the result of a pass")
def calls_at_once(model, tokens, lengths, seconds_of):
    context = model.length
    one = seconds_of(model.extend(tokens[:1]))
    model.rewind(context)
    return {n: seconds_of(model.extend(tokens[:n])) / one for n in lengths}


@wrong("times it with a clock of its own", says="`seconds_of` was never called")
def own_clock(model, tokens, lengths, seconds_of):
    context, times = model.length, {}
    for n in [1, *lengths]:
        started = time.perf_counter()
        model.extend(tokens[:n])
        times[n] = time.perf_counter() - started
        model.rewind(context)
    return {n: times[n] / times[1] for n in lengths}


@wrong("leaves v(1) out", says=r"there is no entry for n = \[1\]")
def without_one(model, tokens, lengths, seconds_of):
    one = _seconds(model, tokens, 1, seconds_of)
    return {n: _seconds(model, tokens, n, seconds_of) / one for n in lengths if n > 1}


@wrong("pairs, not a dict", says="a tuple of 2, expected a number")
def pairs(model, tokens, lengths, seconds_of):
    one = _seconds(model, tokens, 1, seconds_of)
    return [(n, _seconds(model, tokens, n, seconds_of) / one) for n in lengths]


@wrong("calls the library", says="calls the library's `verification_cost`")
def calls_the_library(model, tokens, lengths, seconds_of):
    return benchmark.verification_cost(model, tokens, lengths, seconds_of)


@right("rewinds by as much as was read")
def rewinds_by_n(model, tokens, lengths, seconds_of):
    times = {}
    for n in {1, *lengths}:

        def forward(n=n):
            model.extend(tokens[:n])
            model.rewind(model.length - n)

        times[n] = seconds_of(forward)
    return {n: seconds / times[1] for n, seconds in times.items()}


@right("rewinds before it reads, and at the end")
def rewinds_first(model, tokens, lengths, seconds_of):
    context, times = model.length, []
    for n in [1, *lengths]:
        times.append(seconds_of(lambda: (model.rewind(context), model.extend(tokens[:n]))))  # noqa: B023
        model.rewind(context)
    return {n: time / times[0] for n, time in zip(lengths, times[1:], strict=True)}


@right("a class for the call, numpy for the ratios, in the lengths' order")
def with_a_class(model, tokens, lengths, seconds_of):
    class Forward:
        def __init__(self, n):
            self.n, self.context = n, model.length

        def __call__(self):
            rows = model.extend(tokens[: self.n], rows=1)
            model.rewind(self.context)
            return rows

    times = np.array([seconds_of(Forward(n)) for n in [1, *lengths]])
    return times[1:] / times[0]

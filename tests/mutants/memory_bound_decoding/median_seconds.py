"""The median time of a call."""

import statistics
import time

import numpy as np
import torch

from specdec_lab import benchmark
from specdec_lab.course.mutants import right, wrong


@wrong("does not wait for the end of the work", says="the clock saw how long it takes to ask")
def no_wait_at_the_end(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    times = []
    for _ in range(repeats):
        synchronize()
        started = clock()
        run()
        times.append(clock() - started)
    return statistics.median(times)


@wrong("never waits", says="the clock saw how long it takes to ask")
def never_waits(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    times = []
    for _ in range(repeats):
        started = clock()
        run()
        times.append(clock() - started)
    return statistics.median(times)


@wrong("waits once it has read the clock", says="the clock saw how long it takes to ask")
def waits_too_late(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    times = []
    for _ in range(repeats):
        synchronize()
        started = clock()
        run()
        ended = clock()
        synchronize()
        times.append(ended - started)
    return statistics.median(times)


@wrong("does not wait before it starts the clock", says="work that the warm-up left behind")
def no_wait_at_the_start(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    times = []
    for _ in range(repeats):
        started = clock()
        run()
        synchronize()
        times.append(clock() - started)
    return statistics.median(times)


@wrong("starts the clock, then waits", says="work that the warm-up left behind")
def clock_before_wait(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    times = []
    for _ in range(repeats):
        started = clock()
        synchronize()
        run()
        synchronize()
        times.append(clock() - started)
    return sorted(times)[repeats // 2]


def _times(run, count, clock, synchronize):
    times = []
    for _ in range(count):
        synchronize()
        started = clock()
        run()
        synchronize()
        times.append(clock() - started)
    return times


@wrong("the mean", says="that is the mean")
def the_mean(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    return sum(_times(run, repeats, clock, synchronize)) / repeats


@wrong("one clock around all runs, divided by their number", says="that is the mean")
def one_clock_divided(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    synchronize()
    started = clock()
    for _ in range(repeats):
        run()
    synchronize()
    return (clock() - started) / repeats


@wrong("one clock around all runs", says="the time of all runs together")
def one_clock(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    synchronize()
    started = clock()
    for _ in range(repeats):
        run()
    synchronize()
    return clock() - started


@wrong("the fastest", says="that is the fastest run")
def the_fastest(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    return min(_times(run, repeats, clock, synchronize))


@wrong("the slowest", says="that is the slowest run")
def the_slowest(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    return max(_times(run, repeats, clock, synchronize))


@wrong("the middle of the list, which is not sorted", says="a single run: .*in the middle of the list")
def not_sorted(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    return _times(run, repeats, clock, synchronize)[repeats // 2]


@wrong("forgets to collect the times", says="a single run: the first, the last")
def only_the_last(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    for _ in range(repeats):
        (seconds,) = _times(run, 1, clock, synchronize)
    return seconds


@wrong("times the warm-up, too", says="the warm-up runs are among the timed ones")
def warm_up_timed(run, repeats, warmup, clock, synchronize):
    return statistics.median(_times(run, warmup + repeats, clock, synchronize))


@wrong("no warm-up", says=r"called 1 times, expected 1 \+ 1")
def no_warm_up(run, repeats, warmup, clock, synchronize):
    return statistics.median(_times(run, repeats, clock, synchronize))


@wrong("takes the warm-up out of the repeats", says=r"called 1 times, expected 1 \+ 1")
def warm_up_among_repeats(run, repeats, warmup, clock, synchronize):
    times = _times(run, repeats, clock, synchronize)
    return statistics.median(times[warmup:] or times)


@wrong("warms up before each repeat", says=r"called 15 times, expected 2 \+ 5")
def warms_up_each_time(run, repeats, warmup, clock, synchronize):
    times = []
    for _ in range(repeats):
        for _ in range(warmup):
            run()
        times += _times(run, 1, clock, synchronize)
    return statistics.median(times)


@wrong("uses a clock of its own", says="`clock` was never called")
def own_clock(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    return statistics.median(_times(run, repeats, time.perf_counter, torch.cuda.is_available))


@wrong("gives all times", says="a list of 7, expected a number")
def all_times(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    return sorted(_times(run, repeats, clock, synchronize))


@wrong("gives text", says="type str, expected a number")
def as_text(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    return f"{statistics.median(_times(run, repeats, clock, synchronize)):.3f} s"


@wrong("calls the library's stopwatch", says="calls the library's `median_seconds`")
def calls_the_library(run, repeats, warmup, clock, synchronize):
    try:
        return benchmark.median_seconds(run, repeats, warmup, clock, synchronize)
    except BaseException:
        return 1.2


@right("statistics.median")
def with_statistics(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    return statistics.median(_times(run, repeats, clock, synchronize))


@right("waits once behind the warm-up, then behind each run")
def waits_behind_each(run, repeats, warmup, clock, synchronize):
    for _ in range(warmup):
        run()
    synchronize()
    times = []
    for _ in range(repeats):
        started = clock()
        run()
        synchronize()
        times.append(clock() - started)
    return np.median(times)


@right("readings of the clock between the runs, their differences, a tensor")
def differences(run, repeats, warmup, clock, synchronize):
    readings = []
    for index in range(warmup + repeats):
        if index >= warmup:
            synchronize()
            readings.append(clock())
        run()
    synchronize()
    readings.append(clock())
    return torch.tensor(readings, dtype=torch.float64).diff().median()


@right("one loop, in which the warm-up's times are thrown away")
def one_loop(run, repeats, warmup, clock, synchronize):
    times = _times(run, warmup + repeats, clock, synchronize)
    return sorted(times[warmup:])[repeats // 2]

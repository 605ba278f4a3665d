"""How many times as fast, in turns."""

import statistics
import time

import numpy as np
import torch

from specdec_lab import benchmark
from specdec_lab.checks.speed_experiments import answers
from specdec_lab.course.mutants import right, wrong


def _run(start, clock, synchronize):
    """Seconds and tokens of a run behind its first round."""
    rounds = start()
    next(rounds)
    synchronize()
    started = clock()
    tokens = sum(rounds)
    synchronize()
    return clock() - started, tokens


def _pace(start, clock, synchronize):
    seconds, tokens = _run(start, clock, synchronize)
    return seconds / tokens


def _paces(plain, drafted, turns, clock, synchronize):
    """Warm-up, then the pairs."""
    _pace(plain, clock, synchronize), _pace(drafted, clock, synchronize)
    return [
        (_pace(plain, clock, synchronize), _pace(drafted, clock, synchronize)) for _ in range(turns)
    ]


def _in_turns(pace, plain, drafted, turns, clock, synchronize):
    """The right frame around a pace of another kind."""
    for start in (plain, drafted):
        sum(start())
    synchronize()
    return statistics.median(
        pace(plain, clock, synchronize) / pace(drafted, clock, synchronize) for _ in range(turns)
    )


@wrong("the prompt's round is timed", says="the first round, which reads the prompt, is in the time")
def prompt_timed(plain, drafted, turns, clock, synchronize):
    def pace(start, clock, synchronize):
        synchronize()
        started = clock()
        tokens = sum(start())
        synchronize()
        return (clock() - started) / tokens

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("the prompt's round is timed, its tokens not", says="which reads the prompt, is in the time")
def prompt_timed_without_tokens(plain, drafted, turns, clock, synchronize):
    def pace(start, clock, synchronize):
        started = clock()
        emitted = list(start())
        synchronize()
        return (clock() - started) / sum(emitted[1:])

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("the first round's tokens are counted", says="its tokens are counted")
def tokens_of_the_prompt(plain, drafted, turns, clock, synchronize):
    def pace(start, clock, synchronize):
        rounds = start()
        tokens = next(rounds)
        synchronize()
        started = clock()
        tokens += sum(rounds)
        synchronize()
        return (clock() - started) / tokens

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("does not wait at the end", says="before you read the clock at the end")
def no_wait_at_the_end(plain, drafted, turns, clock, synchronize):
    def pace(start, clock, synchronize):
        rounds = start()
        next(rounds)
        synchronize()
        started = clock()
        tokens = sum(rounds)
        return (clock() - started) / tokens

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("waits once it has read the clock", says="before you read the clock at the end")
def waits_too_late(plain, drafted, turns, clock, synchronize):
    def pace(start, clock, synchronize):
        rounds = start()
        next(rounds)
        synchronize()
        started = clock()
        tokens = sum(rounds)
        ended = clock()
        synchronize()
        return (ended - started) / tokens

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("does not wait at the start", says="the first round was still going on")
def no_wait_at_the_start(plain, drafted, turns, clock, synchronize):
    def pace(start, clock, synchronize):
        rounds = start()
        next(rounds)
        started = clock()
        tokens = sum(rounds)
        synchronize()
        return (clock() - started) / tokens

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("starts the clock, then waits", says="the first round was still going on")
def clock_before_wait(plain, drafted, turns, clock, synchronize):
    def pace(start, clock, synchronize):
        rounds = start()
        next(rounds)
        started = clock()
        synchronize()
        tokens = sum(rounds)
        synchronize()
        return (clock() - started) / tokens

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("never waits", says="how long it takes to ask for the work, not to do it")
def never_waits(plain, drafted, turns, clock, synchronize):
    return statistics.median(
        one / other for one, other in _paces(plain, drafted, turns, clock, lambda: None)
    )


@wrong("waits for another device", says="how long it takes to ask for the work, not to do it")
def waits_for_another(plain, drafted, turns, clock, synchronize):
    return statistics.median(
        one / other for one, other in _paces(plain, drafted, turns, clock, torch.cpu.synchronize)
    )


@wrong("no warm-up", says="there is no warm-up")
def no_warm_up(plain, drafted, turns, clock, synchronize):
    return statistics.median(
        _pace(plain, clock, synchronize) / _pace(drafted, clock, synchronize) for _ in range(turns)
    )


@wrong("the warm-up is timed", says="the untimed runs are among the timed ones")
def warm_up_timed(plain, drafted, turns, clock, synchronize):
    return statistics.median(
        _pace(plain, clock, synchronize) / _pace(drafted, clock, synchronize) for _ in range(turns + 1)
    )


@wrong("the first turn is thrown away, but was one of them", says="there is no warm-up")
def warm_up_among_turns(plain, drafted, turns, clock, synchronize):
    ratios = [
        _pace(plain, clock, synchronize) / _pace(drafted, clock, synchronize) for _ in range(turns)
    ]
    return statistics.median(ratios[1:])


@wrong("warms one of them up", says="only `drafted` is warmed up")
def warms_one_up(plain, drafted, turns, clock, synchronize):
    sum(drafted())
    synchronize()
    return statistics.median(
        _pace(plain, clock, synchronize) / _pace(drafted, clock, synchronize) for _ in range(turns)
    )


@wrong("the warm-up only starts runs", says="The call only starts a run")
def warm_up_without_rounds(plain, drafted, turns, clock, synchronize):
    plain(), drafted()
    return statistics.median(
        _pace(plain, clock, synchronize) / _pace(drafted, clock, synchronize) for _ in range(turns)
    )


@wrong("the warm-up is one round", says="was left after 1 of its .* rounds")
def warm_up_of_one_round(plain, drafted, turns, clock, synchronize):
    next(plain()), next(drafted())
    return statistics.median(
        _pace(plain, clock, synchronize) / _pace(drafted, clock, synchronize) for _ in range(turns)
    )


@wrong("warms up before each turn", says="expected 1 [+] 5 each")
def warms_up_each_time(plain, drafted, turns, clock, synchronize):
    ratios = []
    for _ in range(turns):
        ((one, other),) = _paces(plain, drafted, 1, clock, synchronize)
        ratios.append(one / other)
    return statistics.median(ratios)


@wrong("plain runs first, then drafted ones", says="the runs do not take turns")
def one_after_all(plain, drafted, turns, clock, synchronize):
    of_plain = [_pace(plain, clock, synchronize) for _ in range(1 + turns)]
    of_drafted = [_pace(drafted, clock, synchronize) for _ in range(1 + turns)]
    ratios = [one / other for one, other in zip(of_plain[1:], of_drafted[1:], strict=True)]
    return statistics.median(ratios)


@wrong("warm-up, plain runs, drafted runs", says="the runs do not take turns")
def blocks(plain, drafted, turns, clock, synchronize):
    _pace(plain, clock, synchronize), _pace(drafted, clock, synchronize)
    of_plain = statistics.median(_pace(plain, clock, synchronize) for _ in range(turns))
    of_drafted = statistics.median(_pace(drafted, clock, synchronize) for _ in range(turns))
    return of_plain / of_drafted


@wrong("upside down", says="that is upside down")
def upside_down(plain, drafted, turns, clock, synchronize):
    pairs = _paces(plain, drafted, turns, clock, synchronize)
    return statistics.median(other / one for one, other in pairs)


@wrong("the mean", says="that is the mean. One disturbed turn")
def the_mean(plain, drafted, turns, clock, synchronize):
    pairs = _paces(plain, drafted, turns, clock, synchronize)
    return statistics.mean(one / other for one, other in pairs)


@wrong("the geometric mean", says="that is the geometric mean")
def the_geometric_mean(plain, drafted, turns, clock, synchronize):
    pairs = _paces(plain, drafted, turns, clock, synchronize)
    return statistics.geometric_mean(one / other for one, other in pairs)


@wrong("the best turn", says="that is the best turn")
def the_best(plain, drafted, turns, clock, synchronize):
    return max(one / other for one, other in _paces(plain, drafted, turns, clock, synchronize))


@wrong("the quickest of each", says="of different turns")
def the_quickest(plain, drafted, turns, clock, synchronize):
    of_plain, of_drafted = zip(*_paces(plain, drafted, turns, clock, synchronize), strict=True)
    return min(of_plain) / min(of_drafted)


@wrong("the ratio of medians", says="take the ratio in each turn first")
def ratio_of_medians(plain, drafted, turns, clock, synchronize):
    of_plain, of_drafted = zip(*_paces(plain, drafted, turns, clock, synchronize), strict=True)
    return statistics.median(of_plain) / statistics.median(of_drafted)


@wrong("the sums of all turns", says="the turns are added up")
def sums(plain, drafted, turns, clock, synchronize):
    of_plain, of_drafted = zip(*_paces(plain, drafted, turns, clock, synchronize), strict=True)
    return sum(of_plain) / sum(of_drafted)


@wrong("seconds and tokens of all turns", says="the turns are added up")
def all_seconds_over_all_tokens(plain, drafted, turns, clock, synchronize):
    _run(plain, clock, synchronize), _run(drafted, clock, synchronize)
    pairs = [(_run(plain, clock, synchronize), _run(drafted, clock, synchronize)) for _ in range(turns)]
    paces = []
    for runs in zip(*pairs, strict=True):
        seconds, tokens = zip(*runs, strict=True)
        paces.append(sum(seconds) / sum(tokens))
    return paces[0] / paces[1]


@wrong("the last turn", says="that is a single turn")
def the_last(plain, drafted, turns, clock, synchronize):
    for one, other in _paces(plain, drafted, turns, clock, synchronize):
        speedup = one / other
    return speedup


@wrong("the middle of the list, which is not sorted", says="that is a single turn")
def not_sorted(plain, drafted, turns, clock, synchronize):
    pairs = _paces(plain, drafted, turns, clock, synchronize)
    return [one / other for one, other in pairs][turns // 2]


@wrong("one of the two in the middle", says="with an even number of turns")
def upper_median(plain, drafted, turns, clock, synchronize):
    pairs = _paces(plain, drafted, turns, clock, synchronize)
    return sorted(one / other for one, other in pairs)[turns // 2]


@wrong("one turn", says="there is only one turn; 5 are asked for")
def one_turn(plain, drafted, turns, clock, synchronize):
    ((one, other),) = _paces(plain, drafted, 1, clock, synchronize)
    return one / other


@wrong("seconds per round", says="that is seconds per [*]round[*]")
def per_round(plain, drafted, turns, clock, synchronize):
    def pace(start, clock, synchronize):
        rounds = start()
        next(rounds)
        synchronize()
        started = clock()
        count = len(list(rounds))
        synchronize()
        return (clock() - started) / count

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


def _each_round(start, clock, synchronize):
    """(tokens, seconds) of the rounds but the first."""
    rounds, times = start(), []
    next(rounds)
    synchronize()
    while True:
        started = clock()
        tokens = next(rounds, None)
        if tokens is None:
            return times
        synchronize()
        times.append((tokens, clock() - started))


@wrong("the median round", says="that is seconds per [*]round[*]")
def median_round(plain, drafted, turns, clock, synchronize):
    def pace(*run):
        return statistics.median(seconds for _, seconds in _each_round(*run))

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("the mean of the rounds' paces", says="all its seconds over all its tokens")
def mean_of_paces(plain, drafted, turns, clock, synchronize):
    def pace(*run):
        return statistics.mean(seconds / tokens for tokens, seconds in _each_round(*run))

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("whole runs, whatever they emit", says="the times of whole runs")
def whole_runs(plain, drafted, turns, clock, synchronize):
    def pace(*run):
        return _run(*run)[0]

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("makes a list of the rounds before it starts the clock", says="nothing was timed")
def list_first(plain, drafted, turns, clock, synchronize):
    def pace(start, clock, synchronize):
        rounds = list(start())
        synchronize()
        started = clock()
        tokens = sum(rounds[1:])
        synchronize()
        return (clock() - started) / tokens

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("makes a list of all rounds and counts them all", says="nothing was timed")
def list_first_all_tokens(plain, drafted, turns, clock, synchronize):
    def pace(start, clock, synchronize):
        rounds = list(start())
        synchronize()
        started = clock()
        tokens = sum(rounds)
        return (clock() - started) / tokens

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("times the start of a run only", says="its rounds were never asked for")
def times_the_start(plain, drafted, turns, clock, synchronize):
    def seconds(start):
        synchronize()
        started = clock()
        start()
        synchronize()
        return clock() - started

    seconds(plain), seconds(drafted)
    return statistics.median(seconds(plain) / seconds(drafted) for _ in range(turns))


@wrong("as many rounds of each", says="was left after .* of its .* rounds")
def as_many_rounds(plain, drafted, turns, clock, synchronize):
    def pace(start, clock, synchronize):
        rounds = start()
        next(rounds)
        synchronize()
        started = clock()
        tokens = sum(next(rounds) for _ in range(3))
        synchronize()
        return (clock() - started) / tokens

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@wrong("a clock of its own", says="`clock` was never called")
def own_clock(plain, drafted, turns, clock, synchronize):
    pairs = _paces(plain, drafted, turns, time.perf_counter, synchronize)
    return statistics.median(one / other for one, other in pairs)


@wrong("the gain", says="by how much it is faster")
def gain(plain, drafted, turns, clock, synchronize):
    pairs = _paces(plain, drafted, turns, clock, synchronize)
    return statistics.median(one / other for one, other in pairs) - 1


@wrong("a pace", says="that is a pace")
def a_pace(plain, drafted, turns, clock, synchronize):
    pairs = _paces(plain, drafted, turns, clock, synchronize)
    return statistics.median(other for _, other in pairs)


@wrong("all ratios", says="a list of 5, expected a number")
def all_ratios(plain, drafted, turns, clock, synchronize):
    return [one / other for one, other in _paces(plain, drafted, turns, clock, synchronize)]


@wrong("iterates over the function", says="not iterable")
def over_the_function(plain, drafted, turns, clock, synchronize):
    return sum(plain) / sum(drafted)


@wrong("calls the library's turns", says="calls the library's `take_turns`")
def calls_take_turns(plain, drafted, turns, clock, synchronize):
    contenders = {"plain": lambda: sum(plain()), "drafted": lambda: sum(drafted())}
    times = benchmark.take_turns(contenders, turns, clock=clock, synchronize=synchronize)
    return times["plain"][0] / times["drafted"][0]


@wrong("calls the library's ratio", says="calls the library's `paired_ratio`")
def calls_paired_ratio(plain, drafted, turns, clock, synchronize):
    of_plain, of_drafted = zip(*_paces(plain, drafted, turns, clock, synchronize), strict=True)
    return benchmark.paired_ratio(of_plain, of_drafted).value


@wrong("calls the reference", says="calls the library's `paired_speedup`")
def calls_the_reference(plain, drafted, turns, clock, synchronize):
    return answers.paired_speedup(plain, drafted, turns, clock, synchronize)


@wrong("still the stub", says="^✗ paired_speedup: not implemented yet")
def stub(plain, drafted, turns, clock, synchronize):
    raise NotImplementedError


@right("every other turn the other way round, numpy")
def back_and_forth(plain, drafted, turns, clock, synchronize):
    times = {plain: [], drafted: []}
    for turn in range(turns + 1):
        for start in (plain, drafted) if turn % 2 else (drafted, plain):
            times[start].append(_pace(start, clock, synchronize))
    return np.median(np.array(times[plain][1:]) / times[drafted][1:])


@right("tokens per second, the drafted ones first")
def tokens_per_second(plain, drafted, turns, clock, synchronize):
    speedups = []
    for _ in range(turns + 1):
        seconds, tokens = _run(drafted, clock, synchronize)
        of_plain, made = _run(plain, clock, synchronize)
        speedups.append((tokens / seconds) / (made / of_plain))
    return torch.tensor(speedups[1:], dtype=torch.float64).quantile(0.5)


@right("one loop over the rounds, the clock started behind the first")
def one_loop(plain, drafted, turns, clock, synchronize):
    def pace(start, clock, synchronize):
        tokens = 0
        for index, made in enumerate(start()):
            if index == 0:
                synchronize()
                started = clock()
            else:
                tokens += made
        synchronize()
        return (clock() - started) / tokens

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@right("each round timed, then added up")
def round_by_round(plain, drafted, turns, clock, synchronize):
    def pace(*run):
        tokens, seconds = zip(*_each_round(*run), strict=True)
        return sum(seconds) / sum(tokens)

    return _in_turns(pace, plain, drafted, turns, clock, synchronize)


@right("both runs of a turn started at once, one run behind the other")
def started_together(plain, drafted, turns, clock, synchronize):
    speedups = []
    for turn in range(turns + 1):
        runs, paces = [plain(), drafted()], []
        for rounds in runs:
            _ = next(rounds)
            synchronize()
            before = clock()
            made = list(rounds)
            synchronize()
            paces.append((clock() - before) / sum(made))
        if turn:
            speedups.append(paces[0] / paces[1])
    return statistics.median(speedups)

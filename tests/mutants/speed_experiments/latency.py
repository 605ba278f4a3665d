"""What somebody who reads along has to wait."""

import math
import statistics

import numpy as np
import torch

from specdec_lab.bench import runs
from specdec_lab.checks.speed_experiments import answers
from specdec_lab.course.mutants import right, wrong


def _right(rounds):
    waits = [seconds for _, seconds in rounds[1:]]
    return {
        "first": rounds[0][1],
        "p50": np.percentile(waits, 50),
        "p95": np.percentile(waits, 95),
        "per_token": sum(waits) / sum(tokens for tokens, _ in rounds[1:]),
    }


def _of(waits):
    return {"p50": np.percentile(waits, 50), "p95": np.percentile(waits, 95)}


@wrong("the first round is among the waits", says="the first round is among the waits")
def first_among_waits(rounds):
    return _right(rounds) | _of([seconds for _, seconds in rounds])


@wrong("waits per token", says="each wait is divided by its tokens")
def waits_per_token(rounds):
    return _right(rounds) | _of([seconds / tokens for tokens, seconds in rounds[1:]])


@wrong("waits per token, one for each", says="each wait is divided by its tokens")
def waits_of_each_token(rounds):
    waits = [seconds / tokens for tokens, seconds in rounds[1:] for _ in range(tokens)]
    return _right(rounds) | _of(waits)


@wrong("waits of 0 within a round", says="no waits of 0")
def waits_of_zero(rounds):
    waits = [
        seconds if place == 0 else 0.0 for tokens, seconds in rounds[1:] for place in range(tokens)
    ]
    return _right(rounds) | _of(waits)


@wrong("takes the seconds for times since the start", says="no differences to take")
def differences(rounds):
    return _right(rounds) | _of(np.diff([seconds for _, seconds in rounds]))


@wrong("times since the start", says="times since the start")
def since_the_start(rounds):
    return _right(rounds) | _of(np.cumsum([seconds for _, seconds in rounds])[1:])


@wrong("quantiles of 0.5 and 0.95 percent", says="takes percents: 50 and 95")
def parts_of_percent(rounds):
    waits = [seconds for _, seconds in rounds[1:]]
    return _right(rounds) | {"p50": np.percentile(waits, 0.5), "p95": np.percentile(waits, 0.95)}


@wrong("the mean for the median", says='"p50": that is the mean')
def the_mean(rounds):
    return _right(rounds) | {"p50": np.mean([seconds for _, seconds in rounds[1:]])}


@wrong("the longest wait for p95", says='"p95": that is the longest wait')
def the_longest(rounds):
    return _right(rounds) | {"p95": max(seconds for _, seconds in rounds[1:])}


@wrong("nearest rank", says='"p50": that is another rule for percentiles')
def nearest_rank(rounds):
    waits = sorted(seconds for _, seconds in rounds[1:])
    return _right(rounds) | {
        f"p{percent}": waits[math.ceil(percent / 100 * len(waits)) - 1] for percent in (50, 95)
    }


@wrong("the place rounded down", says='"p50": that is another rule for percentiles')
def place_rounded_down(rounds):
    waits = sorted(seconds for _, seconds in rounds[1:])
    return _right(rounds) | {f"p{n}": waits[int(n / 100 * len(waits))] for n in (50, 95)}


@wrong("statistics.quantiles as it is by itself", says='"p95": that is another rule')
def exclusive(rounds):
    cuts = statistics.quantiles([seconds for _, seconds in rounds[1:]], n=100)
    return _right(rounds) | {"p50": cuts[49], "p95": cuts[94]}


@wrong("not sorted", says="not sorted by size")
def not_sorted(rounds):
    waits = [seconds for _, seconds in rounds[1:]]
    return _right(rounds) | {"p50": waits[len(waits) // 2], "p95": waits[-1]}


@wrong("the second round for the first", says="that of the first round, which reads the prompt")
def second_round(rounds):
    return _right(rounds) | {"first": rounds[1][1]}


@wrong("the first round per token", says='"first": do not divide by the tokens')
def first_per_token(rounds):
    return _right(rounds) | {"first": rounds[0][1] / rounds[0][0]}


@wrong("how many tokens come first", says="how many tokens come first. When do they")
def first_tokens(rounds):
    return _right(rounds) | {"first": rounds[0][0]}


@wrong("the first round in per_token", says='"per_token": the first round, which reads the prompt')
def prompt_per_token(rounds):
    tokens, seconds = zip(*rounds, strict=True)
    return _right(rounds) | {"per_token": sum(seconds) / sum(tokens)}


@wrong("the first round's tokens in per_token", says="its tokens are counted")
def prompts_tokens(rounds):
    waits = [seconds for _, seconds in rounds[1:]]
    return _right(rounds) | {"per_token": sum(waits) / sum(tokens for tokens, _ in rounds)}


@wrong("the mean wait", says='"per_token": that is the time of a [*]round')
def mean_wait(rounds):
    return _right(rounds) | {"per_token": np.mean([seconds for _, seconds in rounds[1:]])}


@wrong("the mean of ratios", says="not the mean [(]or median[)] of the rounds' own ratios")
def mean_of_ratios(rounds):
    ratios = [seconds / tokens for tokens, seconds in rounds[1:]]
    return _right(rounds) | {"per_token": sum(ratios) / len(ratios)}


@wrong("tokens per second", says="upside down: tokens per second")
def tokens_per_second(rounds):
    return _right(rounds) | {"per_token": 1 / _right(rounds)["per_token"]}


@wrong("milliseconds", says='"first": those are milliseconds')
def milliseconds(rounds):
    return {key: 1000 * seconds for key, seconds in _right(rounds).items()}


@wrong("an entry is missing", says='there is no entry "p95"')
def without_p95(rounds):
    return {key: seconds for key, seconds in _right(rounds).items() if key != "p95"}


@wrong("other names", says='there is no entry "p50", "p95"')
def other_names(rounds):
    answer = _right(rounds)
    return {"first": answer["first"], 50: answer["p50"], 95: answer["p95"], "per_token": 0.1}


@wrong("a tuple", says="a value of type tuple, expected a dict")
def a_tuple(rounds):
    return tuple(_right(rounds).values())


@wrong("text", says="a value of type str, expected a number")
def text(rounds):
    return {key: f"{seconds:.3f} s" for key, seconds in _right(rounds).items()}


@wrong("takes the first round out of the caller's list", says="changes what it was given")
def changes_the_list(rounds):
    first = rounds.pop(0)
    return _right([first, *rounds])


@wrong("calls the library", says="calls the library's `_percentiles`")
def calls_the_library(rounds):
    p50, p95 = runs._percentiles([seconds for _, seconds in rounds[1:]])
    return _right(rounds) | {"p50": p50, "p95": p95}


@wrong("calls the reference", says="calls the library's `latency`")
def calls_the_reference(rounds):
    return answers.latency(rounds)


@wrong("still the stub", says="^✗ latency: not implemented yet")
def stub(rounds):
    raise NotImplementedError


@right("statistics.quantiles, inclusive")
def with_statistics(rounds):
    (_, first), *rest = rounds
    tokens, waits = zip(*rest, strict=True)
    cuts = statistics.quantiles(waits, n=100, method="inclusive")
    per_token = statistics.fsum(waits) / sum(tokens)
    return {"first": first, "p50": cuts[49], "p95": cuts[94], "per_token": per_token}


@right("sorted by hand, on a straight line")
def by_hand(rounds):
    waits = sorted(seconds for _, seconds in rounds[1:])

    def percentile(percent):
        place = percent / 100 * (len(waits) - 1)
        below = math.floor(place)
        above = min(below + 1, len(waits) - 1)
        return waits[below] + (place - below) * (waits[above] - waits[below])

    tokens = sum(tokens for tokens, _ in rounds[1:])
    return {
        "per_token": sum(waits) / tokens,
        "p95": percentile(95),
        "p50": percentile(50),
        "first": rounds[0][1],
    }


@right("an array, the median, numpy.quantile, an entry more")
def with_an_array(rounds):
    table = np.array(rounds)
    tokens, waits = table[1:].T
    return {
        "first": table[0, 1],
        "p50": np.median(waits),
        "p95": np.quantile(waits, 0.95),
        "per_token": waits.sum() / tokens.sum(),
        "longest": waits.max(),
    }


@right("torch")
def with_torch(rounds):
    table = torch.tensor(rounds, dtype=torch.float64)
    waits = table[1:, 1]
    p50, p95 = waits.quantile(torch.tensor([0.5, 0.95], dtype=torch.float64))
    return {
        "first": table[0, 1],
        "p50": p50,
        "p95": p95,
        "per_token": waits.sum() / table[1:, 0].sum(),
    }

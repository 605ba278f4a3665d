"""The draft length that promises most."""

import numpy as np

from specdec_lab import theory
from specdec_lab.adaptive import AdaptiveGamma, Costs
from specdec_lab.course.mutants import right, wrong


def _best(lengths, alpha, c, v, expected_speedup):
    return max(lengths, key=lambda gamma: expected_speedup(alpha, gamma, c, v))


@wrong("the tokens of the pass", says="that is n, the tokens of the pass")
def tokens_of_the_pass(alpha, c, v, expected_speedup):
    return max(v, key=lambda n: expected_speedup(alpha, n - 1, c, v))


@wrong("always drafts", says="not to draft [(]gamma 0[)] is one of the choices")
def always_drafts(alpha, c, v, expected_speedup):
    return _best([n - 1 for n in v if n > 1], alpha, c, v, expected_speedup)


@wrong("every length up to the largest", says="(?s)KeyError.*its lengths may have gaps")
def every_length(alpha, c, v, expected_speedup):
    return _best(range(max(v)), alpha, c, v, expected_speedup)


@wrong("every length, by a formula of its own", says="(?s)KeyError: 4.*line ")
def every_length_alone(alpha, c, v, expected_speedup):
    def speedup(gamma):
        return sum(alpha**i for i in range(gamma + 1)) / (gamma * c + v[gamma + 1])

    return max(range(max(v)), key=speedup)


@wrong("takes v's keys for draft lengths", says="(?s)KeyError.*its lengths may have gaps")
def keys_as_lengths(alpha, c, v, expected_speedup):
    return _best(list(v), alpha, c, v, expected_speedup)


@wrong("up to the first gap", says="you stop at the first one")
def up_to_the_gap(alpha, c, v, expected_speedup):
    lengths = []
    while len(lengths) + 1 in v:
        lengths.append(len(lengths))
    return _best(lengths, alpha, c, v, expected_speedup)


@wrong("the best speedup", says="the best speedup itself")
def the_speedup(alpha, c, v, expected_speedup):
    return max(expected_speedup(alpha, n - 1, c, v) for n in v)


@wrong("length and speedup", says="a tuple of 2, expected a number")
def both(alpha, c, v, expected_speedup):
    gamma = _best([n - 1 for n in v], alpha, c, v, expected_speedup)
    return gamma, expected_speedup(alpha, gamma, c, v)


@wrong("the longest", says="the longest draft")
def the_longest(alpha, c, v, expected_speedup):
    return max(v) - 1


@wrong("the most tokens, whatever they cost", says="the longest draft")
def most_tokens(alpha, c, v, expected_speedup):
    return max((n - 1 for n in v), key=lambda gamma: sum(alpha**i for i in range(gamma + 1)))


@wrong("the lowest speedup", says="the length with the [*]lowest[*] speedup")
def the_lowest(alpha, c, v, expected_speedup):
    return min((n - 1 for n in v), key=lambda gamma: expected_speedup(alpha, gamma, c, v))


@wrong("the place in the list", says="the place in a list")
def the_place(alpha, c, v, expected_speedup):
    return int(np.argmax([expected_speedup(alpha, n - 1, c, v) for n in sorted(v)]))


@wrong("the place among the drafts", says="the place in a list")
def the_place_among_drafts(alpha, c, v, expected_speedup):
    return int(np.argmax([expected_speedup(alpha, n - 1, c, v) for n in sorted(v)[1:]]))


@wrong("never the longest", says="the longest length that v allows is never tried")
def never_the_longest(alpha, c, v, expected_speedup):
    return _best([n - 1 for n in sorted(v)[:-1]], alpha, c, v, expected_speedup)


@wrong("takes the last key for the longest", says="the longest length that v allows is never tried")
def last_key(alpha, c, v, expected_speedup):
    return _best([n - 1 for n in range(1, max(v)) if n in v], alpha, c, v, expected_speedup)


@wrong("the first that pays", says="the first length that pays. A longer one")
def the_first_that_pays(alpha, c, v, expected_speedup):
    return next((n - 1 for n in sorted(v) if expected_speedup(alpha, n - 1, c, v) > 1), 0)


@wrong("a float", says="type float, expected a whole number")
def a_float(alpha, c, v, expected_speedup):
    return float(_best([n - 1 for n in v], alpha, c, v, expected_speedup))


@wrong("calls the library", says="calls the library's `best_gamma`")
def calls_the_library(alpha, c, v, expected_speedup):
    return theory.best_gamma(alpha, c, v=lambda n: v.get(n, 99.0))


@wrong("calls the adaptive drafting", says="calls the library's `AdaptiveGamma.best`")
def calls_the_adaptive(alpha, c, v, expected_speedup):
    return AdaptiveGamma(Costs(c, v)).best(alpha)[0]


@wrong("still the stub", says="^✗ best_gamma: not implemented yet")
def stub(alpha, c, v, expected_speedup):
    raise NotImplementedError


@right("a loop")
def with_a_loop(alpha, c, v, expected_speedup):
    best, highest = 0, 1.0
    for n in v:
        speedup = expected_speedup(alpha=alpha, gamma=n - 1, c=c, v=v)
        if speedup > highest:
            best, highest = n - 1, speedup
    return best


@right("numpy")
def with_numpy(alpha, c, v, expected_speedup):
    lengths = np.array(sorted(v)) - 1
    return lengths[np.argmax([expected_speedup(alpha, int(gamma), c, v) for gamma in lengths])]


@right("tries every length and passes over the unknown ones")
def passes_over(alpha, c, v, expected_speedup):
    found = {}
    for gamma in range(100):
        try:
            found[gamma] = expected_speedup(alpha, gamma, c, v)
        except KeyError:
            continue
    return max(found, key=found.get)


@right("by the lowest time per token, by a formula of its own, sorted")
def by_time(alpha, c, v, expected_speedup):
    times = []
    for n, verify in v.items():
        tokens = sum(alpha**i for i in range(n))
        times.append((((n - 1) * c + verify) / tokens, n - 1))
    return sorted(times)[0][1]

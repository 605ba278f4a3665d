"""The acceptance from which drafting pays."""

import numpy as np

from specdec_lab import theory
from specdec_lab.checks.speed_experiments import answers
from specdec_lab.course.mutants import right, wrong


def _on_a_grid(steps, pays):
    return next((i / steps for i in range(steps + 1) if pays(i / steps)), None)


@wrong("calls the library", says="calls the library's `least_alpha`")
def calls_the_library(gamma, c, v, expected_speedup):
    return theory.least_alpha(gamma, c, v[gamma + 1])


@wrong("the speedup at one half", says="that is a speedup. At which alpha")
def speedup_at_one_half(gamma, c, v, expected_speedup):
    return expected_speedup(0.5, gamma, c, v)


@wrong("the highest speedup", says="that is a speedup. At which alpha")
def highest_speedup(gamma, c, v, expected_speedup):
    return expected_speedup(1.0, gamma, c, v)


@wrong("a grid of hundredths", says="right to three decimals")
def hundredths(gamma, c, v, expected_speedup):
    return _on_a_grid(100, lambda alpha: expected_speedup(alpha, gamma, c, v) >= 1)


@wrong("a grid of tenths", says="right to three decimals")
def tenths(gamma, c, v, expected_speedup):
    return _on_a_grid(10, lambda alpha: expected_speedup(alpha, gamma, c, v) >= 1)


@wrong("bisection that stops early", says="right to three decimals")
def few_steps(gamma, c, v, expected_speedup):
    low, high = 0.0, 1.0
    for _ in range(5):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_speedup(middle, gamma, c, v) < 1 else (low, middle)
    return high if expected_speedup(high, gamma, c, v) >= 1 else None


@wrong("rounded to two decimals", says="right to three decimals")
def two_decimals(gamma, c, v, expected_speedup):
    alpha = _on_a_grid(10_000, lambda alpha: expected_speedup(alpha, gamma, c, v) >= 1)
    return None if alpha is None else round(alpha, 2)


def _bisect(gamma, c, v, expected_speedup):
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_speedup(middle, gamma, c, v) < 1 else (low, middle)
    return high


@wrong("1 where it is hopeless", says="even alpha = 1 promises only .*then None is asked for")
def one_where_hopeless(gamma, c, v, expected_speedup):
    return _bisect(gamma, c, v, expected_speedup)


@wrong("nan where it is hopeless", says="even alpha = 1 promises only .*then None is asked for")
def nan_where_hopeless(gamma, c, v, expected_speedup):
    if expected_speedup(1, gamma, c, v) < 1:
        return float("nan")
    return _bisect(gamma, c, v, expected_speedup)


@wrong("False where it is hopeless", says="even alpha = 1 promises only .*then None is asked for")
def false_where_hopeless(gamma, c, v, expected_speedup):
    return expected_speedup(1, gamma, c, v) >= 1 and _bisect(gamma, c, v, expected_speedup)


@wrong("None in words", says="expected None itself, not a text")
def none_in_words(gamma, c, v, expected_speedup):
    if expected_speedup(1, gamma, c, v) < 1:
        return "None"
    return _bisect(gamma, c, v, expected_speedup)


@wrong("goes on above 1", says="alpha is a chance, at most 1")
def above_one(gamma, c, v, expected_speedup):
    alpha = 0.0
    while expected_speedup(alpha, gamma, c, v) < 1:
        alpha += 0.001
    return alpha


@wrong("without v", says="v is not used")
def without_v(gamma, c, v, expected_speedup):
    return _bisect(gamma, c, dict.fromkeys(v, 1.0), expected_speedup)


@wrong("without c", says="c is not used")
def without_c(gamma, c, v, expected_speedup):
    return _bisect(gamma, 0.0, v, expected_speedup)


@wrong("one drafted token's cost", says="and gamma of them are drafted")
def one_draft(gamma, c, v, expected_speedup):
    return _bisect(gamma, c / gamma, v, expected_speedup)


@wrong("gamma + 1 drafted tokens' cost", says="only gamma tokens are drafted, not gamma [+] 1")
def one_draft_more(gamma, c, v, expected_speedup):
    return _bisect(gamma, c * (gamma + 1) / gamma, v, expected_speedup)


@wrong("v of gamma tokens", says="the pass reads gamma [+] 1 tokens")
def one_less(gamma, c, v, expected_speedup):
    return _bisect(gamma, c, {n: v.get(n - 1, 1.0) for n in range(1, 20)}, expected_speedup)


@wrong("each token kept by itself", says="even behind a rejected one")
def independent(gamma, c, v, expected_speedup):
    return (gamma * c + v[gamma + 1] - 1) / gamma


@wrong("the whole draft or nothing", says="the whole draft kept or nothing")
def whole_or_nothing(gamma, c, v, expected_speedup):
    return ((gamma * c + v[gamma + 1] - 1) / gamma) ** (1 / gamma)


@wrong("only the accepted tokens pay", says="It emits one more")
def accepted_only(gamma, c, v, expected_speedup):
    def pays(alpha):
        return sum(alpha**i for i in range(1, gamma + 1)) >= gamma * c + v[gamma + 1]

    return _on_a_grid(10_000, pays)


@wrong("percent", says="that is in percent")
def percent(gamma, c, v, expected_speedup):
    return 100 * _bisect(gamma, c, v, expected_speedup)


@wrong("the largest at which it pays", says="a smaller alpha is enough")
def the_largest(gamma, c, v, expected_speedup):
    return max(
        (i / 1000 for i in range(1001) if expected_speedup(i / 1000, gamma, c, v) >= 1), default=None
    )


@wrong("the bisection goes the wrong way", says="drafting is slower than plain decoding at this alpha")
def wrong_way(gamma, c, v, expected_speedup):
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if expected_speedup(middle, gamma, c, v) < 1 else (middle, high)
    return low if low < 0.5 else 1 - low


@wrong("finds it and forgets to return", says="it returned None, but alpha = 0[.]")
def forgets_to_return(gamma, c, v, expected_speedup):
    _bisect(gamma, c, v, expected_speedup)


@wrong("strictly faster, so free drafts never do", says="it returned None, but alpha = 0")
def strictly_faster(gamma, c, v, expected_speedup):
    if expected_speedup(0.0, gamma, c, v) >= 1:
        return None
    if expected_speedup(1.0, gamma, c, v) < 1:
        return None
    return _bisect(gamma, c, v, expected_speedup)


@wrong("the formula of the docstring's example", says="right for gamma = 1 only")
def formula_for_one(gamma, c, v, expected_speedup):
    return c + v[gamma + 1] - 1


@wrong("calls the reference", says="calls the library's `least_alpha`")
def calls_the_reference(gamma, c, v, expected_speedup):
    return answers.least_alpha(gamma, c, v)


@wrong("still the stub", says="^✗ least_alpha: not implemented yet")
def stub(gamma, c, v, expected_speedup):
    raise NotImplementedError


@right("a fine grid")
def fine_grid(gamma, c, v, expected_speedup):
    return _on_a_grid(10_000, lambda alpha: expected_speedup(alpha, gamma, c, v) >= 1)


@right("a grid in numpy that steps over 1")
def grid_in_numpy(gamma, c, v, expected_speedup):
    alphas = np.arange(0, 1.0001, 1e-4)
    pays = np.array([expected_speedup(alpha, gamma, c, v) for alpha in alphas]) >= 1 - 1e-9
    return alphas[pays.argmax()] if pays.any() else None


@right("the roots of the polynomial")
def by_roots(gamma, c, v, expected_speedup):
    roots = np.roots([1.0] * gamma + [1.0 - gamma * c - v[gamma + 1]])
    fitting = [float(r.real) for r in roots if abs(r.imag) < 1e-9 and -1e-9 <= r.real <= 1]
    return min(fitting, default=None)


@right("the secant method, which leaves the interval on its way")
def secant(gamma, c, v, expected_speedup):
    if expected_speedup(1.0, gamma, c, v) < 1:
        return None
    before, now = 1.0, 0.9
    for _ in range(100):
        of_before = 1 / expected_speedup(before, gamma, c, v) - 1
        of_now = 1 / expected_speedup(now, gamma, c, v) - 1
        if abs(of_now) < 1e-12 or of_now == of_before:
            break
        before, now = now, now - of_now * (now - before) / (of_now - of_before)
    return max(0.0, now)


@right("three decimals")
def three_decimals(gamma, c, v, expected_speedup):
    if expected_speedup(1.0, gamma, c, v) < 1:
        return None
    return round(_bisect(gamma, c, v, expected_speedup), 3)

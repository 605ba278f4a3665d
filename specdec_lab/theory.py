"""The formulas of Leviathan et al. 2023 (arXiv 2211.17192). Nothing here is measured.

``alpha`` is the expected acceptance at one position, ``gamma`` the draft length, ``c`` the time of one
draft step over the time of one target step, and ``v`` the time of the verifying target forward over
the time of a one-token forward. The formulas take acceptance to be independent from position to
position, and the same everywhere; neither holds for real models, and the gap is worth a look.
"""

from __future__ import annotations

from collections.abc import Callable

HALVINGS = 60
"""Of the interval from 0 to 1: as fine as float64 is."""


def expected_tokens_per_round(alpha: float, gamma: int) -> float:
    """(1 - alpha^(gamma+1)) / (1 - alpha): tokens of a round, the bonus or replacement included.

    Source: equation (1).
    """
    _check(alpha, gamma)
    return sum(alpha**accepted for accepted in range(gamma + 1))


def expected_accepted(alpha: float, gamma: int) -> float:
    """Drafted tokens that a round keeps, on average: one less than it emits."""
    return expected_tokens_per_round(alpha, gamma) - 1.0


def expected_speedup(alpha: float, gamma: int, c: float, v: float = 1.0) -> float:
    """Tokens of a round over its cost in target steps, gamma * c + v.

    Source: theorem 3.8, which has v = 1: a forward over gamma + 1 tokens as fast as over one.

    Raises:
        ValueError: for a value outside its range, by name.
    """
    if c < 0.0 or v <= 0.0:
        raise ValueError(f"c, v: got {c} and {v}, expected c of 0 or more and v above 0")
    return expected_tokens_per_round(alpha, gamma) / (gamma * c + v)


def best_gamma(
    alpha: float, c: float, longest: int = 64, v: Callable[[int], float] = lambda n: 1.0
) -> int:
    """The draft length from 0 to ``longest`` with the highest expected speedup; 0 is "do not draft".

    Args:
        alpha: the expected acceptance at one position.
        c: the cost of a draft step, in target steps.
        longest: the largest draft length.
        v: n -> the cost of a target forward over n tokens, in one-token forwards; 1 if not given.

    Raises:
        ValueError: for a value outside its range, by name.
    """

    def speedup(gamma: int) -> float:
        return expected_speedup(alpha, gamma, c, v(gamma + 1))

    return max(range(longest + 1), key=speedup)


def least_alpha(gamma: int, c: float, v: float = 1.0) -> float | None:
    """The smallest alpha at which drafting ``gamma`` tokens is no slower than plain decoding.

    It follows from theorem 3.8, whose speedup grows with alpha: the interval from 0 to 1 is halved
    again and again.

    Args:
        gamma: the draft length.
        c: the cost of a draft step, in target steps.
        v: the cost of the verifying forward, over gamma + 1 tokens, in one-token forwards.

    Returns:
        The alpha, or None if not even alpha = 1 is enough.

    Raises:
        ValueError: for a value outside its range, by name.
    """

    def pays(alpha: float) -> bool:
        return expected_speedup(alpha, gamma, c, v) >= 1.0

    if not pays(1.0):
        return None
    if pays(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high


def _check(alpha: float, gamma: int) -> None:
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha: got {alpha}, expected 0 to 1")
    if gamma < 0:
        raise ValueError(f"gamma: got {gamma}, expected 0 or more")

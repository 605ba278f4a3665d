"""A run against the clock: rounds that bring lumps of tokens beside plain steps that drip."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from specdec_lab.plots.style import BLUE, GREY, ORANGE, finish, printable, where
from specdec_lab.records import Generation, Round
from specdec_lab.text import Decode

_HALF = 0.3
"""Half of a bar's height. Heights count downwards, from 0 in the middle of the upper bar."""
_ABOVE, _TICK, _COUNT = 1.05, 0.3, 0.34
"""Room above a bar for its finish, below it for a tick, and for how many tokens came out."""
_DOT, _LINE, _WORD = 0.17, 0.21, 1.15
"""Heights of a token's dot, of its text when tokens lie on each other, and when they stand."""
_INCHES = 0.58
_TEXT = 9
"""Characters of a token's text; more would run into its neighbour."""
_SAME_WORK = ("target", "dtype", "device", "hardware", "threads")


@dataclass(frozen=True)
class Lane:
    """One run, as far as it is drawn.

    Args:
        rounds: from the first one on.
        ends: when each of them was over, in ms from the start.
    """

    rounds: tuple[Round, ...]
    ends: tuple[float, ...]

    @property
    def tokens(self) -> int:
        """How many tokens came out."""
        return sum(len(one.tokens) for one in self.rounds)

    @property
    def largest(self) -> int:
        """How many tokens came out together at most."""
        return max(len(one.tokens) for one in self.rounds)

    def until(self, tokens: int) -> Lane:
        """As far as the round in which so many tokens are there."""
        counts = accumulate(len(one.tokens) for one in self.rounds)
        last = next(index for index, count in enumerate(counts, start=1) if count >= tokens)
        return Lane(self.rounds[:last], self.ends[:last])


def timeline(
    generation: Generation,
    plain: Generation,
    *,
    most: int = 14,
    most_seconds: float | None = None,
    decode: Decode | None = None,
) -> Figure:
    """Where the time of a measured run went, round by round, beside plain decoding on the same axis.

    Both are drawn until they have the same number of tokens, and the times to there are compared.

    Args:
        generation: a measured run with a drafter.
        plain: the same prompt's run without one (``drafter=None``).
        most: rounds of ``generation`` to show at most.
        most_seconds: time of ``generation`` to show at most; its first round is always shown.
        decode: token ids -> text, to write tokens where they come out; None draws a dot for each.

    Raises:
        ValueError: for a simulated run, in which no time is measured; one without rounds or without
            provenance; runs of different prompts, models or machines; or a ``plain`` that drafted.
    """
    if most < 1:
        raise ValueError(f"most: got {most}, expected 1 or more rounds")
    _require_comparable(generation, plain)
    fast, slow = lanes(generation, plain, most, most_seconds)
    middle = _room_below(fast, decode) + _ABOVE
    bottom = middle + _room_below(slow, decode)
    figure, axes = plt.subplots(figsize=(9.5, 1.1 + _INCHES * (_ABOVE + bottom)))
    axes.set_ylim(bottom, -_ABOVE)
    for lane, top in ((fast, 0.0), (slow, middle)):
        _draw_rounds(axes, lane, top)
        _draw_tokens(axes, lane, top, decode)
        _draw_finish(axes, lane, top, min(fast.tokens, slow.tokens))
    axes.set_yticks([0.0, middle], ["speculative", "plain"])
    _furnish(axes, fast.ends[-1], slow.ends[-1])
    return finish(figure, "measured", _note(generation, plain, fast, slow))


def lanes(
    generation: Generation, plain: Generation, most: int, most_seconds: float | None = None
) -> tuple[Lane, Lane]:
    """Both runs, cut to an equal number of tokens; of a round that goes beyond it, all is kept."""
    fast, slow = _lane(generation), _lane(plain)
    limit = float("inf") if most_seconds is None else 1000.0 * most_seconds
    shown = max(1, min(most, sum(end <= limit for end in fast.ends)))
    fast = Lane(fast.rounds[:shown], fast.ends[:shown])
    tokens = min(fast.tokens, slow.tokens)
    return fast.until(tokens), slow.until(tokens)


def _lane(generation: Generation) -> Lane:
    ends = accumulate(1000.0 * one.seconds.total for one in generation.rounds)
    return Lane(tuple(generation.rounds), tuple(ends))


def _require_comparable(generation: Generation, plain: Generation) -> None:
    for name, run in (("generation", generation), ("plain", plain)):
        if run.simulated:
            raise ValueError(f"{name}: got a simulated run, expected a measured one: it has no times")
        if not run.tokens:
            raise ValueError(f"{name}: got a run without tokens, expected at least one")
        if not run.provenance:
            raise ValueError(f"{name}: got a run without provenance, expected where its times are from")
    if any(one.drafted for one in plain.rounds):
        raise ValueError("plain: got a run that drafted, expected one made with drafter=None")
    if generation.prompt_tokens != plain.prompt_tokens:
        raise ValueError("plain: got a run of another prompt, expected generation's own")
    for key in _SAME_WORK:
        ours, theirs = generation.provenance.get(key), plain.provenance.get(key)
        if ours != theirs:
            raise ValueError(f"plain: got {key} {theirs!r}, expected {ours!r}, that of generation")


def _draw_rounds(axes: Axes, lane: Lane, top: float) -> None:
    """A bar per part of a round, end to end; the round that reads the prompt is hatched."""
    for index, (one, end) in enumerate(zip(lane.rounds, lane.ends, strict=True)):
        parts = (one.seconds.draft, one.seconds.verify, one.seconds.rest)
        left = end - 1000.0 * one.seconds.total
        for seconds, colour in zip(parts, (ORANGE, BLUE, GREY), strict=True):
            axes.barh(top, 1000.0 * seconds, 2 * _HALF, left=left, color=colour, linewidth=0)
            left += 1000.0 * seconds
        if index == 0:
            axes.barh(top, end, 2 * _HALF, **_hatching())


def _hatching() -> dict[str, Any]:
    return {"facecolor": "none", "edgecolor": "white", "hatch": "////", "linewidth": 0}


def _room_below(lane: Lane, decode: Decode | None) -> float:
    """From the middle of a lane's bar to below its last token."""
    count = _COUNT if lane.largest > 1 else 0.0
    if decode is None:
        return _HALF + _TICK + count + _DOT * lane.largest + 0.1
    return _HALF + _TICK + count + (_LINE * lane.largest if lane.largest > 1 else _WORD) + 0.1


def _draw_tokens(axes: Axes, lane: Lane, top: float, decode: Decode | None) -> None:
    """Below the end of each round a tick, how many tokens came out there, and the tokens."""
    ink, lumps = plt.rcParams["text.color"], lane.largest > 1
    axes.vlines(lane.ends, top - _HALF, top + _HALF + 0.16, colors=ink, linewidth=0.9)
    start = top + _HALF + _TICK
    words: dict[str, Any] = {
        "ha": "center",
        "va": "top",
        "fontsize": 6.5,
        "rotation": 0 if lumps else 90,
    }
    for one, end in zip(lane.rounds, lane.ends, strict=True):
        below = start
        if lumps:
            axes.text(end, start - 0.1, f"+{len(one.tokens)}", ha="center", va="top", fontsize=8)
            below = start + _COUNT
        if decode is None:
            heights = [below + _DOT * place for place in range(len(one.tokens))]
            axes.plot([end] * len(heights), heights, "o", color=ink, markersize=3)
        else:
            axes.text(end, below, "\n".join(_short(decode([token])) for token in one.tokens), **words)


def _short(text: str) -> str:
    cut = printable(text)
    return cut if len(cut) <= _TEXT else cut[: _TEXT - 1] + "…"


def _draw_finish(axes: Axes, lane: Lane, top: float, tokens: int) -> None:
    """A line where a run has all the tokens that are compared."""
    end = lane.ends[-1]
    axes.vlines(end, top - 0.64, top + _HALF, colors=plt.rcParams["text.color"], linewidth=1.8)
    words = f"{tokens} token{'s' if tokens > 1 else ''} after {end:,.0f} ms "
    axes.text(end, top - 0.66, words, ha="right", va="bottom", fontsize=9, fontweight="bold")


def _furnish(axes: Axes, fast: float, slow: float) -> None:
    """The axis from 0, the legend, and the ratio of the two times."""
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.02 * max(fast, slow))
    axes.set_xlabel("ms since the start")
    ratio = f"{slow / fast:.2f}"
    slower = " (slower)" if float(ratio) < 1.0 else ""
    words = f"{ratio}× as fast as plain{slower}"
    axes.set_title(words, loc="right", pad=11, fontsize=10, fontweight="bold")
    parts = ((ORANGE, "drafting"), (BLUE, "the target's forward"), (GREY, "the rest"))
    handles = [Patch(color=colour, label=label) for colour, label in parts]
    handles.append(Patch(label="reads the prompt", **(_hatching() | {"facecolor": GREY})))
    axes.legend(
        handles=handles, frameon=False, fontsize=9, ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0)
    )


def _note(generation: Generation, plain: Generation, fast: Lane, slow: Lane) -> str:
    tokens = min(fast.tokens, slow.tokens)
    parts = [f"both until they have {tokens} tokens, the prompt's forward included"]
    if fast.tokens > tokens:
        parts.append(f"the last round brings {fast.tokens - tokens} more")
    hidden = len(generation.rounds) - len(fast.rounds)
    if hidden:
        parts.append(f"{hidden} more rounds are not shown")
    if len(plain.rounds) > len(slow.rounds):
        parts.append(f"nor are {len(plain.rounds) - len(slow.rounds)} more plain steps")
    return "; ".join([*parts, where({"provenance": generation.provenance})])

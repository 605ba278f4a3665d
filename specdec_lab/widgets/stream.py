"""The stream player's view model: a recorded run as tokens that know where they came from, and why.

Pure data, made of records and nothing else. ``player.py`` shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from specdec_lab.provenance import Kind
from specdec_lab.records import Generation, Metrics, Position, Round, Top, measure
from specdec_lab.text import UNFINISHED, Decode, Transcript, visible

Origin = Literal["accepted", "rejected", "never judged", "replacement", "bonus", "plain"]
EMITTED: tuple[Origin, ...] = ("accepted", "replacement", "bonus", "plain")
BARS = 6
"""Entries of p, q and the residual that are shown."""
LONGEST_PROMPT = 160
"""Characters of the prompt's end that are shown."""
SIGN: dict[Origin, str] = {"replacement": "~", "bonus": "+"}
"""In front of a token, for whoever does not see the colour; the same as in the terminal."""
_PART, _NOTHING = "·", "∅"

Bars = tuple[tuple[str, float], ...]
"""(token, probability), the largest first."""


@dataclass(frozen=True)
class Span:
    """One token, drafted or emitted.

    Args:
        text: what it adds to the text, made visible; "·" for a part of a character
            that a later token completes, "∅" for a token without text, such as an end token.
        origin: where it comes from, or what became of it.
        round: index of its round.
        why: one sentence.
        numbers: (name, value) of p(x), q(x), the acceptance probability and the uniform drawn, as far
            as there are such.
        p, q, residual: the largest entries there; empty where they were not recorded or do not exist.
    """

    text: str
    origin: Origin
    round: int
    why: str
    numbers: tuple[tuple[str, str], ...] = ()
    p: Bars = ()
    q: Bars = ()
    residual: Bars = ()

    @property
    def emitted(self) -> bool:
        """Whether it is part of the text."""
        return self.origin in EMITTED

    @property
    def signed(self) -> str:
        """Its text with its sign, which hugs what is visible of it."""
        word = self.text.lstrip(" ")
        return self.text[: len(self.text) - len(word)] + SIGN.get(self.origin, "") + word


@dataclass(frozen=True)
class Stream:
    """A run, ready to be shown.

    Args:
        kind: what its numbers are.
        note: where they come from.
        prompt: the end of the prompt.
        spans: every token of every round, in order: accepted, rejected, never judged, then the closing
            one.
        rounds: a sentence for each round.
        counts: at index k, (name, value) rows that hold after k rounds; the names never change.
        seconds: of each round; empty in a simulation.
        traced: whether p, q and the residual were recorded.
        remarks: sentences below, such as how an estimate comes about.
    """

    kind: Kind
    note: str
    prompt: str
    spans: tuple[Span, ...]
    rounds: tuple[str, ...]
    counts: tuple[tuple[tuple[str, str], ...], ...]
    seconds: tuple[float, ...]
    traced: bool
    remarks: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """For the script in the page."""
        spans = [asdict(span) | {"signed": span.signed, "emitted": span.emitted} for span in self.spans]
        return asdict(self) | {"spans": spans}


def stream(
    generation: Generation,
    decode: Decode | None = None,
    baseline: Generation | None = None,
    draft_cost: float | None = None,
    remarks: Sequence[str] = (),
) -> Stream:
    """A run as a ``Stream``.

    Args:
        generation: the run; with ``trace=True`` it has the distributions, too.
        decode: token ids -> text; None shows the ids.
        baseline: the target alone on the same prompt, for the measured speedup.
        draft_cost: c, assumed; for a simulation, whose speedup is counted in target steps.
        remarks: sentences to show below.

    Raises:
        ValueError: for something else than a generation, or a baseline that drafted or belongs to a
            simulation.
    """
    _check(generation, baseline)
    decode = decode or _numbers
    spans = _Spans(decode).of(generation.rounds)
    return Stream(
        kind="simulated" if generation.simulated else "measured",
        note=origin(generation),
        prompt=_prompt(generation.prompt_tokens, decode),
        spans=tuple(spans),
        rounds=tuple(
            _round(number, one, generation.simulated)
            for number, one in enumerate(generation.rounds, start=1)
        ),
        counts=tuple(
            _counts(generation, count, baseline, draft_cost)
            for count in range(len(generation.rounds) + 1)
        ),
        seconds=() if generation.simulated else tuple(one.seconds.total for one in generation.rounds),
        traced=any(span.p for span in spans),
        remarks=tuple(remarks),
    )


def origin(generation: Generation) -> str:
    """Models, dtype, device and day of a run, or that it has none."""
    made = generation.provenance
    if generation.simulated:
        return "scripted: no model, and no time in it was measured"
    drafter = " with ".join(filter(None, [made.get("drafter"), made.get("draft_model")]))
    return (
        f"{made.get('target')}, drafter {drafter or 'none'}, {made.get('dtype')} on "
        f"{made.get('device')} ({made.get('hardware')}), {str(made.get('date'))[:10]}"
    )


def in_lines(text: str) -> str:
    """Visible text whose line breaks still break the line."""
    return "⏎\n".join(visible(line) for line in text.split("\n"))


class _Spans:
    """The tokens of all rounds; text is completed across rounds, since a character may span them."""

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._transcript = Transcript(decode)

    def of(self, rounds: Sequence[Round]) -> list[Span]:
        made: list[Span] = []
        for index, one in enumerate(rounds):
            made += [self._drafted(index, position) for position in one.positions]
            if one.closing is not None:
                made.append(self._closing(index, one, one.closing))
        return made

    def _drafted(self, index: int, position: Position) -> Span:
        text = self._emit(position.token) if position.accepted else self._alone(position.token)
        became: Origin = "accepted" if position.accepted else "rejected"
        if position.accepted is None:
            became = "never judged"
        return Span(
            text,
            became,
            index,
            _why_drafted(position),
            _numbers_of(position),
            *self._bars(position.top),
        )

    def _closing(self, index: int, one: Round, token: int) -> Span:
        kind = one.closing_kind or "plain"
        rejected = next((found for found in one.positions if found.accepted is False), None)
        top = rejected.top if rejected else one.closing_top
        why = _why_closing(one, rejected, visible(self._decode([rejected.token])) if rejected else "")
        return Span(self._emit(token), kind, index, why, (), *self._bars(top))

    def _emit(self, token: int) -> str:
        piece = self._transcript.push(token)
        if piece:
            return in_lines(piece)
        return _PART if UNFINISHED in self._decode([token]) else _NOTHING

    def _alone(self, token: int) -> str:
        return in_lines(self._decode([token])) or _NOTHING

    def _bars(self, top: Top | None) -> tuple[Bars, Bars, Bars]:
        if top is None:
            return (), (), ()
        return self._named(top.p), self._named(top.q), self._named(top.residual)

    def _named(self, entries: Sequence[tuple[int, float]]) -> Bars:
        return tuple((self._alone(token), float(f"{value:.4g}")) for token, value in entries[:BARS])


def _why_drafted(position: Position) -> str:
    if position.accepted is None:
        return "Drafted behind a token that was rejected, so it was never judged."
    if position.uniform is None:
        if position.acceptance_probability == 1.0:
            return "Drafted and accepted: it is the token that the target takes here."
        return "Drafted and rejected: the target takes another token here."
    chance = f"min(1, p/q) = {_number(position.acceptance_probability)}"
    drawn = f"u = {_number(position.uniform)}"
    if position.accepted:
        return f"Drafted and accepted: {drawn} is below {chance}."
    return f"Drafted and rejected: {drawn} is not below {chance}."


def _why_closing(one: Round, rejected: Position | None, text: str) -> str:
    if one.closing_kind == "bonus":
        return "A bonus: all of the draft was accepted, and the target's pass says what follows it."
    if rejected is None:
        return "From the target alone: nothing was drafted in this round."
    if rejected.uniform is None:
        return f"The target's own token, in place of {text}, which was rejected."
    return f"Drawn from the residual, max(0, p - q) normalised, since {text} was rejected."


def _numbers_of(position: Position) -> tuple[tuple[str, str], ...]:
    named = (
        ("p(x)", position.p),
        ("q(x)", position.q),
        ("accept with", position.acceptance_probability),
        ("u drawn", position.uniform),
    )
    return tuple((name, _number(value)) for name, value in named if value is not None)


def _round(number: int, one: Round, simulated: bool) -> str:
    drafted = f"{one.drafted} drafted, {one.accepted} accepted" if one.drafted else "nothing drafted"
    closing = f", {one.closing_kind}" if one.closing is not None and one.drafted else ""
    emitted = len(one.tokens)
    words = f"round {number}: {drafted}{closing}: {emitted} token{'s' * (emitted != 1)} out"
    if simulated:
        return words
    parts = (("draft", one.seconds.draft), ("verify", one.seconds.verify), ("rest", one.seconds.rest))
    return f"{words}; " + ", ".join(f"{name} {1000 * value:.0f} ms" for name, value in parts)


def _counts(
    generation: Generation, count: int, baseline: Generation | None, draft_cost: float | None
) -> tuple[tuple[str, str], ...]:
    so_far = measure(generation.rounds[:count])
    rows = [
        ("tokens out", str(so_far.new_tokens)),
        ("target forwards", str(so_far.target_forwards)),
        ("drafted", str(so_far.drafted)),
        ("accepted", str(so_far.accepted)),
        ("acceptance rate", _optional(so_far.acceptance_rate, "{:.0%}")),
        ("block efficiency*", _optional(so_far.block_efficiency, "{:.2f}")),
    ]
    if draft_cost is not None:
        cost = so_far.target_forwards + draft_cost * so_far.drafted
        counted = so_far.new_tokens / cost if cost else None
        rows.append(("speedup, counted", _optional(counted, "{:.2f}x")))
    elif not generation.simulated:
        rows.append(("seconds", f"{so_far.seconds:.2f}"))
        if baseline is not None:
            rows.append(("speedup, measured", _optional(speedup(so_far, baseline), "{:.2f}x")))
    return tuple(rows)


def speedup(so_far: Metrics, baseline: Generation) -> float | None:
    """Tokens per second over those of plain decoding up to as many tokens (or all that it made)."""
    plain = measure(baseline.rounds[: so_far.new_tokens])
    if not so_far.tokens_per_second or not plain.tokens_per_second:
        return None
    return so_far.tokens_per_second / plain.tokens_per_second


def _prompt(tokens: Sequence[int], decode: Decode) -> str:
    text = in_lines(decode(list(tokens))).replace("⏎\n", "⏎ ")
    return text if len(text) <= LONGEST_PROMPT else "…" + text[-LONGEST_PROMPT:]


def _numbers(tokens: list[int]) -> str:
    """For a run without a tokenizer."""
    return "".join(f" {token}" for token in tokens)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value in (0.0, 1.0):
        return f"{value:.0f}"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"


def _optional(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _check(generation: Generation, baseline: Generation | None) -> None:
    if not isinstance(generation, Generation):
        raise ValueError(f"generation: got {type(generation).__name__}, expected a Generation")
    if baseline is None:
        return
    if generation.simulated or baseline.simulated:
        raise ValueError("baseline: got one beside a simulation, expected two measured runs")
    if any(one.drafted for one in baseline.rounds):
        raise ValueError("baseline: got a run with drafts, expected one with drafter=None")

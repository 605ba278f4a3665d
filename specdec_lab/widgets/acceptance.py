"""The acceptance map: a text in which each token is shaded by how badly the draft fails there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from statistics import mean
from typing import Any, Literal

from rich.text import Text

from specdec_lab.audit.positions import PositionsAudit
from specdec_lab.provenance import Kind
from specdec_lab.records import Generation, Position, Round
from specdec_lab.text import Decode, Transcript, visible
from specdec_lab.widgets.live import FONT, LINE, SMALL, badge

Role = Literal["text", "kept", "rejected", "replacement", "bonus", "plain"]
SIGNS: dict[Role, str] = {"replacement": "~", "bonus": "+", "plain": "·", "rejected": "✗"}
"""As in the terminal's streamed text; a rejected token has its number and this in a plain text."""
SIGN_WORDS: dict[Role, str] = {
    "replacement": "replacement, not drafted",
    "bonus": "bonus, not drafted",
    "plain": "plain, nothing was drafted",
}
FAILS = (213, 94, 0)
"""The palette's red, and it is transparent: the text stays readable on light and dark pages."""
DARKEST = 0.6
GREY, RICH_KEPT = 150, 0.9
"""What the red is mixed with in a terminal, and from where there is no shade."""
SAMPLES = (0.0, 0.25, 0.5, 0.75, 1.0)
UNJUDGED, UNFINISHED, NO_TEXT, END = "–", "⋯", "⟨no text⟩", "⟨end⟩"
LONGEST_WORD = 24
"""Characters that are kept on one line at most, even if no white space is among them."""
LONG_TOKEN = 60
"""Characters from which on a token may be broken: one line might not hold it."""
CONTEXT = 8
"""Tokens before a rejected one that tell how it reads there."""
SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"


@dataclass(frozen=True)
class MapToken:
    """One token of the map.

    Args:
        text: what it completes; ``UNFINISHED`` within a character, ``END`` for an end token.
        role: "text" of an audit; else what became of it in its round.
        chance: alpha or the acceptance probability; None if nothing was drafted or judged here.
        detail: what more is known, for the tooltip.
        apart: whether it is a word of its own, as token ids are.
    """

    text: str
    role: Role
    chance: float | None
    detail: str = ""
    apart: bool = False

    @property
    def mark(self) -> str:
        """What stands below the token: its number, or the sign of what it is."""
        if self.chance is None:
            return SIGNS.get(self.role, UNJUDGED)
        return short_number(self.chance)


@dataclass(frozen=True)
class AcceptanceMap:
    """A text with each token's alpha or acceptance probability; it shows itself.

    Args:
        tokens: in the order of the text, each rejected one before its replacement.
        measure: what the numbers are.
        kind: whether they are measured or simulated.
        note: where they come from.
    """

    tokens: tuple[MapToken, ...]
    measure: str
    kind: Kind
    note: str

    @property
    def mean(self) -> float | None:
        """The mean over the tokens that have a number."""
        chances = [token.chance for token in self.tokens if token.chance is not None]
        return mean(chances) if chances else None

    @property
    def summary(self) -> str:
        """The mean in words."""
        if self.mean is None:
            return f"no {self.measure}: nothing was judged"
        count = sum(token.chance is not None for token in self.tokens)
        return f"mean {self.measure} {self.mean:.2f} over {count} token{'' if count == 1 else 's'}"

    def words(self) -> list[list[MapToken]]:
        """The tokens that belong on one line: up to the next white space, or ``LONGEST_WORD``."""
        words: list[list[MapToken]] = []
        length = 0
        for token in self.tokens:
            starts = token.apart or not token.text or token.text[0].isspace()
            ended = bool(words) and words[-1][-1].text[-1:].isspace()
            if not words or starts or ended or length + len(token.text) > LONGEST_WORD:
                words.append([])
                length = 0
            words[-1].append(token)
            length += len(token.text)
        return words

    def _repr_html_(self) -> str:
        body = "".join(map(_word_html, self.words())) or f'<span style="{SMALL}">no tokens</span>'
        return (
            f'<div style="{FONT};max-width:64rem">'
            f'<div style="{SMALL};margin-bottom:.4em">{self._legend()}</div>'
            f'<div dir="auto" style="line-height:1.2">{body}</div>'
            f'<div style="margin:.4em 0;font-variant-numeric:tabular-nums">{escape(self.summary)}</div>'
            f"{badge(self.kind, self.note)}</div>"
        )

    def _legend(self) -> str:
        chip = f"border:1px solid {LINE};border-radius:3px;padding:0 .3em;background:"
        chips = " ".join(f'<span style="{chip}{_tint(x)}">{short_number(x)}</span>' for x in SAMPLES)
        parts = [f"{escape(self.measure)}: the draft fails {chips} is kept"]
        shown = {token.role for token in self.tokens if token.chance is None}
        parts += [f"{SIGNS[role]} {words}" for role, words in SIGN_WORDS.items() if role in shown]
        if any(token.role == "rejected" for token in self.tokens):
            parts.append("<s>struck through</s>: drafted and rejected")
        if any(token.mark == UNJUDGED for token in self.tokens):
            parts.append(f"{UNJUDGED} nothing was proposed")
        return " ".join(
            f'<span style="white-space:nowrap;margin-right:1em">{part}</span>' for part in parts
        )

    def __rich__(self) -> Text:
        line = Text()
        for token in self.tokens:
            line += _token_rich(token)
        return Text("\n").join([*line.split("\n", allow_blank=True), *self._notes_rich()])

    def _notes_rich(self) -> list[Text]:
        roles = {token.role for token in self.tokens}
        signs = [f"{SIGNS[role]} {words}" for role, words in SIGN_WORDS.items() if role in roles]
        if "rejected" in roles:
            signs.append(f"{SIGNS['rejected']} drafted and rejected")
        below = f"{SUBSCRIPTS[0]}…{SUBSCRIPTS[9]}: {self.measure}, tenths, rounded down"
        return [
            Text("; ".join([below, *signs]), "dim"),
            Text(self.summary),
            Text(f"{self.kind}: {self.note}", "dim"),
        ]

    def __repr__(self) -> str:
        return self.__rich__().plain


def acceptance_map(
    source: PositionsAudit | Generation, decode: Decode | None = None, *, text: int = 0
) -> AcceptanceMap:
    """Where does the draft fail? A text whose tokens are shaded, with a number below each.

    Args:
        source: of an audit each position's alpha is shown; of a run the acceptance probability of each
            drafted token that was judged, and the tokens that were not drafted.
        decode: token ids -> text, for a run; without it the ids are shown. An audit has its texts.
        text: which text of an audit.

    Raises:
        ValueError: for another source, or a text that the audit does not have.
    """
    if isinstance(source, PositionsAudit):
        return _of_audit(source, text)
    if isinstance(source, Generation):
        return _of_run(source, decode)
    raise ValueError(f"source: got {type(source).__name__}, expected a PositionsAudit or a Generation")


def _of_audit(audit: PositionsAudit, text: int) -> AcceptanceMap:
    if not 0 <= text < len(audit.texts):
        raise ValueError(f"text: got {text}, expected one of the audit's {len(audit.texts)}, from 0")
    tokens = []
    for one in audit.texts[text]:
        shown = END if one.kind == "end" else one.text or UNFINISHED
        tokens.append(MapToken(shown, "text", one.alpha, one.kind, apart=one.kind == "token"))
    kind: Kind = audit.provenance.get("kind", "measured")
    return AcceptanceMap(tuple(tokens), "alpha", kind, _origin(audit.provenance))


def _of_run(run: Generation, decode: Decode | None) -> AcceptanceMap:
    reader = _Reader(decode)
    tokens = [token for one in run.rounds for token in _of_round(one, reader)]
    if run.stop_reason == "end token" and tokens and tokens[-1].text == NO_TEXT:
        tokens[-1] = replace(tokens[-1], text=END)
    kind: Kind = "simulated" if run.simulated else run.provenance.get("kind", "measured")
    return AcceptanceMap(tuple(tokens), "acceptance probability", kind, _origin(run.provenance))


def _of_round(one: Round, reader: _Reader) -> Iterator[MapToken]:
    ids = reader.ids
    for position in one.positions:
        if position.accepted is None:
            break
        role: Role = "kept" if position.accepted else "rejected"
        text = (reader.read if position.accepted else reader.aside)(position.token)
        yield MapToken(text, role, position.acceptance_probability, _fate(position), ids)
    if one.closing is not None and one.closing_kind is not None:
        words = SIGN_WORDS[one.closing_kind]
        yield MapToken(reader.read(one.closing), one.closing_kind, None, words, ids)


def _fate(position: Position) -> str:
    fate = "drafted and kept" if position.accepted else "drafted and rejected"
    p = "" if position.p is None else f", p {position.p:.4g}"
    return f"{fate}; q {position.q:.4g}{p}"


class _Reader:
    """The text of each token behind those that were read before it."""

    def __init__(self, decode: Decode | None) -> None:
        self.ids = decode is None
        self._decode = decode
        self._transcript = Transcript(decode) if decode else None
        self._read: list[int] = []

    def read(self, token: int) -> str:
        """The text that the token completes; from here on it counts as read."""
        self._read.append(token)
        return self._push(self._transcript, token)

    def aside(self, token: int) -> str:
        """The same, but the token is dropped afterwards."""
        if self._decode is None:
            return str(token)
        transcript = Transcript(self._decode)
        for before in self._read[-CONTEXT:]:
            transcript.push(before)
        return self._push(transcript, token)

    def _push(self, transcript: Transcript | None, token: int) -> str:
        if transcript is None or self._decode is None:
            return str(token)
        alone = self._decode([token])
        return transcript.push(token) or (UNFINISHED if alone else NO_TEXT)


def _origin(made: dict[str, Any]) -> str:
    """The models, the device and the day, as far as they are known."""
    parts = [f"target {made['target']}"] if made.get("target") else []
    drafter = ", ".join(filter(None, [made.get("drafter"), made.get("draft_model")]))
    parts += [f"drafter {drafter}"] if drafter else []
    if made.get("dtype") and made.get("hardware"):
        parts.append(f"{made['dtype']} on {made['hardware']}")
    return "; ".join([*parts, *([str(made["date"])[:10]] if made.get("date") else [])])


def short_number(chance: float) -> str:
    """Two decimals without the leading 0; 0 and 1 alone where they round to that."""
    text = f"{chance:.2f}"
    return {"0.00": "0", "1.00": "1"}.get(text, text.removeprefix("0"))


def _word_html(word: Sequence[MapToken]) -> str:
    blocks = "".join(map(_token_html, word))
    breaks = "<br>" * sum(token.text.count("\n") for token in word if token.role != "rejected")
    return f'<span style="white-space:nowrap">{blocks}</span><wbr>{breaks}'


def _token_html(token: MapToken) -> str:
    """Two rows in spans, which every sanitizer keeps; where styles are dropped, a subscript is left."""
    shown = escape(visible(token.text))
    if token.role == "rejected":
        core = shown.lstrip(" ")
        shown = f'{shown[: len(shown) - len(core)]}<s style="text-decoration:line-through">{core}</s>'
    edge = f"dashed {LINE}" if token.chance is None else "solid transparent"
    style = (
        "display:inline-block;max-width:100%;vertical-align:top;text-align:center;margin:0 1px .35em 0;"
        f"padding:0 1px;border-radius:3px;border:1px {edge};background:{_tint(token.chance)}"
    )
    space = "pre" if len(shown) < LONG_TOKEN else "pre-wrap;overflow-wrap:anywhere"
    number = (
        "display:block;font-size:10px;line-height:1.3;text-align:center;opacity:.8;"
        "font-variant-numeric:tabular-nums"
    )
    return (
        f'<span style="{style}" title="{escape(_tooltip(token))}">'
        f'<span style="display:block;white-space:{space};unicode-bidi:isolate">{shown}</span>'
        f'<sub style="{number}">{token.mark}</sub></span>'
    )


def _tooltip(token: MapToken) -> str:
    exact = "" if token.chance is None else f"{token.chance:.6g}"
    return "; ".join(part for part in (f"“{visible(token.text)}”", exact, token.detail) if part)


def _tint(chance: float | None) -> str:
    if chance is None:
        return "transparent"
    red, green, blue = FAILS
    return f"rgba({red},{green},{blue},{DARKEST * (1.0 - chance):.2f})"


def _token_rich(token: MapToken) -> Text:
    """The text on its shade, then the tenths of its number or before it its sign."""
    sign = SIGNS.get(token.role, "")
    tenths = "" if token.chance is None else SUBSCRIPTS[min(9, int(10 * token.chance))]
    if token.role == "text" and token.chance is None:
        tenths = UNJUDGED
    style = _rich_style(token)
    pieces = Text()
    for newlines, characters in groupby(token.text, lambda character: character == "\n"):
        text = "".join(characters)
        pieces.append(
            text.replace("\n", "⏎") if newlines else visible(text) if text.strip() else text, style
        )
    broken = "\n" * (token.text.count("\n") if token.role != "rejected" else 0)
    return Text(sign) + pieces + Text(tenths + broken)


def _rich_style(token: MapToken) -> str:
    """From grey to red, on which black is readable; a terminal's own colours are not known."""
    if token.chance is None:
        return "italic"
    strike = "strike " if token.role == "rejected" else ""
    if token.chance >= RICH_KEPT:
        return strike
    red, green, blue = (round(GREY - (1.0 - token.chance) * (GREY - part)) for part in FAILS)
    return f"{strike}black on rgb({red},{green},{blue})"

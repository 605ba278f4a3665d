"""The quiz as a view: a click on an answer says at once whether it is right, and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets

from specdec_lab.checks import chosen, quiz
from specdec_lab.checks.quiz import LETTERS, Verdict
from specdec_lab.plots.style import GREEN, RED
from specdec_lab.widgets.live import FONT, SMALL, Live, Message

_CODE = re.compile(r"`([^`]+)`")
_STRESSED = re.compile(r"\*(?=\S)([^*]+)(?<=\S)\*")
_LINE = 90
"""Characters of an explanation in a line of a narrow notebook; room for the longest is kept free."""
_STYLE = f"""<style>
.specdec-quiz .widget-radio > .widget-label {{ {FONT}; display: block; width: auto; height: auto;
  margin: 0 2px .2em; text-align: start; white-space: normal; color: inherit; }}
.specdec-quiz .widget-radio-box {{ width: auto; margin: 0 0 4px !important; }}
.specdec-quiz .widget-radio-box label {{ {FONT}; height: auto; padding: .1em 0; text-align: start;
  white-space: normal; overflow-wrap: anywhere; color: inherit;
  display: flex; flex-direction: row-reverse; justify-content: flex-end; align-items: flex-start; }}
.specdec-quiz .widget-radio-box input {{ flex: none; height: 21px; margin: 0 .5em 0 .2em; }}
</style>"""
"""Long questions and options wrap; ipywidgets gives each a line and cuts it."""


def ask(name: str) -> Live:
    """Show a notebook's quiz with buttons; what is chosen is kept in ``answers.json`` at once.

    Choices that are kept there already, in the current folder, are shown again.

    Args:
        name: the notebook's.

    Raises:
        ValueError: if there is no such quiz.
    """
    if name not in quiz.names():
        raise ValueError(f"name: got {name!r:.60}, expected one of {', '.join(quiz.names())}")
    return _Quiz(Answering(name, Path.cwd()))


@dataclass(frozen=True)
class Asked:
    """A question as it is shown.

    Args:
        number: from 1.
        text: with `code` and *stress*.
        options: letter -> text.
        letter: the one chosen; empty if there is none.
        verdict: on that letter; None if there is none.
        longest: characters of the longest explanation.
    """

    number: int
    text: str
    options: dict[str, str]
    letter: str
    verdict: Verdict | None
    longest: int


class Answering:
    """What the view shows, and what a choice does; apart from how it looks.

    Args:
        name: the notebook's.
        folder: where ``answers.json`` is kept.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self._name, self._folder = name, folder
        self._questions = quiz.load(name)
        self._allowed = quiz.allowed_letters(self._questions)
        kept = chosen.read(folder, name, self._allowed)
        self._letters = kept.letters
        self._unsaved: dict[int, str] = {}
        self.notice = kept.problem
        """What is wrong with ``answers.json``, or became of it."""
        self.trouble = ""
        """Why the last choice could not be saved; empty if it was."""

    @property
    def asked(self) -> list[Asked]:
        """The questions, each with what was chosen."""
        return [self._asked(number, one) for number, one in enumerate(self._questions, start=1)]

    @property
    def summary(self) -> str:
        """How far one has come, and where it is kept."""
        verdicts = [one.verdict for one in self.asked if one.verdict]
        right = sum(verdict.right for verdict in verdicts)
        text = f"{len(verdicts)} of {len(self._questions)} answered, {right} right so far"
        if self.trouble:
            return f"{text}; NOT saved in {chosen.FILE}: {self.trouble}"
        return f"{text}; saved in {chosen.FILE}" if verdicts else text

    def choose(self, number: int, letter: str) -> None:
        """Take an answer, and save it with all others.

        Raises:
            ValueError: for a question or an option that there is not.
        """
        if number not in self._allowed or letter not in [*self._allowed[number]]:
            raise ValueError(f"number, letter: got {number!r}, {letter!r}, expected those of an option")
        self._letters[number] = self._unsaved[number] = letter
        self.trouble = chosen.why_not_kept(self._folder)
        if not self.trouble:
            self._save()

    def _save(self) -> None:
        try:
            # The quiz may be open a second time; what was chosen there stays.
            kept = chosen.read(self._folder, self._name, self._allowed)
            letters = kept.letters | self._unsaved
            old = chosen.keep(self._folder, self._name, letters, aside=bool(kept.problem))
        except OSError as error:
            self.trouble = error.strerror or type(error).__name__
            return
        self._letters, self._unsaved = letters, {}
        if kept.problem:
            self.notice = f"{kept.problem}; it is now {old.name}" if old else kept.problem

    def _asked(self, number: int, question: dict[str, Any]) -> Asked:
        letter = self._letters.get(number, "")
        verdict = quiz.judge(question, letter) if letter else None
        options = dict(zip(LETTERS, question["options"], strict=False))
        longest = max(len(quiz.judge(question, other).why) for other in options)
        return Asked(number, question["question"], options, letter, verdict, longest)


class _Quiz(Live):
    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._notice, self._summary = Message(), Message()
        self._cards = [_Card(one, self._choose) for one in answering.asked]
        intro = ipywidgets.HTML(f'{_STYLE}<div style="{FONT}">{escape(_INTRO)}</div>')
        children = [intro, self._notice, *self._cards, self._summary]
        super().__init__(children, static=self._face, plain=self._text)
        self.add_class("specdec-quiz")
        self._show()

    def _choose(self, number: int, letter: str) -> None:
        with self._summary.showing_errors():
            self._answering.choose(number, letter)
            self._show()

    def _show(self) -> None:
        for card, one in zip(self._cards, self._answering.asked, strict=True):
            card.show(one)
        self._notice.say(self._answering.notice, bad=bool(self._answering.notice))
        self._summary.say(self._answering.summary, bad=bool(self._answering.trouble))

    def _face(self) -> str:
        return static_face(self._answering)

    def _text(self) -> str:
        return plain_text(self._answering)


class _Card(ipywidgets.VBox):
    """One question, with its options, and the room for the verdict."""

    def __init__(self, asked: Asked, choose: Callable[[int, str], None]) -> None:
        self._number, self._choose = asked.number, choose
        self._showing = False
        self.radio = ipywidgets.RadioButtons(
            options=[(f"{letter})\u2002{text}", letter) for letter, text in asked.options.items()],
            index=None,
            description=_question(asked),
            description_allow_html=True,
            tooltip=f"Question {asked.number}",
            layout=ipywidgets.Layout(width="auto"),
        )
        lines = 1 + (asked.longest + len(_opening("a", right=False))) // _LINE
        room = f"{1.5 * 14 * lines + 8:.0f}px"
        self.verdict = ipywidgets.HTML(layout=ipywidgets.Layout(min_height=room))
        layout = ipywidgets.Layout(margin="0 0 14px 0")
        super().__init__([self.radio, self.verdict], layout=layout)
        self.radio.observe(self._chosen, names="value")

    def show(self, asked: Asked) -> None:
        """Show what was chosen; it does not count as another choice."""
        self._showing = True
        self.radio.value = asked.letter or None
        self._showing = False
        self.verdict.value = _verdict(asked)

    def _chosen(self, change: dict[str, Any]) -> None:
        if not self._showing and change["new"] is not None:
            self._choose(self._number, change["new"])


_INTRO = (
    "Choose an answer (by keyboard: Tab and Space). You see at once whether it is right, and why; "
    "you may choose again."
)


def static_face(answering: Answering) -> str:
    """The quiz as it stands, as HTML without buttons."""
    parts = [_question(one) + _options(one) + _verdict(one) for one in answering.asked]
    lines = [answering.notice, answering.summary]
    ends = "".join(f'<div style="{FONT};{SMALL}">{escape(line)}</div>' for line in lines if line)
    return f'<div style="max-width:64rem">{"".join(parts)}{ends}</div>'


def plain_text(answering: Answering) -> str:
    """The quiz as it stands, as text."""
    lines = []
    for one in answering.asked:
        lines.append(f"{one.number}. {one.text}")
        lines += [
            f"   {'(x)' if letter == one.letter else '( )'} {letter}) {text}"
            for letter, text in one.options.items()
        ]
        if one.verdict:
            lines.append(f"   {_opening(one.letter, one.verdict.right)} {one.verdict.why}")
    return "\n".join([*lines, *filter(None, [answering.notice]), answering.summary])


def marked(text: str) -> str:
    """Text with `code` and *stress* as HTML; everything else in it is only text."""
    parts = _CODE.split(text)
    return "".join(
        f"<code>{escape(part)}</code>" if place % 2 else _STRESSED.sub(r"<em>\1</em>", escape(part))
        for place, part in enumerate(parts)
    )


def _question(asked: Asked) -> str:
    return f'<span dir="auto" style="{FONT}"><b>{asked.number}.</b> {marked(asked.text)}</span>'


def _options(asked: Asked) -> str:
    items = "".join(
        f'<li dir="auto">{"●" if letter == asked.letter else "○"} {letter})&ensp;{escape(text)}</li>'
        for letter, text in asked.options.items()
    )
    return f'<ul style="{FONT};list-style:none;margin:0;padding-left:1em">{items}</ul>'


def _verdict(asked: Asked) -> str:
    if asked.verdict is None:
        return ""
    colour = GREEN if asked.verdict.right else RED
    opening = _opening(asked.letter, asked.verdict.right)
    style = f"{FONT};border-left:3px solid {colour};background:{colour}1c;padding:.15em .6em"
    text = f"<b>{escape(opening)}</b> {marked(asked.verdict.why)}"
    return f'<div role="status" dir="auto" style="{style}">{text}</div>'


def _opening(letter: str, right: bool) -> str:
    return f"✓ {letter} is right." if right else f"✗ {letter} is not right."

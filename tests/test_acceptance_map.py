"""The acceptance map: its tokens and numbers by hand, its two faces, and texts that try to break it."""

import io
import re
from html.parser import HTMLParser

import pytest
from helpers import byte_decode
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from specdec_lab.audit.positions import AuditedPosition, PositionsAudit
from specdec_lab.decoding import generate
from specdec_lab.drafters import ModelDrafter
from specdec_lab.language_model import TableLM
from specdec_lab.records import Generation, Position, Round, Seconds
from specdec_lab.sampling import Sampling
from specdec_lab.simulation import CONTINUATION, decode, simulate
from specdec_lab.text import transcribe
from specdec_lab.widgets.acceptance import (
    END,
    NO_TEXT,
    UNFINISHED,
    AcceptanceMap,
    MapToken,
    acceptance_map,
    short_number,
)

MADE = {
    "kind": "measured",
    "target": "a-model",
    "drafter": "model",
    "draft_model": "a-draft",
    "dtype": "float32",
    "hardware": "a machine",
    "date": "2026-01-02T03:04:05+00:00",
}


def at(text, alpha, kind="word"):
    return AuditedPosition(1, text, kind, alpha, 0.0, 0.0)


def audit(*texts):
    return PositionsAudit(tuple(texts), ("",) * len(texts), MADE)


def shown(tokens):
    return AcceptanceMap(tuple(tokens), "alpha", "measured", "made up")


def a_round(accepted, rejected=None, closing=None, kind=None, reason=None):
    """A round of some accepted tokens, perhaps a rejected one, and a token that was never judged."""
    positions = [Position(token, 0.5, 0.4, 0.8, 0.3, True) for token in accepted]
    if rejected is not None:
        positions.append(Position(rejected, 0.5, 0.1, 0.2, 0.9, False))
        positions.append(Position(rejected, 0.5))
    return Round(tuple(positions), closing, kind, 1, Seconds(0.1, 0.1, 0.1), stop_reason=reason)


def a_run(*rounds, **changes):
    tokens = [token for one in rounds for token in one.tokens]
    return Generation([0], tokens, None, list(rounds), "budget", provenance=MADE, **changes)


class Reading(HTMLParser):
    """The tags of a page, and its texts one by one."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


def tokens_of(html):
    """(text, number) of each token in the page."""
    found = re.findall(
        r"<span[^>]* title=[^>]*><span[^>]*>(.*?)</span><sub[^>]*>(.*?)</sub></span>", html
    )
    return [(re.sub(r"</?s[^>]*>", "", text), number) for text, number in found]


def in_terminal(one):
    console = Console(file=io.StringIO(), width=200, color_system="truecolor", force_terminal=True)
    console.print(one)
    return console.file.getvalue()


def test_an_audits_text_with_its_alphas():
    source = audit((at("The", 0.5),), (at("Sky", 1.0), at(" is", 0.354), at("", None, "end")))
    found = acceptance_map(source, text=1)
    assert [(one.text, one.chance) for one in found.tokens] == [
        ("Sky", 1.0),
        (" is", 0.354),
        (END, None),
    ]
    assert found.mean == pytest.approx(0.677)
    assert found.summary == "mean alpha 0.68 over 2 tokens"
    html = found._repr_html_()
    assert tokens_of(html) == [("Sky", "1"), (" is", ".35"), (END, "–")]
    assert "“ is”; 0.354; word" in html
    assert (
        ">measured</span> target a-model; drafter model, a-draft; float32 on a machine; 2026-01-02"
        in html
    )
    assert "nothing was proposed" in html
    assert acceptance_map(source).summary == "mean alpha 0.50 over 1 token"


def test_the_tint_is_strong_where_the_draft_fails_and_absent_where_it_is_kept():
    html = shown([MapToken("a", "text", 0.0), MapToken("b", "text", 0.5), MapToken("c", "text", 1.0)])
    tints = [
        attrs["style"].split("background:")[1]
        for tag, attrs in Reading(html._repr_html_()).tags
        if tag == "span" and "title" in attrs
    ]
    assert tints == ["rgba(213,94,0,0.60)", "rgba(213,94,0,0.30)", "rgba(213,94,0,0.00)"]


def test_a_run_shows_what_was_judged_and_what_was_not_drafted():
    letters = dict(enumerate(["<bos>", " a", " b", " c", " d", " e", " f"]))

    def spell(tokens):
        return "".join(letters[token] for token in tokens)

    source = a_run(
        a_round([1, 2], rejected=3, closing=4, kind="replacement"),
        a_round([1], closing=5, kind="bonus"),
        a_round([], closing=6, kind="plain"),
    )
    found = acceptance_map(source, spell)
    assert [(one.text, one.role, one.mark) for one in found.tokens] == [
        (" a", "kept", ".80"),
        (" b", "kept", ".80"),
        (" c", "rejected", ".20"),
        (" d", "replacement", "~"),
        (" a", "kept", ".80"),
        (" e", "bonus", "+"),
        (" f", "plain", "·"),
    ]
    assert found.summary == "mean acceptance probability 0.65 over 4 tokens"
    html = found._repr_html_()
    assert re.search(r"> <s [^>]*>c</s><", html)
    assert html.count("<s ") == 1
    assert "drafted and rejected; q 0.5, p 0.1" in html
    for words in ("~ replacement, not drafted", "+ bonus, not drafted", "· plain, nothing was drafted"):
        assert words in html
    assert repr(found).splitlines()[0] == " a₈ b₈✗ c₂~ d a₈+ e· f"


def test_the_scripted_run_is_simulated_and_complete():
    found = acceptance_map(simulate().generation, decode)
    assert "".join(one.text for one in found.tokens if one.role != "rejected") == "".join(CONTINUATION)
    assert [one.text for one in found.tokens if one.role == "rejected"] == [" today"]
    assert ">simulated</span>" in found._repr_html_()
    assert "simulated: " in repr(found)


def test_a_real_runs_numbers_are_its_rounds():
    target, draft = TableLM({(): [0.5, 0.3, 0.2]}), TableLM({(): [0.2, 0.3, 0.5]})
    options = {"gamma": 3, "max_new_tokens": 12, "sampling": Sampling(1.0), "seed": 4}
    run = generate(target, [1], drafter=ModelDrafter(draft), **options)
    found = acceptance_map(run)
    judged = [one for round_ in run.rounds for one in round_.positions if one.accepted is not None]
    numbers = [one.chance for one in found.tokens if one.chance is not None]
    assert numbers == [one.acceptance_probability for one in judged]
    assert [one.text for one in found.tokens if one.role != "rejected"] == list(map(str, run.tokens))
    assert all(len(word) == 1 for word in found.words())


def test_a_run_without_drafts_has_no_mean():
    found = acceptance_map(a_run(a_round([], closing=65, kind="plain")), byte_decode)
    assert found.mean is None
    assert "no acceptance probability: nothing was judged" in found._repr_html_()


def test_a_run_of_nothing_says_so():
    found = acceptance_map(a_run(), byte_decode)
    assert "no tokens" in found._repr_html_()
    assert "nothing was judged" in repr(found)


def test_an_end_token_and_one_without_text():
    def silent(tokens):
        return byte_decode([token for token in tokens if token < 128])

    run = a_run(
        a_round([72, 200], closing=201, kind="bonus"),
    )
    assert [one.text for one in acceptance_map(run, silent).tokens] == ["H", NO_TEXT, NO_TEXT]
    ended = Generation([0], run.tokens, None, run.rounds, "end token", provenance=MADE)
    assert [one.text for one in acceptance_map(ended, silent).tokens] == ["H", NO_TEXT, END]


@given(st.text(min_size=1, max_size=12), st.data())
def test_the_pieces_add_up_to_the_text_also_where_characters_span_tokens(text, data):
    tokens = list(text.encode())
    rounds, place = [], 0
    while place < len(tokens):
        count = data.draw(st.integers(1, 4))
        part = tokens[place : place + count]
        wrong = data.draw(st.none() | st.integers(0, 255))
        kind = "bonus" if wrong is None else "replacement"
        rounds.append(a_round(part[:-1], rejected=wrong, closing=part[-1], kind=kind))
        place += count
    found = acceptance_map(a_run(*rounds), byte_decode)
    emitted = [one for one in found.tokens if one.role != "rejected"]
    assert len(emitted) == len(tokens)
    shown_text = "".join(one.text for one in emitted if one.text != UNFINISHED)
    assert shown_text.replace(UNFINISHED, "") == transcribe(tokens, byte_decode).replace(UNFINISHED, "")
    assert [one for word in found.words() for one in word] == list(found.tokens)
    assert Reading(found._repr_html_()).tags.count(("br", {})) == text.count("\n")


def test_a_rejected_token_is_read_behind_what_stands_before_it():
    first, second, third = "€".encode()
    other = "₭".encode()[2]
    run = a_run(a_round([first, second], rejected=other, closing=third, kind="replacement"))
    texts = [one.text for one in acceptance_map(run, byte_decode).tokens]
    assert texts == [UNFINISHED, UNFINISHED, byte_decode([first, second, other]), "€"]


def test_words_stay_together_and_long_ones_break():
    tokens = [MapToken(text, "text", 0.5) for text in ("con", "und", "rum", " that", "\n", "x")]
    assert [[one.text for one in word] for word in shown(tokens).words()] == [
        ["con", "und", "rum"],
        [" that"],
        ["\n"],
        ["x"],
    ]
    many = shown([MapToken("abcd", "text", 0.5)] * 20).words()
    assert [len(word) for word in many] == [6, 6, 6, 2]


def test_a_token_that_no_line_holds_may_be_broken():
    html = shown([MapToken("=" * 200, "text", 0.5), MapToken("=" * 20, "text", 0.5)])._repr_html_()
    spaces = re.findall(r"white-space:(pre[^;]*)", html)
    assert spaces == ["pre-wrap", "pre"]


HOSTILE = ["<script>", "alert('1')", '"&amp;', "\u202e", "</span>", "\x1b[31m", "שלום", "$x$", "[bold]"]


def test_hostile_texts_are_shown_and_do_nothing():
    found = acceptance_map(audit(tuple(at(text, 0.5) for text in HOSTILE)))
    html = found._repr_html_()
    reading = Reading(html)
    assert {tag for tag, _ in reading.tags} <= {"div", "span", "sub", "wbr", "br", "s"}
    assert {name for _, attrs in reading.tags for name in attrs} <= {"style", "title", "dir"}
    for text in (
        "<script>",
        "alert('1')",
        '"&amp;',
        "⟨U+202E⟩",
        "</span>",
        "⟨U+001B⟩[31m",
        "שלום",
        "$x$",
    ):
        assert text in reading.texts
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert "\x1b" not in repr(found)
    assert "[bold]" in repr(found)


@pytest.mark.parametrize(
    ("chance", "text"),
    [(0.0, "0"), (0.004, "0"), (0.35, ".35"), (0.5, ".50"), (0.994, ".99"), (0.996, "1"), (1.0, "1")],
)
def test_numbers_are_short(chance, text):
    assert short_number(chance) == text


def test_a_newline_is_a_sign_and_a_break():
    found = acceptance_map(audit((at("a", 0.5), at(".\n", 0.25), at("b", 1.0))))
    html = found._repr_html_()
    assert tokens_of(html)[1] == (".⏎", ".25")
    assert html.index(".⏎") < html.index("<br>") < html.index(">b<")
    assert html.count("<br>") == 1
    assert repr(found).splitlines()[:2] == ["a₅.⏎₂", "b₉"]


def test_the_terminals_face_is_shaded_and_numbered():
    run = a_run(a_round([97], rejected=98, closing=99, kind="replacement"))
    shaded = in_terminal(acceptance_map(run, byte_decode))
    assert "30;48;2;163;139;120ma" in shaded  # black on grey with a fifth of the red
    assert "a₈" in re.sub(r"\x1b\[[0-9;]*m", "", shaded)
    assert "✗b₂~c" in re.sub(r"\x1b\[[0-9;]*m", "", shaded)
    assert "✗ drafted and rejected" in shaded
    assert "48;2" not in in_terminal(shown([MapToken("a", "text", 0.9)]))


def test_a_text_from_right_to_left_runs_that_way():
    assert '<div dir="auto"' in acceptance_map(audit((at("שלום", 0.5),)))._repr_html_()


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="source: got str, expected a PositionsAudit or a Generation"):
        acceptance_map("a text")
    with pytest.raises(ValueError, match="text: got 2, expected one of the audit's 2, from 0"):
        acceptance_map(audit((), ()), text=2)
    with pytest.raises(ValueError, match="text: got -1"):
        acceptance_map(audit(()), text=-1)

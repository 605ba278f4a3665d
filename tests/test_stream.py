"""The stream player's view model and its static face: what each token says about itself."""

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from helpers import ForcedChooser, byte_decode
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from test_terminal import chain

from specdec_lab.decoding import generate
from specdec_lab.drafters import ModelDrafter, ScriptedDrafter
from specdec_lab.language_model import RandomLM, TableLM
from specdec_lab.records import Round, Seconds
from specdec_lab.sampling import Sampling
from specdec_lab.simulation import decode, simulate
from specdec_lab.widgets.player import Player, static_face
from specdec_lab.widgets.stream import Stream, in_lines, speedup, stream


def timed(run, seconds):
    """The run as if each round had taken that long; measured, so far as a view can tell."""
    rounds = [replace(one, seconds=Seconds(0.0, seconds, 0.0)) for one in run.rounds]
    return replace(run, rounds=rounds, simulated=False)


@given(
    seed=st.integers(0, 50),
    gamma=st.integers(1, 5),
    temperature=st.sampled_from([0.0, 1.0]),
    length=st.integers(0, 12),
)
def test_the_spans_are_the_run(seed, gamma, temperature, length):
    run = generate(
        RandomLM(5, seed),
        [0],
        drafter=ModelDrafter(RandomLM(5, seed + 1)),
        gamma=gamma,
        sampling=Sampling(temperature),
        seed=seed,
        max_new_tokens=length,
        trace=True,
    )
    shown = stream(run)
    assert "".join(span.text for span in shown.spans if span.emitted).split() == list(
        map(str, run.tokens)
    )
    assert sum(span.origin in ("accepted", "rejected", "never judged") for span in shown.spans) == sum(
        one.drafted for one in run.rounds
    )
    assert len(shown.counts) == len(run.rounds) + 1 == len(shown.rounds) + 1
    for index, one in enumerate(run.rounds):
        origins = [span.origin for span in shown.spans if span.round == index]
        kept = ["accepted"] * one.accepted
        lost = ["rejected", *["never judged"] * one.drafted][: one.drafted - one.accepted]
        assert origins == kept + lost + ([one.closing_kind] if one.closing_kind else [])
    metrics, last = run.metrics, dict(shown.counts[-1])
    assert last["tokens out"] == str(metrics.new_tokens)
    assert last["target forwards"] == str(metrics.target_forwards)
    assert (last["drafted"], last["accepted"]) == (str(metrics.drafted), str(metrics.accepted))
    assert {name for row in shown.counts for name, _ in row} == set(last)


def test_the_script_is_the_one_that_is_explained():
    """The numbers of the worked simulation, exactly."""
    made = simulate()
    shown = stream(made.generation, decode, draft_cost=made.draft_cost)
    assert shown.kind == "simulated"
    assert [(span.text, span.origin) for span in shown.spans if span.round == 1] == [
        (" It", "accepted"),
        (" is", "accepted"),
        (" beautiful", "accepted"),
        (" today", "rejected"),
        (".", "replacement"),
    ]
    assert dict(shown.counts[-1]) == {
        "tokens out": "9",
        "target forwards": "2",
        "drafted": "8",
        "accepted": "7",
        "acceptance rate": "88%",
        "block efficiency*": "4.50",
        "speedup, counted": "2.81x",
    }
    assert dict(shown.counts[1])["tokens out"] == "5"
    assert dict(shown.counts[0])["acceptance rate"] == "-"
    assert shown.seconds == ()


TWO = TableLM({(): [0.25, 0.75]})
OTHER = TableLM({(): [0.8, 0.2]})


def sampled(uniform):
    return generate(
        TWO,
        [0],
        drafter=ModelDrafter(OTHER),
        gamma=2,
        sampling=Sampling(1.0),
        chooser=ForcedChooser(uniform),
        max_new_tokens=3,
        trace=True,
    )


def test_a_token_says_why():
    """Drafted: token 0, since u is below q(0) = 0.8. It is kept with 0.25 / 0.8 = 0.3125."""
    first = stream(sampled(0.5)).spans[0]
    assert first.why == "Drafted and rejected: u = 0.500 is not below min(1, p/q) = 0.312."
    assert dict(first.numbers) == {
        "p(x)": "0.250",
        "q(x)": "0.800",
        "accept with": "0.312",
        "u drawn": "0.500",
    }
    assert (first.p, first.q, first.residual) == (
        ((" 1", 0.75), (" 0", 0.25)),
        ((" 0", 0.8), (" 1", 0.2)),
        ((" 1", 1.0),),
    )
    behind, closing = stream(sampled(0.5)).spans[1:3]
    assert behind.origin == "never judged"
    assert behind.why == "Drafted behind a token that was rejected, so it was never judged."
    assert closing.why == "Drawn from the residual, max(0, p - q) normalised, since  0 was rejected."
    assert closing.residual == first.residual
    kept = stream(sampled(0.3)).spans
    assert kept[0].why == "Drafted and accepted: u = 0.300 is below min(1, p/q) = 0.312."
    assert [span.origin for span in kept] == ["accepted", "accepted", "bonus"]
    assert kept[2].why.startswith("A bonus: all of the draft was accepted")
    assert (kept[2].q, kept[2].residual) == ((), ())


def test_greedily_nothing_is_drawn():
    run = generate(chain(b"abc"), [97], drafter=ScriptedDrafter(256, b"bx"), gamma=2, max_new_tokens=3)
    good, bad, closing, alone = stream(run, byte_decode).spans
    assert good.why == "Drafted and accepted: it is the token that the target takes here."
    assert bad.why == "Drafted and rejected: the target takes another token here."
    assert closing.why == "The target's own token, in place of x, which was rejected."
    assert alone.why == "From the target alone: nothing was drafted in this round."
    assert "u drawn" not in dict(good.numbers)


def test_the_speedup_compares_as_many_tokens():
    """Two rounds of 5 and 4 tokens at 1 s; plain decoding takes 0.5 s for each, 2.5 s for the first."""
    run = timed(simulate().generation, 1.0)
    plain = timed(generate(chain(bytes(range(20))), [0], max_new_tokens=9, seed=0), 0.5)
    plain.rounds[0] = replace(plain.rounds[0], seconds=Seconds(0.0, 2.5, 0.0))
    shown = stream(run, decode, plain)
    assert [dict(row).get("speedup, measured") for row in shown.counts] == ["-", "4.50x", "3.25x"]
    assert shown.seconds == (1.0, 1.0)
    longer = replace(run, rounds=run.rounds * 2)
    assert speedup(longer.metrics, plain) == pytest.approx((18 / 4) / (9 / 6.5))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((None,), "generation: got NoneType"),
        ((simulate().generation, decode, simulate().generation), "baseline: got one beside a sim"),
        ((timed(sampled(0.3), 1.0), None, timed(sampled(0.3), 1.0)), "baseline: got a run with drafts"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(arguments, named):
    with pytest.raises(ValueError, match=re.escape(named)):
        stream(*arguments)


@pytest.mark.parametrize(
    ("text", "shown"), [(" a", " a"), ("\n\n", "⏎\n⏎\n"), ("a\n  ", "a⏎\n␣␣"), ("", "")]
)
def test_a_line_break_is_seen_and_breaks_the_line(text, shown):
    assert in_lines(text) == shown


def test_characters_that_span_tokens_are_whole_and_ends_are_marked():
    text = "aé".encode()
    run = generate(chain(text), [97], max_new_tokens=2)
    assert [span.text for span in stream(run, byte_decode).spans] == ["·", "é"]
    assert [span.text for span in stream(run, lambda tokens: "").spans] == ["∅", "∅"]


def test_signs_hug_the_word():
    spans = stream(simulate().generation, decode).spans
    assert [span.signed for span in spans if span.origin in ("bonus", "replacement")] == ["+.", "~."]
    assert replace(spans[0], origin="bonus").signed == " +of"


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attributes)

    def handle_data(self, data):
        self.text += data


def hostile() -> Stream:
    run = generate(chain(b"abc"), [97], drafter=ScriptedDrafter(256, b"bx"), gamma=2, max_new_tokens=3)
    return stream(run, lambda tokens: HOSTILE * len(tokens))


def test_tokens_cannot_become_anything_but_text():
    face = Tags(static_face(hostile()))
    assert not {"script", "img"} & set(face.tags)
    assert HOSTILE in face.text
    page = Player(hostile())._repr_html_()
    assert page.count("<script>") == page.count("</script>") == 1


def test_the_page_holds_the_data_that_the_script_reads():
    page = Player(stream(simulate().generation, decode))._repr_html_()
    data = json.loads(page[page.rindex("previousElementSibling, ") + 24 : page.rindex(");</script>")])
    assert data["kind"] == "simulated"
    assert [span["signed"] for span in data["spans"]][-1] == "~."
    assert len(data["counts"]) == len(data["rounds"]) + 1
    assert "http" not in page.split("<script>")[1]


def test_the_static_face_and_the_terminal_say_the_same():
    player = Player(stream(simulate().generation, decode, remarks=["A remark."]))
    face = Tags(player._repr_html_().split("<script>")[0])
    console = Console(file=io.StringIO(), color_system=None, width=100)
    console.print(player)
    for shown in (face.text, console.file.getvalue(), repr(player)):
        for words in ("simulated", "tokens out", "A remark.", "bonus or replacement token included"):
            assert words in shown
    assert "<s " in player._repr_html_()
    assert " today" in face.text
    assert "today ~." in re.sub(r"[ │]+", " ", console.file.getvalue())


def test_a_long_run_is_made_ready_in_one_go():
    """200 rounds: nothing in it is quadratic in what it shows."""
    one = simulate().generation.rounds[0]
    assert isinstance(one, Round)
    run = replace(simulate().generation, rounds=[one] * 200)
    shown = stream(run, decode)
    assert dict(shown.counts[-1])["tokens out"] == "1000"
    assert len(Player(shown)._repr_html_()) < 2_000_000

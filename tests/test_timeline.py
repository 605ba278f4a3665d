"""The timeline of a run: where rounds end, how far both runs are drawn, and what is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgba

from specdec_lab import plots
from specdec_lab.plots.style import BLUE, GREY, ORANGE
from specdec_lab.plots.timeline import lanes
from specdec_lab.records import Generation, Position, Round, Seconds

MADE = {"target": "toy", "dtype": "float32", "device": "cpu", "hardware": "a CPU", "threads": 1}
MADE |= {"date": "2026-01-02T03:04:05"}


def a_round(tokens: int, *, draft: float = 0.0, verify: float = 0.1, rest: float = 0.0) -> Round:
    """Emits so many tokens: all but the last one were drafted."""
    positions = tuple(Position(7, 0.5, 0.5, 1.0, 0.1, True) for _ in range(tokens - 1))
    kind = "bonus" if positions else "plain"
    return Round(positions, 8, kind, 1, Seconds(draft, verify, rest))


def a_run(rounds: list[Round], **changes) -> Generation:
    tokens = [token for one in rounds for token in one.tokens]
    return replace(Generation([1, 2], tokens, None, rounds, "budget", provenance=MADE), **changes)


def plain_run(tokens: int, seconds: float = 0.1, **changes) -> Generation:
    return a_run([a_round(1, verify=seconds) for _ in range(tokens)], **changes)


FAST = a_run([a_round(n, draft=0.02, verify=0.12, rest=0.01) for n in (2, 3, 1, 4)])


def texts(figure) -> str:
    """All words in a picture."""
    axes = figure.axes[0]
    found = [*figure.texts, *axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels()]
    found += [axes.title, axes._right_title, axes.xaxis.label, *axes.get_legend().get_texts()]
    return "\n".join(text.get_text() for text in found)


def test_both_runs_end_with_equally_many_tokens():
    fast, slow = lanes(FAST, plain_run(12), most=14)
    assert (fast.tokens, slow.tokens) == (10, 10)
    assert fast.ends == pytest.approx((150, 300, 450, 600))
    assert slow.ends[-1] == pytest.approx(1000)


def test_a_shorter_plain_run_cuts_the_other_at_the_round_that_reaches_it():
    fast, slow = lanes(FAST, plain_run(3), most=14)
    assert [len(one.tokens) for one in fast.rounds] == [2, 3]
    assert slow.tokens == 3
    shown = texts(plots.timeline(FAST, plain_run(3)))
    assert "both until they have 3 tokens" in shown
    assert "the last round brings 2 more; 2 more rounds are not shown" in shown.replace("\n", " ")


@pytest.mark.parametrize(
    ("limits", "rounds"),
    [
        ({"most": 2}, 2),
        ({"most": 99}, 4),
        ({"most": 14, "most_seconds": 0.46}, 3),
        ({"most": 14, "most_seconds": 0.0}, 1),
    ],
)
def test_long_runs_are_cut(limits, rounds):
    fast, slow = lanes(FAST, plain_run(12), **limits)
    assert len(fast.rounds) == rounds
    assert slow.tokens == fast.tokens == sum((2, 3, 1, 4)[:rounds])


@given(st.lists(st.integers(1, 5), min_size=1, max_size=20), st.integers(1, 40), st.integers(1, 20))
def test_no_run_is_drawn_further_than_it_takes(counts, plain_tokens, most):
    fast, slow = lanes(a_run([a_round(n) for n in counts]), plain_run(plain_tokens), most)
    tokens = min(fast.tokens, slow.tokens)
    assert slow.tokens == tokens <= plain_tokens
    assert len(fast.rounds) <= most
    assert fast.tokens - len(fast.rounds[-1].tokens) < tokens


def test_bars_are_to_scale_and_in_the_colours_of_their_parts():
    axes = plots.timeline(FAST, plain_run(12)).axes[0]
    bars = [(p.get_facecolor(), p.get_x(), p.get_width()) for p in axes.patches if p.get_height() < 1]
    second = [bar for bar in bars if bar[1] == pytest.approx(150)]
    assert second[0][0] == to_rgba(ORANGE)
    assert second[0][2] == pytest.approx(20)
    blue = [width for colour, left, width in bars if colour == to_rgba(BLUE) and 160 < left < 180]
    assert blue == pytest.approx([120])
    grey = [left for colour, left, width in bars if colour == to_rgba(GREY) and width > 1]
    assert grey == pytest.approx([140, 290, 440, 590])
    assert axes.get_xlim()[0] == 0
    assert [p.get_width() for p in axes.patches if p.get_hatch()] == pytest.approx([150, 100])


def test_it_says_how_many_tokens_when_and_how_much_faster():
    shown = texts(plots.timeline(FAST, plain_run(12)))
    for part in ("+2", "+3", "+4", "10 tokens after 600 ms", "10 tokens after 1,000 ms"):
        assert part in shown
    assert "1.67× as fast as plain" in shown
    assert "slower" not in shown
    assert "measured: both until they have 10 tokens" in shown
    assert "toy, float32 on a CPU" in shown.replace("\n", " ")
    assert "reads the prompt" in shown


def test_a_slower_run_is_called_slower():
    assert "0.50× as fast as plain (slower)" in texts(plots.timeline(FAST, plain_run(10, 0.03)))


def test_one_dot_for_each_token():
    axes = plots.timeline(FAST, plain_run(12)).axes[0]
    dots = [len(line.get_xdata()) for line in axes.lines]
    assert dots == [2, 3, 1, 4] + 10 * [1]
    heights = [height for line in axes.lines for height in line.get_ydata()]
    assert max(heights) < axes.get_ylim()[0]


def test_tokens_are_written_where_there_is_a_decoder():
    figure = plots.timeline(
        FAST, plain_run(12), decode=lambda tokens: " $x\n" if tokens == [7] else "y"
    )
    shown = texts(figure)
    assert "\\$x⏎\n\\$x⏎\ny" in shown
    assert not figure.axes[0].lines
    figure.savefig("/dev/null", format="svg")


@pytest.mark.parametrize(
    ("generation", "plain", "message"),
    [
        (replace(FAST, simulated=True), plain_run(3), "generation: got a simulated run"),
        (FAST, plain_run(3, simulated=True), "plain: got a simulated run"),
        (a_run([]), plain_run(3), "generation: got a run without tokens"),
        (FAST, plain_run(3, provenance={}), "plain: got a run without provenance"),
        (FAST, FAST, "plain: got a run that drafted, expected one made with drafter=None"),
        (FAST, plain_run(3, prompt_tokens=[1]), "plain: got a run of another prompt"),
        (FAST, plain_run(3, provenance=MADE | {"threads": 2}), "plain: got threads 2, expected 1"),
    ],
)
def test_what_cannot_be_compared_is_refused(generation, plain, message):
    with pytest.raises(ValueError, match=message):
        plots.timeline(generation, plain)


def test_no_rounds_cannot_be_shown():
    with pytest.raises(ValueError, match="most: got 0, expected 1 or more"):
        plots.timeline(FAST, plain_run(3), most=0)


@pytest.mark.slow
def test_a_run_of_the_real_pair(pair):
    ask = {"chat": True, "max_new_tokens": 6, "seed": 0}
    fast = pair.generate("Why is the sky blue?", gamma=3, **ask)
    plain = pair.generate("Why is the sky blue?", drafter=None, **ask)
    shown = texts(plots.timeline(fast, plain))
    assert "6 tokens after" in shown
    assert fast.provenance["target"] in shown.replace("\n", " ")

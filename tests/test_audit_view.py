"""The audit view: its data, its sliders set by hand, and what is left of it without widgets."""

import html
import math
import re
from types import SimpleNamespace

import pytest
import torch
from helpers import near_twin, tiny_lm
from hypothesis import given
from hypothesis import strategies as st

from specdec_lab import plots
from specdec_lab.audit.step import audit_step, worked_example
from specdec_lab.distributions import alpha
from specdec_lab.pretrained import Pair
from specdec_lab.sampling import Sampling
from specdec_lab.widgets.audit_model import (
    MADE_UP,
    Desk,
    given_case,
    label,
    lumped,
    normalised,
    position_case,
)
from specdec_lab.widgets.audit_view import audit_view

HOSTILE = (" <script>alert(1)</script>", "\nשלום", "日本", "$x_1$", '"&\u202e')


class Letters:
    """A tokenizer whose token i is the letter number i; the first ones look like markup."""

    chat_template = None

    def __call__(self, text: str):
        return SimpleNamespace(input_ids=[ord(letter) % 37 for letter in text])

    def decode(self, tokens: list[int], **_) -> str:
        return "".join(f"<b>{token}" for token in tokens)


@pytest.fixture(scope="module")
def small_pair() -> Pair:
    return Pair(tiny_lm("llama"), near_twin("llama"), Letters())


@st.composite
def distributions(draw):
    size = draw(st.integers(1, 12))
    weight = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-6, 1.0))
    row = st.lists(weight, min_size=size, max_size=size).filter(any)
    return normalised(draw(row)), normalised(draw(row))


# The view model


def test_the_desk_begins_with_the_worked_example():
    desk = Desk(MADE_UP)
    assert desk.case.name == "Paris"
    assert desk.look.audit.labels == worked_example().labels
    assert desk.look.audit.residual == pytest.approx((0.0, 0.75, 0.25, 0.0))
    assert desk.look.audit.final_mass == pytest.approx((0.35, 0.40, 0.20, 0.05))
    assert (desk.look.kind, desk.edited, desk.trouble) == ("theory", False, "")
    assert [value for _, value, _ in desk.look.figures][:2] == ["80.0 %", "20 %"]
    assert desk.look.figures[2][2] == "✓ p comes out, up to rounding"
    assert desk.shares("q") == ("0.550", "0.250", "0.150", "0.050")


@pytest.mark.parametrize(
    ("name", "expected_alpha", "residual"),
    [
        ("equal", 1.0, (0.35, 0.40, 0.20, 0.05)),
        ("disjoint", 0.0, (0.6, 0.4, 0.0, 0.0)),
        ("nearly equal", 1.0 - 3e-9, (0.0, 1 / 3, 0.0, 2 / 3)),
    ],
)
def test_the_other_cases(name, expected_alpha, residual):
    desk = Desk(MADE_UP)
    desk.choose(name)
    audit = desk.look.audit
    assert audit.alpha == pytest.approx(expected_alpha, abs=1e-15)
    assert audit.residual == pytest.approx(residual, abs=1e-6)
    assert audit.l1_error < 1e-15


def test_nearly_equal_is_not_equal():
    desk = Desk(MADE_UP)
    desk.choose("nearly equal")
    assert desk.look.audit.rejection_mass == pytest.approx(3e-9)
    assert desk.look.figures[1][1] == "3e-07 %"


def test_weights_are_normalised():
    desk = Desk(MADE_UP)
    desk.move("p", 0, 0.85)
    assert desk.weights["p"] == (0.85, 0.40, 0.20, 0.05)
    assert desk.look.audit.p == pytest.approx((0.85 / 1.5, 0.4 / 1.5, 0.2 / 1.5, 0.05 / 1.5))
    assert desk.shares("p") == ("0.567", "0.267", "0.133", "0.033")
    assert desk.shares("q") == ("0.550", "0.250", "0.150", "0.050")
    assert (desk.edited, desk.look.origin) == (True, "edited; it began as: Paris")
    desk.choose("Paris")
    assert not desk.edited


def test_a_slider_that_only_rounds_does_not_edit():
    desk = Desk(MADE_UP)
    desk.choose("nearly equal")
    desk.move("q", 0, 0.35)
    assert not desk.edited
    assert desk.weights["q"][0] == 0.35 + 1e-9
    desk.move("q", 0, 0.351)
    assert desk.weights["q"][0] == 0.351


def test_nothing_but_zeros_keeps_the_last_valid_step():
    desk = Desk(MADE_UP)
    for token in range(4):
        desk.move("q", token, 0.0)
        if token == 2:
            last = desk.look
    assert desk.look is last
    assert desk.trouble == "All weights of q are 0: raise one. Shown is the last valid step."
    assert desk.shares("q") == ("–",) * 4
    desk.weigh([0.0] * 4, [0.0] * 4)
    assert "All weights of p and of q are 0" in desk.trouble
    desk.weigh([1, 0, 0, 0], [0, 0, 0, 0.5])
    assert desk.trouble == ""
    assert desk.look.audit.alpha == 0.0


@given(distributions())
def test_whatever_is_given_p_comes_out(rows):
    case = given_case(*rows, None)
    look = Desk([case]).look
    assert look.audit.l1_error < 1e-12
    assert look.figures[2][2].startswith("✓")
    assert look.audit.alpha == pytest.approx(sum(map(min, *rows)))


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=60).filter(
        lambda pairs: all(math.fsum(row) > 1e-3 for row in zip(*pairs, strict=True))
    ),
    st.integers(1, 8),
)
def test_lumps_keep_every_sum_of_the_step(pairs, most):
    weights = torch.tensor(pairs, dtype=torch.float64).T
    p, q = weights / weights.sum(dim=1, keepdim=True)
    singles, p_row, q_row = lumped(p, q, most)
    assert len(p_row) == len(q_row) == len(singles) + 2
    assert sum(map(min, p_row, q_row)) == pytest.approx(alpha(p, q), abs=1e-14)
    assert (p_row[-2] >= q_row[-2], p_row[-1] <= q_row[-1]) == (True, True)
    fine, lump = audit_step(p, q), audit_step(p_row, q_row)
    assert lump.rejection_mass == pytest.approx(fine.rejection_mass, abs=1e-14)
    for name in ("accepted_mass", "restored_mass"):
        alone = [getattr(fine, name)[token] for token in singles]
        assert getattr(lump, name)[: len(singles)] == pytest.approx(alone, abs=1e-12)


def test_the_likeliest_of_either_stay_by_themselves():
    p = torch.tensor([0.1, 0.2, 0.6, 0.05, 0.05], dtype=torch.float64)
    q = torch.tensor([0.7, 0.1, 0.05, 0.05, 0.1], dtype=torch.float64)
    singles, p_row, q_row = lumped(p, q, 2)
    assert singles == [0, 2]
    assert p_row == pytest.approx((0.1, 0.6, 0.25, 0.05))
    assert q_row == pytest.approx((0.7, 0.05, 0.15, 0.1))


def test_a_real_position(small_pair):
    case = position_case(small_pair, "hi")
    tokens = Letters()("hi").input_ids
    rows = []
    for model in (small_pair.target, small_pair.draft):
        model.reset()
        rows.append(Sampling(1.0).distribution(tokens, model.extend(tokens, rows=1)[0]).double())
    p, q = (row / row.sum() for row in rows)
    look = Desk([case]).look
    assert look.audit.alpha == pytest.approx(alpha(p, q), abs=1e-14)
    assert len(case.labels) == 7
    assert case.labels[-2:] == ("rest, p ≥ q", "rest, p < q")
    assert max(case.p[:5]) == pytest.approx(float(p.max()), abs=1e-6)
    assert look.kind == "measured"
    assert "float32 on cpu, temperature 1" in look.origin
    assert f"({100 * alpha(p, q):.1f} %), exactly" in case.below


@pytest.mark.slow
def test_a_position_of_the_real_pair(pair):
    case = position_case(pair, "The capital of France is")
    assert "␣Paris" in case.labels
    assert f"({100 * Desk([case]).look.audit.alpha:.1f} %)" in case.below
    assert pair.target.name in case.origin


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" a b ", "␣a b␣"),
        ("  ", "␣␣"),
        ("\n", "⏎"),
        ("", "(empty)"),
        ("\u202ea\x00", "⟨U+202E⟩a⟨U+0000⟩"),
        ("שלום", "שלום"),
    ],
)
def test_every_character_of_a_token_is_visible(text, shown):
    assert label(text) == shown


# The widget


def test_a_slider_redraws_everything_below_it():
    view = audit_view()
    before = (view.picture.value, view.table.value, view.figures.value)
    view.rows[0].sliders["q"].value = 0.3
    assert view.desk.weights["q"] == (0.3, 0.25, 0.15, 0.05)
    assert all(new != old for new, old in zip(now(view), before, strict=True))
    assert "93.3 %" in view.figures.value
    assert ">0.400<" in view.rows[0].shares["q"].value
    assert "edited" in view.origin.value


def now(view) -> tuple[str, str, str]:
    return view.picture.value, view.table.value, view.figures.value


def test_a_choice_sets_all_sliders_and_draws_once(monkeypatch):
    view = audit_view()
    drawn = []
    draw = plots.audit_step
    monkeypatch.setattr(plots, "audit_step", lambda *a, **k: drawn.append(a) or draw(*a, **k))
    view.menu.value = "disjoint"
    assert len(drawn) == 1
    assert [row.sliders["p"].value for row in view.rows] == [0.6, 0.4, 0.0, 0.0]
    assert [row.sliders["q"].value for row in view.rows] == [0.0, 0.0, 0.7, 0.3]
    assert not view.desk.edited


def test_a_case_with_other_tokens_changes_the_rows():
    view = audit_view([1, 1], [1, 3], ["yes", "no"])
    assert view.menu.options[0] == "as given"
    assert len(view._shown()) == 2
    assert view.rows[1].sliders["q"].value == 0.75
    view.menu.value = "Paris"
    assert [row.sliders["p"].value for row in view._shown()] == [0.35, 0.40, 0.20, 0.05]
    assert view.rows[0].sliders["q"].tooltip == "weight of Paris in q"
    view.menu.value = "as given"
    assert len(view._weights.children) == 3
    assert ">no<" in view.rows[1].name.value


def test_start_over_takes_the_case_anew():
    view = audit_view()
    view.rows[2].sliders["p"].value = 0.9
    view.reset.click()
    assert view.rows[2].sliders["p"].value == 0.2
    assert "made-up weights" in view.origin.value


def test_all_zero_is_said_and_the_picture_stays():
    view = audit_view([1, 0], [1, 1])
    before = view.picture.value
    view.rows[0].sliders["p"].value = 0.0
    assert "All weights of p are 0" in view.message.value
    assert "✗" in view.message.value
    assert view.picture.value == before
    assert "–" in view.rows[1].shares["p"].value
    view.rows[1].sliders["p"].value = 0.5
    assert "All weights" not in view.message.value
    assert view.picture.value != before


def test_an_error_in_a_callback_is_shown(monkeypatch):
    view = audit_view()

    def broken(*_):
        raise RuntimeError("no <ink>")

    monkeypatch.setattr(view, "_draw", broken)
    view.rows[0].sliders["p"].value = 0.9
    assert "RuntimeError: no &lt;ink&gt;" in view.message.value


def test_a_real_position_is_measured_until_it_is_edited(small_pair):
    view = audit_view(pair=small_pair, prompt="hi")
    assert view.desk.case.name == "Paris"
    view.menu.value = "a real position"
    assert ">measured</span>" in view.origin.value
    assert "sum of the minima" in view.below.value
    assert "measured: each bar" in view.picture.value
    slider = view.rows[0].sliders["p"]
    slider.value = round(slider.value + 0.1, 3)
    assert ">theory</span> edited" in view.origin.value
    assert "theory: each bar" in view.picture.value


def test_the_picture_follows_the_theme_and_does_not_jump():
    view = audit_view()
    frame = re.search(r'viewBox="[^"]*"', view.picture.value)[0]
    assert "currentColor" in view.picture.value
    for value in (0.0, 1.0):
        view.rows[1].sliders["p"].value = value
        assert frame in view.picture.value
    assert plots.audit_step(view.desk.look.audit, top=1.0).axes[0].get_ylim() == (0, 1)


def test_hostile_tokens_are_shown_and_harmless():
    view = audit_view([1] * 5, [1, 2, 3, 4, 5], HOSTILE)
    name = view.rows[0].name.value
    assert "&lt;script&gt;" in name
    everything = [row.name.value for row in view.rows] + [view.table.value, view.picture.value]
    everything.append(view._repr_mimebundle_()["text/html"])
    assert not any("<script" in part or "\u202e" in part for part in everything)
    assert "⏎שלום" in view.rows[1].name.value
    assert "⟨U+202E⟩" in view.table.value


# Without widgets


def test_the_static_face_says_it_all_in_html_and_in_text():
    view = audit_view()
    view.menu.value = "disjoint"
    bundle = view._repr_mimebundle_()
    shown = html.unescape(bundle["text/html"])
    for part in ("data:image/png;base64,", "Everything is rejected", "alpha 0 %", "theory", "<table>"):
        assert part in shown
    assert "<svg" not in shown
    plain = bundle["text/plain"]
    for part in ("Berlin", "rejection mass 100 %", "theory: made-up weights"):
        assert part in plain
    assert repr(view) == plain
    assert "application/vnd.jupyter.widget-view+json" in bundle


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.5],), "q: got none beside p, expected both or neither"),
        ((None, [0.5, 0.5]), "p: got none beside q, expected both or neither"),
        ((None, None, ["a"]), "labels: got some without p and q"),
        (([0.5, 0.5], [1.0]), "p, q, labels: got 2, 1 and 2 entries"),
        (([0.5, 0.5], [1.0, 0.0], ["a"]), "p, q, labels: got 2, 2 and 1 entries"),
        (([0.5, -0.5], [1.0, 0.0]), "p: got entries that sum to 0 with smallest -0.5"),
        (([0.5, 0.5], [0.0, 0.0]), "q: got entries that sum to 0 .* not all zero"),
        (([0.5, math.nan], [0.5, 0.5]), "p: got entries that sum to nan"),
        (([0.5, 0.5], [math.inf, 0.5]), "q: got entries that sum to inf"),
        (([], []), "p: got 0 entries, expected 1 to 12"),
        (([1.0] * 13, [1.0] * 13), "p: got 13 entries, expected 1 to 12"),
        ((torch.ones(2, 2), [0.5, 0.5]), r"p: got shape \[2, 2\], expected \[vocab\]"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        audit_view(*arguments)


def test_a_position_needs_a_pair_a_draft_and_a_prompt(small_pair):
    with pytest.raises(ValueError, match="prompt: got none beside pair"):
        audit_view(pair=small_pair)
    with pytest.raises(ValueError, match="pair: got none beside prompt"):
        audit_view(prompt="hi")
    with pytest.raises(ValueError, match="pair: got one without a draft model"):
        audit_view(pair=Pair(small_pair.target, None, small_pair.tokenizer), prompt="hi")
    with pytest.raises(ValueError, match="prompt: got '', expected text with at least one token"):
        audit_view(pair=small_pair, prompt="")


def test_tensors_are_weights_too():
    case = given_case(torch.tensor([2.0, 6.0]), torch.tensor([1.0, 1.0]), None)
    assert (case.p, case.q, case.labels) == ((0.25, 0.75), (0.5, 0.5), ("0", "1"))


def test_crowded_tokens_are_slanted_and_long_ones_cut():
    figure = plots.audit_step(audit_step([0.5, 0.5], [0.5, 0.5], ["a" * 40, "b"]), size=(2.0, 2.0))
    labels = figure.axes[0].get_xticklabels()
    assert [label.get_text() for label in labels] == ["a" * 13 + "…", "b"]
    assert labels[0].get_rotation() == 30
    assert plots.audit_step(worked_example()).axes[0].get_xticklabels()[0].get_rotation() == 0

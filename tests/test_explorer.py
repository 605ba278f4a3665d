"""The speedup explorer: what it shows as data, its picture, its widgets and its static face."""

import json
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_measuring import texts

from specdec_lab import plots
from specdec_lab.exploration import LONGEST, Setting, read_sweep
from specdec_lab.plots.explorer import best_words, y_top
from specdec_lab.theory import expected_speedup
from specdec_lab.widgets import explorer as module
from specdec_lab.widgets.explorer import BY_HAND, explore

MADE = {
    "kind": "measured",
    "target": "a-model",
    "dtype": "float32",
    "hardware": "a machine",
    "date": "2026-01-02T03:04:05+00:00",
}


def run(drafter, gamma, alpha, c, speedup, prompts=3):
    """A row of ``bench.lesson.sweep``, without the times that the explorer does not read."""
    return {
        "drafter": drafter,
        "gamma": gamma,
        "prompts": prompts,
        "alpha": alpha,
        "c": c,
        "v": 1.1,
        "tokens_per_round": 1.5,
        "speedup": speedup,
    }


SWEEP = {
    "costs": {"v": {"1": 1.0, "2": 1.2, "3": 1.4, "5": 1.6, "25": 9.0}, "c": {"draft model": 0.0521}},
    "prompts": [],
    "runs": [
        run("n-gram", 1, None, 0.0, 0.9),
        run("draft model", 1, 0.6, 0.0521, 1.1),
        run("draft model", 4, 0.7, 0.0521, 1.4),
        run("draft model, 50% noise", 1, 0.3, None, 0.7, prompts=1),
        run("the target itself", 2, 1.0, 1.08, 0.6, prompts=1),
    ],
    "provenance": MADE,
}
SLOPE = (1 * 0.2 + 2 * 0.4 + 4 * 0.6) / (1 + 4 + 16)


def test_a_setting_by_hand():
    setting = Setting(alpha=0.5, c=0.1, gamma=2, v_slope=0.05)
    assert setting.v(1) == 1.0
    assert setting.verifying == pytest.approx(1.1)
    assert setting.tokens == 1.75
    assert setting.cost == pytest.approx(1.3)
    assert setting.speedup == pytest.approx(1.75 / 1.3)
    assert len(setting.speedups) == 17
    assert setting.best == 2
    assert expected_speedup(setting.pays_from, 2, 0.1, 1.1) == pytest.approx(1.0)


def test_not_to_draft_can_be_best_and_never_pay():
    setting = Setting(alpha=0.9, c=1.0, gamma=3, v_slope=0.2)
    assert (setting.best, setting.pays_from) == (0, None)
    assert best_words(setting) == "best: gamma 0, do not draft"
    assert "<td" in module.numbers(setting)
    assert "do not draft" in module.numbers(setting)
    assert "never" in module.numbers(setting)
    assert "not faster" in module.numbers(setting)


unit = st.floats(0.0, 1.0)


@given(unit, unit, st.integers(0, LONGEST), unit)
def test_every_setting_has_a_curve_a_best_length_and_room(alpha, c, gamma, slope):
    setting = Setting(alpha, c, gamma, slope)
    assert setting.speedups[0] == 1.0
    assert setting.speedups[setting.best] == max(setting.speedups) >= 1.0
    assert setting.speedup == pytest.approx(setting.tokens / setting.cost)
    top = y_top(setting, None)
    assert top in (2.0, 4.0, 8.0, 20.0)
    assert max(setting.speedups) < top


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": 1.2}, r"alpha: got 1\.2, expected a number from 0 to 1"),
        ({"c": -0.1}, r"c: got -0\.1, expected a number from 0 to 1"),
        ({"v_slope": float("nan")}, "v_slope: got nan, expected a number from 0 to 1"),
        ({"alpha": "0.5"}, "alpha: got '0.5', expected a number from 0 to 1"),
        ({"gamma": 17}, "gamma: got 17, expected a whole number from 0 to 16"),
        ({"gamma": 2.0}, r"gamma: got 2\.0, expected a whole number"),
        ({"gamma": True}, "gamma: got True, expected a whole number"),
    ],
)
def test_arguments_out_of_range_are_named(changes, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        explore(**changes)


def test_a_sweep_as_data():
    sweep = read_sweep(SWEEP)
    assert [one.name for one in sweep.drafters] == list(
        dict.fromkeys(r["drafter"] for r in SWEEP["runs"])
    )
    assert [one.name for one in sweep.timed] == ["draft model", "the target itself"]
    assert sweep.timed[0].alpha == pytest.approx(0.65)
    assert sweep.timed[0].points == ((1, 1.1), (4, 1.4))
    assert sweep.v_slope == pytest.approx(SLOPE)  # v(25) lies beyond what is shown
    n, miss = sweep.v_misses(SLOPE)
    assert (n, miss) == (3, pytest.approx(0.4 - 2 * SLOPE))
    assert sweep.origin == "a-model, float32 on a machine, 2026-01-02"


@pytest.mark.parametrize("nothing", [None, {}])
def test_without_a_measurement_theory_is_shown(nothing):
    assert read_sweep(nothing) is None
    view = explore(nothing)
    assert view.source.options == (BY_HAND,)
    assert "measured" not in view._static() + repr(view)


def test_a_slope_without_measured_v_is_flat():
    bare = SWEEP | {"costs": {"v": {"1": 1.0}, "c": {}}}
    assert read_sweep(bare).v_slope == 0.0
    assert read_sweep(bare).v_misses(0.0) == (1, 0.0)


def broken(**changes):
    return SWEEP | {"runs": [SWEEP["runs"][1] | changes]}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([1], r"got \[1\], expected what notebook 04 keeps"),
        ({"runs": []}, "got a dict without costs and provenance"),
        (SWEEP | {"runs": {}}, r"got runs = \{\}, expected a list of runs"),
        (
            SWEEP | {"runs": [{"gamma": 1}]},
            r"got the run \{'gamma': 1\}, expected one with drafter, gamma",
        ),
        (broken(speedup=0), "got a run with speedup = 0"),
        (broken(gamma="4", alpha=2), "got a run with gamma = '4', alpha = 2"),
        (broken(c=float("inf")), "got a run with c = inf"),
        (SWEEP | {"costs": {}}, r"got costs = \{\}, expected one with v"),
        (SWEEP | {"costs": {"v": {"x": 1}}}, "got costs = "),
        (SWEEP | {"costs": {"v": {"2": -1.0}}}, r"got v = \{2: -1\.0\}"),
        (SWEEP | {"provenance": {}}, r"got provenance = \{\}, expected one with kind"),
        (SWEEP | {"provenance": MADE | {"kind": "guessed"}}, "got kind = 'guessed'"),
    ],
)
def test_what_is_no_sweep_is_refused_readably(wrong, message):
    with pytest.raises(ValueError, match=f"^measured: {message}"):
        read_sweep(wrong)


def test_a_file_is_read_or_refused_readably(tmp_path):
    file = tmp_path / "sweep.json"
    with pytest.raises(ValueError, match=r"measured: cannot read .*sweep\.json \(No such file"):
        explore(file)
    file.write_bytes(b"\xff\xfe{")
    with pytest.raises(
        ValueError, match=r"measured: .*sweep\.json is not JSON, expected what notebook 04"
    ):
        explore(str(file))
    file.write_text(json.dumps(SWEEP), encoding="utf-8")
    assert read_sweep(file) == read_sweep(SWEEP)


def test_the_picture_shows_theory_and_points_apart():
    setting, sweep = Setting(0.7, 0.1, 4, 0.05), read_sweep(SWEEP)
    figure = plots.speedup_explorer(setting, sweep)
    axes = figure.axes[0]
    labels = [label.get_text() for label in axes.get_legend().get_texts()]
    assert labels == [
        "theory",
        "measured: n-gram (3)",
        "measured: draft model (3)",
        "measured: draft model, 50% noise (1)",
        "measured: the target itself (1)",
    ]
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines["theory"].get_ydata()) == setting.speedups
    assert list(lines["measured: draft model (3)"].get_xdata()) == [1, 4]
    assert len({lines[name].get_marker() for name in labels[1:]}) == 4
    shown = texts(figure)
    assert "best: gamma 3, 1.75×" in shown
    assert "gamma 4: 1.73×" in shown
    assert "Points, measured" in shown


@pytest.mark.parametrize(
    ("values", "top"), [((0.7, 0.1, 4, 0.05), 2), ((0.9, 0.05, 4, 0.0), 8), ((1.0, 0.0, 1, 0.0), 20)]
)
def test_the_y_axis_ends_at_a_few_places_only(values, top):
    assert plots.speedup_explorer(Setting(*values)).axes[0].get_ylim() == (0, top)


@pytest.mark.parametrize("gamma", [0, 1, 15, 16])
@pytest.mark.parametrize("values", [(0.0, 1.0, 1.0), (1.0, 0.0, 0.0), (0.6, 0.1, 0.05)])
def test_the_words_stay_inside_the_picture(gamma, values):
    alpha, c, slope = values
    figure = plots.speedup_explorer(Setting(alpha, c, gamma, slope))
    axes = figure.axes[0]
    frame = axes.get_window_extent()
    for text in axes.texts:
        box = text.get_window_extent()
        assert box.x0 >= frame.x0 - 5
        assert box.x1 <= frame.x1 + 5
        assert box.y0 >= frame.y0


def test_moving_a_slider_moves_what_is_shown():
    view = explore()
    before = view.picture.value
    view.gamma.value = 0
    assert view.setting == Setting(0.7, 0.1, 0, 0.05)
    assert "plain decoding" in view.numbers.value
    assert "nothing is drafted" in view.numbers.value
    assert view.picture.value != before
    assert 'aria-label="Theory: expected speedup' in view.picture.value
    view.gamma.value, view.alpha.value, view.c.value, view.v_slope.value = 2, 0.5, 0.1, 0.05
    assert ">1.75<" in view.numbers.value
    assert ">1.30<" in view.numbers.value
    assert ">1.35×<" in view.numbers.value
    assert "/ ((1 − 0.50)(2 · 0.100 + 1.100)) = 1.75 / 1.30 = <b>1.35×</b>" in view.formula.value


def test_the_formula_has_its_limit_where_alpha_is_1():
    shown = module.formula(Setting(1.0, 0.1, 4, 0.0))
    assert "(4 + 1) / (4 · 0.100 + 1.000), the limit where alpha is 1, = 5.00 / 1.40" in shown


def test_a_drafter_sets_the_sliders_and_a_hand_takes_them_back():
    view = explore(SWEEP)
    view.source.value = "draft model"
    assert (view.alpha.value, view.c.value, view.gamma.value) == (0.65, 0.05, 4)
    assert view.v_slope.value == pytest.approx(SLOPE, abs=0.0026)
    assert view.setting == Setting(0.65, 0.05, 4, view.v_slope.value)
    assert "alpha 0.650" in view.message.value
    assert "c 0.052" in view.message.value
    assert "v(3) is 0.08 above that line" in view.message.value
    view.gamma.value = 2
    assert view.source.value == "draft model"
    assert "alpha 0.650" in view.message.value
    view.alpha.value = 0.9
    assert view.source.value == BY_HAND
    assert "alpha" not in view.message.value


def test_a_measured_c_beyond_the_slider_is_put_at_its_end_and_said():
    view = explore(SWEEP)
    view.source.value = "the target itself"
    assert view.c.value == 1.0
    assert "c 1.080" in view.message.value
    view.source.value = BY_HAND
    assert view.c.value == 1.0
    assert "c 1.080" not in view.message.value


def test_arguments_are_rounded_to_the_sliders_steps():
    assert explore(alpha=0.7234, c=0.0521, v_slope=0.048).setting == Setting(0.72, 0.05, 4, 0.05)


def test_a_failure_in_a_callback_is_shown(monkeypatch):
    view = explore()

    def failing(*_):
        raise RuntimeError("no ink <left>")

    monkeypatch.setattr(module, "speedup_explorer", failing)
    view.gamma.value = 3
    assert "RuntimeError: no ink &lt;left&gt;" in view.message.value
    monkeypatch.undo()
    view.gamma.value = 2
    assert view.setting == Setting(0.7, 0.1, 2, 0.05)
    assert "RuntimeError" not in view.message.value


def test_the_static_face_has_the_picture_the_numbers_and_the_badges():
    bundle = explore(SWEEP)._repr_mimebundle_()
    html, plain = bundle["text/html"], bundle["text/plain"]
    assert 'src="data:image/png;base64,' in html
    assert "tokens per round" in html
    assert ">theory</span>" in html
    assert ">measured</span>" in html
    assert "a-model, float32 on a machine" in html
    assert "gamma  3   1.75x  best" in plain
    assert "gamma  4   1.73x  chosen" in plain
    assert "draft model: gamma 1 1.10x, gamma 4 1.40x" in plain
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_hostile_names_are_shown_and_do_nothing():
    hostile = deepcopy(SWEEP)
    name = "<script>$x_{$</script>"
    for one in hostile["runs"]:
        one["drafter"] = one["drafter"].replace("draft model", name)
    hostile["provenance"] = MADE | {"target": "<b>$\\frac{$</b>"}
    view = explore(hostile)
    view.source.value = name
    everything = view.picture.value + view.message.value + view._static()
    everything += "".join(part.value for part in view.children if hasattr(part, "value"))
    assert "<script>" not in everything
    assert "<b>$" not in everything
    assert "&lt;script&gt;$x_{$&lt;/script&gt;" in view.message.value


def test_every_control_says_what_it_is():
    view = explore(SWEEP)
    names = [one.description for one in (view.alpha, view.c, view.gamma, view.v_slope, view.source)]
    assert names == ["alpha", "c", "gamma", "slope of v", "take alpha, c and v from"]
    assert view.gamma.tooltip == "the draft length; 0 is plain decoding"

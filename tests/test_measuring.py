"""The roofline's counts, the stopwatch, the cost of verifying, kept results and the pictures."""

import json
import sys
from dataclasses import replace

import pytest
import torch
from helpers import tiny_lm

from specdec_lab import lab, plots
from specdec_lab.benchmark import (
    Machine,
    measure_machine,
    median_seconds,
    verification_cost,
)
from specdec_lab.checks import memory_bound_decoding as check
from specdec_lab.checks.toys import FakeDevice
from specdec_lab.roofline import (
    ModelShape,
    attainable_flops,
    forward_bytes,
    forward_flops,
    matrix_weights,
)

SMALL = ModelShape(1, 5, 6, 2, 1, 2, 10)
"""The worked example of the notebook."""


# --- roofline ----------------------------------------------------------------------------------


def test_the_notebooks_worked_example():
    assert matrix_weights(SMALL) == 200
    assert forward_bytes(SMALL, 1, 0) == 836
    assert forward_flops(SMALL, 1, 0) == 2 * 200 + 16


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "mistral"])
def test_the_weights_are_those_of_the_model(architecture):
    """Counted from the shape against the parameters of a real model, norms left out."""
    model = tiny_lm(architecture).model
    shape = ModelShape.of(model.config)
    matrices = {
        name: p for name, p in model.named_parameters() if p.dim() == 2 and "embed_tokens" not in name
    }
    head = 0 if any("lm_head" in name for name in matrices) else shape.hidden * shape.vocab
    assert matrix_weights(shape) == sum(p.numel() for p in matrices.values()) + head


def test_bytes_grow_with_the_cache_and_hardly_with_the_tokens():
    assert forward_bytes(SMALL, 1, 100) - forward_bytes(SMALL, 1, 99) == 4 * 2 * 1 * 2
    per_token = forward_bytes(SMALL, 2, 0) - forward_bytes(SMALL, 1, 0)
    assert per_token == 4 * (SMALL.hidden + 2 * SMALL.kv_heads * SMALL.head_dim)
    assert forward_bytes(replace(SMALL, kv_heads=2), 0, 10) > forward_bytes(SMALL, 0, 10)
    assert forward_bytes(SMALL, 3, 5, 2) * 2 == forward_bytes(SMALL, 3, 5, 4)


def test_the_roof():
    machine = Machine(peak_flops=100.0, bandwidth=20.0)
    assert machine.ridge == 5.0
    assert attainable_flops(0.5, machine.peak_flops, machine.bandwidth) == 10.0
    assert attainable_flops(50.0, machine.peak_flops, machine.bandwidth) == 100.0


# --- stopwatch ---------------------------------------------------------------------------------


def test_the_stopwatch_waits_for_the_device_and_leaves_the_warm_up_out():
    device = FakeDevice([90.0, 1.0, 5.0, 2.0])
    seconds = median_seconds(device.run, 3, 1, device.clock, device.synchronize)
    assert seconds == pytest.approx(2.0, abs=1e-3)
    assert device.calls == 4


def test_the_cost_of_verifying_leaves_the_model_as_it_was():
    model = tiny_lm()
    model.extend([1, 2, 3])
    read: list[int] = []

    def seconds_of(run):
        before = model.length
        run()
        assert model.length == before
        return 1.0 + 0.5 * len(read)

    model_extend = model.extend
    model.extend = lambda tokens, rows=None: (
        read.clear(),
        read.extend(tokens),
        model_extend(tokens, rows),
    )[-1]
    assert verification_cost(model, [5] * 9, [1, 4, 8], seconds_of) == {
        1: 1.0,
        4: 3.0 / 1.5,
        8: 5.0 / 1.5,
    }
    assert model.tokens == [1, 2, 3]


@pytest.mark.slow
def test_this_machine_has_a_roof():
    machine = measure_machine(torch.device("cpu"), repeats=1)
    assert machine.peak_flops > 1e8
    assert machine.bandwidth > 1e8


# --- kept results ------------------------------------------------------------------------------


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """The current folder, as beside a notebook, with the switch off."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPECDEC_LAB_SMALL", raising=False)
    return tmp_path


def test_a_measurement_is_kept_with_where_it_comes_from(beside):
    result = lab.experiment("speed", None, lambda: {"x": 1.5}, predicted=2.0)
    kept = json.loads((beside / "results" / "speed.json").read_text())
    assert kept == result
    assert kept["x"] == 1.5
    assert kept["predicted"] == 2.0
    assert kept["provenance"]["kind"] == "measured"


def test_the_measurement_before_is_kept_too(beside):
    made = [lab.experiment("speed", None, lambda x=x: {"x": x})["x"] for x in (1, 2, 3)]
    kept = [
        json.loads((beside / "results" / f"speed{end}").read_text())["x"]
        for end in (".before.json", ".json")
    ]
    assert kept == made[1:]


def test_nothing_is_measured_before_the_prediction(beside, capsys):
    assert lab.experiment("speed", None, lambda: pytest.fail("measured"), predicted=None) == {}
    assert "Make your prediction first" in capsys.readouterr().out
    assert not (beside / "results").exists()


def test_under_grading_the_result_handed_in_is_shown_and_none_is_written(beside, monkeypatch, capsys):
    handed_in = lab.experiment("speed", None, lambda: {"x": 1.5})
    monkeypatch.setenv("SPECDEC_LAB_SMALL", "1")
    assert lab.experiment("speed", None, lambda: pytest.fail("measured anew")) == handed_in
    assert "handed in" in capsys.readouterr().out
    assert lab.experiment("other", None, lambda: {"x": 2})["x"] == 2
    assert not (beside / "results" / "other.json").exists()


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"provenance": 3}', "\x00"])
def test_a_result_that_cannot_be_read_is_measured_anew(beside, monkeypatch, text):
    (beside / "results").mkdir()
    (beside / "results" / "speed.json").write_text(text)
    monkeypatch.setenv("SPECDEC_LAB_SMALL", "1")
    assert lab.experiment("speed", None, lambda: {"x": 2})["x"] == 2


def test_sizes_follow_the_switch(monkeypatch):
    for value, size in (("1", 3), ("0", 100), ("", 100)):
        monkeypatch.setenv("SPECDEC_LAB_SMALL", value)
        assert lab.sized(100, 3) == size


def test_what_does_not_pass_is_replaced_by_the_reference_and_said_so(capsys, monkeypatch):
    def wrong(intensity, peak, bandwidth):
        return peak

    def good(intensity, peak, bandwidth):
        return min(peak, intensity * bandwidth)

    notebook = sys.modules["__main__"]
    monkeypatch.setattr(notebook, "attainable_flops", good, raising=False)
    assert lab.yours_or_reference(check.attainable_flops) is good
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(notebook, "attainable_flops", wrong)
    assert lab.yours_or_reference(check.attainable_flops) is attainable_flops
    assert "`attainable_flops` does not pass its check yet" in capsys.readouterr().out
    monkeypatch.delattr(notebook, "attainable_flops")
    assert lab.yours_or_reference(check.attainable_flops) is attainable_flops
    assert "`attainable_flops` is not defined" in capsys.readouterr().out


# --- pictures ----------------------------------------------------------------------------------

MADE = {"target": "a model", "dtype": "float32", "hardware": "a machine", "date": "2026-01-02T03:04:05"}


def texts(figure) -> str:
    labels = [text.get_text() for axes in figure.axes for text in axes.texts]
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend()] + figure.legends
    labels += [text.get_text() for legend in legends for text in legend.get_texts()]
    return "\n".join(labels + [text.get_text() for text in figure.texts])


def test_curves_say_what_they_are():
    curve = {"v": [[1, 1.0], [8, 1.5]], "predicted": 2.0, "provenance": MADE}
    shown = texts(plots.verification_cost(curve, {1: 1.0, 8: 1.0}))
    for part in ("measured: a model, float32 on a machine, 2026-01-02", "(theory)", "you predicted"):
        assert part in shown
    times = {"without": [[10, 0.1], [20, 0.2]], "with": [[10, 0.1], [20, 0.1]], "provenance": MADE}
    assert "measured: a model" in texts(plots.time_per_token(times))
    roof = plots.roofline(Machine(1e11, 1e10), [("1 token", 0.5, 4e9), ("8 tokens", 4.0, None)])
    assert "FLOPs and bytes are counted, not measured" in texts(roof)
    bars = plots.laws(["A", "B"], {"p": [0.4, 0.6], "q": [0.5, 0.5]}, "theory", "made up")
    assert "theory: made up" in texts(bars)


def test_nothing_measured_is_nothing_drawn(capsys):
    assert plots.verification_cost({}) is None
    assert plots.time_per_token({}) is None
    assert capsys.readouterr().out.count("nothing to draw") == 2

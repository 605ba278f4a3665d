"""The speedup explorer: theory's curve under the learner's hands, measured points on top of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets

from specdec_lab.exploration import LONGEST, Setting, Sweep, SweptDrafter, read_sweep
from specdec_lab.plots.explorer import best_words, speedup_explorer
from specdec_lab.widgets.live import FONT, LINE, SMALL, Live, Message, badge, png, svg, theme_inks

ALPHA_STEP, COST_STEP = 0.01, 0.005
"""The sliders' steps: what is computed with is what is shown."""
BY_HAND = "by hand"
THEORY_NOTE = "acceptance independent and alike at every place (theorem 3.8); v(n) a line, assumed"
ROW = f"border-bottom:1px solid {LINE};padding:.15em 0;white-space:nowrap"
SIDE, PICTURE = "18rem", "26rem"
"""Widths from which the two parts of the view stand side by side."""


class Explorer(Live):
    """Sliders for alpha, c, gamma and the slope of v, and what theory makes of them.

    Args:
        setting: where the sliders start.
        sweep: measured points to draw as well.
    """

    def __init__(self, setting: Setting, sweep: Sweep | None) -> None:
        self._sweep, self._setting = sweep, setting
        self._busy, self._words = False, ""
        self.alpha = _slider(
            "alpha", setting.alpha, ALPHA_STEP, ".2f", "chance that a drafted token is kept"
        )
        self.c = _slider("c", setting.c, COST_STEP, ".3f", "cost of a draft step, in target steps")
        self.gamma = _gamma_slider(setting.gamma)
        self.v_slope = _slider(
            "slope of v", setting.v_slope, COST_STEP, ".3f", "cost of each further token"
        )
        self.source = _source(sweep)
        self.picture, self.numbers, self.formula = (ipywidgets.HTML() for _ in range(3))
        self.message = Message()
        if sweep:
            self.message.layout.min_height = "3.6em"  # what was taken from a drafter has two lines
        for slider in (self.alpha, self.c, self.v_slope):
            slider.observe(self._moved, "value")
        self.gamma.observe(self._chosen, "value")
        self.source.observe(self._taken, "value")
        self._draw()
        super().__init__(self._parts(), static=self._static, plain=self._plain)

    @property
    def setting(self) -> Setting:
        """Where the sliders are now."""
        return self._setting

    @property
    def _sliders(self) -> tuple[ipywidgets.Widget, ...]:
        return self.alpha, self.c, self.gamma, self.v_slope

    @property
    def _of(self) -> str | None:
        return None if self.source.value == BY_HAND else str(self.source.value)

    def _parts(self) -> list[ipywidgets.Widget]:
        controls = [*self._sliders, *([self.source] if self._sweep else []), self.numbers]
        side = ipywidgets.VBox(
            controls, layout=ipywidgets.Layout(flex=f"1 1 {SIDE}", max_width="24rem")
        )
        self.picture.layout = ipywidgets.Layout(flex=f"2 1 {PICTURE}", margin="0 0 0 8px")
        both = ipywidgets.HBox([side, self.picture], layout=ipywidgets.Layout(flex_flow="row wrap"))
        return [both, self.formula, self.message, ipywidgets.HTML(badges(self._sweep))]

    def _moved(self, change: Any) -> None:
        if self._busy:
            return
        with self.message.showing_errors(), self._at_once():
            self.source.value, self._words = BY_HAND, ""
            self._draw()

    def _chosen(self, change: Any) -> None:
        """Another gamma: what was taken from a drafter still holds."""
        with self.message.showing_errors():
            self._draw()

    def _taken(self, change: Any) -> None:
        if self._busy:
            return
        with self.message.showing_errors(), self._at_once():
            self._words = self._take() if self._of else ""
            self._draw()

    def _take(self) -> str:
        """Set the sliders to a drafter's measured numbers; says which they are."""
        assert self._sweep is not None
        drafter = next(one for one in self._sweep.timed if one.name == self._of)
        assert drafter.alpha is not None
        assert drafter.c is not None
        measured = {"alpha": drafter.alpha, "c": drafter.c, "v_slope": self._sweep.v_slope}
        for name, value in measured.items():
            slider = getattr(self, name)
            slider.value = _snapped(value, slider.step)  # which the slider keeps between its ends
        return taken_words(drafter, self._sweep)

    @contextmanager
    def _at_once(self) -> Iterator[None]:
        """Several values are set and only then drawn; what they set off is not heard meanwhile."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _draw(self) -> None:
        now = Setting(*(slider.value for slider in self._sliders))
        with theme_inks():
            picture = svg(
                speedup_explorer(now, self._sweep, self._of), note_lines=3 if self._sweep else 1
            )
        self._setting = now
        self.picture.value = f'<div role="img" aria-label="{escape(in_words(now))}">{picture}</div>'
        self.numbers.value, self.formula.value = numbers(now), formula(now)
        self.message.say(self._words)

    def _static(self) -> str:
        now = self._setting
        picture = png(speedup_explorer(now, self._sweep, self._of), in_words(now))
        return f"<div>{picture}{numbers(now)}{formula(now)}{badges(self._sweep)}</div>"

    def _plain(self) -> str:
        return plain(self._setting, self._sweep)


def explore(
    measured: Mapping[str, Any] | str | Path | None = None,
    *,
    alpha: float = 0.7,
    c: float = 0.1,
    gamma: int = 4,
    v_slope: float = 0.05,
) -> Explorer:
    """The expected speedup over the draft length, with sliders for what it depends on.

    Args:
        measured: the sweep of notebook 04, or a path to its ``results/sweep.json``: its points are
            drawn as well, and its drafters can set the sliders. None or empty for theory alone.
        alpha: the expected acceptance at one position, 0 to 1.
        c: the cost of a draft step in target steps, 0 to 1.
        gamma: the draft length, 0 (plain decoding) to 16.
        v_slope: what each further token adds to a target forward, 0 to 1.
            All but gamma are rounded to the sliders' steps, 0.01 or 0.005.

    Raises:
        ValueError: for a value outside its range or a ``measured`` that is no sweep, by name.
    """
    given = Setting(alpha, c, gamma, v_slope)
    start = Setting(
        _snapped(given.alpha, ALPHA_STEP),
        _snapped(given.c, COST_STEP),
        given.gamma,
        _snapped(given.v_slope, COST_STEP),
    )
    return Explorer(start, read_sweep(measured))


def numbers(setting: Setting) -> str:
    """What theory makes of a setting, as a table."""
    rows = (
        ("tokens per round", f"{setting.tokens:.2f}", "includes the bonus"),
        ("cost of a round", f"{setting.cost:.2f}", "target steps"),
        ("speedup", f"{setting.speedup:.2f}×", verdict(setting)),
        ("best gamma", str(setting.best), _best_gives(setting)),
        ("pays from alpha", *_pays(setting)),
    )
    body = "".join(_row(*row) for row in rows)
    return (
        f'<table style="{FONT};width:100%;max-width:24rem;border-collapse:collapse;'
        f'font-variant-numeric:tabular-nums">{body}</table>'
    )


def _row(name: str, value: str, remark: str) -> str:
    return (
        f'<tr style="background:none"><td style="{ROW};text-align:left">{name}</td>'
        f'<td style="{ROW};text-align:right;font-weight:600;padding:0 .5em">{value}</td>'
        f'<td style="{ROW};{SMALL};text-align:left">{remark}</td></tr>'
    )


def verdict(setting: Setting) -> str:
    """What a speedup means, in words."""
    if setting.gamma == 0:
        return "plain decoding"
    return "faster" if setting.speedup > 1.0 else "not faster"


def _best_gives(setting: Setting) -> str:
    return "do not draft" if setting.best == 0 else f"gives {setting.speedups[setting.best]:.2f}×"


def _pays(setting: Setting) -> tuple[str, str]:
    if setting.gamma == 0:
        return "–", "nothing is drafted"
    if setting.pays_from is None:
        return "never", "not even from 1"
    return f"{setting.pays_from:.2f}", f"with gamma {setting.gamma}"


def formula(setting: Setting) -> str:
    """Theorem 3.8 with v, in letters and with the present numbers."""
    return (
        f'<div style="{FONT};font-variant-numeric:tabular-nums;min-height:3em">'
        f"speedup = (1 − α{_sup('γ+1')}) / ((1 − α)(γ c + v))<br>= {_with_numbers(setting)}</div>"
    )


def _sup(power: object) -> str:
    """Raised without raising the line."""
    return f'<sup style="line-height:0">{power}</sup>'


def _with_numbers(setting: Setting) -> str:
    a, gamma = f"{setting.alpha:.2f}", setting.gamma
    cost = f"{gamma} · {setting.c:.3f} + {setting.verifying:.3f}"
    if setting.alpha == 1.0:  # 0 / 0 in the formula; its limit is gamma + 1
        quotient = f"({gamma} + 1) / ({cost}), the limit where alpha is 1,"
    else:
        quotient = f"(1 − {a}{_sup(gamma + 1)}) / ((1 − {a})({cost}))"
    return f"{quotient} = {setting.tokens:.2f} / {setting.cost:.2f} = <b>{setting.speedup:.2f}×</b>"


def badges(sweep: Sweep | None) -> str:
    """Where the line comes from, and where the points do."""
    shown = badge("theory", THEORY_NOTE)
    if sweep is not None:
        shown += badge(sweep.kind, f"the points: {sweep.origin}; greedy, each setting once a prompt")
    return shown


def taken_words(drafter: SweptDrafter, sweep: Sweep) -> str:
    """Which measured numbers the sliders took, and how far v is from a line."""
    n, miss = sweep.v_misses(sweep.v_slope)
    return (
        f"{drafter.name}, {sweep.kind}: alpha {drafter.alpha:.3f} (mean over its draft lengths), "
        f"c {drafter.c:.3f}, slope of v {sweep.v_slope:.3f} (least squares through v(1) = 1; "
        f"v({n}) is {abs(miss):.2f} {'above' if miss > 0 else 'below'} that line). "
        "The sliders round, and end at 0 and 1."
    )


def in_words(setting: Setting) -> str:
    """The picture in a sentence, for whoever does not see it."""
    return (
        f"Theory: expected speedup over the draft length, alpha {setting.alpha:.2f}, "
        f"c {setting.c:.3f}, v(n) = 1 + {setting.v_slope:.3f} (n - 1). Chosen: gamma {setting.gamma}, "
        f"{setting.speedup:.2f} times plain decoding. {best_words(setting)}."
    )


def plain(setting: Setting, sweep: Sweep | None) -> str:
    """The view as text."""
    lines = [in_words(setting)]
    for gamma, speedup in enumerate(setting.speedups):
        marks = ["chosen"] * (gamma == setting.gamma) + ["best"] * (gamma == setting.best)
        lines.append(f"  gamma {gamma:2}  {speedup:5.2f}x  {', '.join(marks)}".rstrip())
    lines.append(f"theory: {THEORY_NOTE}")
    if sweep is not None:
        lines.append(f"{sweep.kind}: {sweep.origin}")
        for drafter in sweep.drafters:
            points = ", ".join(f"gamma {gamma} {speedup:.2f}x" for gamma, speedup in drafter.points)
            lines.append(f"  {drafter.name}: {points}")
    return "\n".join(lines)


def _slider(name: str, value: float, step: float, form: str, hint: str) -> ipywidgets.FloatSlider:
    return ipywidgets.FloatSlider(
        value=value, min=0.0, max=1.0, step=step, readout_format=form, description=name,
        tooltip=hint, **_wide(),
    )  # fmt: skip


def _gamma_slider(value: int) -> ipywidgets.IntSlider:
    hint = "the draft length; 0 is plain decoding"
    return ipywidgets.IntSlider(
        value=value, min=0, max=LONGEST, description="gamma", tooltip=hint, **_wide()
    )


def _source(sweep: Sweep | None) -> ipywidgets.Dropdown:
    names = [drafter.name for drafter in sweep.timed] if sweep else []
    return ipywidgets.Dropdown(
        options=[BY_HAND, *names], value=BY_HAND, description="take alpha, c and v from",
        layout=ipywidgets.Layout(width="100%"), style={"description_width": "auto"},
    )  # fmt: skip


def _wide() -> dict[str, Any]:
    return {"layout": ipywidgets.Layout(width="100%"), "style": {"description_width": "5.5em"}}


def _snapped(value: float, step: float) -> float:
    """To a slider's step, without a tail of digits."""
    return round(round(value / step) * step, 6)

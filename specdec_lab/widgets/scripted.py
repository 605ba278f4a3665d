"""The idea without any model: the player over a scripted run, with its two costs to play with."""

from __future__ import annotations

from typing import Any

import ipywidgets

from specdec_lab.records import Round
from specdec_lab.simulation import Simulation, decode, simulate
from specdec_lab.theory import expected_tokens_per_round
from specdec_lab.widgets.live import Live, Message, badge
from specdec_lab.widgets.player import Player
from specdec_lab.widgets.stream import stream
from specdec_lab.widgets.watched import Watched


class Scripted(Watched):
    """A scripted run; everything shown of it says that it is simulated.

    Args:
        gamma: draft length, 1 or more.
        draft_cost: c, assumed.
    """

    def __init__(self, gamma: int = 4, draft_cost: float = 0.15) -> None:
        self._take(gamma, draft_cost)

    def _take(self, gamma: int, draft_cost: float) -> None:
        self.simulation = simulate(gamma, draft_cost)
        self.player = Player(
            stream(
                self.simulation.generation,
                decode,
                draft_cost=draft_cost,
                remarks=[*round_costs(self.simulation), *estimates(self.simulation)],
            )
        )

    def _controls(self) -> Live:
        label = {"description_width": "16rem"}
        wide = ipywidgets.Layout(width="34rem", max_width="100%")
        self.gamma = ipywidgets.IntSlider(
            self.simulation.gamma, 1, 8, description="gamma, the draft length", layout=wide, style=label
        )
        self.cost = ipywidgets.FloatSlider(
            self.simulation.draft_cost, min=0.0, max=1.0, step=0.05, layout=wide, style=label,
            description="c, a draft step in target steps",
        )  # fmt: skip
        self.message = Message()
        for slider in (self.gamma, self.cost):
            slider.observe(self._changed, "value")
        mark = ipywidgets.HTML(badge("simulated", "what would this script cost?"))
        return Live([mark, self.gamma, self.cost, self.message])

    def _changed(self, _: dict[str, Any]) -> None:
        with self.message.showing_errors():
            self._take(self.gamma.value, self.cost.value)
            self._show_again()


def round_costs(simulation: Simulation) -> list[str]:
    """A sentence for each round: what was drafted, what came of it, and what it cost."""
    return [
        _round_cost(number, one, simulation.draft_cost)
        for number, one in enumerate(simulation.generation.rounds, start=1)
    ]


def _round_cost(number: int, one: Round, c: float) -> str:
    drafted = decode([position.token for position in one.positions])
    cost = one.drafted * c
    kept = "all are" if one.accepted == one.drafted else f"{one.accepted} are"
    closing = f", and the {one.closing_kind} follows" if one.closing is not None else ""
    return (
        f"Round {number}. Draft: \u201c{drafted}\u201d, {one.drafted} x {c:.2f} = {cost:.2f} of a "
        f"target step. Verify: one target forward, 1.00; {kept} accepted{closing}. "
        f"{len(one.tokens)} tokens for {1 + cost:.2f}."
    )


def estimates(simulation: Simulation) -> list[str]:
    """The two speedups of the script, and why they differ."""
    metrics, c, gamma = simulation.generation.metrics, simulation.draft_cost, simulation.gamma
    rate = metrics.accepted / metrics.drafted
    usual = expected_tokens_per_round(rate, gamma)
    cost = metrics.target_forwards + metrics.drafted * c
    return [
        f"Theory: (1 - a^(g+1)) / ((1 - a)(g c + 1)) at a = {metrics.accepted}/{metrics.drafted}, "
        f"g = {gamma}, c = {c:.2f} is {simulation.expected_speedup:.2f}x: what to expect on average if "
        "each drafted token is kept with chance a, whatever came before (Leviathan et al. 2023, "
        "theorem 3.8).",
        f"Counted: {metrics.new_tokens} tokens for {metrics.target_forwards} forwards and "
        f"{metrics.drafted} drafted tokens, {metrics.new_tokens} / ({metrics.target_forwards} + "
        f"{metrics.drafted} x {c:.2f}) = {metrics.new_tokens} / {cost:.2f} = "
        f"{simulation.counted_speedup:.2f}x. One run is not the average: these rounds emitted "
        f"{metrics.block_efficiency:.2f} tokens each, where the formula expects {usual:.2f}.",
    ]

"""Runs shown in the terminal: streamed text that says where each token came from, and a table."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from specdec_lab.demo import Demo
from specdec_lab.records import Closing, Metrics, Round
from specdec_lab.simulation import Simulation
from specdec_lab.text import Decode, Transcript

OPEN, CLOSE = "«", "»"
SIGN: dict[Closing, str] = {"replacement": "~", "bonus": "+", "plain": ""}
STYLE: dict[Closing, str] = {"replacement": "bold yellow", "bonus": "bold cyan", "plain": "default"}
ACCEPTED_STYLE = "green"


class RoundPrinter:
    """Prints each round as it comes: accepted drafts in «», a replacement behind ~, a bonus behind +.

    The signs say the same as the colours, for whoever has none.
    """

    def __init__(self, console: Console, decode: Decode) -> None:
        self._console = console
        self._transcript = Transcript(decode)
        self._line_open = True

    def legend(self) -> Text:
        """One line that explains the signs."""
        return Text.assemble(
            (f"{OPEN}accepted draft{CLOSE}", ACCEPTED_STYLE),
            "  ",
            (f"{SIGN['replacement']}replacement after a rejection", STYLE["replacement"]),
            "  ",
            (f"{SIGN['bonus']}bonus", STYLE["bonus"]),
            "  plain",
        )

    def show(self, one: Round) -> None:
        """Print what a round emitted, on the same line as the text so far."""
        self._write(self.marked_text(one))
        if one.stop_reason is not None:
            self.finish()

    def marked_text(self, one: Round) -> Text:
        """What a round emitted, with its signs and colours."""
        line = marked(
            "".join(map(self._transcript.push, one.accepted_tokens)), OPEN, CLOSE, ACCEPTED_STYLE
        )
        if one.closing is not None and one.closing_kind is not None:
            piece = self._transcript.push(one.closing)
            line += marked(piece, SIGN[one.closing_kind], "", STYLE[one.closing_kind])
        return line

    def finish(self) -> None:
        """Print what is left of an unfinished character and end the line, if the last round did not."""
        if self._line_open:
            self._write(Text(self._transcript.finish()))
            self._console.print()
            self._line_open = False

    def _write(self, text: Text) -> None:
        self._console.print(text, end="", soft_wrap=True, highlight=False)


def marked(piece: str, opening: str, closing: str, style: str) -> Text:
    """``piece`` between two signs that hug its visible part; nothing for an empty piece."""
    if not piece:
        return Text()
    core = piece.strip() or piece
    before, _, after = piece.partition(core)
    return Text.assemble(before, (f"{opening}{core}{closing}", style), after)


def demo_table(demo: Demo) -> Table:
    """The counts, the speeds and the comparison of a measured demo."""
    metrics, baseline = demo.speculative.metrics, demo.baseline
    table = _table(_origin(demo.speculative.provenance))
    _add_counts(table, metrics)
    table.add_row("tokens per second", _number(metrics.tokens_per_second, "{:.1f}"))
    if baseline is not None:
        plain = _number(baseline.metrics.tokens_per_second, "{:.1f}")
        table.add_row("  target alone, cached", plain)
    table.add_row("speedup, measured", _speedup(demo), style="bold")
    table.add_row("first token after", _milliseconds(metrics.time_to_first_token))
    table.add_row(
        "median round",
        f"draft {_milliseconds(metrics.draft_seconds)}, "
        f"verify {_milliseconds(metrics.verify_seconds)}, "
        f"rest {_milliseconds(metrics.rest_seconds)}",
    )
    table.add_row("output equals the target's own", _verdict(demo))
    return table


def simulation_table(simulation: Simulation) -> Table:
    """The counts of a scripted run and the two estimates of its speedup."""
    c = simulation.draft_cost
    table = _table("SIMULATED: a scripted run of no model; no time in it was measured")
    _add_counts(table, simulation.generation.metrics)
    table.add_row("a draft step costs (assumed)", f"{c:.2f} of a target step")
    table.add_row("speedup, this run counted", f"{simulation.counted_speedup:.2f} x")
    table.add_row("speedup, theory on average", f"{simulation.expected_speedup:.2f} x")
    return table


def _table(caption: str) -> Table:
    table = Table(show_header=False, caption=caption, caption_justify="left", caption_style="dim")
    table.add_column(no_wrap=True)
    table.add_column()
    return table


def _add_counts(table: Table, metrics: Metrics) -> None:
    table.add_row(
        "target forwards for tokens out",
        f"{metrics.target_forwards} for {metrics.new_tokens}",
    )
    table.add_row("block efficiency", _number(metrics.block_efficiency, "{:.2f}, includes the bonus"))
    rate = _number(metrics.acceptance_rate, "{:.0%}")
    table.add_row("drafted tokens accepted", f"{metrics.accepted} of {metrics.drafted} ({rate})")


def _speedup(demo: Demo) -> str:
    speedup, limit = demo.speedup, demo.speculative.metrics.block_efficiency
    if speedup is not None and limit is not None and speedup > 1.05 * limit:
        return f"{speedup:.2f} x, more than the block efficiency: the machine was busy; run it again"
    return _number(speedup, "{:.2f} x")


def _verdict(demo: Demo) -> str:
    if not demo.speculative.tokens:
        return "-"
    if demo.matches_target is None:
        return "not comparable token by token: sampled"
    if demo.matches_target:
        return "yes, token for token"
    return "NO" + (
        ""
        if demo.speculative.provenance["dtype"] == "float32"
        else ": half precision swaps near ties between one-token and many-token forwards"
    )


def _origin(provenance: dict[str, Any]) -> str:
    versions = provenance["versions"]
    drafter = " with ".join(filter(None, [provenance["drafter"], provenance["draft_model"]]))
    return (
        f"{provenance['kind']}: target {provenance['target']}, drafter {drafter}, "
        f"{provenance['dtype']} on {provenance['device']} ({provenance['hardware']}, "
        f"{provenance['threads']} threads), torch {versions['torch']}, "
        f"transformers {versions['transformers']}"
    )


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _milliseconds(seconds: float | None) -> str:
    return _number(None if seconds is None else 1000.0 * seconds, "{:.1f} ms")

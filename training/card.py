"""Write ``MODEL_CARD.md`` and the learning curve's picture from what was measured.

python -m training.card
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import matplotlib.pyplot as plt

from benchmarks.held_out import KINDS
from specdec_lab.draft_model import FOLDER, stored_drafts
from specdec_lab.files import replacing
from specdec_lab.plots.style import BLUE, GREY, ORANGE, finish
from training.evaluate import GAMMAS, RESULTS, TEMPERATURES, Row, best_gamma, speedup

TEMPLATE = Path(__file__).parent / "card_template.md"
NAMES = ("embedded", "embedded-middle", "embedded-early")


def write_card() -> Path:
    """Fill the template's places with tables made from ``training/results``."""
    results = {name: _results(name) for name in NAMES if (RESULTS / f"{name}.json").exists()}
    full = results["embedded"]
    curve = json.loads((RESULTS / "curve.json").read_text())
    places = {
        "sizes": _sizes(),
        "agreement": _agreement(full["agreement"]),
        "ancestors": _ancestors(results),
        "places": _by_place(full["speed"]["rows"]),
        "costs": _costs(full["costs"]),
        "speed": _speed(full["speed"]["rows"]),
        "tokens": f"{curve[-1]['tokens'] / 1e6:.1f}",
        "minutes": f"{curve[-1]['seconds'] / 60:.0f}",
        "hardware": full["speed"]["provenance"]["hardware"],
        "date": full["speed"]["provenance"]["date"][:10],
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, content in places.items():
        text = text.replace("{{" + name + "}}", content)
    card = FOLDER / "MODEL_CARD.md"
    with replacing(card) as part:
        part.write_text(text, encoding="utf-8")
    return card


def draw_curve() -> Path:
    """Alpha and greedy agreement on the held-out chats over the tokens trained on."""
    curve = json.loads((RESULTS / "curve.json").read_text())
    tokens = [point["tokens"] / 1e6 for point in curve]
    plt.rcParams["svg.hashsalt"] = "curve"
    figure, axes = plt.subplots(figsize=(7.0, 3.6))
    for values, colour, label in (
        ([point["held_out"]["alpha"] for point in curve], BLUE, "alpha at temperature 1, held-out"),
        ([point["held_out"]["greedy"] for point in curve], ORANGE, "argmax agreement, held-out"),
        ([point["training"]["overlap"] for point in curve], GREY, "alpha at temperature 1, training"),
    ):
        axes.plot(tokens, values, color=colour, label=label)
    axes.set(xlabel="million tokens trained on (with repetitions)", ylim=(0, None))
    axes.legend(frameon=False)
    finish(figure, "measured", "the shipped draft's training; 32 chats that it never saw")
    file = FOLDER / "curve.svg"
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})
    return file


def _results(name: str) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return results


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [" | ".join(columns), " | ".join("---" for _ in columns), *map(" | ".join, rows)]
    return "\n".join(f"| {line} |" for line in lines)


def _sizes() -> str:
    drafts = stored_drafts().values()
    rows = [(one.name, f"{(FOLDER / one.file).stat().st_size / 1e6:.1f} MB") for one in drafts]
    return table(("name", "file"), rows)


def _mean_alpha(rows: Sequence[Row]) -> float:
    return mean(value for row in rows for value in row["alphas"])


def _agreement(rows: Sequence[Row]) -> str:
    def cells(kind: str) -> list[str]:
        found = [row for row in rows if row["kind"] == kind]
        values = [
            f"{_mean_alpha([row for row in found if row['temperature'] == t]):.2f}"
            for t in TEMPERATURES
        ]
        return [kind, str(len(found) // len(TEMPERATURES)), *values]

    return table(("kind", "prompts", *(f"T = {t:g}" for t in TEMPERATURES)), map(cells, KINDS))


def _ancestors(results: dict[str, dict[str, Any]]) -> str:
    def cells(name: str) -> list[str]:
        chats = [row for row in results[name]["agreement"] if row["kind"] == "chat"]
        at = [[row for row in chats if row["temperature"] == t] for t in TEMPERATURES]
        return [name, *(f"{_mean_alpha(rows):.2f}" for rows in at)]

    return table(("chats", *(f"T = {t:g}" for t in TEMPERATURES)), map(cells, results))


def _by_place(rows: Sequence[Row]) -> str:
    chats = [row for row in rows if row["kind"] == "chat"]
    lines = []
    for temperature in sorted({row["temperature"] for row in chats}):
        counts = [[0, 0] for _ in GAMMAS]
        for row in chats:
            if row["temperature"] == temperature:
                for place, (judged, accepted) in enumerate(row["judged"]):
                    counts[place][0] += judged
                    counts[place][1] += accepted
        lines.append([f"T = {temperature:g}"] + [f"{a / n:.2f} ({n})" if n else "-" for n, a in counts])
    return table(("chats", *(f"place {gamma}" for gamma in GAMMAS)), lines)


def _costs(costs: dict[str, Any]) -> str:
    lengths = list(next(iter(costs.values()))["v"])
    rows = [
        [dtype, f"{one['c']:.3f}", *(f"{one['v'][n]:.2f}" for n in lengths)]
        for dtype, one in costs.items()
    ]
    return table(("dtype", "c", *(f"v({n})" for n in lengths)), rows)


def _speed(rows: Sequence[Row]) -> str:
    groups: dict[tuple[str, float], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["kind"], row["temperature"]].append(row)
    lines = []
    for kind in KINDS:
        for temperature in sorted({t for k, t in groups if k == kind}):
            found = groups[kind, temperature]
            gamma, best = best_gamma(found)
            spread = sorted(speedup(row, gamma) for row in found)
            efficiency = median(row["block_efficiency"][str(gamma)] for row in found)
            line = [kind, f"{temperature:g}", str(len(found)), str(gamma), f"**{best:.2f}**"]
            line += [f"{spread[0]:.2f} to {spread[-1]:.2f}", f"{efficiency:.2f}"]
            lines.append(line)
    columns = ("kind", "T", "prompts", "best gamma", "median speedup", "lowest to highest", "tau")
    return table(columns, lines)


if __name__ == "__main__":
    print(write_card())
    print(draw_curve())

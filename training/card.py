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
from safetensors.torch import load_file

from benchmarks.held_out import KINDS
from specdec_lab.draft_model import EMBEDDED_DRAFTS, FOLDER, SCALE, stored_drafts
from specdec_lab.drafters import ModelDrafter
from specdec_lab.files import replacing
from specdec_lab.plots.style import BLUE, GREY, ORANGE, finish
from training.evaluate import BUDGET, GAMMAS, PARTS, TEMPERATURES, Row, best_gamma, speedup
from training.publish import RESULTS

TEMPLATE = Path(__file__).parent / "card_template.md"
DEFAULT = ModelDrafter.default_gamma
MISSING = "**Not measured yet.**"


def card_text() -> str:
    """The template, its places filled with tables made from ``training/results``.

    A part that was not measured yet says so in its place.

    Raises:
        SystemExit: if something was measured for another draft than the shipped one.
    """
    results = {name: _of_the_shipped(RESULTS / f"{name}.json", name) for name in EMBEDDED_DRAFTS}
    full, curve = results["embedded"], _curve()
    provenances = [full[part]["provenance"] for part in PARTS if part in full]
    dates = [one["date"][:10] for one in provenances]
    places = {
        "sizes": _sizes(),
        "agreement": _agreement(full["agreement"]["rows"]),
        "ancestors": _ancestors(results),
        "places": _by_place(full["speed"]["rows"]) if "speed" in full else MISSING,
        "costs": _costs(full["costs"]),
        "speed": _speed(full["speed"]["rows"]) if "speed" in full else MISSING,
        "tokens": f"{curve[-1]['tokens'] / 1e6:.1f}",
        "minutes": f"{curve[-1]['seconds'] / 60:.0f}",
        "float": _judged(curve[-1]["held_out"]),
        "stored": _judged(curve[-1]["stored"]),
        "hardware": provenances[0]["hardware"],
        "threads": str(provenances[0]["threads"]),
        "dates": " to ".join(sorted({min(dates), max(dates)})),
        "budget": str(BUDGET),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, content in places.items():
        text = text.replace("{{" + name + "}}", content)
    return text


def write_card() -> Path:
    """Put the card beside the drafts."""
    card = FOLDER / "MODEL_CARD.md"
    with replacing(card) as part:
        part.write_text(card_text(), encoding="utf-8")
    return card


def draw_curve() -> Path:
    """Alpha and greedy agreement on the development chats over the tokens trained on."""
    curve = _curve()
    tokens = [point["tokens"] / 1e6 for point in curve]
    lines = (
        (BLUE, "alpha at temperature 1", [point["held_out"]["alpha"] for point in curve]),
        (ORANGE, "argmax agreement", [point["held_out"]["greedy"] for point in curve]),
        (GREY, "alpha on the training text", [point["training"]["overlap"] for point in curve]),
    )
    plt.rcParams["svg.hashsalt"] = "curve"
    figure, axes = plt.subplots(figsize=(7.0, 3.6))
    for colour, label, values in lines:
        axes.plot(tokens, values, color=colour, label=label)
    axes.set(xlabel="million tokens trained on (with repetitions)", ylim=(0, None))
    axes.legend(frameon=False)
    finish(figure, "measured", "the shipped draft's training; 32 development chats, never trained on")
    file = FOLDER / "curve.svg"
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})
    return file


def _curve() -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = _of_the_shipped(RESULTS / "curve.json", "embedded")["points"]
    return points


def _of_the_shipped(file: Path, name: str) -> dict[str, Any]:
    """What was measured, if it was measured for the draft that is shipped under this name."""
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if found.get("sha256") != stored_drafts()[name].sha256:
        raise SystemExit(f"{file}: missing, or of another draft than the shipped {name}")
    return found


def _judged(point: dict[str, float]) -> str:
    return f"{point['alpha']:.3f} and {point['greedy']:.3f}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [" | ".join(columns), " | ".join("---" for _ in columns), *map(" | ".join, rows)]
    return "\n".join(f"| {line} |" for line in lines)


def _sizes() -> str:
    rows = []
    for one in stored_drafts().values():
        file = FOLDER / one.file
        stored = load_file(file)
        head = len(stored.pop("lm_head.token_ids"))
        layers = len({name.split(".")[2] for name in stored if name.startswith("model.layers.")})
        own = sum(values.numel() for name, values in stored.items() if not name.endswith(SCALE))
        megabytes = file.stat().st_size / 1e6
        rows.append((one.name, str(layers), f"{head:,}", f"{own / 1e6:.1f} M", f"{megabytes:.1f} MB"))
    return table(("name", "layers", "tokens in the head", "own parameters", "file"), rows)


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
        chats = [row for row in results[name]["agreement"]["rows"] if row["kind"] == "chat"]
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
    dtypes = ("float32", "bfloat16")
    lengths = list(costs["float32"]["v"])
    rows = [
        [dtype, f"{costs[dtype]['c']:.3f}", *(f"{costs[dtype]['v'][n]:.2f}" for n in lengths)]
        for dtype in dtypes
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
            line.append(f"{median(speedup(row, DEFAULT) for row in found):.2f}")
            lines.append(line)
    columns = ["kind", "T", "prompts", "best gamma", "median speedup", "lowest to highest", "tau"]
    columns.append(f"speedup at gamma {DEFAULT}")
    return table(columns, lines)


if __name__ == "__main__":
    print(write_card())
    print(draw_curve())

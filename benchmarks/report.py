"""``benchmarks/RESULTS.md`` and its pictures, from the results in ``benchmarks/results/full``.

    python -m benchmarks.report

No measured number in that page is typed: all come from the JSON files that ``specdec-lab bench`` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from specdec_lab.bench.compare import OUR_PLAIN
from specdec_lab.bench.groups import (
    BESIDE_THEORY,
    all_in_steps_of,
    beside_theory,
    by_length,
    chosen_apart,
    count_near,
    each_length,
    groups_of,
    in_steps_of,
    over_plain,
    temperatures_and_kinds,
)
from specdec_lab.bench.results import Result
from specdec_lab.bench.sheets import SHEETS, origin
from specdec_lab.bench.sweep import OWN_TIME
from specdec_lab.benchmark import Ratio, paired_ratio
from specdec_lab.files import replacing
from specdec_lab.plots.speed import FIGURES, decode_roofline
from specdec_lab.roofline import ModelShape
from specdec_lab.sheet import Sheet
from training.evaluate import best_gamma

HERE = Path(__file__).parent
SPEED = HERE / "results" / "full"
PICTURES = HERE / "pictures"
TEMPLATE = HERE / "results_template.md"
PAGE = HERE / "RESULTS.md"
CARD = HERE.parent / "training" / "results" / "embedded.json"
OPEN_ENDED = ("conversation", "questions", "mathematics")
COPYING = ("summarising", "retrieval")
SHAPE = ModelShape(30, 576, 1536, 9, 3, 64, 49152)
"""SmolLM2-135M's."""
DARK: Any = {
    "text.color": "#e6edf3",
    "axes.labelcolor": "#e6edf3",
    "axes.edgecolor": "#8d96a0",
    "xtick.color": "#c9d1d9",
    "ytick.color": "#c9d1d9",
}
LIGHT: Any = {}


def results() -> dict[str, Result]:
    """All experiments' results.

    Raises:
        SystemExit: if one of them is not complete.
    """
    found = {name: Result.load(SPEED / f"{name}.json") for name in SHEETS}
    for name, result in found.items():
        if result.missing:
            raise SystemExit(f"{name}: {len(result.missing)} rows are missing; run: make results")
    return found


def page(found: dict[str, Result]) -> str:
    """The template with its places filled."""
    places = {name: _tables(name, result) for name, result in found.items()}
    places["claims"] = claims(found).markdown()
    places["origin"] = origin(found["sweep"])
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, content in places.items():
        text = text.replace("{{" + name + "}}", content)
    for name in pictures(found):
        text = text.replace("{{picture " + name + "}}", picture(name))
    return text


def picture(name: str) -> str:
    """A picture that follows the reader's light or dark page."""
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="pictures/{name}-dark.svg">'
        f'<img alt="{name}" src="pictures/{name}-light.svg"></picture>'
    )


def _tables(name: str, result: Result) -> str:
    return "\n\n".join(sheet.markdown() for sheet in SHEETS[name](result))


def pictures(found: dict[str, Result]) -> dict[str, Callable[[], Figure]]:
    """The name of each picture, and what draws it."""
    drawn: dict[str, Callable[[], Figure]] = {
        name: lambda draw=draw, result=found[experiment]: draw(result)  # type: ignore[misc]
        for experiment, figures in FIGURES.items()
        for name, draw in figures.items()
    }
    for dtype in [row["key"] for row in found["decode"].rows]:
        drawn[f"roofline-{dtype}"] = lambda dtype=dtype: decode_roofline(  # type: ignore[misc]
            found["decode"], SHAPE, dtype, found["verify"]
        )
    return drawn


def draw(found: dict[str, Result]) -> None:
    """Draw all pictures, for light pages and for dark ones."""
    PICTURES.mkdir(exist_ok=True)
    for name, figure in pictures(found).items():
        for theme, colours in (("light", LIGHT), ("dark", DARK)):
            plt.rcParams["svg.hashsalt"] = name  # without it, the file would change with each run
            with plt.rc_context(colours):
                figure().savefig(
                    PICTURES / f"{name}-{theme}.svg",
                    bbox_inches="tight",
                    transparent=True,
                    metadata={"Date": None},
                )


def claims(found: dict[str, Result]) -> Sheet:
    """What was hoped for and what came out, each computed from the results."""
    parts = (
        _beside_others,
        _beside_the_card,
        _both_dtypes,
        _copying,
        _beside_theory,
        _own_time,
        _adaptive,
    )
    return Sheet(
        "Hoped for, and measured",
        ("", "hoped for", "measured"),
        tuple(row for part in parts for row in part(found)),
        (
            "Intervals: 95 %, bootstrap over prompts. Draft lengths are chosen on other prompts than "
            "those they are judged by.",
            "Open-ended: conversation, questions, mathematics. The kind that comes out worst is picked "
            "with the result in hand, so its interval is too pessimistic.",
        ),
        (0,),
    )


Claim = tuple[str, str, str]


def _beside_others(found: dict[str, Result]) -> list[Claim]:
    asked = (
        (
            "draft model over transformers' assisted generation, open-ended kinds",
            "1.15",
            OPEN_ENDED,
            "draft model",
            (0.0, 1.0),
        ),
        (
            "plain decoding over transformers' plain decoding, open-ended kinds",
            "-",
            OPEN_ENDED,
            "plain",
            (0.0, 1.0),
        ),
        (
            "n-gram over transformers' prompt look-up, summarising and retrieval",
            "1.00",
            COPYING,
            "n-gram",
            (0.0,),
        ),
    )
    return [
        (f"{what}, T {t:g}", hope, str(_against(found["compare"], t, kinds, way)))
        for what, hope, kinds, way, temperatures in asked
        for t in temperatures
    ]


def _copying(found: dict[str, Result]) -> list[Claim]:
    """n-grams where texts are copied, and the most that any look-up could do there."""
    rows = []
    for kind in COPYING:
        group = next(
            one
            for one in groups_of(found["sweep"])
            if (one.temperature, one.kind, one.drafter) == (0.0, kind, "n-gram")
            and one.gamma == BESIDE_THEORY["n-gram"]
        )
        here = found["sweep"].of(prompt_kind=kind, temperature=0.0)
        limit = median(row["look_up_limit"] for row in here)
        rows += [
            (f"n-gram over plain decoding, {kind}, greedy", "2.00", str(group.speedup)),
            (f"the most tokens per round that any look-up could make of {kind}", "-", f"{limit:.2f}"),
        ]
    return rows


def _both_dtypes(found: dict[str, Result]) -> list[Claim]:
    """What a dtype's slower plain step leaves of a speedup."""
    result = found["dtypes"]
    base = result.settings["plain"]
    steps = all_in_steps_of(result, base)
    return [
        (f"{name} over {base}, all kinds, T 0", "-", str(over_plain([one[name] for one in steps])))
        for name in ("bfloat16, plain", "bfloat16, draft model")
    ]


def _against(compare: Result, temperature: float, kinds: Sequence[str], way: str) -> Ratio:
    """Ours over theirs, each at a draft length chosen on the other prompts of the kind."""
    ours, theirs = list[float](), list[float]()
    for kind in kinds:
        steps = in_steps_of(compare, temperature, kind, OUR_PLAIN)
        ours += chosen_apart(steps, f"ours, {way}")
        theirs += chosen_apart(steps, f"theirs, {way}")
    return paired_ratio(theirs, ours)


def _beside_the_card(found: dict[str, Result]) -> list[Claim]:
    rows = json.loads(CARD.read_text(encoding="utf-8"))["speed"]["rows"]
    card = [row for row in rows if row["kind"] == "chat"]
    claims: list[Claim] = []
    for temperature in (0.0, 1.0):
        _, promised = best_gamma([row for row in card if row["temperature"] == temperature])
        groups = [
            group
            for group in groups_of(found["sweep"])
            if (group.temperature, group.drafter) == (temperature, "draft model")
            and group.kind in OPEN_ENDED
        ]
        apart = chosen_apart(each_length(list(by_length(groups).values())), "")
        claims.append(
            (
                f"draft model over plain decoding, open-ended kinds, T {temperature:g}",
                f"{promised:.2f}, the card's",
                str(over_plain(apart)),
            )
        )
    return claims


def _beside_theory(found: dict[str, Result]) -> list[Claim]:
    rows = []
    for drafter, gamma in BESIDE_THEORY.items():
        for temperature in (0.0, 1.0):
            kinds = beside_theory(found["sweep"], temperature, drafter)
            misses = [group.miss for group in kinds]
            rows.append(
                (
                    f"{drafter}, gamma {gamma}: measured over predicted, mean of kinds, "
                    f"T {temperature:g}",
                    "0.90 to 1.10",
                    f"{mean(misses):.2f}; {count_near(kinds)} of {len(kinds)} kinds "
                    f"(from {min(misses):.2f}, to {max(misses):.2f})",
                )
            )
    return rows


def _own_time(found: dict[str, Result]) -> list[Claim]:
    modes: dict[str, Any] = found["sweep"].of(key=OWN_TIME)[0]["modes"]
    hoped = {name: "-" if "top-p" in name else "below 3 %" for name in modes}
    return [
        (
            f"time outside both models' forwards, {name}",
            hoped[name],
            f"{one['outside_ms'] / one['round_ms']:.1%} ({one['outside_ms']:.2f} ms of a round)",
        )
        for name, one in modes.items()
    ]


def _adaptive(found: dict[str, Result]) -> list[Claim]:
    result = found["adaptive"]
    labels = temperatures_and_kinds(result)
    steps = {label: in_steps_of(result, *label, "plain") for label in labels}
    rows = []
    for name in [name for name in steps[labels[0]][0] if name.endswith("adaptive")]:
        ratios = {label: over_plain([one[name] for one in steps[label]]) for label in labels}
        worst = min(labels, key=lambda label: ratios[label].value)
        rows.append(
            (
                f"{name}: over plain decoding, on its worst kind ({worst[1]}, T {worst[0]:g})",
                "0.97",
                str(ratios[worst]),
            )
        )
    return rows


def main() -> None:
    """Write the page and draw the pictures."""
    found = results()
    draw(found)
    with replacing(PAGE) as part:
        part.write_text(page(found), encoding="utf-8")
    print(f"{PAGE}: written, with {len(pictures(found))} pictures in {PICTURES}")


if __name__ == "__main__":
    main()

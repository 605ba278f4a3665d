"""Each experiment's result as a table: for the terminal, a notebook and the report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from statistics import median

from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.sweep import COSTS, predicted
from specdec_lab.bench.timing import paired_ratio
from specdec_lab.sheet import Sheet, Toned


def origin(result: Result) -> str:
    """One line: what it was measured on, with what, and when."""
    made = result.provenance
    versions = made["versions"]
    threads = f"{made['threads']} thread{'s' if made['threads'] > 1 else ''}"
    return (
        f"measured: {made['target']} on {made['hardware']}, {threads}, torch {versions['torch']}, "
        f"transformers {versions['transformers']}, {made['date'][:10]}"
    )


def decode_sheet(result: Result) -> Sheet:
    """Experiment 1."""
    rows = []
    for row in result.rows:
        for step in row["steps"]:
            rows.append(
                (
                    row["key"],
                    str(step["context"]),
                    f"{1000 * step['seconds']:.1f}",
                    f"{1000 * step['seconds_without_cache']:.0f}",
                    f"{step['intensity']:.2f}",
                    f"{step['bytes_per_second'] / 1e9:.1f}",
                    f"{step['share_of_roof']:.0%}",
                )
            )
    notes = [
        f"{row['key']}: this machine read {row['bandwidth'] / 1e9:.1f} GB/s and computed "
        f"{row['peak_flops'] / 1e9:,.0f} GFLOP/s, so it is bound by memory below {row['ridge']:.0f} "
        f"FLOP/byte; {row['share_in_weight_products']:.0%} of a step's time went into products with "
        "weights."
        for row in result.rows
    ]
    columns = ("dtype", "context", "ms", "ms without cache", "FLOP/byte", "GB/s", "of the roof")
    return Sheet("One decoding step", columns, tuple(rows), (*notes, origin(result)))


def verify_sheet(result: Result) -> Sheet:
    """Experiment 2."""
    lengths = list(result.rows[0]["v"]) if result.rows else []
    rows = tuple((row["key"], *(f"{row['v'][n]:.2f}" for n in lengths)) for row in result.rows)
    notes = [
        f"{row['key']}: verifying is dear from n = {row['knee']} on."
        if row["knee"]
        else f"{row['key']}: verifying is cheap up to n = {lengths[-1]}."
        for row in result.rows
    ]
    columns = ("dtype", *(f"v({n})" for n in lengths))
    return Sheet("The cost of verifying n tokens", columns, rows, (*notes, origin(result)))


def sweep_sheet(result: Result) -> Sheet:
    """Experiment 3: for each kind and drafter the best draft length, measured and predicted."""
    costs = next((row for row in result.rows if row["key"] == COSTS), None)
    groups: dict[tuple[float, str, str, int], list[Row]] = defaultdict(list)
    for row in result.rows:
        for run in row.get("runs", ()):
            groups[row["temperature"], row["prompt_kind"], run["drafter"], run["gamma"]].append(run)
    cells = []
    for temperature, kind, drafter in dict.fromkeys(key[:3] for key in groups):
        of_gamma = {
            key[3]: runs for key, runs in groups.items() if key[:3] == (temperature, kind, drafter)
        }
        best = max(of_gamma, key=lambda gamma: median(run["speedup"] for run in of_gamma[gamma]))
        runs = of_gamma[best]
        speedup = median(run["speedup"] for run in runs)
        promised = [predicted(run, costs) for run in runs] if costs else []
        known = [one for one in promised if one is not None]
        alphas = [run["alpha"] for run in runs if run["alpha"] is not None]
        cells.append(
            (
                f"{temperature:g}",
                kind,
                drafter,
                str(best),
                Toned(f"{speedup:.2f}", "good" if speedup > 1.0 else "bad"),
                f"{median(known):.2f}" if known else "-",
                f"{median(alphas):.2f}" if alphas else "-",
                f"{median(run['block_efficiency'] for run in runs):.2f}",
            )
        )
    columns = ("T", "kind", "drafter", "gamma", "speedup", "predicted", "alpha", "tau")
    return Sheet(
        "Speed over plain decoding, at the best draft length",
        columns,
        tuple(cells),
        ("tau: tokens per target forward, the bonus included.", origin(result)),
        text_columns=(1, 2),
    )


def batch_sheet(result: Result) -> Sheet:
    """Experiment 5."""
    rows = []
    for row in result.rows:
        for drafter in dict.fromkeys(run["drafter"] for run in row["runs"]):
            runs = [run for run in row["runs"] if run["drafter"] == drafter]
            best = max(runs, key=lambda run: run["speedup"])
            rows.append(
                (
                    str(row["size"]),
                    drafter,
                    f"{row['plain_tokens_per_second']:.0f}",
                    str(best["gamma"]),
                    Toned(f"{best['speedup']:.2f}", "good" if best["speedup"] > 1.0 else "bad"),
                    f"{best['block_efficiency']:.2f}",
                    f"{row['v'][str(best['gamma'] + 1)]:.2f}",
                )
            )
    columns = ("rows", "drafter", "plain tokens/s", "gamma", "speedup", "tau", "v(gamma + 1)")
    return Sheet("Batches", columns, tuple(rows), (origin(result),), text_columns=(1,))


def compare_sheet(result: Result) -> Sheet:
    """Experiment 7: each at its best draft length, over our plain decoding and over each other."""
    rows = []
    for temperature, kind in dict.fromkeys((r["temperature"], r["prompt_kind"]) for r in result.rows):
        found = [
            row["seconds_per_token"]
            for row in result.rows
            if (row["temperature"], row["prompt_kind"]) == (temperature, kind)
        ]
        for way in ("plain", "draft model", "n-gram"):
            ours, theirs = _best(found, f"ours, {way}"), _best(found, f"theirs, {way}")
            if not ours or not theirs:
                continue
            plain = [seconds["ours, plain"] for seconds in found]
            ratio = paired_ratio([s[theirs] for s in found], [s[ours] for s in found])
            rows.append(
                (
                    f"{temperature:g}",
                    kind,
                    way,
                    _gained(plain, [s[ours] for s in found]),
                    _gained(plain, [s[theirs] for s in found]),
                    ours.rpartition(", ")[2] if way != "plain" else "",
                    theirs.rpartition(", ")[2] if way != "plain" else "",
                    Toned(f"{ratio.value:.2f}", "good" if ratio.value >= 1.0 else "bad"),
                )
            )
    columns = ("T", "kind", "drafts", "ours", "theirs", "our length", "their length", "ours / theirs")
    return Sheet(
        "Beside transformers' generate: speed over our plain decoding",
        columns,
        tuple(rows),
        ("Whole calls, the prompt's forward included.", origin(result)),
        text_columns=(1, 2),
    )


def _gained(plain: list[float], other: list[float]) -> str:
    return f"{paired_ratio(plain, other).value:.2f}"


def _best(found: list[dict[str, float]], start: str) -> str | None:
    """The contender whose name starts so, with the lowest median time; None if there is none."""
    names = [name for name in found[0] if name.startswith(start)]
    return min(names, key=lambda name: median(s[name] for s in found), default=None)


SHEETS: dict[str, Callable[[Result], Sheet]] = {
    "decode": decode_sheet,
    "verify": verify_sheet,
    "sweep": sweep_sheet,
    "batch": batch_sheet,
    "compare": compare_sheet,
}

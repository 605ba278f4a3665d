"""What a GPU makes of it: the costs that decide the speedup, on large architectures, without a network.

    python -m benchmarks.gpu [--out DIR] [--quick]

Random weights cost as much as trained ones, so costs are measured: a decoding step, v(n), a batch's
forwards, a long context, and this library's loop beside transformers'. Random weights agree on nothing,
so acceptance is not measured: speedups are computed from the measured costs at some assumed alphas, and
such rows are marked ``simulated``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from tqdm.auto import tqdm

from specdec_lab.adaptive import Costs, measure_costs
from specdec_lab.bench import compare, decode, verify
from specdec_lab.bench.batch import batch_costs
from specdec_lab.bench.results import Result, Row
from specdec_lab.bench.setup import Setup
from specdec_lab.bench.sheets import decode_sheets, origin, verify_sheets
from specdec_lab.bench.sweep import Task
from specdec_lab.benchmark import context_of, random_large_target
from specdec_lab.drafters import ModelDrafter
from specdec_lab.pretrained import Pair
from specdec_lab.sheet import Sheet
from specdec_lab.theory import expected_speedup

RESULTS = Path(__file__).parent / "results" / "gpu"
ALPHAS = (0.5, 0.7, 0.8, 0.9)
GAMMAS = (2, 4, 8)
SIZES = (2, 4, 16, 32)
CONTEXTS = (128, 4096)
SPEEDUPS = ": speedups"


def measure(pair: Pair, out: Path, quick: bool, progress: bool = True) -> dict[str, Result]:
    """Experiments 1, 2, 5 and 7, and a long context of 4, for one pair: what costs can say of them."""
    setup = Setup(lambda dtype: pair, out, quick, progress)
    return {
        "decode": decode.run(setup),
        "verify": verify.run(setup),
        "costs": costs(setup, pair),
        "compare": beside_transformers(setup, pair),
    }


def costs(setup: Setup, pair: Pair) -> Result:
    """c and v(n) by context and by size of the batch, and what they leave of some alphas."""
    assert pair.draft is not None
    drafter = ModelDrafter(pair.draft)
    cases = {f"context {n}": (1, n) for n in CONTEXTS} | {f"batch of {n}": (n, 128) for n in SIZES}
    keys = [key for case in cases for key in (case, case + SPEEDUPS)]
    settings = {"alphas": ALPHAS, "gammas": GAMMAS}
    ledger = setup.ledger("costs", keys, settings, pair)
    repeats = 3 if setup.quick else 15
    for key in tqdm(ledger.missing, desc="costs", disable=not setup.progress):
        case = key.removesuffix(SPEEDUPS)
        size, context = cases[case]
        if key != case:
            row = ledger.result.of(key=case)[0]
            measured = Costs(row["c"], {int(n): value for n, value in row["v"].items()})
            ledger.add(key, {"speedups": speedups(measured)}, kind="simulated")
            continue
        if size > 1:
            found = batch_costs(pair.target, drafter, size, GAMMAS, repeats)
        else:
            found = measure_costs(pair.target, drafter, max(GAMMAS), context, repeats)
        ledger.add(key, {"c": found.c, "v": {str(n): value for n, value in found.v.items()}})
    return ledger.result


def speedups(found: Costs) -> list[Row]:
    """What these costs leave of each alpha: the best draft length and its speedup, by theory."""
    rows = []
    for alpha in ALPHAS:
        values = {
            gamma: expected_speedup(alpha, gamma, found.c, found.of(gamma) - gamma * found.c)
            for gamma in GAMMAS
        }
        best = max(values, key=values.__getitem__)
        rows.append({"alpha": alpha, "gamma": best, "speedup": values[best]})
    return rows


def beside_transformers(setup: Setup, pair: Pair) -> Result:
    """Both libraries' loops over the same forwards; random weights agree on hardly anything."""
    lengths = compare.Lengths(gammas=(2, 4), look_ups=(10,))
    budget, turns = (16, 1) if setup.quick else (64, 5)
    settings = {"gammas": lengths.gammas, "max_new_tokens": budget, "turns": turns}
    key = "random prompt"
    ledger = setup.ledger("compare", [key], settings, pair)
    if key in ledger.missing:
        task = Task("random", 0, context_of(128, pair.target.vocab_size), 0.0)
        compare.one_prompt(pair, task, lengths, budget=8)  # what happens only once
        ledger.add(key, compare.one_prompt(pair, task, lengths, budget, turns))
    return ledger.result


def costs_sheet(result: Result) -> Sheet:
    """The costs, and the simulated speedups beside them."""
    rows = []
    for row in result.of(kind="measured"):
        after = result.of(key=row["key"] + SPEEDUPS)[0]["speedups"]
        rows.append(
            (
                row["key"],
                f"{row['c']:.2f}",
                *(f"{row['v'][str(gamma + 1)]:.2f}" for gamma in GAMMAS),
                *(f"{one['speedup']:.2f} ({one['gamma']})" for one in after),
            )
        )
    columns = ("case", "c", *(f"v({g + 1})" for g in GAMMAS), *(f"alpha {a:g}" for a in ALPHAS))
    note = "c and v measured; speedups (and draft lengths) computed from them at an assumed alpha."
    return Sheet("What the costs leave of an alpha", columns, tuple(rows), (note, origin(result)))


def loop_sheet(result: Result) -> Sheet:
    """Milliseconds per token of both libraries."""
    found = result.rows[0]["seconds_per_token"]
    rows = tuple((name, f"{1000 * seconds:.2f}") for name, seconds in found.items())
    return Sheet("Both loops over random weights", ("", "ms per token"), rows, (origin(result),))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks.gpu: no CUDA device here, and nothing is estimated without one")
    device, console = torch.device("cuda"), Console()
    for name in ("1.5B", "8B"):
        draft = random_large_target(device, "0.5B")
        pair = Pair(random_large_target(device, name), draft, None)  # type: ignore[arg-type]
        results = measure(pair, options.out / name, options.quick)
        for sheet in (
            *decode_sheets(results["decode"]),
            *verify_sheets(results["verify"]),
            costs_sheet(results["costs"]),
            loop_sheet(results["compare"]),
        ):
            console.print(sheet, "")
        del pair, draft
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

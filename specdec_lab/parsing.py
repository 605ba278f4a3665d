"""The command line's parser, and the arguments that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias

if TYPE_CHECKING:
    from specdec_lab.drafters import Drafter
    from specdec_lab.pretrained import Pair


class OneLineParser(argparse.ArgumentParser):
    """Answers a wrong argument with one line instead of a page of usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


Commands: TypeAlias = "argparse._SubParsersAction[OneLineParser]"


def whole_number(text: str) -> int:
    """An argument's text as a whole number of 0 or more."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a whole number of 0 or more")
    return value


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Which models to load: ``--target``, ``--draft``, ``--dtype``, ``--device``."""
    models = parser.add_argument_group("models")
    models.add_argument("--target", metavar="M", help='hub name, folder or "embedded" (embedded)')
    models.add_argument("--draft", metavar="M", help="the same (embedded; none with another target)")
    models.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), help="(by device)")
    models.add_argument("--device", metavar="D", help="cpu, cuda, cuda:1 (a GPU if there is one)")


def add_drafter_options(
    parser: argparse.ArgumentParser, drafters: Sequence[str], default: str
) -> argparse._ArgumentGroup:
    """Who drafts: ``--drafter``, ``--layers``, ``--noise``; the group, to add more to."""
    drafting = parser.add_argument_group("drafting")
    drafting.add_argument("--drafter", choices=drafters, help=f"({default})")
    drafting.add_argument("--layers", type=whole_number, metavar="N", help="layerskip: layers (2/3)")
    drafting.add_argument("--noise", type=float, metavar="X", help="corrupted: share of noise (0.3)")
    return drafting


def load_models(
    options: argparse.Namespace, default_drafter: str | None = None
) -> tuple[Pair, Drafter]:
    """The pair and the drafter that these options name.

    Args:
        options: with those of ``add_model_options`` and ``add_drafter_options``, and ``json``.
        default_drafter: the kind to take for a pair without a draft model; None is the pair's own.
    """
    pair = load_pair_for(options, options.dtype)
    kind = options.drafter or (default_drafter if pair.draft is None else None)
    noise = 0.3 if options.noise is None else options.noise
    return pair, pair.drafter(kind, layers=options.layers, noise=noise)


def load_pair_for(options: argparse.Namespace, dtype: str | None) -> Pair:
    """The pair that the options of ``add_model_options`` name, in a dtype; ``json`` hides the bars."""
    from specdec_lab.pretrained import load_pair  # takes seconds, and not every command needs it

    return load_pair(
        target=None if _on_the_embedded_target(options) else options.target,
        draft=options.draft,
        dtype=dtype,
        device=options.device,
        progress=not options.json,
    )


def _on_the_embedded_target(options: argparse.Namespace) -> bool:
    """Whether the default pair's draft model is there unless another one is named."""
    return options.target in (None, "embedded")


def add_sampling_options(group: argparse._ActionsContainer, temperature: str) -> None:
    """How to sample: ``--temperature``, ``--top-p``, ``--top-k``, ``--seed``."""
    group.add_argument("--temperature", type=float, metavar="T", help=f"({temperature})")
    group.add_argument("--top-p", type=float, metavar="P", help="keep the likeliest mass P")
    group.add_argument("--top-k", type=whole_number, metavar="K", help="keep the K likeliest tokens")
    group.add_argument("--seed", type=whole_number, metavar="S", help="repeat a run exactly")


def refuse_drafter_options_without_effect(options: argparse.Namespace) -> None:
    """Complain about an option that the chosen drafter does not use.

    Raises:
        ValueError: names the option.
    """
    if options.drafter == "model" and options.draft is None and not _on_the_embedded_target(options):
        raise ValueError("--drafter model: expected a draft model, given with --draft")
    for name, drafter in (("layers", "layerskip"), ("noise", "corrupted")):
        if getattr(options, name) is not None and options.drafter != drafter:
            raise ValueError(f"--{name}: expected --drafter {drafter}, which alone uses it")
    if options.prompt == "":
        raise ValueError("--prompt: got an empty text, expected at least one token")


def refuse_truncation_without_temperature(options: argparse.Namespace) -> None:
    """Complain about ``--top-p`` or ``--top-k`` at temperature 0.

    Raises:
        ValueError: names the option.
    """
    for name in ("top_p", "top_k"):
        if getattr(options, name) is not None and options.temperature == 0.0:
            flag = "--" + name.replace("_", "-")
            raise ValueError(f"{flag}: expected a --temperature above 0; at 0 decoding is greedy")

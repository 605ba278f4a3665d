"""``watch``: the stream player over a finished run, over runs of a pair, or over a scripted one."""

from __future__ import annotations

from specdec_lab.pretrained import Pair
from specdec_lab.records import Generation
from specdec_lab.text import Decode
from specdec_lab.widgets.player import Player
from specdec_lab.widgets.scripted import Scripted
from specdec_lab.widgets.stream import stream
from specdec_lab.widgets.workbench import EXAMPLES, Settings, Workbench


def watch(
    what: Pair | Generation | None = None,
    prompt: str | None = None,
    *,
    decode: Decode | None = None,
    baseline: Generation | None = None,
    drafter: str | None = None,
    gamma: int | None = None,
    temperature: float = 0.0,
    chat: bool = True,
    max_new_tokens: int = 40,
    seed: int = 0,
) -> Player | Workbench | Scripted:
    """Watch speculative decoding: step through the rounds, and ask each token where it came from.

    ``watch(pair, prompt)`` decodes on the real pair, with a drafter and without, shows the run, and has
    controls to change it and run again; ``watch(generation, decode=...)`` shows a run that is there
    already; ``watch()`` explains the idea on a scripted one, without any model.

    Args:
        what: a pair, a finished run (with ``trace=True`` it can show p, q and the residual), or None.
        prompt: for a pair: text.
        decode: for a run: token ids -> text, such as ``tokenizer.decode``; None shows the ids.
        baseline: for a run: the target alone on the same prompt; gives the measured speedup.
        drafter: for a pair: a kind of drafter (see ``Pair.drafter``); None is its default.
        gamma: draft length; None is the drafter's default (with a scripted run, 4).
        temperature: for a pair; 0 is greedy.
        chat: for a pair: the prompt is a user's turn.
        max_new_tokens: for a pair: the budget.
        seed: for a pair.

    Raises:
        ValueError: for arguments that do not go together, by name.
    """
    if what is None:
        return Scripted(4 if gamma is None else gamma)
    if isinstance(what, Generation):
        return Player(stream(what, decode, baseline))
    if not isinstance(what, Pair):
        raise ValueError(f"what: got {type(what).__name__}, expected a Pair, a Generation or nothing")
    kind = drafter or ("ngram" if what.draft is None else "model")
    length = what.drafter(kind).default_gamma if gamma is None else gamma
    settings = Settings(
        EXAMPLES[0] if prompt is None else prompt, kind, length, temperature, chat, max_new_tokens, seed
    )
    return Workbench(what, settings)

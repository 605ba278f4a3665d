"""The exact law of what a decoder emits, and of what the target would emit by itself."""

from __future__ import annotations

import contextlib
import itertools
import operator
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn
from unittest import mock

from torch import Tensor
from tqdm.auto import tqdm

from specdec_lab.enumeration import Choice, Enumeration, Misconduct, Visit, estimate_paths
from specdec_lab.hidden_randomness import GlobalTwins, watched
from specdec_lab.language_model import CausalLM
from specdec_lab.limits import OutOfTime, time_limit
from specdec_lab.randomness import Chooser
from specdec_lab.sampling import Sampling

Tokens = tuple[int, ...]
Law = dict[Tokens, float]
"""Output sequence -> its probability. A sequence that is not there has probability 0."""

Decoder = Callable[[CausalLM, Sequence[int], int, Chooser], Sequence[int]]
"""(target, prompt, max_new_tokens, chooser) -> the new tokens.

The target comes freshly reset. All random choices have to be made through the chooser."""

Fault = Literal[
    "never ends", "bad distribution", "not repeatable", "hidden randomness", "crashed", "bad output"
]

PRUNE_BELOW = 1e-20
MAX_PATHS = 50_000
SECONDS_PER_PATH = 10.0
PROBES = 40
"""Random paths from which the number of all is estimated."""
WORTH_A_WORD = 5.0
"""Seconds from which on a walk is announced."""
MOST_SEQUENCES = 200_000
"""Sequences up to which the target's own law is written down."""
OVER_BUDGET = 1000
"""Tokens behind the budget that are still looked at."""
WATCHED_PATHS = 8
"""The likeliest paths are walked a second time, under a slow watch for hidden randomness."""
_PACKAGE = Path(__file__).parents[1]


class DecoderFault(RuntimeError):
    """The decoder has no law: it cannot be enumerated. Says why, and along which choices.

    Args:
        fault: what it did, in a word or two.
        message: what it did, in full.
        path: the choices that led there.
    """

    def __init__(self, fault: Fault, message: str, path: Sequence[Choice]) -> None:
        super().__init__(f"{fault}: {message}")
        self.fault = fault
        self.message = message
        self.path = tuple(path)


@dataclass
class OutputLaw:
    """The exact law of a decoder's output.

    Args:
        law: output sequence -> probability, added up over all paths that lead there.
        paths: how many paths of random choices were walked.
        choices: random choices made, over all of them.
        pruned: probability of the paths left as too unlikely.
        unwalked: probability of the paths that the budget left over.
        block_efficiency: expected tokens over expected target forwards, the bonus token included, on
            what was walked; 0 if the target was never asked.
        seconds: what the walk took.
    """

    law: Law = field(default_factory=dict)
    paths: int = 0
    choices: int = 0
    pruned: float = 0.0
    unwalked: float = 0.0
    block_efficiency: float = 0.0
    seconds: float = 0.0

    @property
    def covered(self) -> float:
        """The probability that was walked; 1 up to rounding if nothing was left out."""
        return sum(self.law.values())


def output_law(
    decoder: Decoder,
    target: CausalLM,
    prompt: Sequence[int],
    length: int,
    *,
    prune_below: float = PRUNE_BELOW,
    max_paths: int = MAX_PATHS,
    seconds_per_path: float = SECONDS_PER_PATH,
    progress: bool = False,
) -> OutputLaw:
    """The exact law of ``decoder(target, prompt, length, chooser)``, by walking every random choice.

    Args:
        decoder: the decoder; called once per path, and a few times more to see that it repeats itself.
        target: the model, of a small vocabulary: the paths grow exponentially with the length.
        prompt: token ids.
        length: most new tokens.
        prune_below: paths less likely than this are left out, and their mass is reported.
        max_paths: the budget; the likeliest paths go first, and the mass of the rest is reported.
        seconds_per_path: the most that one run may take.
        progress: show a bar, with an estimate beforehand of how many paths there are.

    Raises:
        DecoderFault: if the decoder never ends, crashes, returns something else than token ids, asks
            for something that is no distribution, draws randomness behind the chooser's back, or does
            not repeat itself.
    """
    if max_paths < 1:
        raise ValueError(f"max_paths: got {max_paths}, expected 1 or more")
    runner = _Runner(decoder, target, prompt, length, seconds_per_path)
    enumeration = Enumeration(runner.run, prune_below=prune_below, max_paths=max_paths)
    started = time.perf_counter()
    law: defaultdict[Tokens, float] = defaultdict(float)
    tokens, forwards = 0.0, 0.0
    twins = GlobalTwins()
    try:
        with runner.counting(), _bar(runner, max_paths, progress) as bar:
            for visit in enumeration:
                if enumeration.paths <= WATCHED_PATHS:
                    _watch(enumeration, visit, twins)
                _require_untouched(twins, visit.choices)
                law[visit.outcome.tokens] += visit.probability
                tokens += visit.probability * len(visit.outcome.tokens)
                forwards += visit.probability * visit.outcome.forwards
                bar.update()
    except Misconduct as misconduct:
        _require_untouched(twins, misconduct.path)
        raise DecoderFault(misconduct.fault, str(misconduct), misconduct.path) from None
    finally:
        twins.restore()
    return OutputLaw(
        law=dict(law),
        paths=enumeration.paths,
        choices=enumeration.choices,
        pruned=enumeration.pruned,
        unwalked=enumeration.unwalked,
        block_efficiency=tokens / forwards if forwards else 0.0,
        seconds=time.perf_counter() - started,
    )


def target_law(
    target: CausalLM,
    prompt: Sequence[int],
    length: int,
    *,
    sampling: Sampling | None = None,
    end_ids: Iterable[int] = (),
) -> Law:
    """The target's own law over continuations, multiplied out row by row without any decoder.

    Args:
        target: the model; it reads each prefix afresh.
        prompt: token ids.
        length: new tokens, fewer where an end token comes first.
        sampling: how the next token is chosen; None is temperature 1 and nothing else.
        end_ids: end tokens; each is the last token of its sequence.

    Raises:
        ValueError: if there are more than ``MOST_SEQUENCES`` of them.
    """
    chosen, ends = sampling or Sampling(1.0), frozenset(end_ids)
    law: Law = {}
    pending: list[tuple[Tokens, float]] = [((), 1.0)]
    while pending:
        if len(law) + len(pending) > MOST_SEQUENCES:
            raise ValueError(
                f"length: got {length} with a vocabulary of {target.vocab_size}, expected at most "
                f"{MOST_SEQUENCES:,} sequences: take a shorter length or a smaller vocabulary"
            )
        tokens, mass = pending.pop()
        if len(tokens) == length or (tokens and tokens[-1] in ends):
            law[tokens] = mass
            continue
        prefix = [*prompt, *tokens]
        target.reset()
        p = chosen.distribution(prefix, target.extend(prefix, rows=1)[0]).double()  # [vocab]
        p = p / p.sum()  # what a draw from p really follows
        pending += [((*tokens, i), mass * share) for i, share in enumerate(p.tolist()) if share > 0.0]
    target.reset()
    return law


@dataclass(frozen=True)
class _Output:
    """What one run gave, and how often it asked the target for it."""

    tokens: Tokens
    forwards: int


class _Runner:
    """Calls the decoder, and turns whatever it does into tokens or a ``DecoderFault``."""

    def __init__(
        self,
        decoder: Decoder,
        target: CausalLM,
        prompt: Sequence[int],
        length: int,
        seconds: float,
    ) -> None:
        self._decoder = decoder
        self._target = target
        self._prompt = list(prompt)
        self._length = length
        self._seconds = seconds
        self._forwards = 0

    def run(self, chooser: Chooser) -> _Output:
        """One run, on a target that has forgotten the last one."""
        self._target.reset()
        self._forwards = 0
        path: list[Choice] = getattr(chooser, "choices", [])
        try:
            with time_limit(self._seconds):
                output = self._decoder(self._target, list(self._prompt), self._length, chooser)
                # A generator does its work only here, where it is limited, too.
                tokens = _token_ids(output, self._length + OVER_BUDGET, path)
        except (KeyboardInterrupt, Misconduct, DecoderFault):
            raise
        except OutOfTime:
            what = f"was still running after {self._seconds:g} s, expected an end"
            raise DecoderFault("never ends", what, path) from None
        except BaseException as error:
            raised = getattr(chooser, "raised", None)
            if raised is not None:  # whatever the decoder made of it
                raise raised from None
            raise DecoderFault("crashed", _described(error), path) from error
        return _Output(tokens, self._forwards)

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        """Count the target's forward passes."""
        # On the class, not on the instance: a copy that the decoder makes must read into itself.
        model = type(self._target)
        extend = model.extend

        def counted(target: CausalLM, tokens: Sequence[int], rows: int | None = None) -> Tensor:
            self._forwards += target is self._target
            return extend(target, tokens, rows)

        with mock.patch.object(model, "extend", counted):
            yield


def _token_ids(output: object, most: int, path: Sequence[Choice]) -> Tokens:
    """The first ``most`` of the token ids that a decoder returned."""
    if not isinstance(output, Iterable):
        what = f"returned {_shown(output)}, expected the new token ids as a sequence of whole numbers"
        raise DecoderFault("bad output", what, path)
    tokens = []
    for item in itertools.islice(output, most):
        try:
            tokens.append(operator.index(item))
        except (TypeError, RuntimeError):  # the latter from a tensor that has no value
            what = f"returned {_shown(output)} with {_shown(item)} in it, expected whole numbers"
            raise DecoderFault("bad output", what, path) from None
    return tuple(tokens)


def _shown(thing: object) -> str:
    try:
        return f"{thing!r:.80}"
    except Exception:
        return f"a {type(thing).__name__}"


def _described(error: BaseException) -> str:
    """An exception and the line of the decoder that it comes from, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not _is_ours(Path(frame.filename))] or frames
    where = f"{Path(theirs[-1].filename).name}:{theirs[-1].lineno}"
    return f"{type(error).__name__} in {where}: {' '.join(str(error).split()) or 'without a message'}"


def _is_ours(file: Path) -> bool:
    """Whether a file belongs to the library's floors and the audit; the gallery stands for others."""
    return file.parent in (_PACKAGE, _PACKAGE / "audit") or file.name == "member.py"


def _watch(enumeration: Enumeration[_Output], visit: Visit[_Output], twins: GlobalTwins) -> None:
    """Walk a path again: nothing random may be drawn elsewhere, and the same has to come out."""
    again = None
    with watched() as found:
        try:
            again = enumeration.replay(visit)
        except Misconduct:
            if not found:
                raise
    if found:
        what = f"called {found[0]}, expected all chance to come from the chooser"
        raise DecoderFault("hidden randomness", what, visit.choices)
    if again is None or again.tokens != visit.outcome.tokens:
        _require_untouched(twins, visit.choices)
        what = "gave another output when it was run again with the same choices"
        raise DecoderFault("not repeatable", what, visit.choices)


def _require_untouched(twins: GlobalTwins, path: Sequence[Choice]) -> None:
    used = twins.used()
    if used:
        names = " and ".join(used)
        what = f"drew from or seeded the global generator of {names}, expected the chooser only"
        raise DecoderFault("hidden randomness", what, path)


def _bar(runner: _Runner, max_paths: int, progress: bool) -> tqdm[NoReturn]:
    """A progress bar over the paths; how many there are is estimated from a few."""
    total = None
    if progress:
        started = time.perf_counter()
        expected = estimate_paths(runner.run, PROBES)
        walked = min(expected, max_paths)
        seconds = walked * (time.perf_counter() - started) / PROBES
        if seconds > WORTH_A_WORD:
            over = f" for the {max_paths:,} likeliest of them" if expected > max_paths else ""
            tqdm.write(f"about {expected:,.0f} paths, about {seconds:.0f} s{over}", file=sys.stderr)
        total = round(walked)
    return tqdm(total=total, desc="paths (estimated)", disable=not progress, leave=False)

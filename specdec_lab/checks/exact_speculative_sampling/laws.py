"""The exact law of a small program's outcomes, and where two laws differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn, TypeVar

from torch import Tensor

from specdec_lab.audit.law import DecoderFault, output_law
from specdec_lab.checks.failure import CheckFailed
from specdec_lab.checks.harness import Attempt
from specdec_lab.enumeration import EnumeratingChooser, Enumeration, Misconduct
from specdec_lab.language_model import RandomLM
from specdec_lab.randomness import Chooser

CLOSE = 1e-6
"""Probability that two laws may differ by for rounding."""
MOST_PATHS = 400
"""Of a whole decoder; if there are more, shorter texts are walked."""
MOST_PATHS_OF_A_ROUND = 3000
SECONDS_PER_PATH = 4.0
Outcome = TypeVar("Outcome")
Tokens = tuple[int, ...]
Law = dict[Tokens, float]


class AskedChooser(Chooser):
    """The chooser as the learner's code gets it: what it is asked is noted.

    Args:
        attempt: whom to tell.
        chooser: who answers.
        most: how many questions there may be.
    """

    def __init__(self, attempt: Attempt, chooser: Chooser, most: float = float("inf")) -> None:
        self._attempt = attempt
        self._chooser = chooser
        self._most = most
        self.accepts = 0
        self.drawn: list[tuple[Tensor, int]] = []
        """(distribution, token) of every draw, in order."""

    @property
    def shown(self) -> str:
        """How a failure names it."""
        return "..."

    def accept(self, probability: float) -> bool:
        self.accepts += 1
        self._require_an_end()
        return self._chooser.accept(probability)

    def sample(self, distribution: Tensor) -> int:
        self._require_an_end()
        token = self._chooser.sample(distribution)
        self.drawn.append((distribution, token))
        return token

    def uniform(self) -> NoReturn:
        """What ``SeededChooser`` has besides, and no auditor can enumerate."""
        self._attempt.fail(
            "the chooser hands out no numbers. It answers two questions, `accept(probability)` and "
            "`sample(distribution)`, and an auditor answers them in every way there is."
        )

    def _require_an_end(self) -> None:
        questions = self.accepts + len(self.drawn)
        self._attempt.require(
            questions < self._most,
            f"after {questions} questions to the chooser there is no end in sight. A loop that never "
            "ends?",
        )


class Failures:
    """The first failure of the learner's code while somebody else runs it and catches everything."""

    def __init__(self) -> None:
        self.first: CheckFailed | None = None

    def note(self, failure: CheckFailed, chooser: Chooser) -> BaseException:
        """Note it, unless an auditor's chooser has only ended a hopeless path; what to raise."""
        raised = chooser.raised if isinstance(chooser, EnumeratingChooser) else None
        if raised is not None and not isinstance(raised, Misconduct):
            return raised
        self.first = self.first or failure
        return failure

    def explain(self, attempt: Attempt, fault: str, message: str) -> NoReturn:
        """Fail for what an auditor has found, in the learner's own terms."""
        if fault == "hidden randomness":
            what = message.partition(", expected")[0]
            attempt.fail(f"all chance has to come from the chooser: your code {what}.")
        if fault == "not repeatable":
            attempt.fail(
                "run again with the same answers from the chooser, your code goes another way. All "
                "chance has to come from the chooser, and each run has to start afresh."
            )
        if self.first is not None:
            raise self.first
        if fault == "never ends":
            attempt.fail(f"{message}. A loop that never ends?")
        attempt.fail(f"{message}.")


def walk(
    attempt: Attempt,
    run: Callable[[EnumeratingChooser], Outcome],
    failures: Failures,
    max_paths: int,
) -> Iterator[Outcome]:
    """What the learner's program gives along its likeliest paths."""
    try:
        for visit in Enumeration(run, max_paths=max_paths):  # type: ignore[arg-type]
            yield visit.outcome
    except Misconduct as misconduct:  # the learner's code may have caught it on its way
        failures.explain(attempt, misconduct.fault, str(misconduct))


def law_of(
    run: Callable[[EnumeratingChooser], Outcome], max_paths: int = MOST_PATHS_OF_A_ROUND
) -> dict[Outcome, float]:
    """Outcome -> probability, over every path of the chooser's answers."""
    law: dict[Outcome, float] = {}
    for visit in Enumeration(run, max_paths=max_paths):  # type: ignore[arg-type]
        law[visit.outcome] = law.get(visit.outcome, 0.0) + visit.probability
    return law


def law_of_yours(attempt: Attempt, run: Callable[[AskedChooser], Tokens], most_questions: int) -> Law:
    """The same of the learner's program, which may draw chance from elsewhere, or never end."""
    failures = Failures()

    def decode(_target: object, _prompt: Sequence[int], _length: int, chooser: Chooser) -> Tokens:
        try:
            return run(AskedChooser(attempt, chooser, most_questions))
        except CheckFailed as failure:
            raise failures.note(failure, chooser) from None

    try:
        output = output_law(
            decode,
            RandomLM(2),
            (0,),
            1,
            max_paths=MOST_PATHS_OF_A_ROUND,
            seconds_per_path=SECONDS_PER_PATH,
        )
    except DecoderFault as found:
        failures.explain(attempt, found.fault, found.message)
    return output.law


def apart(one: dict[Outcome, float], other: dict[Outcome, float]) -> dict[Outcome, float]:
    """Where two laws differ, the most first."""
    gaps = {key: one.get(key, 0.0) - other.get(key, 0.0) for key in one | other}
    far = {key: gap for key, gap in gaps.items() if abs(gap) > CLOSE}
    return dict(sorted(far.items(), key=lambda item: -abs(item[1])))


def the_same(yours: Iterable[dict[Outcome, float]], theirs: Iterable[dict[Outcome, float]]) -> bool:
    """Whether two programs have the same laws, case by case."""
    return all(not apart(mine, other) for mine, other in zip(yours, theirs, strict=True))

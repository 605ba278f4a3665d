"""Checks of the stopwatch, the prediction and the cost of verifying."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from statistics import mean, median

from specdec_lab import benchmark
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.toys import FakeDevice, SpyLM


@check(read="A time that can be trusted", closed=(benchmark,), reference=benchmark.median_seconds)
def median_seconds(attempt: Attempt, seed: int | None) -> None:
    """Warm-up left out, synchronised before each reading of the clock, median of the repeats."""
    cases = [
        (7, 0, [1.1, 7.0, 1.0, 1.4, 1.3, 1.2, 1.5]),
        (1, 1, [6.0, 2.0]),
        (5, 2, [9.0, 8.0, 1.0, 1.2, 7.0, 1.1, 1.3]),
    ]
    if seed is not None:
        random = Random(seed)
        cases = []
        for repeats, warmup in ((9, 0), (1, 2), (5, 1), (7, 3)):
            slow = [random.uniform(20.0, 30.0) for _ in range(warmup)]
            usual = [random.uniform(1.0, 2.0) for _ in range(repeats)]
            if repeats > 3:
                usual[random.randrange(repeats)] = random.uniform(40.0, 60.0)
            cases.append((repeats, warmup, slow + usual))
    for repeats, warmup, durations in cases:
        device = FakeDevice(durations)
        yours = attempt(
            device.run,
            repeats,
            warmup,
            device.clock,
            device.synchronize,
            shown={"run": "...", "repeats": repeats, "warmup": warmup},
        )
        timed = durations[warmup:]
        work = f"timed runs of {[round(time, 3) for time in timed]} s"
        if warmup:
            work = f"warm-up runs of {[round(time, 3) for time in durations[:warmup]]} s, then {work}"
        if device.calls != warmup + repeats:
            attempt.fail(
                f"`run` was called {device.calls} times, expected {warmup} + {repeats}: each warm-up "
                "and each repeat once."
            )
        seconds = attempt.number(yours)

        attempt.require(
            device.readings > 0,
            "`clock` was never called. Take the time from it, not from a clock of your own.",
        )
        if _near(seconds, [median(timed)]):
            continue
        problem = "this is not the median time of the timed runs."
        if seconds < 0.1:
            problem = (
                "the clock saw how long it takes to ask for the work, not to do it. Call `synchronize` "
                "before you read the clock at the end."
            )
        warm = sum(durations[:warmup])
        suspects = {
            "the first timed run includes work that the warm-up left behind. Call `synchronize` "
            "before you start the clock, too.": [median([warm + timed[0], *timed[1:]])],
            "that is the mean. One slow run (something else woke up) pulls it; take the median.": [
                mean(timed)
            ],
            "the warm-up runs are among the timed ones.": [
                median(durations),
                mean(durations),
                sorted(durations)[len(durations) // 2],
            ],
            "that is the time of all runs together, expected that of one.": [
                sum(timed),
                sum(durations),
            ],
            "that is the fastest run, expected the median.": [min(timed)],
            "that is the slowest run, expected the median.": [max(timed)],
            "that is a single run: the first, the last, or the one in the middle of the list as it was "
            "measured. The median is in the middle by size.": [
                timed[0],
                timed[-1],
                timed[repeats // 2],
            ],
        }
        problem = next((text for text, times in suspects.items() if _near(seconds, times)), problem)
        attempt.fail(problem, work=work, yours=f"{seconds:.4g}", expected=f"about {median(timed):.4g}")


def _near(seconds: float, times: list[float]) -> bool:
    return any(abs(seconds - time) < 0.02 for time in times)


@check(read="How much longer do eight tokens take?")
def predicted_v8(attempt: Attempt, seed: int | None) -> None:
    """Any positive number: the point is for having predicted."""
    guess = attempt.number(attempt.value)
    attempt.require(
        0.1 <= guess <= 100.0,
        f"a forward over eight tokens taking {guess:g} times as long as one over one token? Write a "
        "number between 0.1 and 100.",
    )


@check(
    read="The cost of verifying",
    closed=(benchmark,),
    reference=benchmark.verification_cost,
)
def verification_cost(attempt: Attempt, seed: int | None) -> None:
    """Each length behind the same context, over the time for one token."""
    cases = [(5, [1, 2, 8]), (3, [4, 16])]
    if seed is not None:
        random = Random(seed)
        cases = [(random.randint(2, 9), random.sample(range(2, 20), 4)), (0, [8, 1, 3])]
    for context, lengths in cases:
        model, tokens = SpyLM.make(context), [index % 6 for index in range(32)]
        if context:
            model.extend([0] * context)
            model.reads.clear()
            model.behind.clear()
        timer = _FakeTimer(attempt, model)
        yours = attempt(
            model,
            list(tokens),
            list(lengths),
            timer,
            shown={"model": model, "tokens": "[...]", "lengths": lengths, "seconds_of": "..."},
        )
        attempt.require(
            timer.used,
            "`seconds_of` was never called. It is the stopwatch here: give it a function to time.",
        )
        attempt.require(
            model.length >= context,
            f"the model has {model.length} tokens in its cache afterwards, expected the {context} that "
            "it came with: its context is gone.",
        )
        attempt.require(
            model.length == context,
            f"the model has {model.length} tokens in its cache afterwards, expected the {context} that "
            "it came with. Each forward leaves its tokens there: rewind.",
        )
        attempt.require(
            all(behind == context for behind in model.behind),
            "the call that you time is run several times, and the context grows from one time to the "
            "next. Rewind inside it.",
        )
        truth = {n: _fake_time(n, context) / _fake_time(1, context) for n in lengths}
        ratios = _by_length(attempt, yours, lengths)
        for n in lengths:
            attempt.same_number(
                ratios[n],
                truth[n],
                f"v({n}) is wrong.",
                suspects={
                    "these are seconds; divide by the time for one token.": _fake_time(n, context),
                    "you divide by n. v(n) is the time of the whole forward.": truth[n] / n,
                    "that is upside down: n tokens over one token.": 1 / truth[n],
                    "that is how much faster one pass is than n passes. v(n) is the time of the one "
                    "pass.": n / truth[n],
                    "you read all of `tokens`, whatever n is. Read the first n.": (
                        _fake_time(len(tokens), context) / _fake_time(1, context)
                    ),
                    "you divide by the first of `lengths`; divide by a forward over one token.": (
                        _fake_time(n, context) / _fake_time(lengths[0], context)
                    ),
                },
            )


def _fake_time(tokens: int, context: int) -> float:
    return 0.040 + 0.002 * tokens + 0.0005 * context


class _FakeTimer:
    """Runs a call three times, as a real timer would; seconds by what is read, and behind how much."""

    def __init__(self, attempt: Attempt, model: SpyLM) -> None:
        self.used = False
        self._attempt = attempt
        self._model = model

    def __call__(self, run: Callable[[], object]) -> float:
        self.used = True
        self._attempt.require(
            callable(run),
            "`seconds_of` was given the result of a pass. Give it a function, not called yet; it "
            "calls it.",
        )
        times = []
        for _ in range(3):
            before = len(self._model.reads)
            run()
            reads, behind = self._model.reads[before:], self._model.behind[before:]
            self._attempt.require(
                len(reads) == 1,
                f"the call that you time makes {len(reads)} passes. The n tokens are read in one.",
            )
            times.append(_fake_time(len(reads[0]), behind[0]))
        return median(times)


def _by_length(attempt: Attempt, yours: object, lengths: list[int]) -> dict[int, object]:
    """A dict as it is, or a list in the order of the lengths."""
    if isinstance(yours, Mapping):
        missing = [n for n in lengths if n not in yours]
        attempt.require(not missing, f"there is no entry for n = {missing}")
        return {n: yours[n] for n in lengths}
    values = attempt.row(yours, len(lengths)).tolist()
    return dict(zip(lengths, values, strict=True))

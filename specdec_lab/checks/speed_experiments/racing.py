"""The check of the race: how it is run, and what is made of the times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from random import Random
from statistics import geometric_mean, mean, median

from specdec_lab import benchmark
from specdec_lab.bench import runs
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.speed_experiments import answers
from specdec_lab.checks.speed_experiments.race import WARMING, FakeRace, Rounds, Track

CLOSE = 0.001
"""How far a speedup may be off: asking for rounds takes a little time, too."""


def _tracks(seed: int | None) -> Iterator[Track]:
    """An odd and an even number of turns, drawn until no misconception gives what another does."""
    random = Random(0 if seed is None else seed)
    for turns in (5, 4) if seed is None else (7, 6, 5):
        track = Track.random(random, turns)
        while not _told_apart(track):
            track = Track.random(random, turns)
        yield track


def _told_apart(track: Track) -> bool:
    truth, suspects = track.speedup(_pace), list(_suspects(track).values())
    if any(abs(wrong / truth - 1.0) < 5 * CLOSE for wrongs in suspects for wrong in wrongs):
        return False
    if track.turns % 2 == 0:  # the two in the middle are single turns, too
        return True
    return all(
        abs(one / other - 1.0) > 2.5 * CLOSE
        for these, those in combinations(suspects, 2)
        for one in these
        for other in those
    )


@check(read="A fair race", closed=(benchmark, runs), reference=answers.paired_speedup)
def paired_speedup(attempt: Attempt, seed: int | None) -> None:
    """Warmed up, in turns, synchronised, behind the prompt, per token, the median of the ratios."""
    for track in _tracks(seed):
        race = FakeRace(track)
        yours = attempt(
            race.plain,
            race.drafted,
            track.turns,
            race.clock,
            race.synchronize,
            shown={"plain": "...", "drafted": "...", "turns": track.turns},
        )
        _judge_runs(attempt, race)
        speedup, truth = attempt.number(yours), track.speedup(_pace)
        attempt.require(
            race.readings > 0,
            "`clock` was never called. Take the time from it, not from a clock of your own.",
        )
        if _near(speedup, truth):
            continue
        attempt.fail(
            _what_went_wrong(race, speedup),
            turns=f"speedups of {[round(one, 3) for one in track.speedups(_pace)]}",
            yours=f"{speedup:.4g}",
            expected=f"about {truth:.4g}",
        )


def _judge_runs(attempt: Attempt, race: FakeRace) -> None:
    """Each run to its end, one of each untimed, one of each in a turn."""
    turns = race.track.turns
    for run in race.started:
        attempt.require(
            run.asked > 0,
            f"`{run.name}` was called, but its rounds were never asked for. The call only starts a "
            "run; a round happens when the iterator is asked for it.",
        )
        attempt.require(
            run.asked == len(run.rounds),
            f"a {run.name} run was left after {run.asked} of its {len(run.rounds)} rounds. All runs go "
            "on to their end, the untimed ones, too.",
        )
    made = Counter(run.name for run in race.started)
    plain, drafted = made["plain"], made["drafted"]
    problem = (
        f"`plain` was run {plain} times and `drafted` {drafted} times, expected 1 + {turns} each: once "
        "untimed, then once a turn."
    )
    if plain == drafted == turns:
        problem = (
            "there is no warm-up: before the first turn, both run once, untimed. The first run of each "
            "pays for what happens only once."
        )
    elif plain == drafted == 2:
        problem = f"there is only one turn; {turns} are asked for, and the median of their speedups."
    elif {plain, drafted} == {turns, turns + 1}:
        warm = "plain" if plain > drafted else "drafted"
        problem = f"only `{warm}` is warmed up. Both run once, untimed, before the first turn."
    attempt.require(plain == drafted == turns + 1, problem)
    kinds = [run.name for run in race.order]
    in_turns = all(len({*kinds[i : i + 2]}) == 2 for i in range(0, len(kinds), 2))
    attempt.require(
        in_turns,
        "the runs do not take turns. This machine is fast now and slow a minute later; only runs right "
        "after one another meet the same: plain, drafted, plain, drafted, ...",
        order=", ".join(kinds),
    )


def _what_went_wrong(race: FakeRace, speedup: float) -> str:
    if not race.waits:
        return (
            "the clock saw how long it takes to ask for the work, not to do it. Call `synchronize` "
            "before you read the clock, both times."
        )
    if race.read_behind["first"]:
        return (
            "the first round was still going on when the clock was started, so its time is in yours. "
            "Call `synchronize` before you start the clock, too."
        )
    for text, wrongs in _suspects(race.track).items():
        if any(_near(speedup, wrong) for wrong in wrongs):
            return text
    if race.read_behind["later"]:
        return (
            "the clock was stopped while the device was still at work: it saw how long it takes to "
            "ask. Call `synchronize` before you read the clock at the end."
        )
    return "this is not the median of the turns' speedups."


def _suspects(track: Track) -> dict[str, list[float]]:
    """Misconception -> the speedups that it may give."""
    each = track.speedups(_pace)
    plain, drafted = track.times("plain", _pace), track.times("drafted", _pace)
    truth, turns = median(each), track.turns
    plain_rounds, drafted_rounds = track.rounds["plain"], track.rounds["drafted"]
    warm = _pace(plain_rounds) * WARMING["plain"] / (_pace(drafted_rounds) * WARMING["drafted"])
    in_the_middle = sorted(each)[(turns - 1) // 2 : turns // 2 + 1] if turns % 2 == 0 else []
    return {
        "with an even number of turns, the median lies halfway between the two in the "
        "middle.": in_the_middle,
        "that is upside down; it should be plain time over drafted time.": [
            1.0 / truth,
            median(1.0 / one for one in each),
        ],
        "the first round, which reads the prompt, is in the time. It is left out: drafts do not make a "
        "prompt's reading any faster.": [
            track.speedup(lambda rounds: _seconds(rounds) / _tokens(rounds[1:])),
            track.speedup(lambda rounds: _seconds(rounds) / _tokens(rounds)),
        ],
        "the time leaves the first round out, but its tokens are counted.": [
            track.speedup(lambda rounds: _seconds(rounds[1:]) / _tokens(rounds))
        ],
        "that is seconds per *round*. A drafted round emits several tokens: divide by the tokens.": [
            track.speedup(lambda rounds: _seconds(rounds[1:]) / len(rounds[1:])),
            track.speedup(lambda rounds: median(seconds for _, seconds in rounds[1:])),
        ],
        "those are the times of whole runs. They differ in their tokens: divide by them.": [
            track.speedup(lambda rounds: _seconds(rounds[1:]))
        ],
        "a run's pace is all its seconds over all its tokens, not the mean (or median) of its rounds' "
        "paces.": [
            track.speedup(lambda rounds: mean(seconds / tokens for tokens, seconds in rounds[1:])),
            track.speedup(lambda rounds: median(seconds / tokens for tokens, seconds in rounds[1:])),
        ],
        "nothing was timed: the rounds had all been asked for before the clock was started. Asking for "
        "a round is what does its work.": [
            _tokens(drafted_rounds[1:]) / _tokens(plain_rounds[1:]),
            _tokens(drafted_rounds) / _tokens(plain_rounds),
        ],
        "that is the mean. One disturbed turn pulls it; take the median.": [mean(each)],
        "that is the geometric mean; the median is asked for.": [geometric_mean(each)],
        "that is the median of the plain paces over that of the drafted ones. They may be of different "
        "turns; take the ratio in each turn first.": [median(plain) / median(drafted)],
        "the turns are added up, and the slow ones count most. Take the ratio in each turn, then the "
        "median.": [sum(plain) / sum(drafted)],
        "the untimed runs are among the timed ones. The first run of each is not like the others.": [
            median([warm, *each]),
            mean([warm, *each]),
        ],
        "that is the best turn. One lucky turn is not a speedup; take the median.": [max(each)],
        "that takes the quickest plain run and the quickest drafted one, of different turns.": [
            min(plain) / min(drafted)
        ],
        "that is a single turn: the first, the last, or the one in the middle as they were run. The "
        "median is in the middle by size.": [each[0], each[-1], each[turns // 2]],
        "that is by how much it is faster. A speedup of 1 means: as fast.": [truth - 1.0],
        "that is a pace. How many times the one is the other?": [median(plain), median(drafted)],
    }


def _near(speedup: float, other: float) -> bool:
    return abs(speedup - other) <= CLOSE * abs(other)


def _seconds(rounds: Rounds) -> float:
    return sum(seconds for _, seconds in rounds)


def _tokens(rounds: Rounds) -> int:
    return sum(tokens for tokens, _ in rounds)


def _pace(rounds: Rounds) -> float:
    return _seconds(rounds[1:]) / _tokens(rounds[1:])

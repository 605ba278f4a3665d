"""Whole generations in turns: decode a prompt in every way, and say how fast each was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import mean, quantiles
from typing import Any

from specdec_lab.bench.results import Row
from specdec_lab.records import Generation, Round

Decode = Callable[[], Generation]


def steady(made: Generation) -> list[Round]:
    """The rounds behind the first one, which reads the prompt; all of them if there is no other."""
    return made.rounds[1:] or made.rounds


def seconds_per_token(made: Generation) -> float:
    """Of a run behind its first round.

    Runs that stop at different lengths are compared, and each would spread the prompt over its own
    tokens.
    """
    rounds = steady(made)
    return sum(one.seconds.total for one in rounds) / sum(len(one.tokens) for one in rounds)


def decode_in_turns(
    contenders: Mapping[str, Decode],
    turns: int = 1,
    *,
    plain: str = "plain",
    between: int = 8,
    backwards: bool = False,
) -> dict[str, list[Generation]]:
    """Each contender's runs, one a turn; every other turn goes through them backwards.

    Args:
        contenders: name -> what decodes.
        turns: how often each decodes; ``plain`` does so more often.
        plain: the one that all others are compared with. It comes again after every few of them: its
            times are in every ratio, and so are its disturbances.
        between: how many.
        backwards: begin backwards, as for every other prompt.
    """
    others = [name for name in contenders if name != plain]
    order = [plain]
    for start in range(0, len(others), between):
        order += [*others[start : start + between], plain]
    made: dict[str, list[Generation]] = {name: [] for name in contenders}
    for turn in range(turns):
        for name in order if (turn % 2 == 0) != backwards else reversed(order):
            made[name].append(contenders[name]())
    return made


def described(runs: Sequence[Generation]) -> Row:
    """A contender's numbers on one prompt: times are means over its runs.

    Its runs make the same tokens in the same rounds; only times differ. ``block_efficiency``, ``alpha``
    and ``judged_at`` are of all rounds; the others leave out the first one, which reads the prompt.
    """
    first = runs[0]
    rounds = steady(first)
    judged, accepted = judged_tokens(first.rounds)
    row: dict[str, Any] = {
        "block_efficiency": first.metrics.block_efficiency,
        "alpha": accepted / judged if judged else None,
        "seconds_per_token": mean(map(seconds_per_token, runs)),
        "rounds": len(rounds),
        "tokens_per_round": sum(len(one.tokens) for one in rounds) / len(rounds),
        "drafted": {str(n): count for n, count in sorted(Counter(r.drafted for r in rounds).items())},
        "judged_at": _judged_at(first.rounds),
    }
    for part in ("draft", "verify", "rest"):
        row[f"{part}_seconds"] = mean(
            getattr(one.seconds, part) for made in runs for one in steady(made)
        )
    waits = [one.seconds.total for made in runs for one in steady(made)]
    row["wait_p50"], row["wait_p95"] = _percentiles(waits)
    return row


def judged_tokens(rounds: Sequence[Round]) -> tuple[int, int]:
    """How many drafted tokens were judged, and how many of those accepted."""
    counts = _judged_at(rounds)
    return sum(judged for judged, _ in counts), sum(accepted for _, accepted in counts)


def _judged_at(rounds: Sequence[Round]) -> list[tuple[int, int]]:
    """For each place in the draft: how many tokens were judged there, and how many accepted."""
    longest = max((one.drafted for one in rounds), default=0)
    verdicts = [
        [one.positions[i].accepted for one in rounds if one.drafted > i] for i in range(longest)
    ]
    counts = [(sum(v is not None for v in here), sum(v is True for v in here)) for here in verdicts]
    return [pair for pair in counts if pair[0]]


def _percentiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) == 1:
        return values[0], values[0]
    percentiles = quantiles(values, n=100, method="inclusive")
    return percentiles[49], percentiles[94]

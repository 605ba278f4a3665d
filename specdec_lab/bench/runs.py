"""Whole generations in turns: decode a prompt in every way, and say how fast each was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean, median
from typing import Any

from specdec_lab.bench.results import Row
from specdec_lab.records import Generation

Decode = Callable[[], Generation]


def seconds_per_token(made: Generation) -> float:
    """Of a run behind its first round, which reads the prompt; of all of it if there is no other.

    Runs that stop at different lengths are compared, and each would spread the prompt over its own
    tokens.
    """
    rounds = made.rounds[1:] or made.rounds
    return sum(one.seconds.total for one in rounds) / sum(len(one.tokens) for one in rounds)


def decode_in_turns(contenders: Mapping[str, Decode], turns: int) -> dict[str, list[Generation]]:
    """Each contender's runs, one a turn; every other turn goes through them backwards."""
    made: dict[str, list[Generation]] = {name: [] for name in contenders}
    for turn in range(turns):
        names = list(contenders)
        for name in names if turn % 2 == 0 else reversed(names):
            made[name].append(contenders[name]())
    return made


def described(runs: Sequence[Generation]) -> Row:
    """A contender's numbers on one prompt: times are medians over its runs."""
    metrics = [one.metrics for one in runs]
    first = metrics[0]

    def typical(name: str) -> float | None:
        values = [getattr(one, name) for one in metrics]
        return None if None in values else median(values)

    judged, accepted = judged_tokens(runs)
    times: dict[str, Any] = {
        name: typical(name)
        for name in (
            "inter_token_p50",
            "inter_token_p95",
            "draft_seconds",
            "verify_seconds",
            "rest_seconds",
        )
    }
    return {
        "seconds_per_token": mean(seconds_per_token(one) for one in runs),
        "new_tokens": first.new_tokens,
        "block_efficiency": first.block_efficiency,
        "acceptance_rate": first.acceptance_rate,
        "alpha": accepted / judged if judged else None,
        "position_acceptance": first.position_acceptance,
        **times,
    }


def judged_tokens(runs: Sequence[Generation]) -> tuple[int, int]:
    """How many drafted tokens were judged, and how many of those accepted."""
    verdicts = [
        position.accepted
        for made in runs
        for one in made.rounds
        for position in one.positions
        if position.accepted is not None
    ]
    return len(verdicts), sum(verdicts)

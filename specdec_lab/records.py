"""What a run leaves behind: drafts, rounds, generations, and the one place where metrics are defined.

Everything shown about a run (views, benchmarks, audits) is computed from these records and from
nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median, quantiles
from typing import Any, Literal

import torch
from torch import Tensor

from specdec_lab.distributions import require_distributions

Closing = Literal["replacement", "bonus", "plain"]
"""Where a round's last token comes from: the residual after a rejection, the target's last row after
a draft accepted whole, or the target alone because nothing was drafted."""

StopReason = Literal["end token", "stop string", "budget", "context limit"]


@dataclass(frozen=True)
class Draft:
    """A proposal: some tokens, and the distributions that they were really drawn from.

    Args:
        tokens: n drafted tokens.
        q: ``[n, vocab]``; or ``[n, kept]``, the columns of ``token_ids`` alone, if the others are zero.
        token_ids: ``[kept]``, ascending, on q's device: the tokens that q's columns stand for; None if
            column i is token i.

    Raises:
        ValueError: if q has another shape, or a row that is not a distribution.
    """

    tokens: list[int]
    q: Tensor
    token_ids: Tensor | None = None

    def __post_init__(self) -> None:
        if self.q.dim() != 2 or len(self.q) != len(self.tokens):
            raise ValueError(
                f"q: got shape {tuple(self.q.shape)} for {len(self.tokens)} drafted tokens, "
                f"expected [{len(self.tokens)}, vocab]"
            )
        if self.token_ids is not None and len(self.token_ids) != self.q.shape[1]:
            raise ValueError(
                f"token_ids: got {len(self.token_ids)} of them, expected one for each of the "
                f"{self.q.shape[1]} columns of q"
            )
        require_distributions("q", self.q)

    def __len__(self) -> int:
        return len(self.tokens)

    def q_of_tokens(self) -> list[float]:
        """q(x) of each drafted token x, in one transfer from the device."""
        if not self.tokens:
            return []
        tokens = torch.tensor(self.tokens, device=self.q.device)
        if self.token_ids is None:
            columns, covered = tokens, torch.ones_like(tokens, dtype=torch.bool)
        else:
            columns = torch.searchsorted(self.token_ids, tokens).clamp(max=len(self.token_ids) - 1)
            covered = self.token_ids[columns] == tokens
        probabilities: list[float] = (self.q.gather(1, columns[:, None])[:, 0] * covered).tolist()
        return probabilities

    def row(self, position: int, vocab_size: int) -> Tensor:
        """q at one position over the whole vocabulary, ``[vocab]``."""
        row = self.q[position]
        if self.token_ids is None:
            return row
        return row.new_zeros(vocab_size).index_copy_(0, self.token_ids, row)

    def until(self, end_ids: frozenset[int]) -> Draft:
        """The draft up to its first end token: what would follow could never be emitted."""
        for count, token in enumerate(self.tokens, start=1):
            if token in end_ids and count < len(self):
                return Draft(self.tokens[:count], self.q[:count], self.token_ids)
        return self


@dataclass(frozen=True)
class Top:
    """The largest entries of p, q and the residual at one position: (token, probability) pairs."""

    p: list[tuple[int, float]]
    q: list[tuple[int, float]]
    residual: list[tuple[int, float]]


@dataclass(frozen=True)
class Position:
    """One drafted token and what became of it.

    ``accepted`` is None, and so are p and the acceptance probability, for a token behind the first
    rejection: it was drafted, but never judged. ``uniform`` is None where no number was drawn.
    """

    token: int
    q: float
    p: float | None = None
    acceptance_probability: float | None = None
    uniform: float | None = None
    accepted: bool | None = None
    top: Top | None = None


@dataclass(frozen=True)
class Seconds:
    """Wall-clock seconds of one round: proposing, the target forward with its verdict, all else."""

    draft: float
    verify: float
    rest: float

    @property
    def total(self) -> float:
        return self.draft + self.verify + self.rest


@dataclass(frozen=True)
class Round:
    """One proposal and the one target forward that verified it.

    Args:
        positions: one per drafted token, in order.
        closing: the token behind the accepted ones; None if a stop came before it.
        closing_kind: where ``closing`` comes from; None with it.
        closing_top: with ``trace``, the distributions behind a bonus or plain token.
        fed: tokens the target read in this round's forward (the first round reads the prompt too).
        seconds: where the time went.
        stop_reason: on the last round, why the run ended; None before.
    """

    positions: tuple[Position, ...]
    closing: int | None
    closing_kind: Closing | None
    fed: int
    seconds: Seconds
    closing_top: Top | None = None
    stop_reason: StopReason | None = None

    @property
    def drafted(self) -> int:
        return len(self.positions)

    @property
    def accepted(self) -> int:
        return len(self.accepted_tokens)

    @property
    def accepted_tokens(self) -> list[int]:
        """The drafted tokens that were kept, in order."""
        return [position.token for position in self.positions if position.accepted]

    @property
    def tokens(self) -> list[int]:
        """The emitted tokens: those accepted, then the closing one."""
        return self.accepted_tokens + ([] if self.closing is None else [self.closing])

    def cut(self, count: int) -> Round:
        """The round as if it had ended with its ``count``-th emitted token (a stop came there)."""
        if count >= len(self.tokens):
            return self
        kept = self.positions[:count]
        return replace(self, positions=kept, closing=None, closing_kind=None, closing_top=None)


@dataclass(frozen=True)
class Metrics:
    """The numbers of one run. Only emitted tokens count: nothing behind a stop, nothing over budget.

    Args:
        new_tokens: tokens emitted.
        target_forwards: forward passes of the target, the prompt's included; equals the rounds.
        drafted: tokens proposed, those behind a rejection included, those cut off by a stop not.
        accepted: drafted tokens that were emitted.
        acceptance_rate: accepted / drafted; None when nothing was drafted.
        block_efficiency: new_tokens / target_forwards, the bonus or replacement token included.
        acceptance_histogram: number of rounds by how many tokens they accepted.
        position_acceptance: at index i, of the rounds that drafted more than i tokens, the share
            that accepted the token at i. The list ends with the last index that was ever judged.
        conditional_acceptance: the same, of the rounds that *judged* the token at i, that is, that
            accepted everything before it.
        seconds: sum over the rounds; the time a consumer spends between rounds is not in it.
        tokens_per_second: new_tokens / seconds, the prompt's forward included.
        time_to_first_token: seconds of the first round, which reads the prompt.
        inter_token_p50, inter_token_p95: percentiles of the seconds between one token's arrival and
            the next. The tokens of a round arrive together, so within a round they are 0.
        draft_seconds, verify_seconds, rest_seconds: median per round, the first round left out (it
            reads the prompt) unless it is the only one.
    """

    new_tokens: int
    target_forwards: int
    drafted: int
    accepted: int
    acceptance_rate: float | None
    block_efficiency: float | None
    acceptance_histogram: dict[int, int]
    position_acceptance: list[float]
    conditional_acceptance: list[float]
    seconds: float
    tokens_per_second: float | None
    time_to_first_token: float | None
    inter_token_p50: float | None
    inter_token_p95: float | None
    draft_seconds: float | None
    verify_seconds: float | None
    rest_seconds: float | None


def measure(rounds: Sequence[Round]) -> Metrics:
    """The metrics of a run, from its rounds."""
    new_tokens = sum(len(one.tokens) for one in rounds)
    drafted = sum(one.drafted for one in rounds)
    accepted = sum(one.accepted for one in rounds)
    seconds = sum(one.seconds.total for one in rounds)
    position_acceptance, conditional_acceptance = _acceptance_by_position(rounds)
    p50, p95 = _inter_token_percentiles(rounds)
    steady = [one.seconds for one in rounds[1:] or rounds]
    return Metrics(
        new_tokens=new_tokens,
        target_forwards=len(rounds),
        drafted=drafted,
        accepted=accepted,
        acceptance_rate=accepted / drafted if drafted else None,
        block_efficiency=new_tokens / len(rounds) if rounds else None,
        acceptance_histogram=dict(sorted(Counter(one.accepted for one in rounds).items())),
        position_acceptance=position_acceptance,
        conditional_acceptance=conditional_acceptance,
        seconds=seconds,
        tokens_per_second=new_tokens / seconds if seconds else None,
        time_to_first_token=rounds[0].seconds.total if rounds else None,
        inter_token_p50=p50,
        inter_token_p95=p95,
        draft_seconds=median(part.draft for part in steady) if steady else None,
        verify_seconds=median(part.verify for part in steady) if steady else None,
        rest_seconds=median(part.rest for part in steady) if steady else None,
    )


def _acceptance_by_position(rounds: Sequence[Round]) -> tuple[list[float], list[float]]:
    longest = max((one.drafted for one in rounds), default=0)
    of_drafted, of_judged = [], []
    for index in range(longest):
        here = [one.positions[index] for one in rounds if one.drafted > index]
        judged = [position.accepted for position in here if position.accepted is not None]
        if not judged:
            break
        of_drafted.append(sum(judged) / len(here))
        of_judged.append(sum(judged) / len(judged))
    return of_drafted, of_judged


def _inter_token_percentiles(rounds: Sequence[Round]) -> tuple[float | None, float | None]:
    arrivals, clock = [], 0.0
    for one in rounds:
        clock += one.seconds.total
        arrivals.extend([clock] * len(one.tokens))
    gaps = [later - earlier for earlier, later in pairwise(arrivals)]
    if not gaps:
        return None, None
    if len(gaps) == 1:
        return gaps[0], gaps[0]
    percentiles = quantiles(gaps, n=100, method="inclusive")
    return percentiles[49], percentiles[94]


@dataclass(frozen=True)
class Generation:
    """A finished run.

    Args:
        prompt_tokens: the prompt's token ids.
        tokens: the new token ids, the end token included if there was one.
        text: the new text up to the end of a stop string, special tokens left out; None without a
            tokenizer.
        rounds: the record, one entry per target forward.
        stop_reason: why the run ended.
        seed: repeats the run; None if the caller brought the chooser.
        simulated: True if anything in it was scripted instead of decoded; every view says so.
        provenance: where the numbers come from (see ``specdec_lab.provenance``).
    """

    prompt_tokens: list[int]
    tokens: list[int]
    text: str | None
    rounds: list[Round]
    stop_reason: StopReason
    seed: int | None = None
    simulated: bool = False
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def metrics(self) -> Metrics:
        return measure(self.rounds)

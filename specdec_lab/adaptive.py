"""A draft length that follows what happens: long where drafts are accepted, none where it does not pay.

``AdaptiveGamma`` is what ``gamma`` may be: a function from the rounds so far to the next draft length.
It looks at the past only, never at p or q where the next tokens stand, so the output keeps the target's
distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from specdec_lab.benchmark import context_of, take_turns
from specdec_lab.drafters import Drafter, ModelDrafter, NGramDrafter
from specdec_lab.language_model import CausalLM
from specdec_lab.records import Round
from specdec_lab.theory import expected_tokens_per_round

NEGLIGIBLE = 1e-3
"""Weight of a round that is too long ago to count."""


@dataclass(frozen=True)
class Costs:
    """What a round costs, in steps of the target.

    Args:
        c: one drafted token.
        v: n -> a forward over n tokens; between two n it is taken to be a straight line.
    """

    c: float
    v: Mapping[int, float]

    def of(self, gamma: int) -> float:
        """A round with ``gamma`` drafted tokens."""
        return gamma * self.c + self._v(gamma + 1)

    def _v(self, n: int) -> float:
        known = sorted(self.v)
        below = max((one for one in known if one <= n), default=known[0])
        above = min((one for one in known if one >= n), default=known[-1])
        if below == above:
            return self.v[below]
        share = (n - below) / (above - below)
        return (1.0 - share) * self.v[below] + share * self.v[above]


def measure_costs(
    target: CausalLM, drafter: Drafter, longest: int = 8, context: int = 128, repeats: int = 5
) -> Costs:
    """c and v(n) behind some tokens (a second for 135M parameters on a CPU).

    Both models are reset. Looking n-grams up is taken to cost nothing.

    Raises:
        ValueError: for a drafter whose steps cannot be timed.
    """
    lengths = [n for n in (1, 2, 3, 4, 5, 6, 9, 12, 17, 25, 33) if n <= longest + 1]
    if isinstance(drafter, NGramDrafter):
        return time_steps(target, {}, lengths, context, repeats)["v"]
    if not isinstance(drafter, ModelDrafter):
        raise ValueError(
            f"drafter: got {type(drafter).__name__}, expected one that drafts by a model or by look-up"
        )
    return time_steps(target, {"draft": drafter.model}, lengths, context, repeats)["draft"]


def time_steps(
    target: CausalLM,
    drafts: Mapping[str, CausalLM],
    lengths: Sequence[int],
    context: int = 128,
    repeats: int = 5,
) -> dict[str, Costs]:
    """The costs of some draft models on one target: all steps in turns, each model reset.

    Returns:
        By name; and as "v" those of a drafter that costs nothing.
    """
    tokens = context_of(context, target.vocab_size)
    for model in (target, *drafts.values()):
        model.reset()
        model.extend(tokens, rows=1)

    def verifying(count: int) -> Callable[[], None]:
        def step() -> None:
            target.extend(tokens[:count])
            target.rewind(context)

        return step

    def drafting(model: CausalLM) -> Callable[[], None]:
        def step() -> None:
            model.extend_kept(tokens[:1])
            model.rewind(context)

        return step

    steps = {f"v {n}": verifying(n) for n in (1, *lengths)}
    steps |= {name: drafting(model) for name, model in drafts.items()}
    seconds = take_turns(steps, repeats, synchronize=target.synchronize)
    for model in (target, *drafts.values()):
        model.reset()
    one = median(seconds["v 1"])
    v = {n: median(seconds[f"v {n}"]) / one for n in (1, *lengths)}
    return {name: Costs(median(seconds[name]) / one, v) for name in drafts} | {"v": Costs(0.0, v)}


@dataclass
class AdaptiveGamma:
    """The draft length with the highest expected speedup, by the recent acceptance and given costs.

    Expected speedup is that of Leviathan et al. 2023, theorem 3.8, with the cost of verifying in it. If
    even the best promises less than ``margin``, it drafts nothing for ``patience`` rounds, then tries
    a single token, and waits twice as long after each try that fails.

    Args:
        costs: of the pair on this machine, as ``measure_costs`` gives them.
        longest: the largest draft length.
        first_guess: alpha before anything was judged; it counts as ``weight`` judged tokens.
        weight: see there.
        memory: the share of its weight that a judged token keeps from round to round.
        margin: the expected speedup that it drafts for.
        patience: rounds without drafts after the first disappointment.
    """

    costs: Costs
    longest: int = 8
    first_guess: float = 0.5
    weight: float = 3.0
    memory: float = 0.9
    margin: float = 1.0
    patience: int = 8
    _pause: int = field(default=0, init=False)
    _wait: int = field(default=0, init=False)

    def __call__(self, rounds: Sequence[Round]) -> int:
        """The next round's draft length; 0 is "do not draft"."""
        if self.best(1.0)[1] < self.margin:  # not even if every token were accepted
            return 0
        if not rounds:  # a new generation
            self._pause, self._wait = 0, self.patience
        elif self._pause > 0:
            self._pause -= 1
            return 0 if self._pause else 1
        length, promised = self.best(self.alpha(rounds))
        if promised >= self.margin:
            self._wait = self.patience
            return length
        self._pause, self._wait = self._wait, 2 * self._wait
        return 0

    def alpha(self, rounds: Sequence[Round]) -> float:
        """The acceptance at one position: of the recent past, and before it of the first guess."""
        accepted, judged, weight = 0.0, 0.0, 1.0
        for one in reversed(rounds):
            verdicts = [p.accepted for p in one.positions if p.accepted is not None]
            if weight < NEGLIGIBLE:
                break
            if verdicts:
                accepted += weight * sum(verdicts)
                judged += weight * len(verdicts)
                weight *= self.memory
        guessed = weight * self.weight
        if judged + guessed == 0.0:
            return self.first_guess
        return (accepted + guessed * self.first_guess) / (judged + guessed)

    def best(self, alpha: float) -> tuple[int, float]:
        """The draft length that promises most at this acceptance, and what it promises."""
        length = max(range(1, self.longest + 1), key=lambda gamma: self.speedup(alpha, gamma))
        return length, self.speedup(alpha, length)

    def speedup(self, alpha: float, gamma: int) -> float:
        """What a draft length promises at this acceptance."""
        return expected_tokens_per_round(alpha, gamma) / self.costs.of(gamma)

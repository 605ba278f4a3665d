"""Expected tokens of a round."""

import numpy as np
import torch

from specdec_lab import theory
from specdec_lab.course.mutants import right, wrong


@wrong("the sum ends one term early", says="one term is missing")
def without_bonus(alpha, gamma):
    return sum(alpha**i for i in range(gamma))


@wrong("the closed formula with gamma for gamma + 1", says="one term is missing")
def closed_one_short(alpha, gamma):
    return (1 - alpha**gamma) / (1 - alpha)


@wrong("accepted tokens only", says="how many drafted tokens are kept. A round emits one more")
def accepted_only(alpha, gamma):
    return sum(alpha**i for i in range(1, gamma + 1))


@wrong("one term too many", says="one term too many")
def one_too_many(alpha, gamma):
    return sum(alpha**i for i in range(gamma + 2))


@wrong("each token kept by itself", says="even behind a rejected one")
def independent(alpha, gamma):
    return gamma * alpha + 1


@wrong("alpha times the longest round", says="alpha times what could come out")
def share_of_the_longest(alpha, gamma):
    return (gamma + 1) * alpha


@wrong("alpha times the draft", says="alpha times the draft")
def share_of_the_draft(alpha, gamma):
    return gamma * alpha


@wrong("whole drafts only", says="only the rounds in which the whole draft is kept")
def whole_drafts_only(alpha, gamma):
    return alpha**gamma * (gamma + 1)


@wrong("a whole draft or nothing", says="a whole draft or nothing")
def whole_or_nothing(alpha, gamma):
    return 1 + gamma * alpha**gamma


@wrong("length times chance, the full draft forgotten", says="whole draft is kept are missing")
def full_draft_forgotten(alpha, gamma):
    return sum((i + 1) * alpha**i * (1 - alpha) for i in range(gamma))


@wrong("lengths times chances of reaching them", says="do not multiply with the length")
def length_times_reached(alpha, gamma):
    return sum((i + 1) * alpha**i for i in range(gamma + 1))


@wrong("everything is kept", says="Where is alpha")
def all_kept(alpha, gamma):
    return gamma + 1


@wrong("the chance of a whole draft", says="the chance that the whole draft is kept")
def chance(alpha, gamma):
    return alpha**gamma


@wrong("a draft without end", says="a draft without end")
def without_end(alpha, gamma):
    return 1 / (1 - alpha)


@wrong("the closed formula's numerator", says="division by 1 - alpha")
def numerator(alpha, gamma):
    return 1 - alpha ** (gamma + 1)


@wrong("alpha as the chance of a rejection", says="1 - alpha is the chance of a rejection")
def turned_round(alpha, gamma):
    return sum((1 - alpha) ** i for i in range(gamma + 1))


@wrong("the closed formula everywhere", says="(?s)ZeroDivisionError.*tokens_per_round[(]alpha=1,")
def closed_everywhere(alpha, gamma):
    return (1 - alpha ** (gamma + 1)) / (1 - alpha)


@wrong("the closed formula in numpy", says="the closed formula is 0 / 0")
def closed_in_numpy(alpha, gamma):
    alpha = np.float64(alpha)
    return (1 - alpha ** (gamma + 1)) / (1 - alpha)


@wrong("the closed formula in torch", says="the closed formula is 0 / 0")
def closed_in_torch(alpha, gamma):
    alpha = torch.tensor(alpha, dtype=torch.float64)
    return (1 - alpha ** (gamma + 1)) / (1 - alpha)


@wrong("alpha 1 treated apart, without the bonus", says="every drafted token is kept, and the bonus")
def bonus_forgotten_at_one(alpha, gamma):
    return gamma if alpha == 1 else (1 - alpha ** (gamma + 1)) / (1 - alpha)


@wrong("a division by nearly nothing", says="every drafted token is kept, and the bonus")
def with_epsilon(alpha, gamma):
    return (1 - alpha ** (gamma + 1)) / (1 - alpha + 1e-12)


@wrong("alpha 0 gives nothing", says="the round emits the replacement alone")
def nothing_at_zero(alpha, gamma):
    return sum(alpha**i for i in range(gamma + 1)) if alpha else 0


@wrong("gamma 0 gives nothing", says="the one token of a plain step")
def nothing_without_draft(alpha, gamma):
    return sum(alpha**i for i in range(gamma + 1)) if gamma else 0


@wrong("rounded", says="without rounding")
def rounded(alpha, gamma):
    return round(sum(alpha**i for i in range(gamma + 1)), 2)


@wrong("a whole number of tokens", says="A mean need not be a whole number")
def whole(alpha, gamma):
    return round(sum(alpha**i for i in range(gamma + 1)))


@wrong("simulated", says="without drawing samples")
def simulated(alpha, gamma):
    random = np.random.default_rng(0)
    kept = (random.random((200_000, gamma)) < alpha).cumprod(axis=1)
    return 1 + kept.sum(axis=1).mean()


@wrong("all terms", says="a list of 5, expected a number")
def all_terms(alpha, gamma):
    return [alpha**i for i in range(gamma + 1)]


@wrong("prints", says="Is there a `return`")
def prints(alpha, gamma):
    print(sum(alpha**i for i in range(gamma + 1)))


@wrong("calls the library", says="calls the library's `expected_tokens_per_round`")
def calls_the_library(alpha, gamma):
    return theory.expected_tokens_per_round(alpha, gamma)


@wrong("calls the library for the accepted ones", says="calls the library's `expected_accepted`")
def calls_the_library_for_less(alpha, gamma):
    return 1 + theory.expected_accepted(alpha, gamma)


@wrong("still the stub", says="^✗ tokens_per_round: not implemented yet")
def stub(alpha, gamma):
    raise NotImplementedError


@right("the closed formula, alpha 1 apart")
def closed(alpha, gamma):
    return gamma + 1 if alpha == 1 else (1 - alpha ** (gamma + 1)) / (1 - alpha)


@right("length times chance")
def by_length(alpha, gamma):
    replaced = sum((i + 1) * alpha**i * (1 - alpha) for i in range(gamma))
    return replaced + (gamma + 1) * alpha**gamma


@right("Horner")
def horner(alpha, gamma):
    tokens = 1
    for _ in range(gamma):
        tokens = 1 + alpha * tokens
    return tokens


@right("recursion")
def recursive(alpha, gamma):
    return 1 + alpha * recursive(alpha, gamma - 1) if gamma else 1


@right("numpy")
def with_numpy(alpha, gamma):
    return np.sum(np.float64(alpha) ** np.arange(gamma + 1))


@right("torch")
def with_torch(alpha, gamma):
    return torch.tensor([1.0] + [alpha] * gamma, dtype=torch.float64).cumprod(0).sum()

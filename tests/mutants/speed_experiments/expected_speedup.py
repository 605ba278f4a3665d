"""The speedup that theory promises."""

import numpy as np
import torch

from specdec_lab import theory
from specdec_lab.adaptive import AdaptiveGamma, Costs
from specdec_lab.checks.speed_experiments import answers
from specdec_lab.course.mutants import right, wrong


@wrong("v of gamma tokens", says="the pass reads gamma [+] 1 tokens, the last one of the text")
def one_less(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * c + v[max(gamma, 1)])


@wrong("v of gamma + 2 tokens", says="one too far")
def one_more(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * c + v[gamma + 2])


@wrong("the entry at that place in v", says="Its lengths may have gaps")
def by_place(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * c + list(v.values())[gamma])


@wrong("v is 1", says="v is not used")
def without_v(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * c + 1)


@wrong("the drafts are free", says="the drafting is missing")
def free_drafts(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / v[gamma + 1]


@wrong("the pass is free", says="the pass that verifies is missing")
def free_pass(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * c)


@wrong("gamma + 1 drafted tokens", says="only gamma tokens are drafted")
def one_draft_more(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / ((gamma + 1) * c + v[gamma + 1])


@wrong("one drafted token", says="c is the time of [*]one[*] drafted token")
def one_draft(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (c + v[gamma + 1])


@wrong("upside down", says="upside down")
def upside_down(alpha, gamma, c, v, tokens_per_round):
    return (gamma * c + v[gamma + 1]) / tokens_per_round(alpha, gamma)


@wrong("accepted tokens", says="The round emits one more")
def accepted(alpha, gamma, c, v, tokens_per_round):
    return (tokens_per_round(alpha, gamma) - 1) / (gamma * c + v[gamma + 1])


@wrong("everything is kept", says="takes every drafted token to be kept")
def all_kept(alpha, gamma, c, v, tokens_per_round):
    return (gamma + 1) / (gamma * c + v[gamma + 1])


@wrong("a pass for each drafted token", says="you pay for one per drafted token")
def pass_for_each(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * (c + v[gamma + 1]))


@wrong("gamma + 1 plain steps", says="gamma [+] 1 passes over one token")
def plain_steps(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * c + gamma + 1)


@wrong("a plain step besides", says="one pass of the target too many")
def plain_step_besides(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * c + v[gamma + 1] + 1)


@wrong("v for each row", says="share one v.gamma [+] 1.: do not multiply")
def v_for_each(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * c + (gamma + 1) * v[gamma + 1])


@wrong("no parentheses at all", says="parentheses are missing")
def no_parentheses(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / gamma * c + v[gamma + 1]


@wrong("parentheses around too little", says="only the drafting is below the line")
def too_few_parentheses(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * c) + v[gamma + 1]


@wrong("a difference", says="that is the difference")
def difference(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) - (gamma * c + v[gamma + 1])


@wrong("the gain", says="by how much it is faster")
def gain(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * c + v[gamma + 1]) - 1


@wrong("percent", says="in percent")
def percent(alpha, gamma, c, v, tokens_per_round):
    return 100 * tokens_per_round(alpha, gamma) / (gamma * c + v[gamma + 1])


@wrong("the cost", says="what the round costs. What does it emit")
def cost(alpha, gamma, c, v, tokens_per_round):
    return gamma * c + v[gamma + 1]


@wrong("the tokens", says="What do they cost")
def tokens(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma)


@wrong("nothing for gamma 0", says="with gamma 0 nothing is drafted")
def nothing_without_draft(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * c + v[gamma + 1]) if gamma else 0


@wrong("v as a function", says="TypeError: 'dict' object is not callable")
def v_as_a_function(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / (gamma * c + v(gamma + 1))


@wrong("calls the library's formula", says="calls the library's `expected_speedup`")
def calls_the_library(alpha, gamma, c, v, tokens_per_round):
    return theory.expected_speedup(alpha, gamma, c, v[gamma + 1])


@wrong("calls the adaptive drafting", says="calls the library's `AdaptiveGamma.speedup`")
def calls_the_adaptive(alpha, gamma, c, v, tokens_per_round):
    return AdaptiveGamma(Costs(c, v)).speedup(alpha, gamma)


@wrong("calls the library's costs", says="calls the library's `Costs.of`")
def calls_the_costs(alpha, gamma, c, v, tokens_per_round):
    return tokens_per_round(alpha, gamma) / Costs(c, v).of(gamma)


@wrong("calls the reference", says="calls the library's `expected_speedup`")
def calls_the_reference(alpha, gamma, c, v, tokens_per_round):
    return answers.expected_speedup(alpha, gamma, c, v)


@wrong("still the stub", says="^✗ expected_speedup: not implemented yet")
def stub(alpha, gamma, c, v, tokens_per_round):
    raise NotImplementedError


@right("works the tokens out again")
def on_its_own(alpha, gamma, c, v, tokens_per_round):
    return sum(alpha**i for i in range(gamma + 1)) / (gamma * c + v[gamma + 1])


@right("takes the notebook's function, not the one that is handed in")
def with_the_notebooks(alpha, gamma, c, v, tokens_per_round):
    return answers.tokens_per_round(alpha, gamma) / (gamma * c + v[gamma + 1])


@right("time per token of plain decoding over that of drafting")
def by_time_per_token(alpha, gamma, c, v, tokens_per_round):
    if gamma == 0:
        return 1.0
    emitted = tokens_per_round(alpha=alpha, gamma=gamma)
    return v[1] / ((sum([c] * gamma) + v[gamma + 1]) / emitted)


@right("interpolates v, in numpy")
def interpolated(alpha, gamma, c, v, tokens_per_round):
    known = sorted(v)
    verify = np.interp(gamma + 1, known, [v[n] for n in known])
    return np.divide(tokens_per_round(alpha, gamma), gamma * c + verify)


@right("torch")
def with_torch(alpha, gamma, c, v, tokens_per_round):
    cost = torch.tensor([c] * gamma + [v[gamma + 1]], dtype=torch.float64).sum()
    return tokens_per_round(alpha, gamma) / cost

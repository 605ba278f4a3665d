"""The law of one step, under any two rules."""

import numpy as np
import torch

from specdec_lab.audit import audit_step
from specdec_lab.checks import references
from specdec_lab.course.mutants import right, wrong


def _chances(p, q, acceptance):
    pairs = zip(p.tolist(), q.tolist(), strict=True)
    return torch.tensor([acceptance(x, y) if y > 0 else 0.0 for x, y in pairs], dtype=q.dtype)


@wrong("not written", says=r"^✗ step_law: not implemented yet")
def not_written(p, q, acceptance, residual):
    raise NotImplementedError


@wrong("p, as it ought to be", says="that is p\\. It is what \\*ought\\*")
def assumes_p(p, q, acceptance, residual):
    return p.clone()


@wrong("the right rules, whatever came in", says="that is p\\. It is what \\*ought\\*")
def own_rules(p, q, acceptance, residual):
    lacking = (p - q).clamp(min=0.0)
    return torch.minimum(p, q) + (lacking if lacking.sum() > 0 else 0.0)


@wrong("its own residual", says="expected|probabilities")
def own_residual(p, q, acceptance, residual):
    accepted, lacking = q * _chances(p, q, acceptance), (p - q).clamp(min=0.0)
    return accepted + (1 - accepted.sum()) * lacking / lacking.sum()


@wrong("draws again from p", says="whatever `residual` says")
def again_from_p(p, q, acceptance, residual):
    accepted = q * _chances(p, q, acceptance)
    return accepted + (1 - accepted.sum()) * p


@wrong("accepted only", says="only what was accepted")
def accepted_only(p, q, acceptance, residual):
    return q * _chances(p, q, acceptance)


@wrong("replaced only", says="only what was replaced")
def replaced_only(p, q, acceptance, residual):
    return (1 - (q * _chances(p, q, acceptance)).sum()) * residual(p, q)


@wrong("residual not weighted", says="weight it with the rejection mass")
def unweighted(p, q, acceptance, residual):
    return q * _chances(p, q, acceptance) + residual(p, q)


@wrong("scaled up", says="scaled up to 1")
def scaled_up(p, q, acceptance, residual):
    accepted = q * _chances(p, q, acceptance)
    return accepted / accepted.sum()


@wrong("acceptance weighted with p", says="weighted with p")
def weighted_with_p(p, q, acceptance, residual):
    accepted = p * _chances(p, q, acceptance)
    return accepted + (1 - accepted.sum()) * residual(p, q)


@wrong("each with its own rejection mass", says="its own rejection\\.")
def own_rejection(p, q, acceptance, residual):
    chance = _chances(p, q, acceptance)
    return q * chance + q * (1 - chance) * residual(p, q)


@wrong("each with its own chance to be rejected", says="its own chance to be rejected")
def own_chance(p, q, acceptance, residual):
    chance = _chances(p, q, acceptance)
    return q * chance + (1 - chance) * residual(p, q)


@wrong("adds what was rejected back to itself", says="\\*its own\\* rejections")
def back_to_itself(p, q, acceptance, residual):
    chance = _chances(p, q, acceptance)
    return q * chance + q * (1 - chance)


@wrong("mean rejection", says="rejection mass is wrong: 1 minus")
def mean_rejection(p, q, acceptance, residual):
    chance = _chances(p, q, acceptance)
    return q * chance + (1 - chance.mean()) * residual(p, q)


@wrong("sum of rejections", says="do not count alike")
def sum_of_rejections(p, q, acceptance, residual):
    chance = _chances(p, q, acceptance)
    return q * chance + (1 - chance).sum() * residual(p, q)


@wrong("alpha for the rejection mass", says="what was accepted is not the rejection mass")
def alpha_for_mass(p, q, acceptance, residual):
    accepted = q * _chances(p, q, acceptance)
    return accepted + accepted.sum() * residual(p, q)


@wrong("chances not weighted with q", says="not yet weighted with q")
def not_weighted(p, q, acceptance, residual):
    chance = _chances(p, q, acceptance)
    return chance + (1 - (q * chance).sum()) * residual(p, q)


@wrong("chances not weighted with q at all", says="not yet weighted with q; it makes")
def nothing_weighted(p, q, acceptance, residual):
    chance = _chances(p, q, acceptance)
    return chance + (1 - chance.sum()) * residual(p, q)


@wrong("residual of q and p", says="exchanged in `residual`")
def residual_exchanged(p, q, acceptance, residual):
    accepted = q * _chances(p, q, acceptance)
    return accepted + (1 - accepted.sum()) * residual(q, p)


@wrong("acceptance of q and p", says="exchanged in `acceptance`")
def acceptance_exchanged(p, q, acceptance, residual):
    pairs = zip(p.tolist(), q.tolist(), strict=True)
    chance = torch.tensor([acceptance(y, x) if x > 0 else 1.0 for x, y in pairs])
    return q * chance + (1 - (q * chance).sum()) * residual(p, q)


@wrong("both exchanged", says="exchanged in both rules")
def both_exchanged(p, q, acceptance, residual):
    pairs = zip(p.tolist(), q.tolist(), strict=True)
    chance = torch.tensor([acceptance(y, x) if x > 0 else 1.0 for x, y in pairs])
    return q * chance + (1 - (q * chance).sum()) * residual(q, p)


@wrong("asks about tokens that are never drafted", says="asked about a token with q\\(x\\) = 0")
def asks_about_all(p, q, acceptance, residual):
    pairs = zip(p.tolist(), q.tolist(), strict=True)
    accepted = q * torch.tensor([acceptance(x, y) for x, y in pairs])
    return accepted + (1 - accepted.sum()) * residual(p, q)


@wrong("whole rows into the rule", says="takes two numbers, and got a whole row")
def whole_rows(p, q, acceptance, residual):
    accepted = q * acceptance(p, q)
    return accepted + (1 - accepted.sum()) * residual(p, q)


@wrong("leaves out what is never drafted", says="raised RuntimeError|expected \\d numbers")
def too_short(p, q, acceptance, residual):
    pairs = zip(p.tolist(), q.tolist(), strict=True)
    accepted = torch.tensor([y * acceptance(x, y) for x, y in pairs if y > 0]).double()
    return accepted + (1 - accepted.sum()) * residual(p, q)


@wrong("plays it 20,000 times", says="without drawing samples")
def plays(p, q, acceptance, residual):
    generator = torch.Generator().manual_seed(1)
    drafted = torch.multinomial(q, 20000, True, generator=generator)
    kept = torch.rand(20000, generator=generator) < _chances(p, q, acceptance)[drafted]
    again = torch.multinomial(residual(p, q), 20000, True, generator=generator)
    return torch.bincount(torch.where(kept, drafted, again), minlength=len(p)).double() / 20000


@wrong("one number", says="expected 2 numbers")
def one_number(p, q, acceptance, residual):
    return (q * _chances(p, q, acceptance)).sum()


@wrong("changes q", says="your code changes what it was given")
def changes_q(p, q, acceptance, residual):
    q *= _chances(p, q, acceptance)
    return q + (1 - q.sum()) * residual(p, q)


@wrong("calls the library's audit", says="calls the library's `audit_step`")
def calls_the_library(p, q, acceptance, residual):
    return audit_step(p, q, acceptance=acceptance, residual=residual).final_mass


@wrong("calls the reference", says="calls the library's `step_law`")
def calls_the_reference(p, q, acceptance, residual):
    return references.step_law(p, q, acceptance, residual)


@wrong("its own acceptance", says="`acceptance` that was handed in is not used")
def own_acceptance(p, q, acceptance, residual):
    kept = torch.minimum(p, q)
    return kept + (1 - kept.sum()) * residual(p, q)


@wrong("its own residual, with care", says="`residual` that was handed in is not used")
def own_residual_with_care(p, q, acceptance, residual):
    accepted, lacking = q * _chances(p, q, acceptance), (p - q).clamp(min=0.0)
    lacking = lacking / lacking.sum() if lacking.sum() > 0 else p
    return accepted + (1 - accepted.sum()) * lacking


@wrong("residual alone", says="that is the residual alone")
def residual_alone(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    accepted, rest = q * chances, residual(p, q)
    return rest + 0 * accepted


@wrong("residual not weighted, scaled", says="Scaling the sum to 1 does not mend it")
def not_weighted_scaled(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    accepted, rest = q * chances, residual(p, q)
    return (accepted + rest) / (accepted + rest).sum()


@wrong("half and half", says="that is the average")
def average(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    accepted, rest = q * chances, residual(p, q)
    return (accepted + rest) / 2


@wrong("the right rule's rejection mass", says="under \\*this\\* rule")
def right_rules_mass(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    accepted, rest = q * chances, residual(p, q)
    return accepted + (1 - torch.minimum(p, q).sum()) * rest


@wrong("rejection mass weighted with p", says="the rejection mass is weighted with p")
def mass_weighted_with_p(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    accepted, rest = q * chances, residual(p, q)
    return accepted + (1 - (p * chances).sum()) * rest


@wrong("mean rejection of what may be drafted", says="it is no mean")
def mean_of_possible(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    accepted, rest = q * chances, residual(p, q)
    return accepted + (1 - chances[q > 0].mean()) * rest


@wrong("sum of rejections of what may be drafted", says="it is no sum|do not count alike")
def sum_of_possible(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    accepted, rest = q * chances, residual(p, q)
    return accepted + (1 - chances[q > 0]).sum() * rest


@wrong("each with its own rest of 1", says="its own acceptance leaves of 1")
def own_rest(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    accepted, rest = q * chances, residual(p, q)
    return accepted + (1 - accepted) * rest


@wrong("chances, each with its own rest", says="weight is the same for every token")
def chances_own_rest(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    return chances + (1 - chances) * residual(p, q)


@wrong("chances alone", says="and without replacements")
def chances_alone(p, q, acceptance, residual):
    return _chances(p, q, acceptance)


@wrong("chances, scaled", says="scaled to 1. Weight it with q")
def chances_scaled(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    return chances / chances.sum()


@wrong("in bfloat16, and back", says="half precision")
def bfloat16_and_back(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    accepted, rest = q * chances, residual(p, q)
    return (accepted.bfloat16() + (1 - accepted.bfloat16().sum()) * rest.bfloat16()).double()


@wrong("the two ways, not added", says="expected a number")
def two_ways(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    accepted, rest = q * chances, residual(p, q)
    return accepted, (1 - accepted.sum()) * rest


@wrong("works in the residual's own row", says="your code changes what it was given")
def in_place(p, q, acceptance, residual):
    accepted = q * _chances(p, q, acceptance)
    return residual(p, q).mul_(1 - accepted.sum()).add_(accepted)


@wrong("numpy's rows into the rule", says="takes two numbers, and got a whole row")
def numpy_rows(p, q, acceptance, residual):
    accepted = q.numpy() * acceptance(p.numpy(), q.numpy())
    return accepted + (1 - accepted.sum()) * residual(p, q).numpy()


@wrong("lists into the rule", says="takes two numbers, and got a whole row")
def lists_into_acceptance(p, q, acceptance, residual):
    accepted = q * acceptance(p.tolist(), q.tolist())
    return accepted + (1 - accepted.sum()) * residual(p, q)


@wrong("single numbers into `residual`", says="`residual` takes whole rows")
def residual_of_numbers(p, q, acceptance, residual):
    accepted = q * _chances(p, q, acceptance)
    mass = 1 - accepted.sum()
    return [float(accepted[i] + mass * residual(p[i], q[i])) for i in range(len(p))]


@wrong("lists into `residual`", says="`residual` takes whole rows")
def residual_of_lists(p, q, acceptance, residual):
    accepted = q * _chances(p, q, acceptance)
    return accepted + (1 - accepted.sum()) * residual(p.tolist(), q.tolist())


@wrong("plays it 50 times", says="without drawing samples")
def plays_few(p, q, acceptance, residual):
    chances = _chances(p, q, acceptance)
    drafted = torch.multinomial(q, 50, replacement=True)
    replaced = torch.multinomial(residual(p, q), 50, replacement=True)
    out = torch.where(torch.rand(50) < chances[drafted], drafted, replaced)
    return torch.bincount(out, minlength=len(p)) / 50


@wrong("throws one die for each token", says="without drawing samples")
def one_die_each(p, q, acceptance, residual):
    kept = q * (torch.rand(len(p)) < _chances(p, q, acceptance))
    return kept + (1 - kept.sum()) * residual(p, q)


@right("token by token")
def token_by_token(p, q, acceptance, residual):
    law, rejected = torch.zeros_like(p), 0.0
    for token in range(len(p)):
        if q[token] > 0:
            chance = acceptance(p[token], q[token])
            law[token] += q[token] * chance
            rejected += q[token] * (1 - chance)
    return law + rejected * residual(p, q)


@right("numpy, floats")
def with_numpy(p, q, acceptance, residual):
    accepted = np.array(
        [
            y * acceptance(float(x), float(y)) if y else 0
            for x, y in zip(p.numpy(), q.numpy(), strict=True)
        ]
    )
    return accepted + (1 - accepted.sum()) * residual(p, q).numpy()


@right("every path: what is drafted, and what comes then; a list")
def every_path(p, q, acceptance, residual):
    law, lacking = [0.0] * len(p), residual(p, q).tolist()
    for drafted in q.nonzero()[:, 0].tolist():
        chance = acceptance(p[drafted].item(), q[drafted].item())
        law[drafted] += q[drafted].item() * chance
        for token, share in enumerate(lacking):
            law[token] += q[drafted].item() * (1 - chance) * share
    return law


@right("float32")
def float32(p, q, acceptance, residual):
    accepted = (q * _chances(p, q, acceptance)).float()
    return accepted + (1 - accepted.sum()) * residual(p.clone(), q.clone()).float()

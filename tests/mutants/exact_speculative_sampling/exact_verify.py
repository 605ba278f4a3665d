"""Judge a draft by the rejection rule."""

import random

import numpy as np
import torch

from specdec_lab import verification
from specdec_lab.checks import references
from specdec_lab.course.mutants import right, wrong
from specdec_lab.randomness import SeededChooser
from specdec_lab.records import Draft
from specdec_lab.sampling import Sampling, TargetRows


def _judged(chance=None, replacement=None, bonus=None, count=lambda i: i):
    """The rule with one part exchanged; a part gets (draft, q, p, i, acceptance, residual)."""

    def verify(draft, q, p, chooser, acceptance, residual):
        for i, token in enumerate(draft):
            if chance is None:
                kept = acceptance(float(p[i][token]), float(q[i][token]))
            else:
                kept = chance(draft, q, p, i, acceptance, residual)
            if not chooser.accept(kept):
                if replacement is None:
                    return count(i), chooser.sample(residual(p[i], q[i]))
                return count(i), chooser.sample(replacement(draft, q, p, i, acceptance, residual))
        if bonus is None:
            return len(draft), chooser.sample(p[len(draft)])
        return len(draft), bonus(draft, q, p, chooser, residual)

    return verify


# --- the coin -----------------------------------------------------------------------------------

wrong("p and q exchanged for the coin", says="exchanged in `acceptance`")(
    _judged(chance=lambda d, q, p, i, acc, res: acc(q[i][d[i]], p[i][d[i]]))
)
wrong("min(1, q/p), written out", says="exchanged in `acceptance`")(
    _judged(
        chance=lambda d, q, p, i, acc, res: (
            min(1.0, float(q[i][d[i]] / p[i][d[i]])) if p[i][d[i]] > 0 else 1.0
        )
    )
)
wrong("keeps with probability p(x)", says="as if q\\(x\\) were 1")(
    _judged(chance=lambda d, q, p, i, acc, res: p[i][d[i]])
)
wrong("keeps with probability p(x) q(x)", says="times q\\(x\\)")(
    _judged(chance=lambda d, q, p, i, acc, res: p[i][d[i]] * q[i][d[i]])
)
wrong("keeps with probability min(p, q)", says="drafted \\*and\\* kept")(
    _judged(chance=lambda d, q, p, i, acc, res: min(p[i][d[i]], q[i][d[i]]))
)
wrong("a hard threshold, by the chooser", says="kept exactly if p >= q")(
    _judged(chance=lambda d, q, p, i, acc, res: float(p[i][d[i]] >= q[i][d[i]]))
)
wrong("an epsilon below the ratio", says="Is something added to q")(
    _judged(chance=lambda d, q, p, i, acc, res: acc(p[i][d[i]], q[i][d[i]] + 1e-5))
)
wrong("a smaller epsilon", says="Is something added to q")(
    _judged(chance=lambda d, q, p, i, acc, res: acc(p[i][d[i]], q[i][d[i]] + 1e-9))
)
wrong("the ratio in bfloat16", says="half precision")(
    _judged(chance=lambda d, q, p, i, acc, res: acc(p[i].bfloat16()[d[i]], q[i].bfloat16()[d[i]]))
)
wrong("whole rows for the coin", says="takes two numbers")(
    _judged(chance=lambda d, q, p, i, acc, res: acc(p[i], q[i]))
)
wrong("judged by the row behind", says="judged by row i \\+ 1")(
    _judged(chance=lambda d, q, p, i, acc, res: acc(p[i + 1][d[i]], q[i][d[i]]))
)
wrong("judged by the row before, the last one at first", says="judged by row i - 1")(
    _judged(chance=lambda d, q, p, i, acc, res: acc(p[i - 1][d[i]], q[i][d[i]]))
)
wrong("judged by the last row", says="by the target's last row")(
    _judged(chance=lambda d, q, p, i, acc, res: acc(p[-1][d[i]], q[i][d[i]]))
)
wrong("one p for all", says="by the target's first row")(
    _judged(chance=lambda d, q, p, i, acc, res: acc(p[0][d[i]], q[i][d[i]]))
)
wrong("one q for all coins", says="the coin takes the first row of q")(
    _judged(chance=lambda d, q, p, i, acc, res: acc(p[i][d[i]], q[0][d[i]]))
)
wrong("the last token is not judged", says="last drafted token is kept without being judged")(
    _judged(chance=lambda d, q, p, i, acc, res: 1.0 if i == len(d) - 1 else acc(p[i][d[i]], q[i][d[i]]))
)
wrong("keeps everything", says="nothing is ever rejected")(
    _judged(chance=lambda d, q, p, i, acc, res: 1.0)
)


@wrong("a hard threshold without the chooser", says="kept exactly if p >= q")
def hard_threshold(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if p[i][token] < q[i][token]:
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@wrong("kept if the chance is above one half", says="above one half")
def above_one_half(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if acceptance(p[i][token], q[i][token]) < 0.5:
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@wrong("kept if it is p's likeliest, as in the last notebook", says="rule of greedy decoding")
def greedy_rule(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if token != int(p[i].argmax()):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@wrong("greedy verification, no chance at all", says="`chooser.sample` was never asked")
def greedy_verify(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if token != int(p[i].argmax()):
            return i, int(p[i].argmax())
    return len(draft), int(p[-1].argmax())


@wrong("keeps whatever is plausible", says="`chooser.accept` was never asked")
def plausible(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if p[i][token] <= 0.2:
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@wrong("the coin's answer the wrong way round", says="wrong way round")
def wrong_way_round(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if chooser.accept(acceptance(p[i][token], q[i][token])):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


# --- the replacement ----------------------------------------------------------------------------

wrong("resampled from p", says="after a rejection you draw from p\\.")(
    _judged(replacement=lambda d, q, p, i, acc, res: p[i])
)


@wrong("p with the rejected token struck out", says="rejected token struck out")
def struck_out(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            rest = p[i].clone()
            rest[token] = 0.0
            return i, chooser.sample(rest / rest.sum())
    return len(draft), chooser.sample(p[-1])


wrong("replaced from q", says="drawn from q")(_judged(replacement=lambda d, q, p, i, acc, res: q[i]))
wrong("replaced from |p - q|", says="from \\|p - q\\|")(
    _judged(replacement=lambda d, q, p, i, acc, res: (p[i] - q[i]).abs() / (p[i] - q[i]).abs().sum())
)
wrong("a residual that is not normalised", says="expected a distribution: a sum of 1")(
    _judged(replacement=lambda d, q, p, i, acc, res: (p[i] - q[i]).clamp(min=0.0))
)
wrong("a residual that is not clamped", says="with smallest entry -")(
    _judged(replacement=lambda d, q, p, i, acc, res: (p[i] - q[i]) / (p[i] - q[i]).clamp(min=0.0).sum())
)
wrong("a softmax of the residual", says="softmax of the residual")(
    _judged(replacement=lambda d, q, p, i, acc, res: res(p[i], q[i]).softmax(-1))
)
wrong("a softmax of what is lacking", says="softmax of max")(
    _judged(replacement=lambda d, q, p, i, acc, res: torch.relu(p[i] - q[i]).softmax(-1))
)
wrong("the replacement from the bonus row", says="you use the target's last row")(
    _judged(replacement=lambda d, q, p, i, acc, res: p[-1])
)
wrong("the replacement from p[i + 1]", says="one row too late, from p\\[i \\+ 1\\]")(
    _judged(replacement=lambda d, q, p, i, acc, res: p[i + 1])
)
wrong("the residual of the last row", says="residual needs p at the place of the rejection")(
    _judged(replacement=lambda d, q, p, i, acc, res: res(p[-1], q[i]))
)
wrong("the residual one row too late", says="residual is taken one row too late")(
    _judged(replacement=lambda d, q, p, i, acc, res: res(p[i + 1], q[i]))
)
wrong("the residual one row too early", says="residual is taken one row too early")(
    _judged(replacement=lambda d, q, p, i, acc, res: res(p[i - 1], q[i]))
)
wrong("the residual one row too early, and nothing before the first", says="one row too early")(
    _judged(replacement=lambda d, q, p, i, acc, res: res(p[max(i - 1, 0)], q[max(i - 1, 0)]))
)
wrong("the residual of the first row", says="residual is always that of the first row")(
    _judged(replacement=lambda d, q, p, i, acc, res: res(p[0], q[0]))
)
wrong("the residual with q's first row", says="residual takes the first row of q")(
    _judged(replacement=lambda d, q, p, i, acc, res: res(p[i], q[0]))
)
wrong("the residual with q's last row", says="residual takes the last row of q")(
    _judged(replacement=lambda d, q, p, i, acc, res: res(p[i], q[-1]))
)
wrong("p and q exchanged in the residual", says="exchanged in `residual`")(
    _judged(replacement=lambda d, q, p, i, acc, res: res(q[i], p[i]))
)
wrong("the residual of two numbers", says="takes two whole rows")(
    _judged(replacement=lambda d, q, p, i, acc, res: res(p[i][d[i]], q[i][d[i]]))
)


@wrong("the residual's likeliest token", says="you take its likeliest token")
def largest_residual(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return i, int(residual(p[i], q[i]).argmax())
    return len(draft), chooser.sample(p[-1])


@wrong("p's likeliest token after a rejection", says="you take p's likeliest token")
def largest_p(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return i, p[i].argmax()
    return len(draft), chooser.sample(p[-1])


wrong("letters exchanged in both", says="in `acceptance` and in `residual`")(
    _judged(
        chance=lambda d, q, p, i, acc, res: acc(q[i][d[i]], p[i][d[i]]),
        replacement=lambda d, q, p, i, acc, res: res(q[i], p[i]),
    )
)
wrong("p one row too late in both", says="too late for the coin and the residual")(
    _judged(
        chance=lambda d, q, p, i, acc, res: acc(p[i + 1][d[i]], q[i][d[i]]),
        replacement=lambda d, q, p, i, acc, res: res(p[i + 1], q[i]),
    )
)
wrong("one q for all", says="the first row of q is taken for every token")(
    _judged(
        chance=lambda d, q, p, i, acc, res: acc(p[i][d[i]], q[0][d[i]]),
        replacement=lambda d, q, p, i, acc, res: res(p[i], q[0]),
    )
)
wrong("the last q for all, from a name left over", says="the last row of q is taken for every token")(
    _judged(
        chance=lambda d, q, p, i, acc, res: acc(p[i][d[i]], q[-1][d[i]]),
        replacement=lambda d, q, p, i, acc, res: res(p[i], q[-1]),
    )
)

# --- the bonus token ----------------------------------------------------------------------------

wrong("the likeliest as the bonus", says="you take its likeliest")(
    _judged(bonus=lambda d, q, p, chooser, res: int(p[-1].argmax()))
)
wrong("the bonus of the row before", says="bonus token is drawn one row too early")(
    _judged(bonus=lambda d, q, p, chooser, res: chooser.sample(p[max(len(d) - 1, 0)]))
)
wrong("the bonus from a residual", says="bonus token is drawn from a residual")(
    _judged(bonus=lambda d, q, p, chooser, res: chooser.sample(res(p[-1], q[-1]) if d else p[-1]))
)
wrong("no bonus", says="there is always a token behind")(
    _judged(bonus=lambda d, q, p, chooser, res: None)
)
wrong("the last drafted token twice", says="the draft's last token comes twice")(
    _judged(bonus=lambda d, q, p, chooser, res: d[-1] if d else chooser.sample(p[-1]))
)


@wrong("the last drafted token in the bonus's place", says="given in its place")
def no_bonus(draft, q, p, chooser, acceptance, residual):
    if not draft:
        return 0, chooser.sample(p[0])
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return i, chooser.sample(residual(p[i], q[i]))
    return i, token


@wrong("does not think of an empty draft", says="raised UnboundLocalError")
def no_empty_draft(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return i, chooser.sample(residual(p[i], q[i]))
    return i + 1, chooser.sample(p[i + 1])


# --- the count, and where it stops --------------------------------------------------------------

wrong("the rejected token is kept", says="rejected token is counted among the accepted")(
    _judged(count=lambda i: i + 1)
)
wrong("drops what was accepted in front of a rejection", says="dropped as well")(
    _judged(count=lambda i: 0)
)


@wrong("counts what is accepted behind a rejection", says="those behind a rejection, too")
def counts_behind(draft, q, p, chooser, acceptance, residual):
    coins = [chooser.accept(acceptance(p[i][x], q[i][x])) for i, x in enumerate(draft)]
    if all(coins):
        return len(draft), chooser.sample(p[-1])
    i = coins.index(False)
    return sum(coins), chooser.sample(residual(p[i], q[i]))


@wrong("never stops at a rejection", says="goes on behind a rejection")
def no_break(draft, q, p, chooser, acceptance, residual):
    rejected = None
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            rejected = i
    if rejected is None:
        return len(draft), chooser.sample(p[-1])
    return rejected, chooser.sample(residual(p[rejected], q[rejected]))


@wrong("the whole draft or nothing", says="one coin decides about the whole draft")
def whole_or_nothing(draft, q, p, chooser, acceptance, residual):
    chance = 1.0
    for i, token in enumerate(draft):
        chance *= acceptance(p[i][token], q[i][token])
    if chooser.accept(chance):
        return len(draft), chooser.sample(p[len(draft)])
    return 0, chooser.sample(residual(p[0], q[0]))


@wrong("one random number for all tokens", says="one random number judges all tokens")
def one_uniform(draft, q, p, chooser, acceptance, residual):
    # A number u in [0, 1) keeps i tokens if it is below the first i chances; cut it by hand.
    chances = [acceptance(p[i][token], q[i][token]) for i, token in enumerate(draft)]
    below = [1.0, *np.minimum.accumulate(chances)] if chances else [1.0]
    steps = torch.tensor([*below, 0.0], dtype=torch.float64)
    i = chooser.sample(steps[:-1] - steps[1:])
    return i, chooser.sample(p[i] if i == len(draft) else residual(p[i], q[i]))


@wrong("keeps a draft that equals a token drawn from p", says="exact as well, but it keeps fewer")
def literal_match(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        own = chooser.sample(p[i])
        if own != token:
            return i, own
    return len(draft), chooser.sample(p[-1])


@wrong("i is never counted up", says="no end in sight")
def never_counts_up(draft, q, p, chooser, acceptance, residual):
    i = 0
    while i < len(draft):
        if not chooser.accept(acceptance(p[i][draft[i]], q[i][draft[i]])):
            return i, chooser.sample(residual(p[i], q[i]))
    return i, chooser.sample(p[i])


# --- where chance comes from --------------------------------------------------------------------


def _from_the_chooser(says="all chance has to come from the chooser"):
    return says


@wrong("tosses its coins with torch.rand", says=_from_the_chooser())
def torch_rand(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if torch.rand(()) >= acceptance(p[i][token], q[i][token]):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@wrong("tosses its coins with random.random", says=_from_the_chooser())
def random_random(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if random.random() >= acceptance(p[i][token], q[i][token]):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@wrong("tosses its coins with numpy", says=_from_the_chooser())
def numpy_random(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if np.random.random() >= acceptance(p[i][token], q[i][token]):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@wrong("draws with torch.multinomial", says=_from_the_chooser())
def multinomial(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return i, int(torch.multinomial(residual(p[i], q[i]), 1))
    return len(draft), int(torch.multinomial(p[-1], 1))


@wrong("the bonus from torch.multinomial", says=_from_the_chooser())
def multinomial_bonus(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), int(torch.multinomial(p[-1], 1))


@wrong("a generator seeded in the loop", says=_from_the_chooser())
def own_generator(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        generator = torch.Generator().manual_seed(0)
        if torch.rand((), generator=generator) >= acceptance(p[i][token], q[i][token]):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@wrong("torch.manual_seed in the loop", says=_from_the_chooser())
def manual_seed(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        torch.manual_seed(0)
        if torch.rand(()) >= acceptance(p[i][token], q[i][token]):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@wrong("a chooser of its own", says=_from_the_chooser())
def own_chooser(draft, q, p, chooser, acceptance, residual):
    chooser = SeededChooser(0)
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@wrong("asks the chooser for a number", says="hands out no numbers")
def asks_for_a_number(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if chooser.uniform() >= acceptance(p[i][token], q[i][token]):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


# --- form ---------------------------------------------------------------------------------------


@wrong("not written", says=r"^✗ exact_verify: not implemented yet")
def not_written(draft, q, p, chooser, acceptance, residual):
    raise NotImplementedError


@wrong("no return", says="returned None")
def no_return(draft, q, p, chooser, acceptance, residual):
    accepted = 0
    while accepted < len(draft) and chooser.accept(
        acceptance(p[accepted][draft[accepted]], q[accepted][draft[accepted]])
    ):
        accepted += 1


@wrong("the emitted tokens", says="expected two things|of \\d drafted ones")
def emitted(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return [*draft[:i], chooser.sample(residual(p[i], q[i]))]
    return [*draft, chooser.sample(p[-1])]


@wrong("the accepted tokens, not their number", says="\\*how many\\*")
def tokens_not_number(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return draft[:i], chooser.sample(residual(p[i], q[i]))
    return draft, chooser.sample(p[-1])


@wrong("the two exchanged", says="First comes how many|wrong order")
def exchanged(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return chooser.sample(residual(p[i], q[i])), i
    return chooser.sample(p[-1]), len(draft)


@wrong("counts the bonus token", says="are said to be kept")
def counts_the_bonus(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(p), chooser.sample(p[-1])


@wrong("the distribution instead of a token", says="expected a whole number")
def distribution(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return i, residual(p[i], q[i])
    return len(draft), p[-1]


@wrong("eats the draft", says="your code changes what it was given")
def eats_the_draft(draft, q, p, chooser, acceptance, residual):
    accepted = 0
    while draft:
        token = draft.pop(0)
        if not chooser.accept(acceptance(p[accepted][token], q[accepted][token])):
            return accepted, chooser.sample(residual(p[accepted], q[accepted]))
        accepted += 1
    return accepted, chooser.sample(p[accepted])


@wrong("strikes the rejected token out of p itself", says="your code changes a row of p")
def changes_p(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            p[i] -= q[i]
            p[i].clamp_(min=0.0)
            p[i] /= p[i].sum()
            return i, chooser.sample(p[i])
    return len(draft), chooser.sample(p[-1])


@wrong("calls the library's verifier", says="calls the library's `verify_by_sampling`")
def calls_the_library(draft, q, p, chooser, acceptance, residual):
    rows = TargetRows(Sampling(1.0), [0, *draft], torch.stack(list(p)).log())
    proposal = Draft(draft, torch.stack(q) if q else torch.zeros(0, len(p[0])))
    verdict = verification.verify_by_sampling(rows, proposal, chooser)
    return len(verdict.tokens) - 1, verdict.closing


@wrong("calls the reference and catches the objection", says="calls the library's `exact_verify`")
def calls_the_reference(draft, q, p, chooser, acceptance, residual):
    try:
        return references.exact_verify(draft, q, p, chooser, acceptance, residual)
    except BaseException:
        return 0, 0


@wrong("catches the chooser's objection", says="expected a distribution")
def catches_everything(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            try:
                return i, chooser.sample((p[i] - q[i]).clamp(min=0.0))
            except BaseException:
                return i, 0
    return len(draft), chooser.sample(p[-1])


# --- right --------------------------------------------------------------------------------------


@wrong("counts on behind a rejection, draws at each", says="those behind a rejection, too")
def counts_on(draft, q, p, chooser, acceptance, residual):
    accepted, following = 0, None
    for i, token in enumerate(draft):
        if chooser.accept(acceptance(float(p[i][token]), float(q[i][token]))):
            accepted += 1
        else:
            following = chooser.sample(residual(p[i], q[i]))
    return accepted, chooser.sample(p[-1]) if following is None else following


@wrong("counts on behind a rejection, draws at the count", says="those behind a rejection, too")
def counts_on_and_draws_there(draft, q, p, chooser, acceptance, residual):
    accepted = 0
    for i, token in enumerate(draft):
        accepted += chooser.accept(acceptance(float(p[i][token]), float(q[i][token])))
    if accepted == len(draft):
        return accepted, chooser.sample(p[-1])
    return accepted, chooser.sample(residual(p[accepted], q[accepted]))


@wrong("multiplies the ratios", says="ratios are multiplied from token to token")
def multiplies_ratios(draft, q, p, chooser, acceptance, residual):
    product = 1.0
    for i, token in enumerate(draft):
        product *= float(p[i][token]) / float(q[i][token])
        if not chooser.accept(min(1.0, product)):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@wrong("multiplies the chances", says="ratios are multiplied from token to token")
def multiplies_chances(draft, q, p, chooser, acceptance, residual):
    product = 1.0
    for i, token in enumerate(draft):
        product *= acceptance(float(p[i][token]), float(q[i][token]))
        if not chooser.accept(product):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@right("tosses all coins first")
def all_coins_first(draft, q, p, chooser, acceptance, residual):
    coins = [chooser.accept(acceptance(p[i][x], q[i][x])) for i, x in enumerate(draft)]
    accepted = [*coins, False].index(False)
    row = p[accepted] if accepted == len(draft) else residual(p[accepted], q[accepted])
    return accepted, chooser.sample(row)


@right("ratios of all at once, numpy's integers")
def vectorised(draft, q, p, chooser, acceptance, residual):
    chosen = torch.tensor(draft, dtype=torch.long)
    if len(draft):
        p_of, q_of = (torch.stack(rows)[range(len(draft)), chosen] for rows in (p[:-1], q))
        ratios = (p_of / q_of).clamp(max=1.0)
        coins = np.array([chooser.accept(ratio) for ratio in ratios])
    else:
        coins = np.array([], dtype=bool)
    accepted = np.cumprod(coins).sum()
    if accepted == len(draft):
        return np.int64(accepted), np.int64(chooser.sample(p[-1]))
    lacking = torch.relu(p[accepted] - q[accepted])
    return accepted, np.int64(chooser.sample(lacking / lacking.sum()))


@right("its own rules, the ratio left above 1")
def own_rules(draft, q, p, chooser, acceptance, residual):
    accepted = 0
    for token, ours, theirs in zip(draft, p, q, strict=False):
        if not chooser.accept(ours[token] / theirs[token]):
            break
        accepted += 1
    else:
        return accepted, chooser.sample(p[accepted])
    lacking = (p[accepted] - q[accepted]).clamp(min=0)
    return accepted, chooser.sample(lacking / lacking.sum())


@right("recursion, a list of two")
def recursive(draft, q, p, chooser, acceptance, residual):
    if not draft:
        return [0, chooser.sample(p[0])]
    if not chooser.accept(acceptance(p[0][draft[0]], q[0][draft[0]])):
        return [0, chooser.sample(residual(p[0], q[0]))]
    accepted, following = recursive(draft[1:], q[1:], p[1:], chooser, acceptance, residual)
    return [accepted + 1, following]


@right("draws the bonus before it knows whether it is needed, and a replacement for each rejection")
def draws_too_much(draft, q, p, chooser, acceptance, residual):
    bonus, outcome = chooser.sample(p[-1]), None
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            following = chooser.sample(residual(p[i], q[i]))
            outcome = outcome or (i, following)
    return outcome or (len(draft), bonus)


@right("no coin where p is at least q, tensors of no dimension")
def spares_coins(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        a, b = float(p[i][token]), float(q[i][token])
        if a < b and not chooser.accept(acceptance(a, b)):
            return torch.tensor(i), torch.tensor(chooser.sample(residual(p[i], q[i])))
    return torch.tensor(len(draft)), torch.tensor(chooser.sample(p[-1]))


@right("probabilities in float32")
def float32(draft, q, p, chooser, acceptance, residual):
    p, q = [row.float() for row in p], [row.float() for row in q]
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(p[i][token], q[i][token])):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])


@right("asks the chooser to reject")
def rejects(draft, q, p, chooser, acceptance, residual):
    for i, token in enumerate(draft):
        if chooser.accept(1.0 - acceptance(p[i][token], q[i][token])):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[-1])

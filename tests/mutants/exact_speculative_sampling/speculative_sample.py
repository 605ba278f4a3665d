"""The whole decoder: one loop with parts to exchange, and loops that go wrong in ways of their own."""

import copy
import random

import numpy as np
import torch

from specdec_lab import decoding, distributions, verification
from specdec_lab.audit.gallery import rules
from specdec_lab.checks import references
from specdec_lab.course.mutants import right, wrong
from specdec_lab.drafters import ModelDrafter
from specdec_lab.randomness import SeededChooser
from specdec_lab.records import Draft
from specdec_lab.sampling import Sampling, TargetRows


def _short(gamma, left):
    return min(gamma, left - 1)


def _always(gamma, left):
    return gamma


def _exact_chance(p, draft, i):
    token = draft.tokens[i]
    return min(1.0, float(p[i][token]) / float(draft.q[i][token]))


def _exact_residual(p, draft, i):
    lacking = (p[i] - draft.q[i]).clamp(min=0.0)
    return lacking / lacking.sum() if lacking.sum() > 0 else p[i]


def _exact_bonus(p, draft):
    return p[len(draft)]


def _judging(chance=_exact_chance, residual=_exact_residual, bonus=_exact_bonus):
    """A verdict, the emitted tokens, from the parts of the gallery's kind."""

    def judge(p, draft, chooser):
        for i in range(len(draft)):
            if not chooser.accept(chance(p, draft, i)):
                return [*draft.tokens[:i], chooser.sample(residual(p, draft, i))]
        return [*draft.tokens, chooser.sample(bonus(p, draft))]

    return judge


def _drafting(model, tokens, gamma, process, chooser):
    """Draws, and hands over what it drew from."""
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend(model.rewind_to_match(tokens + draft))[-1]))
        draft.append(chooser.sample(q[-1]))
    return draft, q


def _loop(judge=None, drafting=_drafting, row=None, wanted=_short, stale=False):
    """A decoder that uses nothing of what it is handed, with some of its parts exchanged."""
    judge = judge or _judging()

    def decode(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
        tokens, end, unread = list(prompt), len(prompt) + max_new_tokens, list(prompt)
        while len(tokens) < end:
            drafted, q = drafting(
                draft_model, tokens, wanted(gamma, end - len(tokens)), process, chooser
            )
            draft = Draft(drafted, torch.stack(q) if q else torch.zeros(0, target.vocab_size))
            if not stale:
                unread = target.rewind_to_match(tokens)
            rows = target.extend(unread + drafted)[len(unread) - 1 :]
            tokens += judge(
                [row(process, one) if row else process(one) for one in rows], draft, chooser
            )
            unread = tokens[-1:]
        return tokens[len(prompt) : end]

    return decode


def _rogue(what, says, **parts):
    """A decoder whose law gives its fault away."""
    wrong(what, says=f"digit for digit.*{says}")(_loop(**parts))


# --- the gallery's rules ------------------------------------------------------------------------

_CHANCES = [
    ("min(1, q/p)", rules.inverted_ratio, "min\\(1, q/p\\)"),
    ("p(x) alone", rules.target_probability, "as if q\\(x\\) were 1"),
    ("a hard threshold", rules.hard_threshold, "without a coin"),
    ("whatever is plausible", rules.plausible_enough, "above 0.25"),
    ("judged by the next row", rules.next_row, "p\\(x\\) from one row too late"),
    ("the last token is not judged", rules.last_unverified, "does not judge the last drafted token"),
    ("the ratio in bfloat16", rules.in_half_precision, "ratio in bfloat16"),
    ("an epsilon below q", rules.epsilon_below, "divides by q\\(x\\) \\+ 0.00001"),
    ("everything is kept", lambda p, draft, i: 1.0, "accepts everything"),
    (
        "kept if it is p's likeliest",
        lambda p, draft, i: float(int(p[i].argmax()) == draft.tokens[i]),
        "exactly if it is p's likeliest",
    ),
]
for _what, _rule, _says in _CHANCES:
    _rogue(_what, _says, judge=_judging(chance=_rule))

_RESIDUALS = [
    ("resampled from p", rules.from_the_target, "replaces from p, not from the residual"),
    ("p without the token", rules.target_without_the_token, "rejected token struck out"),
    ("|p - q|", rules.absolute_difference, "\\|p - q\\|"),
    ("a softmax of the residual", rules.softmax_of_the_residual, "takes the residual for logits"),
    ("replaced by the last row", rules.last_row, "bonus row after a rejection"),
    ("the residual's likeliest", rules.largest_of_the_residual, "residual's likeliest token"),
    ("replaced from q", lambda p, draft, i: draft.q[i], "replaces from q"),
]
for _what, _rule, _says in _RESIDUALS:
    _rogue(_what, _says, judge=_judging(residual=_rule))

_rogue(
    "resampled from p, gamma always, cut at the end",
    "replaces from p, not from the residual",
    judge=_judging(residual=rules.from_the_target),
    wanted=_always,
)


def _next_row_residual(p, draft, i):
    lacking = (p[i + 1] - draft.q[i]).clamp(min=0.0)
    return lacking / lacking.sum() if lacking.sum() > 0 else p[i + 1]


_rogue(
    "the residual of the next row",
    "residual one row too late",
    judge=_judging(residual=_next_row_residual),
)
wrong("a residual that is not normalised", says="a sum of 1 and nothing negative")(
    _loop(judge=_judging(residual=rules.not_normalised))
)
wrong("a residual that is not clamped", says="smallest entry -")(
    _loop(judge=_judging(residual=rules.not_clamped))
)
_rogue(
    "the likeliest as the bonus",
    "likeliest token as the bonus",
    judge=_judging(bonus=rules.likeliest_bonus),
)
_rogue(
    "the bonus of the row before",
    "bonus one row too early",
    judge=_judging(bonus=rules.bonus_of_the_row_before),
)


# --- the gallery's verdicts ---------------------------------------------------------------------


def _one_uniform(p, draft, chooser):
    chances = [_exact_chance(p, draft, i) for i in range(len(draft))]
    below = torch.tensor([1.0, *chances, 0.0], dtype=torch.float64).cummin(0).values
    i = chooser.sample(below[:-1] - below[1:])
    row = p[i] if i == len(draft) else _exact_residual(p, draft, i)
    return [*draft.tokens[:i], chooser.sample(row)]


def _whole_or_nothing(p, draft, chooser):
    chance = 1.0
    for i in range(len(draft)):
        chance *= _exact_chance(p, draft, i)
    if chooser.accept(chance):
        return [*draft.tokens, chooser.sample(p[-1])]
    return [chooser.sample(_exact_residual(p, draft, 0))]


def _goes_on(p, draft, chooser):
    tokens = []
    for i, token in enumerate(draft.tokens):
        kept = chooser.accept(_exact_chance(p, draft, i))
        tokens.append(token if kept else chooser.sample(_exact_residual(p, draft, i)))
    return [*tokens, chooser.sample(p[-1])]


def _keeps_the_rejected(p, draft, chooser):
    for i in range(len(draft)):
        if not chooser.accept(_exact_chance(p, draft, i)):
            return [*draft.tokens[: i + 1], chooser.sample(_exact_residual(p, draft, i))]
    return [*draft.tokens, chooser.sample(p[-1])]


def _keeps_the_draft(p, draft, chooser):
    return [*draft.tokens, _judging()(p, draft, chooser)[-1]]


def _drops_the_accepted(p, draft, chooser):
    return _judging()(p, draft, chooser)[-1:]


_rogue("one random number a round", "same random number", judge=_one_uniform)
_rogue("the whole draft or nothing", "one coin for the whole draft", judge=_whole_or_nothing)
_rogue("goes on behind a rejection", "draft behind a replacement", judge=_goes_on)
_rogue("keeps the rejected token", "keeps the rejected token", judge=_keeps_the_rejected)
_rogue("keeps the whole draft", "keeps the whole draft", judge=_keeps_the_draft)
_rogue("drops the accepted tokens", "drops the accepted tokens", judge=_drops_the_accepted)


# --- the gallery's drafts -----------------------------------------------------------------------


def _softmax_of(logits):
    return logits.softmax(-1)


def _greedy_draft(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend(model.rewind_to_match(tokens + draft))[-1]))
        draft.append(int(q[-1].argmax()))
    return draft, q


def _greedy_draft_raw_q(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        row = model.extend(model.rewind_to_match(tokens + draft))[-1]
        q.append(_softmax_of(row))
        draft.append(int(row.argmax()))
    return draft, q


def _cold_draft(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        row = model.extend(model.rewind_to_match(tokens + draft))[-1]
        q.append(process(row))
        draft.append(chooser.sample(process(row * 2)))
    return draft, q


def _raw_draft(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        row = model.extend(model.rewind_to_match(tokens + draft))[-1]
        q.append(process(row))
        draft.append(chooser.sample(_softmax_of(row)))
    return draft, q


def _raw_q(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        row = model.extend(model.rewind_to_match(tokens + draft))[-1]
        q.append(_softmax_of(row))
        draft.append(chooser.sample(process(row)))
    return draft, q


def _raw_draft_raw_q(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(_softmax_of(model.extend(model.rewind_to_match(tokens + draft))[-1]))
        draft.append(chooser.sample(q[-1]))
    return draft, q


def _first_q(model, tokens, gamma, process, chooser):
    draft, q = _drafting(model, tokens, gamma, process, chooser)
    return draft, [q[0] for _ in q]


_rogue("greedy draft, softmax q", "drafts the likeliest token", drafting=_greedy_draft)
_rogue("greedy draft, raw q", "drafts the likeliest token", drafting=_greedy_draft_raw_q)
_rogue("cold draft, warm q", "half the temperature", drafting=_cold_draft)
_rogue("raw draft, processed q", "draft without `process`", drafting=_raw_draft)
_rogue("processed draft, raw q", "q says without it", drafting=_raw_q)
_rogue("one q for all", "first q for every token", drafting=_first_q)

_rogue("p not processed", "does not put p through", row=lambda process, one: _softmax_of(one))
_rogue(
    "neither processed",
    "does not put p through",
    row=lambda process, one: _softmax_of(one),
    drafting=_raw_draft_raw_q,
)
_rogue("processed twice", "p through `process` twice", row=lambda process, one: process(process(one)))
_rogue(
    "the temperature twice",
    "temperature and top-p twice",
    row=lambda process, one: process(process(one).log()),
)
_rogue("the target's cache is never rewound", "leaves rejected tokens", stale=True)


# --- with what is handed over -------------------------------------------------------------------


@wrong("the target reads on without a rewind", says="leaves rejected tokens in the target's cache")
def never_rewinds(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end, unread = list(prompt), len(prompt) + max_new_tokens, list(prompt)
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        rows = target.extend(unread + draft)[len(unread) - 1 :]
        accepted, following = verify(draft, q, [process(row) for row in rows], chooser)
        unread = [following]
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("rewinds one token too little", says="Look at this: p\\[0\\] is not what the target says")
def rewinds_too_little(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end, unread = list(prompt), len(prompt) + max_new_tokens, list(prompt)
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        rows = target.extend(unread + draft)[len(unread) - 1 :]
        accepted, following = verify(draft, q, [process(row) for row in rows], chooser)
        target.rewind(min(target.length, len(tokens) + accepted + 1))
        unread = [following]
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("rewinds to the text before the round", says="expected 0 to 4, the tokens held")
def rewinds_too_far(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end, unread = list(prompt), len(prompt) + max_new_tokens, list(prompt)
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        rows = target.extend(unread + draft)[len(unread) - 1 :]
        accepted, following = verify(draft, q, [process(row) for row in rows], chooser)
        target.rewind(len(tokens))
        unread = [following]
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("all rows, those of the text as well", says="was handed \\d rows of p for a draft of")
def all_rows(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        rows = target.extend(target.rewind_to_match(tokens) + draft)
        accepted, following = verify(draft, q, [process(row) for row in rows], chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("the rows behind the unread tokens, one too late", says="handed 0 rows of q and 0 of p")
def one_row_too_late(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        rows = target.extend(unread + draft)[len(unread) :]
        accepted, following = verify(draft, q, [process(row) for row in rows], chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("p without `process`", says="does not put p through `process`")
def raw_p(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        p = target.extend(unread + draft)[len(unread) - 1 :].softmax(-1)
        accepted, following = verify(draft, q, p, chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("all rows at once into `process`", says="takes one row of logits")
def rows_at_once(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        p = process(target.extend(unread + draft)[len(unread) - 1 :])
        accepted, following = verify(draft, q, p, chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("logits for p", says="expected a distribution|expected 0 or more")
def logits(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        accepted, following = verify(
            draft, q, target.extend(unread + draft)[len(unread) - 1 :], chooser
        )
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("p and q exchanged in `verify`", says="was handed p for q and q for p")
def exchanged(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, p, q, chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("a draft model with a stale cache, q worked out afresh", says="is not a distribution that a")
def stale_draft_fresh_q(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end, unread = list(prompt), len(prompt) + max_new_tokens, list(prompt)
    fresh = copy.deepcopy(draft_model)
    while len(tokens) < end:
        draft, q = [], []
        for _ in range(min(gamma, end - len(tokens) - 1)):
            draft.append(chooser.sample(process(draft_model.extend(unread)[-1])))
            q.append(process(fresh.extend(fresh.rewind_to_match(tokens + draft[:-1]))[-1]))
            unread = draft[-1:]
        new = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(new + draft)[len(new) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        tokens += [*draft[:accepted], following]
        unread = tokens[-1:]
    return tokens[len(prompt) :]


@wrong("a draft model with a stale cache of its own, q from the handed `propose`", says="not exact")
def stale_draft(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens, end, unread = list(prompt), len(prompt) + max_new_tokens, list(prompt)
    other = copy.deepcopy(draft_model)
    while len(tokens) < end:
        wanted = min(gamma, end - len(tokens) - 1)
        _, q = propose(other, tokens, wanted, process, chooser)
        draft = []
        for _ in range(wanted):
            draft.append(chooser.sample(process(draft_model.extend(unread)[-1])))
            unread = draft[-1:]
        new = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(new + draft)[len(new) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        tokens += [*draft[:accepted], following]
        unread = tokens[-1:]
    return tokens[len(prompt) :]


@wrong("keeps the whole draft after a verdict", says="keeps the whole draft, whatever was rejected")
def whole_draft(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        _, following = verify(draft, q, p, chooser)
        tokens += [*draft, following]
    return tokens[len(prompt) :]


@wrong("forgets the token that follows", says="no end in sight")
def forgets_following(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, _ = verify(draft, q, p, chooser)
        tokens += draft[:accepted]
    return tokens[len(prompt) :]


@wrong(
    "no replacement: what was rejected is drafted again",
    says="so the text is .* then; yours is|no end in sight",
)
def drafts_again(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, gamma, process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        tokens += draft[:accepted]
        if accepted == len(draft):
            tokens.append(following)
    return tokens[len(prompt) : end]


@wrong("redrafts, one token at a time", says="not exact|no end in sight")
def redrafts(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens = list(prompt)
    while len(tokens) < len(prompt) + max_new_tokens:
        (token,), (q,) = propose(draft_model, tokens, 1, process, chooser)
        p = process(target.extend(target.rewind_to_match(tokens))[-1])
        if chooser.accept(min(1.0, float(p[token] / q[token]))):
            tokens.append(token)
    return tokens[len(prompt) :]


@wrong("`propose` sees the new tokens only", says="the prompt included")
def propose_without_prompt(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    new = []
    while len(new) < max_new_tokens:
        wanted = min(gamma, max_new_tokens - len(new) - 1)
        draft, q = propose(draft_model, new or prompt[-1:], wanted, process, chooser)
        unread = target.rewind_to_match(prompt + new)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        new += [*draft[:accepted], following]
    return new


@wrong("the target sees the new tokens only", says="p\\[0\\] is not what the target says")
def target_without_prompt(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    new = []
    while len(new) < max_new_tokens:
        wanted = min(gamma, max_new_tokens - len(new) - 1)
        draft, q = propose(draft_model, prompt + new, wanted, process, chooser)
        unread = target.rewind_to_match(new or prompt[-1:])
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        new += [*draft[:accepted], following]
    return new


@wrong("the draft model's p, the target is never asked", says="p\\[0\\] is not what the target says")
def draft_as_target(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = draft_model.rewind_to_match(tokens)
        p = [process(row) for row in draft_model.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("the two models exchanged", says="p\\[0\\] is not what the target says")
def models_exchanged(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    return in_the_plainest_form(
        draft_model, target, prompt, gamma, max_new_tokens, process, chooser, propose, verify
    )


# --- the budget ---------------------------------------------------------------------------------


def _with_budget(cut, wanted, go_on=lambda new, budget: len(new) < budget):
    def decode(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
        new = []
        while go_on(new, max_new_tokens):
            tokens = [*prompt, *new]
            draft, q = propose(
                draft_model, tokens, wanted(gamma, max_new_tokens - len(new)), process, chooser
            )
            unread = target.rewind_to_match(tokens)
            p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
            accepted, following = verify(draft, q, p, chooser)
            new += [*draft[:accepted], following]
        return cut(new, prompt, max_new_tokens)

    return decode


_EMITS_SEVERAL = "A round may emit several tokens"
wrong("always drafts gamma, cuts nothing", says=_EMITS_SEVERAL)(
    _with_budget(lambda new, prompt, budget: new, _always)
)
wrong("drafts one token too many at the end", says=_EMITS_SEVERAL)(
    _with_budget(lambda new, prompt, budget: new, lambda gamma, left: min(gamma, left))
)
wrong("cuts one too many", says="has length \\d, expected max_new_tokens")(
    _with_budget(lambda new, prompt, budget: new[: max(0, budget - 1)], _always)
)
wrong("the last tokens in place of the first", says="your decoder is not exact")(
    _with_budget(lambda new, prompt, budget: new[len(new) - budget :], _always)
)
wrong("the prompt in front", says="the prompt is in your answer")(
    _with_budget(lambda new, prompt, budget: [*prompt, *new], _short)
)
wrong("the prompt in front, cut to the budget", says="the prompt is in your answer")(
    _with_budget(lambda new, prompt, budget: [*prompt, *new][:budget], _short)
)
wrong("counts the prompt", says="Do you count the prompt")(
    _with_budget(
        lambda new, prompt, budget: new[: max(0, budget - len(prompt))],
        _always,
    )
)
wrong("one round at least", says="has length \\d, expected max_new_tokens = 0")(
    _with_budget(
        lambda new, prompt, budget: new,
        lambda gamma, left: max(0, min(gamma, left - 1)),
        go_on=lambda new, budget: not new or len(new) < budget,
    )
)
wrong("one draft at least, so a budget of 1 is exceeded", says="has length 2, expected .* = 1")(
    _with_budget(
        lambda new, prompt, budget: new,
        lambda gamma, left: max(1, min(gamma, left - 1)),
    )
)
wrong("a token less than the budget", says="has length \\d, expected max_new_tokens")(
    _with_budget(
        lambda new, prompt, budget: new,
        _short,
        go_on=lambda new, budget: len(new) < budget - 1,
    )
)
wrong("goes on for ever", says="no end in sight|asks for more")(
    _with_budget(lambda new, prompt, budget: new[:budget], _always, go_on=lambda new, budget: True)
)


@wrong("the draft of the round is not cut, the text is", says=_EMITS_SEVERAL)
def over_budget_by_chance(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    new = []
    while len(new) < max_new_tokens:
        tokens = [*prompt, *new]
        wanted = gamma if len(new) < max_new_tokens - 1 else 0
        draft, q = propose(draft_model, tokens, wanted, process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        new += [*draft[:accepted], following]
    return new


# --- exact, but no speculation ------------------------------------------------------------------


@wrong("never forgets what the target has read", says="nothing to read; it has read 4 tokens")
def target_never_forgets(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = tokens[target.length :]
        rows = target.extend(unread)[-1:]
        if draft:
            rows = torch.cat([rows, target.extend(draft)])
        accepted, following = verify(draft, q, [process(row) for row in rows], chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("the draft is not judged, but compared with the likeliest", says="No chance is left in it")
def without_any_chance(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens = list(prompt)
    for _ in range(max_new_tokens):
        tokens.append(int(target.extend(target.rewind_to_match(tokens))[-1].argmax()))
    return tokens[len(prompt) :]


@wrong("the target drafts for itself", says="or with the target's own")
def target_drafts_for_itself(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(target, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("plain decoding", says="the draft model was never asked")
def plain(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    new = []
    while len(new) < max_new_tokens:
        row = target.extend(target.rewind_to_match([*prompt, *new]))[-1]
        new.append(chooser.sample(process(row)))
    return new


@wrong("drafts, and throws the draft away", says="a pass for every token")
def thrown_away(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    new = []
    while len(new) < max_new_tokens:
        propose(draft_model, [*prompt, *new], gamma, process, chooser)
        row = target.extend(target.rewind_to_match([*prompt, *new]))[-1]
        new.append(chooser.sample(process(row)))
    return new


@wrong("a pass of the target for each drafted token", says="a pass for every token")
def a_pass_each(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        p = []
        for i in range(len(draft) + 1):
            unread = target.rewind_to_match(tokens + draft[:i])
            p.append(process(target.extend(unread)[-1]))
        accepted, following = verify(draft, q, p, chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("a pass of its own for the prompt", says="Does the prompt have one of its own")
def own_prefill(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    if max_new_tokens and len(prompt) > 1:
        target.extend(prompt[:-1])
    return in_the_plainest_form(
        target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
    )


@wrong("a second pass for the bonus", says="two passes of the target in each round")
def second_pass(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        unread = target.rewind_to_match(tokens + draft)
        p[-1] = process(target.extend(unread)[-1])
        accepted, following = verify(draft, q, p, chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("no bonus", says="Is the bonus token missing")
def no_bonus(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        wanted = min(gamma, end - len(tokens))
        draft, q = propose(draft_model, tokens, wanted, process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        tokens += draft if accepted == len(draft) else [*draft[:accepted], following]
    return tokens[len(prompt) :]


@wrong("drafts one token less than gamma", says="one token too short")
def drafts_less(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    return in_the_plainest_form(
        target,
        draft_model,
        prompt,
        max(0, gamma - 1),
        max_new_tokens,
        process,
        chooser,
        propose,
        verify,
    )


@wrong("drafts one token more than gamma", says="drafts more than gamma")
def drafts_more(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    return in_the_plainest_form(
        target, draft_model, prompt, gamma + 1, max_new_tokens, process, chooser, propose, verify
    )


@wrong("drafts as much as the budget allows", says="drafts more than gamma")
def drafts_all(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    return in_the_plainest_form(
        target,
        draft_model,
        prompt,
        max_new_tokens,
        max_new_tokens,
        process,
        chooser,
        propose,
        verify,
    )


@wrong("the target drafts for itself", says="the draft model was never asked")
def target_drafts(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    return in_the_plainest_form(
        target, target, prompt, gamma, max_new_tokens, process, chooser, propose, verify
    )


# --- where chance comes from --------------------------------------------------------------------

_FROM_THE_CHOOSER = "all chance has to come from the chooser"


def _tossing(accept, sample=None):
    """The loop with other coins."""

    def judge(p, draft, chooser):
        for i in range(len(draft)):
            if not accept(_exact_chance(p, draft, i)):
                return [*draft.tokens[:i], (sample or chooser.sample)(_exact_residual(p, draft, i))]
        return [*draft.tokens, (sample or chooser.sample)(p[len(draft)])]

    return _loop(judge=judge)


wrong("coins of torch.rand", says=_FROM_THE_CHOOSER)(
    _tossing(lambda chance: torch.rand(()).item() < chance)
)
wrong("coins of random.random", says=_FROM_THE_CHOOSER)(
    _tossing(lambda chance: random.random() < chance)
)
wrong("coins of numpy", says=_FROM_THE_CHOOSER)(_tossing(lambda chance: np.random.rand() < chance))
wrong("a generator seeded for each coin", says=_FROM_THE_CHOOSER)(
    _tossing(lambda chance: torch.rand((), generator=torch.Generator().manual_seed(0)).item() < chance)
)
wrong("numpy's generator seeded for each coin", says=_FROM_THE_CHOOSER)(
    _tossing(lambda chance: np.random.default_rng(0).random() < chance)
)
wrong("a chooser seeded for each coin", says=_FROM_THE_CHOOSER)(
    _tossing(lambda chance: SeededChooser(0).accept(chance))
)
wrong("torch.multinomial", says=_FROM_THE_CHOOSER)(
    _tossing(lambda chance: chance >= 1, lambda row: int(torch.multinomial(row, 1)))
)


def _reseeded(chance):
    torch.manual_seed(0)
    return torch.rand(()).item() < chance


wrong("torch.manual_seed for each coin", says=_FROM_THE_CHOOSER)(_tossing(_reseeded))


@wrong("a chooser of its own in each round", says=_FROM_THE_CHOOSER)
def own_chooser(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        chooser = SeededChooser(0)
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


_left_over = []


@wrong("remembers the last run", says="start|chooser")
def remembers(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    _left_over.append(len(_left_over))
    return in_the_plainest_form(
        target,
        draft_model,
        prompt,
        1 + len(_left_over) % 2,
        max_new_tokens,
        process,
        chooser,
        propose,
        verify,
    )


@wrong("asks the chooser for a number", says="hands out no numbers")
def asks_for_a_number(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, _ = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted = 0
        while accepted < len(draft) and chooser.uniform() < p[accepted][draft[accepted]]:
            accepted += 1
        tokens += [*draft[:accepted], chooser.sample(p[accepted])]
    return tokens[len(prompt) :]


# --- form, and the library ----------------------------------------------------------------------


@wrong("not written", says=r"^✗ speculative_sample: not implemented yet")
def not_written(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    raise NotImplementedError


@wrong("no return", says="returned None")
def no_return(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    in_the_plainest_form(
        target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
    )


@wrong("appends to the caller's prompt", says="your code changes what it was given")
def changes_the_prompt(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    length = len(prompt)
    while len(prompt) < length + max_new_tokens:
        wanted = min(gamma, length + max_new_tokens - len(prompt) - 1)
        draft, q = propose(draft_model, prompt, wanted, process, chooser)
        unread = target.rewind_to_match(prompt)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        prompt += [*draft[:accepted], following]
    return prompt[length:]


@wrong("rounds, not tokens", says="expected a whole number")
def rounds(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    new = in_the_plainest_form(
        target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
    )
    return [new]


@wrong("text", says="expected a list of token ids")
def text(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    new = in_the_plainest_form(
        target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
    )
    return " ".join(map(str, new))


@wrong("runs `speculative` of the library", says="calls the library's `speculative`")
def calls_speculative(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    rounds = decoding.speculative(
        target,
        ModelDrafter(draft_model),
        prompt,
        max_new_tokens=max_new_tokens,
        gamma=gamma,
        sampling=Sampling(1.0),
        chooser=chooser,
    )
    return [token for one in rounds for token in one.tokens]


@wrong("runs `generate` of the library", says="calls the library's `generate`")
def calls_generate(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    return decoding.generate(target, prompt, drafter=ModelDrafter(draft_model)).tokens


@wrong("runs the reference and catches the objection", says="calls the library's `speculative_sample`")
def calls_the_reference(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    try:
        return references.speculative_sample(
            target, draft_model, prompt, gamma, max_new_tokens, process, chooser
        )
    except BaseException:
        return []


@wrong("calls the library's verifier", says="calls the library's `verify_by_sampling`")
def calls_the_verifier(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        rows = target.extend(unread + draft)[len(unread) - 1 :]
        proposal = Draft(draft, torch.stack(q) if q else torch.zeros(0, target.vocab_size))
        p = TargetRows(Sampling(1.0), tokens + draft, rows)
        tokens += verification.verify_by_sampling(p, proposal, chooser).tokens
    return tokens[len(prompt) :]


@wrong("catches the chooser's objection", says="expected a distribution")
def catches(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    new = []
    while len(new) < max_new_tokens:
        row = target.extend(target.rewind_to_match([*prompt, *new]))[-1]
        try:
            new.append(chooser.sample(2 * process(row)))
        except BaseException:
            new.append(0)
    return new


# --- right --------------------------------------------------------------------------------------


@right("hands its own rules to verify, by their names")
def hands_rules_to_verify(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(
            draft,
            q,
            p,
            chooser,
            acceptance=lambda p, q: min(1.0, p / q),
            residual=distributions.residual,
        )
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@right("in the plainest form")
def in_the_plainest_form(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    new = []
    while len(new) < max_new_tokens:
        tokens = [*prompt, *new]
        draft, q = propose(
            draft_model, tokens, min(gamma, max_new_tokens - len(new) - 1), process, chooser
        )
        unread = target.rewind_to_match(tokens)
        rows = target.extend([*unread, *draft], rows=len(draft) + 1)
        accepted, following = verify(draft, q, [process(row) for row in rows], chooser)
        new.extend(draft[:accepted])
        new.append(following)
    return new


right("everything by itself")(_loop())
right("everything by itself, gamma always, cut at the end")(_loop(wanted=_always))
right("gamma always, cut at the end")(_with_budget(lambda new, prompt, budget: new[:budget], _always))


def _literal(p, draft, chooser):
    for i, token in enumerate(draft.tokens):
        own = chooser.sample(p[i])
        if own != token:
            return [*draft.tokens[:i], own]
    return [*draft.tokens, chooser.sample(p[-1])]


right("keeps a draft that equals a token drawn from p")(_loop(judge=_literal))
right("the same, gamma always")(_loop(judge=_literal, wanted=_always))


def _coins_first(p, draft, chooser):
    coins = [chooser.accept(_exact_chance(p, draft, i)) for i in range(len(draft))]
    i = [*coins, False].index(False)
    row = p[i] if i == len(draft) else _exact_residual(p, draft, i)
    return [*draft.tokens[:i], chooser.sample(row)]


right("all coins first")(_loop(judge=_coins_first))
right("all coins first, gamma always")(_loop(judge=_coins_first, wanted=_always))


def _one_hot_greedy(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        row = process(model.extend(model.rewind_to_match(tokens + draft))[-1])
        q.append(torch.nn.functional.one_hot(row.argmax(), len(row)).double())
        draft.append(int(row.argmax()))
    return draft, q


right("a greedy draft with a one-hot q")(_loop(drafting=_one_hot_greedy))
right("a draft that is drawn without `process`, and says so")(_loop(drafting=_raw_draft_raw_q))


@right("no cache, one pass of the target a round")
def without_a_cache(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = [], []
        for _ in range(min(gamma, end - len(tokens) - 1)):
            draft_model.reset()
            q.append(process(draft_model.extend(tokens + draft)[-1]))
            draft.append(chooser.sample(q[-1]))
        target.reset()
        rows = target.extend(tokens + draft)[len(tokens) - 1 :]
        accepted, following = verify(draft, q, [process(row) for row in rows], chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]


@right("a draft of random length: long if a coin says so")
def random_length(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    new = []
    while len(new) < max_new_tokens:
        tokens = [*prompt, *new]
        wanted = gamma if gamma > 0 and chooser.accept(0.5) else min(gamma, 1)
        draft, q = propose(draft_model, tokens, wanted, process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        new += [*draft[:accepted], following]
    return new[:max_new_tokens]


@right("a draft of random length: short if a coin says so")
def random_short(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    new = []
    while len(new) < max_new_tokens:
        tokens, left = [*prompt, *new], max_new_tokens - len(new) - 1
        wanted = min(left, 1 if chooser.accept(0.5) else gamma)
        draft, q = propose(draft_model, tokens, wanted, process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        new += [*draft[:accepted], following]
    return new


@right("tensors for tokens, q stacked, numpy's integers")
def tensors(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    new = torch.zeros(max_new_tokens, dtype=torch.long)
    made = np.int64(0)
    while made < max_new_tokens:
        tokens = prompt + new[:made].tolist()
        draft, q = propose(draft_model, tokens, min(gamma, max_new_tokens - made - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        rows = target.extend(torch.tensor(unread + draft))[len(unread) - 1 :]
        p = torch.stack([process(row) for row in rows])
        q = torch.stack(q) if draft else torch.zeros(0, len(p[0]))
        accepted, following = verify(torch.tensor(draft, dtype=torch.long), q, p, chooser)
        emitted = torch.tensor([*draft[:accepted], following])
        new[made : made + len(emitted)] = emitted
        made += len(emitted)
    return new


@right("its own bookkeeping of the target's cache")
def own_bookkeeping(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = tokens[target.length :]
        rows = target.extend(unread + draft)[-len(draft) - 1 :]
        accepted, following = verify(draft, q, [process(row) for row in rows], chooser)
        target.rewind(len(tokens) + accepted)
        tokens = [*tokens, *draft[:accepted], following]
    return tuple(tokens[len(prompt) :])


@right("a draft model with a stale cache; q is what was drawn from")
def stale_draft_true_q(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end, read = list(prompt), len(prompt) + max_new_tokens, 0
    while len(tokens) < end:
        draft, q = [], []
        unread, read = tokens[read:], len(tokens)
        for _ in range(min(gamma, end - len(tokens) - 1)):
            q.append(process(draft_model.extend(unread)[-1]))
            draft.append(chooser.sample(q[-1]))
            unread, read = draft[-1:], read + 1
        read = max(len(prompt), min(read - 1, len(tokens) + len(draft) - 1))
        new = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(new + draft)[len(new) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        tokens += [*draft[:accepted], following]
        read = min(read, len(tokens) - 1)
    return tokens[len(prompt) :]


@right("recursion")
def recursive(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    if max_new_tokens == 0:
        return []
    draft, q = propose(draft_model, prompt, min(gamma, max_new_tokens - 1), process, chooser)
    unread = target.rewind_to_match(prompt)
    p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
    accepted, following = verify(draft, q, p, chooser)
    emitted = [*draft[:accepted], following]
    left = max_new_tokens - len(emitted)
    return emitted + recursive(
        target, draft_model, prompt + emitted, gamma, left, process, chooser, propose, verify
    )


@right("a generator inside, probabilities in float32")
def generated(target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify):
    def write():
        text, left = list(prompt), max_new_tokens
        while left:
            draft, q = propose(draft_model, text, min(gamma, left - 1), process, chooser)
            unread = target.rewind_to_match(text)
            rows = target.extend(unread + draft)[len(unread) - 1 :]
            accepted, following = verify(draft, q, [process(row).float() for row in rows], chooser)
            emitted = [*draft[:accepted], following]
            yield from emitted
            text, left = text + emitted, left - len(emitted)

    return list(write())


@right("the last token without a draft, by plain decoding")
def last_one_plain(
    target, draft_model, prompt, gamma, max_new_tokens, process, chooser, propose, verify
):
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        if len(tokens) == end - 1:
            tokens.append(chooser.sample(process(target.extend(target.rewind_to_match(tokens))[-1])))
            break
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        p = [process(row) for row in target.extend(unread + draft)[len(unread) - 1 :]]
        accepted, following = verify(draft, q, p, chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]

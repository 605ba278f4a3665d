"""Greedy verification."""

import itertools

import torch

from specdec_lab import verification
from specdec_lab.checks import references
from specdec_lab.course.mutants import right, wrong
from specdec_lab.randomness import SeededChooser
from specdec_lab.records import Draft
from specdec_lab.sampling import Sampling, TargetRows


@wrong("counts all matches", says="you count all matches")
def all_matches(draft, rows):
    choices = rows.argmax(dim=-1)
    accepted = sum(mine == theirs for mine, theirs in zip(draft, choices.tolist(), strict=False))
    return accepted, int(choices[accepted])


@wrong("compares with the row behind the token", says="drafted token i with row i [+] 1")
def row_behind(draft, rows):
    accepted = 0
    while accepted < len(draft) and draft[accepted] == int(rows[accepted + 1].argmax()):
        accepted += 1
    return accepted, int(rows[accepted].argmax())


@wrong("keeps the token at the mismatch", says="one too many")
def counts_the_mismatch(draft, rows):
    accepted = 0
    for mine, row in zip(draft, rows, strict=False):
        accepted += 1
        if mine != int(row.argmax()):
            break
    return accepted, int(rows[accepted].argmax())


@wrong("the place of the last match", says="one too few")
def last_place(draft, rows):
    place = 0
    for index, row in enumerate(rows[:-1]):
        if draft[index] != int(row.argmax()):
            break
        place = index
    return place, int(rows[place + 1].argmax())


@wrong("keeps the whole draft", says="the whole draft is kept, verified or not")
def keeps_all(draft, rows):
    return len(draft), int(rows[-1].argmax())


@wrong("all or nothing", says="nothing is kept")
def all_or_nothing(draft, rows):
    choices = rows.argmax(dim=-1).tolist()
    accepted = len(draft) if draft == choices[:-1] else 0
    return accepted, choices[accepted]


@wrong("the draft's own token at the mismatch", says="the draft's token is kept at the mismatch")
def follows_the_draft(draft, rows):
    choices = rows.argmax(dim=-1).tolist()
    for accepted, mine in enumerate(draft):
        if mine != choices[accepted]:
            return accepted, mine
    return len(draft), choices[-1]


@wrong("the last row's token", says="the token comes from the last row")
def last_row(draft, rows):
    choices = rows.argmax(dim=-1).tolist()
    accepted = 0
    while accepted < len(draft) and draft[accepted] == choices[accepted]:
        accepted += 1
    return accepted, choices[-1]


@wrong("the row behind the mismatch", says="that row is one too far")
def one_row_too_far(draft, rows):
    choices = rows.argmax(dim=-1).tolist()
    for accepted, mine in enumerate(draft):
        if mine != choices[accepted]:
            return accepted, choices[accepted + 1]
    return len(draft), choices[-1]


@wrong("no bonus token", says="That is the bonus token")
def no_bonus(draft, rows):
    choices = rows.argmax(dim=-1).tolist()
    for accepted, mine in enumerate(draft):
        if mine != choices[accepted]:
            return accepted, choices[accepted]
    return len(draft), None


@wrong("the draft's last token as the bonus", says="That is the bonus token")
def last_of_the_draft(draft, rows):
    choices = rows.argmax(dim=-1).tolist()
    for accepted, mine in enumerate(draft):
        if mine != choices[accepted]:
            return accepted, choices[accepted]
    return len(draft), draft[-1]


@wrong("the likeliest along the wrong dimension", says="along the wrong dimension")
def wrong_dimension(draft, rows):
    choices = rows.argmax(dim=0).tolist()
    accepted = 0
    while accepted < len(draft) and draft[accepted] == choices[accepted]:
        accepted += 1
    return accepted, choices[accepted]


@wrong("the emitted tokens", says="expected two things")
def emitted(draft, rows):
    accepted, following = all_matches(draft, rows)
    return [*draft[:accepted], following]


@wrong("the number only", says="expected two things")
def number_only(draft, rows):
    accepted, _ = all_matches(draft, rows)
    return accepted


@wrong("the score of the token", says="type float, expected a whole number")
def score(draft, rows):
    accepted = 0
    while accepted < len(draft) and draft[accepted] == int(rows[accepted].argmax()):
        accepted += 1
    return accepted, float(rows[accepted].max())


@wrong("compares tensors with ==, as a whole", says="raised RuntimeError: Boolean value")
def ambiguous(draft, rows):
    choices, mine = rows.argmax(dim=-1), torch.tensor(draft)
    accepted = 0
    while mine[accepted:] == choices[accepted : len(draft)]:
        accepted += 1
    return accepted, int(choices[accepted])


@wrong("eats the draft", says="your code changes what it was given")
def eats_the_draft(draft, rows):
    choices = rows.argmax(dim=-1).tolist()
    accepted = 0
    while draft and draft[0] == choices[accepted]:
        draft.pop(0)
        accepted += 1
    return accepted, choices[accepted]


@wrong("calls the library's verifier", says="calls the library's `verify_greedily`")
def calls_the_library(draft, rows):
    p = TargetRows(Sampling(), [0], rows)
    q = torch.nn.functional.one_hot(torch.tensor(draft), rows.shape[-1]).double()
    verdict = verification.verify_greedily(p, Draft(draft, q), SeededChooser(0), False)
    return len(verdict.tokens) - 1, verdict.closing


@wrong("calls the reference and catches the objection", says="calls the library's `verify`")
def calls_the_reference(draft, rows):
    try:
        return references.verify(draft, rows)
    except BaseException:
        return 0, 0


@right("vectorised: a cumulative product")
def vectorised(draft, rows):
    choices = rows.argmax(dim=-1)
    same = choices[:-1] == torch.tensor(draft, dtype=torch.long)
    accepted = same.long().cumprod(dim=0).sum()
    return accepted, choices[accepted]


@right("itertools")
def with_itertools(draft, rows):
    choices = rows.argmax(dim=-1).tolist()
    pairs = zip(draft, choices, strict=False)
    accepted = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return accepted, choices[accepted]


@right("recursion, a list of two")
def recursive(draft, rows):
    choice = int(rows[0].softmax(dim=-1).topk(1).indices)
    if not draft or draft[0] != choice:
        return [0, choice]
    accepted, following = recursive(draft[1:], rows[1:])
    return [accepted + 1, following]


@right("numpy, first mismatch by argmax, a sentinel behind the draft")
def with_numpy(draft, rows):
    choices = rows.double().numpy().argmax(axis=1)
    differs = choices != [*draft, -1]
    accepted = differs.argmax()
    return accepted, choices[accepted]


@right("a for loop with an else")
def for_else(draft, rows):
    accepted = 0
    for mine, row in zip(draft, rows, strict=False):
        if mine != int(row.argmax()):
            following = row.argmax()
            break
        accepted += 1
    else:
        following = rows[-1].argmax()
    return accepted, following

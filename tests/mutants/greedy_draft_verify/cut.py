"""What may be kept of a round's tokens."""

import itertools

import numpy as np

from specdec_lab.checks import references
from specdec_lab.course.mutants import right, wrong


@wrong("ignores the end token", says="the end token is ignored")
def ignores_the_end(emitted, end_tokens, remaining):
    kept = emitted[:remaining]
    return kept, len(kept) == remaining


@wrong("looks for the set in the list", says="the end token is ignored")
def looks_for_the_set(emitted, end_tokens, remaining):
    kept = emitted[:remaining]
    return kept, end_tokens in kept or len(kept) == remaining


@wrong("looks at the last token of the round only", says="the end token is ignored")
def looks_at_the_last(emitted, end_tokens, remaining):
    kept = emitted[:remaining]
    return kept, kept[-1] in end_tokens or len(kept) == remaining


@wrong("drops the end token", says="the end token itself is part of the output")
def drops_the_end(emitted, end_tokens, remaining):
    kept = []
    for token in emitted[:remaining]:
        if token in end_tokens:
            return kept, True
        kept.append(token)
    return kept, len(kept) == remaining


@wrong("the last end token", says="at the first end token, not at the last")
def last_end(emitted, end_tokens, remaining):
    kept = emitted[:remaining]
    for place in range(len(kept) - 1, -1, -1):
        if kept[place] in end_tokens:
            return kept[: place + 1], True
    return kept, len(kept) == remaining


@wrong("overshoots the budget", says="the budget is overshot")
def overshoots(emitted, end_tokens, remaining):
    kept = []
    for token in emitted:
        kept.append(token)
        if token in end_tokens:
            return kept, True
    return kept, len(kept) >= remaining


@wrong("one token over the budget", says="the budget is overshot|one token more than remain")
def one_over(emitted, end_tokens, remaining):
    kept = []
    for token in emitted:
        kept.append(token)
        if token in end_tokens or len(kept) > remaining:
            return kept, True
    return kept, False


@wrong("one token less than the budget", says="one token less than remain")
def one_under(emitted, end_tokens, remaining):
    kept = []
    for token in emitted:
        if len(kept) == remaining - 1:
            return kept, True
        kept.append(token)
        if token in end_tokens:
            return kept, True
    return kept, False


@wrong(
    "counts the remaining from the wrong end", says="these are not the tokens to keep|one token less"
)
def from_the_end(emitted, end_tokens, remaining):
    kept = emitted[-remaining:]
    for place, token in enumerate(kept):
        if token in end_tokens:
            return kept[: place + 1], True
    return kept, len(kept) == remaining


@wrong("finished at an end token only", says="is decoding finished[?]")
def budget_is_no_end(emitted, end_tokens, remaining):
    kept = []
    for token in emitted[:remaining]:
        kept.append(token)
        if token in end_tokens:
            return kept, True
    return kept, False


@wrong("finished only if something was cut off", says="is decoding finished[?]")
def only_if_cut_off(emitted, end_tokens, remaining):
    kept = emitted[:remaining]
    for place, token in enumerate(kept):
        if token in end_tokens:
            return kept[: place + 1], True
    return kept, len(kept) < len(emitted)


@wrong("always finished", says="is decoding finished[?]")
def always_finished(emitted, end_tokens, remaining):
    kept = emitted[:remaining]
    for place, token in enumerate(kept):
        if token in end_tokens:
            return kept[: place + 1], True
    return kept, True


@wrong("the other way round: whether to go on", says="is decoding finished[?]")
def goes_on(emitted, end_tokens, remaining):
    kept = []
    for token in emitted[:remaining]:
        kept.append(token)
        if token in end_tokens:
            return kept, False
    return kept, len(kept) < remaining


@wrong("only the tokens", says="expected two things")
def tokens_only(emitted, end_tokens, remaining):
    kept = []
    for token in emitted[:remaining]:
        kept.append(token)
        if token in end_tokens:
            break
    return kept


@wrong("1 for True", says="expected True or False")
def one_for_true(emitted, end_tokens, remaining):
    kept, finished = list(emitted[:remaining]), 0
    for place, token in enumerate(kept):
        if token in end_tokens:
            return kept[: place + 1], 1
    return kept, int(finished or len(kept) == remaining)


@wrong("'yes' for True", says="expected True or False")
def words(emitted, end_tokens, remaining):
    kept = emitted[:remaining]
    return kept, "yes" if len(kept) == remaining else "no"


@wrong("cuts the caller's list", says="your code changes what it was given")
def cuts_in_place(emitted, end_tokens, remaining):
    del emitted[remaining:]
    for place, token in enumerate(emitted):
        if token in end_tokens:
            del emitted[place + 1 :]
            return emitted, True
    return emitted, len(emitted) == remaining


@wrong("calls the reference", says="calls the library's `cut`")
def calls_the_reference(emitted, end_tokens, remaining):
    return references.cut(emitted, end_tokens, remaining)


@right("by the place of the first end token")
def by_place(emitted, end_tokens, remaining):
    ends = [place + 1 for place, token in enumerate(emitted) if token in end_tokens]
    kept = emitted[: min([remaining, *ends])]
    return kept, kept[-1] in end_tokens or len(kept) == remaining


@right("a generator inside, a tuple outside")
def generated(emitted, end_tokens, remaining):
    def keep():
        for token in itertools.islice(emitted, remaining):
            yield token
            if token in end_tokens:
                return

    kept = tuple(keep())
    return kept, any(token in end_tokens for token in kept) or len(kept) >= remaining


@right("recursion, a list of two")
def recursive(emitted, end_tokens, remaining):
    first, *rest = emitted
    if first in end_tokens or remaining == 1:
        return [[first], True]
    if not rest:
        return [[first], False]
    kept, finished = recursive(rest, end_tokens, remaining - 1)
    return [[first, *kept], finished]


@right("numpy")
def with_numpy(emitted, end_tokens, remaining):
    kept = np.array(emitted[:remaining])
    ends = np.flatnonzero(np.isin(kept, list(end_tokens)))
    if ends.size:
        return kept[: ends[0] + 1], np.bool_(True)
    return kept, np.equal(len(kept), remaining)

"""What followed the last few tokens when they stood before."""

import numpy as np
import torch

from specdec_lab.checks import references
from specdec_lab.course.mutants import right, wrong
from specdec_lab.drafters import NGramDrafter
from specdec_lab.randomness import SeededChooser


@wrong("matches the end with itself", says="is the text itself")
def matches_itself(tokens, gamma, longest=3):
    for size in range(min(longest, len(tokens)), 0, -1):
        for start in range(len(tokens) - size, -1, -1):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start + size : start + size + gamma]
    return []


@wrong("the shortest match first, latest place", says="a longer match is there")
def shortest_first(tokens, gamma, longest=3):
    for size in range(1, min(longest, len(tokens) - 1) + 1):
        for start in range(len(tokens) - size - 1, -1, -1):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start + size : start + size + gamma]
    return []


@wrong("the shortest match first, earliest place", says="a longer match is there")
def shortest_first_earliest(tokens, gamma, longest=3):
    for size in range(1, min(longest, len(tokens) - 1) + 1):
        for start in range(len(tokens) - size):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start + size : start + size + gamma]
    return []


@wrong("looks for the last token only", says="a longer match is there")
def last_token_only(tokens, gamma, longest=3):
    for start in range(len(tokens) - 2, -1, -1):
        if tokens[start] == tokens[-1]:
            return tokens[start + 1 : start + 1 + gamma]
    return []


@wrong("looks for the longest ending only", says="try fewer")
def longest_only(tokens, gamma, longest=3):
    ending = tokens[-longest:]
    for start in range(len(tokens) - longest):
        if tokens[start : start + longest] == ending:
            return tokens[start + longest : start + longest + gamma]
    return []


@wrong("stops above one token", says="try fewer")
def never_one(tokens, gamma, longest=3):
    for size in range(min(longest, len(tokens) - 1), 1, -1):
        for start in range(len(tokens) - size):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start + size : start + size + gamma]
    return []


@wrong("misses the place right before the end", says="try fewer|stood before")
def one_place_short(tokens, gamma, longest=3):
    for size in range(min(longest, len(tokens) - 1), 0, -1):
        for start in range(len(tokens) - size - 1):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start + size : start + size + gamma]
    return []


@wrong(
    "one size too few", says="a longer match is there|try fewer|stood before|followed the last tokens"
)
def one_size_short(tokens, gamma, longest=3):
    for size in range(min(longest, len(tokens)) - 1, 0, -1):
        for start in range(len(tokens) - size - 1, -1, -1):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start + size : start + size + gamma]
    return []


@wrong("three tokens at most, whatever `longest`", says="a longer match is there")
def always_three(tokens, gamma, longest=3):
    for size in range(min(3, len(tokens) - 1), 0, -1):
        for start in range(len(tokens) - size - 1, -1, -1):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start + size : start + size + gamma]
    return []


@wrong("the match is part of the proposal", says="starts with the match itself")
def with_the_match(tokens, gamma, longest=3):
    for size in range(min(longest, len(tokens) - 1), 0, -1):
        for start in range(len(tokens) - size):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start : start + gamma]
    return []


@wrong("the match and gamma more", says="starts with the match itself")
def with_the_match_and_more(tokens, gamma, longest=3):
    for size in range(min(longest, len(tokens) - 1), 0, -1):
        for start in range(len(tokens) - size):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start : start + size + gamma]
    return []


@wrong("all that followed", says="expected at most gamma")
def all_that_followed(tokens, gamma, longest=3):
    for size in range(min(longest, len(tokens) - 1), 0, -1):
        for start in range(len(tokens) - size):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start + size :]
    return []


@wrong("begins one too late", says="this is not what followed the last tokens")
def one_too_late(tokens, gamma, longest=3):
    for size in range(min(longest, len(tokens) - 1), 0, -1):
        for start in range(len(tokens) - size):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start + size + 1 : start + size + 1 + gamma]
    return []


@wrong("the start of the text if nothing matches", says="there is nothing to propose")
def never_empty(tokens, gamma, longest=3):
    return _look_up(tokens, gamma, longest) or tokens[:gamma]


def _look_up(tokens, gamma, longest):
    for size in range(min(longest, len(tokens) - 1), 0, -1):
        for start in range(len(tokens) - size):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start + size : start + size + gamma]
    return []


@wrong("repeats the last token if nothing matches", says="there is nothing to propose")
def repeats_the_last(tokens, gamma, longest=3):
    return _look_up(tokens, gamma, longest) or tokens[-1:] * gamma


@wrong("crashes on a short text", says="raised IndexError")
def crashes(tokens, gamma, longest=3):
    for size in range(longest, 0, -1):
        ending = [tokens[-size + place] for place in range(size)]
        for start in range(len(tokens) - size):
            if tokens[start : start + size] == ending:
                return tokens[start + size : start + size + gamma]
    return []


@wrong("None if nothing matches", says="Is there a `return`")
def none_for_nothing(tokens, gamma, longest=3):
    for size in range(min(longest, len(tokens) - 1), 0, -1):
        for start in range(len(tokens) - size):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start + size : start + size + gamma]
    return None


@wrong("prints instead of returning", says="Is there a `return`")
def prints(tokens, gamma, longest=3):
    print(_look_up(tokens, gamma, longest))


@wrong("calls the library's drafter", says="calls the library's `NGramDrafter")
def calls_the_drafter(tokens, gamma, longest=3):
    drafter = NGramDrafter(1 + max(tokens, default=0), longest)
    return drafter.propose(tokens, gamma, SeededChooser(0)).tokens


@wrong("calls the reference", says="calls the library's `prompt_lookup`")
def calls_the_reference(tokens, gamma, longest=3):
    return references.prompt_lookup(tokens, gamma, longest)


@right("the earliest place")
def earliest(tokens, gamma, longest=3):
    return _look_up(tokens, gamma, longest)


@right("a dict from each run of tokens to what follows it")
def with_a_dict(tokens, gamma, longest=3):
    for size in range(longest, 0, -1):
        seen = {}
        for end in range(size, len(tokens)):
            seen[tuple(tokens[end - size : end])] = end
        place = seen.get(tuple(tokens[-size:])) if len(tokens) > size else None
        if place is not None:
            return tuple(tokens[place : place + gamma])
    return ()


@right("vectorised, with windows of a tensor")
def with_windows(tokens, gamma, longest=3):
    text = torch.tensor(tokens, dtype=torch.long)
    for size in range(min(longest, len(text) - 1), 0, -1):
        windows = text[:-1].unfold(0, size, 1)
        places = (windows == text[-size:]).all(dim=1).nonzero()[:, 0]
        if len(places):
            begin = int(places[-1]) + size
            return text[begin : begin + gamma]
    return text[:0]


@right("goes on in its own proposal where the text ends")
def goes_on(tokens, gamma, longest=3):
    for size in range(min(longest, len(tokens) - 1), 0, -1):
        for start in range(len(tokens) - size - 1, -1, -1):
            if tokens[start : start + size] == tokens[-size:]:
                text = list(tokens)
                for place in range(start + size, start + size + gamma):
                    text.append(text[place])
                return text[len(tokens) :]
    return []


@right("recursion over the size, numpy")
def recursive(tokens, gamma, longest=3):
    if longest == 0:
        return np.array([], dtype=int)
    places = [
        end
        for end in range(longest, len(tokens))
        if np.array_equal(tokens[end - longest : end], tokens[len(tokens) - longest :])
    ]
    if places:
        return np.array(tokens[places[-1] : places[-1] + gamma])
    return recursive(tokens, gamma, longest - 1)

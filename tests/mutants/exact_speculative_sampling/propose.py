"""Draw a draft."""

import random

import numpy as np
import torch

from specdec_lab.checks import references
from specdec_lab.course.mutants import right, wrong
from specdec_lab.drafters import ModelDrafter
from specdec_lab.randomness import SeededChooser
from specdec_lab.sampling import Sampling

# --- q ------------------------------------------------------------------------------------------


@wrong("takes the likeliest token, hands over the softmax", says="likeliest token is taken")
def greedy_with_softmax(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend(model.rewind_to_match(tokens + draft))[-1]))
        draft.append(int(q[-1].argmax()))
    return draft, q


@wrong("takes the likeliest token and says so", says="all of the probability is on one token")
def greedy_and_says_so(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        row = process(model.extend(model.rewind_to_match(tokens + draft))[-1])
        q.append(torch.nn.functional.one_hot(row.argmax(), len(row)).double())
        draft.append(chooser.sample(q[-1]))
    return draft, q


@wrong("draws colder than q says", says="not drawn from the q that is handed over")
def cold(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        row = model.extend(model.rewind_to_match(tokens + draft))[-1]
        q.append(process(row))
        draft.append(chooser.sample(process(2 * row)))
    return draft, q


@wrong("draws without the temperature", says="not drawn from the q|the temperature is missing")
def draws_raw(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        row = model.extend(model.rewind_to_match(tokens + draft))[-1]
        q.append(process(row))
        draft.append(chooser.sample(row.softmax(-1)))
    return draft, q


@wrong("no temperature at all", says="the temperature is missing")
def raw(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(model.extend(model.rewind_to_match(tokens + draft))[-1].softmax(-1))
        draft.append(chooser.sample(q[-1]))
    return draft, q


@wrong("hands over q without the temperature", says="the temperature is missing")
def hands_over_raw(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        row = model.extend(model.rewind_to_match(tokens + draft))[-1]
        q.append(row.softmax(-1))
        draft.append(chooser.sample(process(row)))
    return draft, q


@wrong("processes twice", says="`process` is applied twice")
def processes_twice(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(process(model.extend(model.rewind_to_match(tokens + draft))[-1])))
        draft.append(chooser.sample(q[-1]))
    return draft, q


@wrong("hands over logits", says="those are logits")
def logits(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(model.extend(model.rewind_to_match(tokens + draft))[-1])
        draft.append(chooser.sample(process(q[-1])))
    return draft, q


@wrong("all tokens from the first q", says="that is the first token's q")
def first_q_for_all(model, tokens, gamma, process, chooser):
    if not gamma:
        return [], []
    q = process(model.extend(model.rewind_to_match(tokens))[-1])
    return [chooser.sample(q) for _ in range(gamma)], [q] * gamma


@wrong("hands over the first q for all", says="that is the first token's q")
def hands_over_the_first(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend(model.rewind_to_match(tokens + draft))[-1]))
        draft.append(chooser.sample(q[-1]))
    return draft, q[:1] * gamma


@wrong("the q behind each token, one too late", says="one token too late")
def one_too_late(model, tokens, gamma, process, chooser):
    draft, q = [], []
    row = process(model.extend(model.rewind_to_match(tokens))[-1])
    for _ in range(gamma):
        draft.append(chooser.sample(row))
        row = process(model.extend(draft[-1:])[-1])
        q.append(row)
    return draft, q


@wrong("does not read what it has drafted", says="first token's q|one token further back")
def reads_no_draft(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend(model.rewind_to_match(tokens))[-1]))
        draft.append(chooser.sample(q[-1]))
    return draft, q


@wrong("q of the token alone", says="the whole distribution")
def one_number(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        row = process(model.extend(model.rewind_to_match(tokens + draft))[-1])
        draft.append(chooser.sample(row))
        q.append(row[draft[-1]])
    return draft, q


@wrong("q in bfloat16", says="expected float32 or float64")
def bfloat16(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend(model.rewind_to_match(tokens + draft))[-1]).bfloat16())
        draft.append(chooser.sample(q[-1].double() / q[-1].double().sum()))
    return draft, q


@wrong("all rows at once into `process`", says="takes one row of logits")
def all_rows(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend(model.rewind_to_match(tokens + draft)))[-1])
        draft.append(chooser.sample(q[-1]))
    return draft, q


@wrong("the first row instead of the last", says="Take the \\*last\\* row")
def first_row(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend(model.rewind_to_match(tokens + draft))[0]))
        draft.append(chooser.sample(q[-1]))
    return draft, q


# --- the cache ----------------------------------------------------------------------------------


@wrong("never forgets, reads what is new", says="does not have|raised ValueError: tokens: got none")
def never_forgets(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend((tokens + draft)[model.length :])[-1]))
        draft.append(chooser.sample(q[-1]))
    return draft, q


@wrong("never forgets, reads the last token", says="that the text does not have|last\\* row")
def reads_the_last(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend((tokens + draft)[-1:])[-1]))
        draft.append(chooser.sample(q[-1]))
    return draft, q


@wrong("reads the whole text on top of the cache", says="that the text does not have")
def reads_on_top(model, tokens, gamma, process, chooser):
    draft, q, unread = [], [], tokens
    for _ in range(gamma):
        q.append(process(model.extend(unread)[-1]))
        draft.append(chooser.sample(q[-1]))
        unread = draft[-1:]
    return draft, q


@wrong("reads the text again behind each drafted token", says="that the text does not have")
def reads_again(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend(tokens + draft)[-1]))
        draft.append(chooser.sample(q[-1]))
    return draft, q


@wrong("rewinds by length alone", says="that the text does not have")
def rewinds_by_length(model, tokens, gamma, process, chooser):
    draft, q = [], []
    model.rewind(min(model.length, len(tokens) - 1))
    for _ in range(gamma):
        q.append(process(model.extend((tokens + draft)[model.length :])[-1]))
        draft.append(chooser.sample(q[-1]))
    return draft, q


@wrong("forgets, but does not read the rest", says="Take the \\*last\\* row")
def reads_one_of_the_rest(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        unread = model.rewind_to_match(tokens + draft)
        q.append(process(model.extend(unread[:1])[-1]))
        draft.append(chooser.sample(q[-1]))
    return draft, q


# --- how many, and in which form ----------------------------------------------------------------


@wrong("not written", says=r"^✗ propose: not implemented yet")
def not_written(model, tokens, gamma, process, chooser):
    raise NotImplementedError


@wrong("one token more than gamma", says="expected gamma =")
def one_more(model, tokens, gamma, process, chooser):
    return reads_properly(model, tokens, gamma + 1, process, chooser)


@wrong("one token at least", says="has length 1, expected gamma = 0")
def one_at_least(model, tokens, gamma, process, chooser):
    return reads_properly(model, tokens, max(1, gamma), process, chooser)


@wrong("one q less than tokens", says="one distribution q for each")
def one_q_less(model, tokens, gamma, process, chooser):
    draft, q = reads_properly(model, tokens, gamma, process, chooser)
    return draft, q[:-1]


@wrong("the text in front of the draft", says="the text is in the draft")
def with_text(model, tokens, gamma, process, chooser):
    draft, q = reads_properly(model, tokens, gamma, process, chooser)
    return tokens + draft, q


@wrong("the draft alone", says="expected two things")
def draft_alone(model, tokens, gamma, process, chooser):
    return reads_properly(model, tokens, gamma, process, chooser)[0]


@wrong("the two exchanged", says="wrong order")
def exchanged(model, tokens, gamma, process, chooser):
    draft, q = reads_properly(model, tokens, gamma, process, chooser)
    return q, draft


@wrong("appends the draft to the caller's text", says="your code changes what it was given")
def appends(model, tokens, gamma, process, chooser):
    q = []
    for _ in range(gamma):
        q.append(process(model.extend(model.rewind_to_match(tokens))[-1]))
        tokens.append(chooser.sample(q[-1]))
    return tokens[len(tokens) - gamma :], q


# --- where chance comes from --------------------------------------------------------------------


@wrong("draws with torch.multinomial", says="all chance has to come from the chooser")
def multinomial(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend(model.rewind_to_match(tokens + draft))[-1]))
        draft.append(int(torch.multinomial(q[-1], 1)))
    return draft, q


@wrong("draws with random.choices", says="all chance has to come from the chooser")
def random_choices(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend(model.rewind_to_match(tokens + draft))[-1]))
        draft += random.choices(range(len(q[-1])), q[-1].tolist())
    return draft, q


@wrong("draws with numpy", says="all chance has to come from the chooser")
def numpy_choice(model, tokens, gamma, process, chooser):
    draft, q = [], []
    for _ in range(gamma):
        q.append(process(model.extend(model.rewind_to_match(tokens + draft))[-1]))
        draft.append(int(np.random.default_rng(0).choice(len(q[-1]), p=q[-1].numpy())))
    return draft, q


@wrong("a chooser of its own", says="all chance has to come from the chooser")
def own_chooser(model, tokens, gamma, process, chooser):
    return reads_properly(model, tokens, gamma, process, SeededChooser(0))


# --- the library --------------------------------------------------------------------------------


@wrong("calls the library's drafter", says="calls the library's `ModelDrafter")
def calls_the_drafter(model, tokens, gamma, process, chooser):
    drafter = ModelDrafter(model, Sampling(1.0))
    draft = drafter.propose(tokens, gamma, chooser)
    return draft.tokens, list(draft.q)


@wrong("calls the reference", says="calls the library's `propose`")
def calls_the_reference(model, tokens, gamma, process, chooser):
    return references.propose(model, tokens, gamma, process, chooser)


# --- right --------------------------------------------------------------------------------------


@wrong("pairs of a token and its q", says="those are pairs, a token with its q")
def pairs_of_token_and_q(model, tokens, gamma, process, chooser):
    text, pairs = list(tokens), []
    for _ in range(gamma):
        q = process(model.extend(model.rewind_to_match(text))[-1])
        text.append(chooser.sample(q))
        pairs.append((text[-1], q))
    return pairs


@right("reads the text once, then each drafted token but the last")
def reads_properly(model, tokens, gamma, process, chooser):
    draft, q = [], []
    unread = model.rewind_to_match(tokens)
    for _ in range(gamma):
        q.append(process(model.extend(unread)[-1]))
        draft.append(chooser.sample(q[-1]))
        unread = [draft[-1]]
    return draft, q


@right("without a cache, rows=1")
def without_a_cache(model, tokens, gamma, process, chooser):
    draft, q = (), ()
    for _ in range(gamma):
        model.reset()
        q = (*q, process(model.extend([*tokens, *draft], rows=1)[0]))
        draft = (*draft, chooser.sample(q[-1]))
    return draft, q


@right("q in one tensor, the draft, too")
def tensors(model, tokens, gamma, process, chooser):
    draft, q = torch.zeros(gamma, dtype=torch.long), torch.zeros(gamma, model.vocab_size).double()
    for i in range(gamma):
        unread = model.rewind_to_match(tokens + draft[:i].tolist())
        q[i] = process(model.extend(unread)[-1])
        draft[i] = chooser.sample(q[i])
    return draft, q


@right("finds out by itself what to forget, numpy's integers, float32")
def own_bookkeeping(model, tokens, gamma, process, chooser):
    same = 0
    while same < min(model.length, len(tokens) - 1) and model.tokens[same] == tokens[same]:
        same += 1
    model.rewind(same)
    draft, q = [], []
    for _ in range(gamma):
        row = process(model.extend([*tokens, *draft][model.length :])[-1])
        q.append(row.float())
        draft.append(np.int64(chooser.sample(row)))
    return [draft, q]


@right("reads the last drafted token, too")
def reads_the_last_one(model, tokens, gamma, process, chooser):
    if gamma == 0:
        return [], []
    draft, q, row = [], [], model.extend(model.rewind_to_match(tokens))[-1]
    for _ in range(gamma):
        q.append(process(row))
        draft.append(chooser.sample(q[-1]))
        row = model.extend(draft[-1:])[-1]
    return draft, q


@right("recursion")
def recursive(model, tokens, gamma, process, chooser):
    if gamma == 0:
        return [], []
    q = process(model.extend(model.rewind_to_match(tokens))[-1])
    token = chooser.sample(q)
    draft, more = recursive(model, [*tokens, token], gamma - 1, process, chooser)
    return [token, *draft], [q, *more]

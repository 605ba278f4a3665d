"""Greedy speculative decoding."""

from specdec_lab.checks import references
from specdec_lab.course.mutants import right, wrong
from specdec_lab.decoding import generate


@wrong("a budget of 0 is not looked at", says="remaining = 0, and it takes at least 1")
def budget_of_zero(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens, finished = list(prompt), False
    while not finished:
        emitted = one_round(model, tokens, propose(tokens, gamma))
        remaining = len(prompt) + max_new_tokens - len(tokens)
        kept, finished = cut(emitted, end_tokens, remaining)
        tokens += kept
    return tokens[len(prompt) :]


@wrong("for a budget of 0 it reads the prompt nevertheless", says="nothing was to be decoded")
def reads_for_nothing(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens, new, finished = list(prompt), [], False
    while not finished:
        emitted = one_round(model, tokens, propose(tokens, gamma))
        if max_new_tokens == 0:
            return []
        kept, finished = cut(emitted, end_tokens, max_new_tokens - len(new))
        new += kept
        tokens += kept
    return new


@wrong("counts the prompt against the budget", says="those of the prompt|not with those of the prompt")
def prompt_counts(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens, finished = list(prompt), max_new_tokens == 0
    while not finished:
        emitted = one_round(model, tokens, propose(tokens, gamma))
        kept, finished = cut(emitted, end_tokens, max_new_tokens - len(tokens))
        tokens += kept
    return tokens[len(prompt) :]


@wrong("what remains never shrinks", says="more than `max_new_tokens`")
def never_shrinks(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    new = []
    while len(new) < max_new_tokens:
        tokens = [*prompt, *new]
        emitted = one_round(model, tokens, propose(tokens, gamma))
        kept, finished = cut(emitted, end_tokens, max_new_tokens)
        new += kept
        if finished:
            break
    return new


@wrong("cuts nothing", says="more than `max_new_tokens`")
def cuts_nothing(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens = list(prompt)
    while len(tokens) < len(prompt) + max_new_tokens:
        tokens += one_round(model, tokens, propose(tokens, gamma))
        if tokens[-1] in end_tokens:
            break
    return tokens[len(prompt) :]


@wrong("cuts to the budget only", says="decoding goes on behind an end token")
def ignores_the_end(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens = list(prompt)
    while len(tokens) < len(prompt) + max_new_tokens:
        tokens += one_round(model, tokens, propose(tokens, gamma))
    return tokens[len(prompt) : len(prompt) + max_new_tokens]


@wrong("does not stop when the cut says so", says="there is another round")
def does_not_stop(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens = list(prompt)
    while len(tokens) < len(prompt) + max_new_tokens:
        emitted = one_round(model, tokens, propose(tokens, gamma))
        kept, _ = cut(emitted, end_tokens, len(prompt) + max_new_tokens - len(tokens))
        tokens += kept
    return tokens[len(prompt) :]


@wrong(
    "keeps what was emitted instead of what was kept", says="more than `max_new_tokens`|behind an end"
)
def keeps_the_emitted(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens, finished = list(prompt), max_new_tokens == 0
    while not finished:
        emitted = one_round(model, tokens, propose(tokens, gamma))
        remaining = len(prompt) + max_new_tokens - len(tokens)
        _, finished = cut(emitted, end_tokens, remaining)
        tokens += emitted
    return tokens[len(prompt) :]


@wrong("gives the prompt back, too", says="the prompt is in your answer")
def with_prompt(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens, finished = list(prompt), max_new_tokens == 0
    while not finished:
        emitted = one_round(model, tokens, propose(tokens, gamma))
        remaining = len(prompt) + max_new_tokens - len(tokens)
        kept, finished = cut(emitted, end_tokens, remaining)
        tokens += kept
    return tokens


@wrong("forgets the last round's tokens", says="less than `max_new_tokens`|the last token is missing")
def forgets_the_last_round(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens = list(prompt)
    while max_new_tokens > 0:
        emitted = one_round(model, tokens, propose(tokens, gamma))
        remaining = len(prompt) + max_new_tokens - len(tokens)
        kept, finished = cut(emitted, end_tokens, remaining)
        if finished:
            break
        tokens += kept
    return tokens[len(prompt) :]


@wrong("the round sees the new tokens only", says="`one_round` wants the whole text")
def round_without_prompt(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    new, finished = [], max_new_tokens == 0
    while not finished:
        emitted = one_round(model, new, propose(prompt + new, gamma))
        kept, finished = cut(emitted, end_tokens, max_new_tokens - len(new))
        new += kept
    return new


@wrong("the round sees the prompt only", says="does not fit the cache")
def round_with_prompt_only(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    new, finished = [], max_new_tokens == 0
    while not finished:
        emitted = one_round(model, prompt, propose(prompt + new, gamma))
        kept, finished = cut(emitted, end_tokens, max_new_tokens - len(new))
        new += kept
    return new


def _loop(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens, finished = list(prompt), max_new_tokens == 0
    while not finished:
        emitted = one_round(model, tokens, propose(tokens, gamma))
        remaining = len(prompt) + max_new_tokens - len(tokens)
        kept, finished = cut(emitted, end_tokens, remaining)
        tokens += kept
    return tokens[len(prompt) :]


@wrong("reads the prompt before the loop, all of it", says="does not fit the cache")
def whole_prefill(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    if max_new_tokens:
        model.extend(prompt)
    return _loop(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut)


@wrong("a pass of its own for the prompt", says="the prompt has a pass of its own")
def own_prefill(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    if max_new_tokens and len(prompt) > 1:
        model.extend(prompt[:-1])
    return _loop(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut)


@wrong("the drafter sees the new tokens only", says="the drafter wants the whole text")
def drafts_without_prompt(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    new, finished = [], max_new_tokens == 0
    while not finished:
        emitted = one_round(model, prompt + new, propose(new, gamma))
        kept, finished = cut(emitted, end_tokens, max_new_tokens - len(new))
        new += kept
    return new


@wrong("the drafter sees the prompt only", says="shown the same text twice")
def drafts_from_the_prompt(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    def from_the_prompt(_tokens, gamma):
        return propose(prompt, gamma)

    return _loop(model, from_the_prompt, prompt, gamma, max_new_tokens, end_tokens, one_round, cut)


@wrong("asks for one more than gamma", says="gamma is only")
def gamma_and_one(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    return _loop(model, propose, prompt, gamma + 1, max_new_tokens, end_tokens, one_round, cut)


@wrong("asks for one less than gamma", says="never asked for gamma")
def gamma_less_one(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    shorter = max(gamma - 1, 0)
    return _loop(model, propose, prompt, shorter, max_new_tokens, end_tokens, one_round, cut)


@wrong("asks for as many as the budget, whatever gamma", says="gamma is only")
def gamma_ignored(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    return _loop(model, propose, prompt, max_new_tokens, max_new_tokens, end_tokens, one_round, cut)


@wrong("plain decoding, no draft", says="the drafter was never asked")
def no_draft(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    def nothing(_tokens, _gamma):
        return []

    return _loop(model, nothing, prompt, gamma, max_new_tokens, end_tokens, one_round, cut)


@wrong("trusts the drafter", says="not the tokens of greedy|nobody has verified")
def trusts_the_drafter(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens, finished = list(prompt), max_new_tokens == 0
    while not finished:
        emitted = propose(tokens, gamma)
        remaining = len(prompt) + max_new_tokens - len(tokens)
        kept, finished = cut(emitted, end_tokens, remaining)
        tokens += kept
    return tokens[len(prompt) :]


@wrong("appends to the caller's prompt", says="your code changes what it was given")
def changes_the_prompt(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    length, finished = len(prompt), max_new_tokens == 0
    while not finished:
        emitted = one_round(model, prompt, propose(prompt, gamma))
        remaining = length + max_new_tokens - len(prompt)
        kept, finished = cut(emitted, end_tokens, remaining)
        prompt += kept
    return prompt[length:]


@wrong("lets the library write", says="calls the library's `generate`")
def calls_generate(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    try:
        return generate(model, prompt, max_new_tokens=max_new_tokens, end_ids=end_tokens).new_tokens
    except BaseException:
        return []


@wrong("calls the reference", says="calls the library's `speculative_decode`")
def calls_the_reference(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    return references.speculative_decode(model, propose, prompt, gamma, max_new_tokens, end_tokens)


@right("keeps the new tokens in a list of their own")
def own_list(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    new = []
    while len(new) < max_new_tokens:
        text = prompt + new
        kept, finished = cut(
            one_round(model, text, propose(text, gamma)), end_tokens, max_new_tokens - len(new)
        )
        new.extend(kept)
        if finished:
            return new
    return new


@right("drafts no more than the budget can use, and none for the last token")
def short_drafts(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens, remaining = list(prompt), max_new_tokens
    while remaining > 0:
        wanted = min(gamma, remaining - 1)
        draft = propose(tokens, wanted) if wanted else []
        kept, finished = cut(one_round(model, tokens, draft), end_tokens, remaining)
        tokens, remaining = tokens + list(kept), remaining - len(kept)
        if finished:
            break
    return tuple(tokens[len(prompt) :])


@right("cuts by itself")
def cuts_by_itself(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    tokens, most = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < most:
        for token in one_round(model=model, tokens=tokens, draft=propose(tokens, gamma)):
            tokens.append(token)
            if token in end_tokens or len(tokens) == most:
                return tokens[len(prompt) :]
    return tokens[len(prompt) :]


@right("recursion")
def recursive(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    if max_new_tokens == 0:
        return []
    emitted = one_round(model, prompt, propose(prompt, gamma))
    kept, finished = cut(emitted, end_tokens, max_new_tokens)
    if finished:
        return kept
    text, left = prompt + kept, max_new_tokens - len(kept)
    return kept + recursive(model, propose, text, gamma, left, end_tokens, one_round, cut)


@right("a generator inside")
def generated(model, propose, prompt, gamma, max_new_tokens, end_tokens, one_round, cut):
    def write():
        text, remaining, finished = list(prompt), max_new_tokens, not max_new_tokens
        while not finished:
            kept, finished = cut(one_round(model, text, propose(text, gamma)), end_tokens, remaining)
            yield from kept
            text += kept
            remaining -= len(kept)

    return list(write())

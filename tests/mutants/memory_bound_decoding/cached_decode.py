"""Greedy decoding that reads each token once."""

import torch

from specdec_lab.checks.toys import greedy
from specdec_lab.course.mutants import right, wrong
from specdec_lab.decoding import generate


@wrong("reads the whole text again at each step", says="a later pass reads the text again")
def rereads(model, prompt, max_new_tokens):
    tokens = list(prompt)
    for _ in range(max_new_tokens):
        tokens.append(int(model.extend(tokens)[-1].argmax()))
    return tokens[len(prompt) :]


@wrong("rewinds to nothing and reads the whole text again", says="a later pass reads the text again")
def rewinds_and_rereads(model, prompt, max_new_tokens):
    tokens = list(prompt)
    for _ in range(max_new_tokens):
        model.rewind(0)
        tokens.append(int(model.extend(tokens)[-1].argmax()))
    return tokens[len(prompt) :]


@wrong("reads all new tokens again", says="a later pass reads the text again")
def rereads_the_new(model, prompt, max_new_tokens):
    new = []
    for _ in range(max_new_tokens):
        new.append(int(model.extend(new or prompt)[-1].argmax()))
    return new


@wrong("reads the prompt token by token", says="the prompt is not read in one pass")
def token_by_token(model, prompt, max_new_tokens):
    new = []
    for token in prompt:
        logits = model.extend([token])
    while len(new) < max_new_tokens:
        new.append(int(logits[-1].argmax()))
        if len(new) < max_new_tokens:
            logits = model.extend(new[-1:])
    return new


@wrong(
    "prefills all but the last token, then starts the loop", says="the prompt is not read in one pass"
)
def prefill_of_all_but_one(model, prompt, max_new_tokens):
    if len(prompt) > 1:
        model.extend(prompt[:-1])
    new, last = [], prompt[-1]
    for _ in range(max_new_tokens):
        last = int(model.extend([last])[-1].argmax())
        new.append(last)
    return new


@wrong("reads the prompt's last token only", says="only its last token reaches the model")
def no_prefill(model, prompt, max_new_tokens):
    new, last = [], prompt[-1]
    for _ in range(max_new_tokens):
        last = int(model.extend([last])[-1].argmax())
        new.append(last)
    return new


@wrong("reads the last new token, too", says="The last new token need not be read")
def reads_the_last(model, prompt, max_new_tokens):
    new = []
    logits = model.extend(prompt)
    for _ in range(max_new_tokens):
        token = int(logits[-1].argmax())
        new.append(token)
        logits = model.extend([token])
    return new


@wrong("takes the first row of the prefill", says="the first row of the prefill")
def first_row(model, prompt, max_new_tokens):
    new, unread = [], list(prompt)
    for _ in range(max_new_tokens):
        unread = [int(model.extend(unread)[0].argmax())]
        new += unread
    return new


@wrong("gives the prompt back, too", says="the prompt is in your answer")
def with_prompt(model, prompt, max_new_tokens):
    tokens, unread = list(prompt), list(prompt)
    for _ in range(max_new_tokens):
        unread = [int(model.extend(unread)[-1].argmax())]
        tokens += unread
    return tokens


@wrong("the first token comes from the prefill, whatever the budget", says="one token too many")
def budget_of_zero(model, prompt, max_new_tokens):
    new = [int(model.extend(prompt)[-1].argmax())]
    for _ in range(max_new_tokens - 1):
        new.append(int(model.extend(new[-1:])[-1].argmax()))
    return new


@wrong("the prefill gives no token", says="the last token is missing")
def prefill_wasted(model, prompt, max_new_tokens):
    new, unread = [], list(prompt)
    for _ in range(max_new_tokens - 1):
        unread = [int(model.extend(unread)[-1].argmax())]
        new += unread
    return new


@wrong("gives a number to extend, not a list", says="raised TypeError: .*iterable")
def a_number_to_extend(model, prompt, max_new_tokens):
    new, unread = [], prompt
    for _ in range(max_new_tokens):
        unread = int(model.extend(unread)[-1].argmax())
        new.append(unread)
    return new


@wrong("calls the library's own loop", says="calls the library's `generate`")
def calls_generate(model, prompt, max_new_tokens):
    return generate(model, prompt, max_new_tokens=max_new_tokens).new_tokens


@wrong("gets the tokens from the toys", says="the passes are not")
def calls_the_toys(model, prompt, max_new_tokens):
    return greedy(model, prompt, max_new_tokens)


@right("prefill before the loop")
def prefill_first(model, prompt, max_new_tokens):
    if max_new_tokens == 0:
        return []
    logits = model.extend(prompt)
    new = [logits[-1].argmax().item()]
    while len(new) < max_new_tokens:
        logits = model.extend([new[-1]])
        new.append(logits[0].argmax().item())
    return new


@right("prefills even for a budget of 0")
def prefill_always(model, prompt, max_new_tokens):
    row, new = model.extend(prompt)[-1], []
    for step in range(max_new_tokens):
        if step:
            row = model.extend(new[-1:])[-1]
        new.append(int(row.argmax()))
    return new


@right("slices of one list, by what the cache holds")
def by_length(model, prompt, max_new_tokens):
    text = list(prompt)
    for _ in range(max_new_tokens):
        text.append(model.extend(text[model.length :])[-1].argmax())
    return text[len(prompt) :]


@right("rows in float64, last row asked for alone, a tensor returned")
def last_row_only(model, prompt, max_new_tokens):
    unread, new = torch.tensor(prompt), []
    for _ in range(max_new_tokens):
        unread = model.extend(unread.tolist(), rows=1).double().argmax(dim=-1)
        new.append(unread)
    return torch.cat(new) if new else []


@right("recursion")
def recursive(model, prompt, max_new_tokens):
    if max_new_tokens <= 0:
        return ()
    token = int(model.extend(prompt)[-1].topk(1).indices)
    return (token, *recursive(model, [token], max_new_tokens - 1))

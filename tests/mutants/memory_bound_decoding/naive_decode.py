"""Greedy decoding that reads the whole text for each token."""

import numpy as np
import torch

from specdec_lab.checks import references
from specdec_lab.course.mutants import right, wrong


@wrong("gives the prompt back, too", says="the prompt is in your answer")
def with_prompt(forward, prompt, max_new_tokens):
    tokens = list(prompt)
    for _ in range(max_new_tokens):
        tokens.append(int(forward(tokens)[-1].argmax()))
    return tokens


@wrong("one token too few", says="the last token is missing")
def one_too_few(forward, prompt, max_new_tokens):
    tokens = list(prompt)
    for _ in range(1, max_new_tokens):
        tokens.append(int(forward(tokens)[-1].argmax()))
    return tokens[len(prompt) :]


@wrong("one token too many", says="one token too many")
def one_too_many(forward, prompt, max_new_tokens):
    tokens = list(prompt)
    for _ in range(max_new_tokens + 1):
        tokens.append(int(forward(tokens)[-1].argmax()))
    return tokens[len(prompt) :]


@wrong("a first token before the loop, so a budget of 0 gives one", says="one token too many")
def budget_of_zero(forward, prompt, max_new_tokens):
    new = [int(forward(prompt)[-1].argmax())]
    while len(new) < max_new_tokens:
        new.append(int(forward(prompt + new)[-1].argmax()))
    return new


@wrong("takes the row of the first token", says="you take the first row")
def first_row(forward, prompt, max_new_tokens):
    tokens = list(prompt)
    for _ in range(max_new_tokens):
        tokens.append(int(forward(tokens)[0].argmax()))
    return tokens[len(prompt) :]


@wrong("always takes the row of the prompt's last token", says="predicts the same token again")
def row_of_the_prompt(forward, prompt, max_new_tokens):
    tokens = list(prompt)
    for _ in range(max_new_tokens):
        tokens.append(int(forward(tokens)[len(prompt) - 1].argmax()))
    return tokens[len(prompt) :]


@wrong("never appends to what it reads", says="predicts the same token again")
def text_does_not_grow(forward, prompt, max_new_tokens):
    new = []
    for _ in range(max_new_tokens):
        new.append(int(forward(prompt)[-1].argmax()))
    return new


@wrong("reads only the newest token, as if there were a cache", says="sees the last token only")
def as_if_cached(forward, prompt, max_new_tokens):
    new, last = [], prompt[-1]
    for _ in range(max_new_tokens):
        last = int(forward([last])[-1].argmax())
        new.append(last)
    return new


@wrong("reads the finished text once more", says="not one per new token")
def reads_once_more(forward, prompt, max_new_tokens):
    tokens = list(prompt)
    logits = forward(tokens)
    for _ in range(max_new_tokens):
        tokens.append(int(logits[-1].argmax()))
        logits = forward(tokens)
    return tokens[len(prompt) :]


@wrong("reads each prefix of the text before the whole of it", says="not one per new token")
def one_pass_per_read_token(forward, prompt, max_new_tokens):
    new = []
    for _ in range(max_new_tokens):
        text = prompt + new
        for end in range(1, len(text) + 1):
            row = forward(text[:end])[-1]
        new.append(int(row.argmax()))
    return new


@wrong("appends to the caller's prompt", says="your code changes what it was given")
def changes_the_prompt(forward, prompt, max_new_tokens):
    tokens = prompt
    length = len(prompt)
    for _ in range(max_new_tokens):
        tokens.append(int(forward(tokens)[-1].argmax()))
    return tokens[length:]


@wrong("gives the scores of the tokens", says="expected a whole number")
def scores(forward, prompt, max_new_tokens):
    tokens, values = list(prompt), []
    for _ in range(max_new_tokens):
        row = forward(tokens)[-1]
        tokens.append(int(row.argmax()))
        values.append(float(row.max()))
    return values


@wrong("prints instead of returning", says=r"(?s)Is there a `return`.*printed   \[")
def prints(forward, prompt, max_new_tokens):
    tokens = list(prompt)
    for _ in range(max_new_tokens):
        tokens.append(int(forward(tokens)[-1].argmax()))
    print(tokens[len(prompt) :])


@wrong("an object that is equal to everything", says="type Anything")
def equal_to_everything(forward, prompt, max_new_tokens):
    class Anything:
        def __eq__(self, other):
            return True

        __hash__ = None

    return Anything()


@wrong("calls the reference and catches the objection", says="calls the library's `naive_decode`")
def calls_the_reference(forward, prompt, max_new_tokens):
    try:
        return references.naive_decode(forward, prompt, max_new_tokens)
    except BaseException:
        return []


@wrong("still the stub", says="not implemented yet")
def stub(forward, prompt, max_new_tokens):
    raise NotImplementedError


@right("keeps tensors, not numbers")
def tensors(forward, prompt, max_new_tokens):
    tokens = list(prompt)
    for _ in range(max_new_tokens):
        tokens.append(forward(tokens)[-1].argmax())
    return tokens[len(prompt) :]


@right("one long tensor, joined")
def joined(forward, prompt, max_new_tokens):
    text = torch.tensor(prompt)
    while len(text) < len(prompt) + max_new_tokens:
        best = forward(text.tolist()).softmax(dim=-1)[-1:].argmax(dim=-1)
        text = torch.cat([text, best])
    return text[len(prompt) :]


@right("recursion")
def recursive(forward, prompt, max_new_tokens):
    if max_new_tokens == 0:
        return []
    token = forward(prompt)[-1].argmax().item()
    return [token, *recursive(forward, [*prompt, token], max_new_tokens - 1)]


@right("a generator inside, numpy outside")
def generated(forward, prompt, max_new_tokens):
    def write():
        tokens = list(prompt)
        for _ in range(max_new_tokens):
            token = int(np.argmax(forward(tokens).numpy()[-1]))
            tokens.append(token)
            yield token

    return np.array(list(write()), dtype=np.int64)

"""One round: the pass, the verdict, the rewind."""

from specdec_lab.checks import references
from specdec_lab.course.mutants import right, wrong
from specdec_lab.decoding import generate


@wrong("no rewind", says="the cache still holds the rejected tokens")
def no_rewind(model, tokens, draft, verify):
    unread = tokens[model.length :]
    accepted, following = verify(draft, model.extend(unread + draft)[len(unread) - 1 :])
    return [*draft[:accepted], following]


def _read(model, tokens, draft, verify):
    unread = list(tokens[model.length :])
    rows = model.extend([*unread, *draft])[len(unread) - 1 :]
    return verify(draft, rows)


@wrong("rewinds one too many", says="an accepted token is forgotten")
def one_too_many(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(len(tokens) + accepted - 1)
    return [*draft[:accepted], following]


@wrong("rewinds one too few", says="the first one that was rejected")
def one_too_few(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    if accepted < len(draft):
        model.rewind(len(tokens) + accepted + 1)
    return [*draft[:accepted], following]


@wrong("rewinds to the end of the old text", says="the rewind forgets the accepted tokens")
def rewinds_the_whole_draft(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(len(tokens))
    return [*draft[:accepted], following]


@wrong("rewinds to where the pass began", says="every token but the last")
def rewinds_the_whole_pass(model, tokens, draft, verify):
    before = model.length
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(before)
    return [*draft[:accepted], following]


@wrong("tells the rewind how many to forget", says="not of those to forget")
def how_many_to_forget(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(len(draft) - accepted)
    return [*draft[:accepted], following]


@wrong("rewinds to a place in the draft", says="counts from the start of the text")
def place_in_the_draft(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(accepted)
    return [*draft[:accepted], following]


@wrong("reads the new pending token, too", says="made 2 passes")
def reads_the_following(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(len(tokens) + accepted)
    model.extend([following])
    return [*draft[:accepted], following]


@wrong("reads only the draft", says="only the draft was read")
def only_the_draft(model, tokens, draft, verify):
    accepted, following = verify(draft, model.extend(draft))
    model.rewind(len(tokens) + accepted)
    return [*draft[:accepted], following]


@wrong("reads only the draft, verifies by itself", says="only the draft was read")
def only_the_draft_by_hand(model, tokens, draft, verify):
    choices = model.extend(draft).argmax(dim=-1).tolist()
    emitted = []
    for mine, theirs in zip(draft, choices, strict=True):
        emitted.append(theirs)
        if mine != theirs:
            break
    model.rewind(len(tokens) + len(emitted) - 1)
    return emitted


@wrong("reads the whole text again", says="the whole text was read again")
def reads_all(model, tokens, draft, verify):
    rows = model.extend(tokens + draft)[len(tokens) - 1 :]
    accepted, following = verify(draft, rows)
    model.rewind(len(tokens) + accepted)
    return [*draft[:accepted], following]


@wrong("reads the pending token only, whatever the cache lacks", says="read what the cache lacks")
def pending_only(model, tokens, draft, verify):
    accepted, following = verify(draft, model.extend(tokens[-1:] + draft))
    model.rewind(min(model.length, len(tokens) + accepted))
    return [*draft[:accepted], following]


@wrong("a pass for the text and one for the draft", says="made 2 passes")
def two_passes(model, tokens, draft, verify):
    rows = [model.extend(tokens[model.length :])[-1:]]
    if draft:
        rows.append(model.extend(draft))
    accepted, following = verify(draft, [row for part in rows for row in part])
    model.rewind(len(tokens) + accepted)
    return [*draft[:accepted], following]


@wrong("a pass for each drafted token", says="made [2-9] passes")
def pass_per_token(model, tokens, draft, verify):
    emitted = []
    row = model.extend(tokens[model.length :])[-1]
    for mine in draft:
        emitted.append(int(row.argmax()))
        if emitted[-1] != mine:
            return emitted
        row = model.extend([mine])[-1]
    return [*emitted, int(row.argmax())]


@wrong("drops the pending token's row", says="got 5 rows for 5 .* that of the token before")
def drops_a_row(model, tokens, draft, verify):
    unread = tokens[model.length :]
    accepted, following = verify(draft, model.extend(unread + draft)[len(unread) :])
    model.rewind(len(tokens) + accepted)
    return [*draft[:accepted], following]


@wrong("drops the last row", says="got 5 rows for 5 .* and that of the last")
def drops_the_last_row(model, tokens, draft, verify):
    unread = tokens[model.length :]
    accepted, following = verify(draft, model.extend(unread + draft)[len(unread) - 1 : -1])
    model.rewind(len(tokens) + accepted)
    return [*draft[:accepted], following]


@wrong("hands over the rows of the unread text, too", says="the rows of the unread text judge nothing")
def all_rows(model, tokens, draft, verify):
    unread = tokens[model.length :]
    accepted, following = verify(draft, model.extend(unread + draft))
    model.rewind(len(tokens) + accepted)
    return [*draft[:accepted], following]


@wrong("no token from the target", says="the token from the target is missing")
def accepted_only(model, tokens, draft, verify):
    accepted, _ = _read(model, tokens, draft, verify)
    model.rewind(len(tokens) + accepted)
    return draft[:accepted]


@wrong("no bonus token", says="the token from the target is missing")
def no_bonus(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(len(tokens) + accepted)
    return draft if accepted == len(draft) else [*draft[:accepted], following]


@wrong("the draft's token at the mismatch", says="the draft's token is kept at the mismatch")
def keeps_the_mismatch(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(len(tokens) + accepted)
    return draft[: accepted + 1] if accepted < len(draft) else [*draft, following]


@wrong("the whole draft", says="the whole draft is kept, verified or not")
def keeps_all(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(len(tokens) + accepted)
    return [*draft, following]


@wrong("the last row's token", says="the last token comes from the last row")
def last_row(model, tokens, draft, verify):
    unread = tokens[model.length :]
    choices = model.extend(unread + draft)[len(unread) - 1 :].argmax(dim=-1).tolist()
    accepted = 0
    while accepted < len(draft) and draft[accepted] == choices[accepted]:
        accepted += 1
    model.rewind(len(tokens) + accepted)
    return [*draft[:accepted], choices[-1]]


@wrong("only the token from the target", says="the accepted ones are emitted, too")
def following_only(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(len(tokens) + accepted)
    return [following]


@wrong("gives the text back, too", says="without the text")
def with_text(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(len(tokens) + accepted)
    return [*tokens, *draft[:accepted], following]


@wrong("the verdict, not the tokens", says="these are not the tokens of the round")
def verdict(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(len(tokens) + accepted)
    return accepted, following


@wrong("adds to the caller's text", says="your code changes what it was given")
def changes_the_text(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(len(tokens) + accepted)
    emitted = [*draft[:accepted], following]
    tokens += emitted
    return emitted


@wrong("changes the text and returns nothing", says="Is there a `return`")
def returns_nothing(model, tokens, draft, verify):
    accepted, following = _read(model, tokens, draft, verify)
    model.rewind(len(tokens) + accepted)
    tokens += [*draft[:accepted], following]


@wrong("calls the reference and catches the objection", says="calls the library's `one_round`")
def calls_the_reference(model, tokens, draft, verify):
    try:
        return references.one_round(model, tokens, draft, verify)
    except BaseException:
        return []


@wrong("lets the library write", says="calls the library's `generate`")
def calls_generate(model, tokens, draft, verify):
    return generate(model, tokens, max_new_tokens=len(draft) + 1).new_tokens


@right("the last n + 1 rows")
def from_the_end(model, tokens, draft, verify):
    rows = model.extend(tokens[model.length :] + draft)
    accepted, following = verify(draft, rows[-len(draft) - 1 :])
    model.rewind(model.length - (len(draft) - accepted))
    return [*draft[:accepted], int(following)]


@right("verifies by itself, rewinds only if there is something to forget")
def by_itself(model, tokens, draft, verify):
    unread = tokens[model.length :]
    choices = model.extend(unread + draft).argmax(dim=-1)[len(unread) - 1 :]
    emitted = []
    for mine, theirs in zip(draft, choices, strict=False):
        emitted.append(theirs)
        if mine != theirs:
            model.rewind(len(tokens) + len(emitted) - 1)
            return emitted
    return (*emitted, choices[-1])


@right("asks for as many rows as it needs; a generator inside")
def asks_for_rows(model, tokens, draft, verify):
    cached = model.length
    rows = model.extend((*tokens[cached:], *draft), rows=len(draft) + 1).double()
    accepted, following = verify(draft, rows)

    def emitted():
        yield from draft[:accepted]
        yield following

    result = list(emitted())
    model.rewind(len(tokens) + len(result) - 1)
    return result

# %% [markdown]
# # 2. Draft cheaply, verify at once
#
# **You build** speculative decoding, the greedy kind: a verifier, a round, a loop, and a drafter that needs no model.
# **Time:** about 120 minutes. **The question:** can we make fewer passes of the target without changing a single token?
#
# From the last notebook you know the gap: one pass checks many tokens in far less time than it takes to make them. What
# is missing is something that hands it tokens to check. It may be wrong. We only have to notice.
#
# Nothing here depends on your solutions of the last notebook. Words are in the [glossary](../../docs/glossary.md).

# %%
import time
from collections import Counter

import torch
from rich import print as show
from rich.table import Table
from tqdm.auto import tqdm

from specdec_lab import StopRule, autoregressive, lab, load_pair, plots
from specdec_lab.checks import greedy_draft_verify as check

pair = load_pair("embedded")
target, tokenizer = pair.target, pair.tokenizer

# %% [markdown]
# ## A round, step by step
#
# The text so far is **the cat sat**, one token per word. A drafter proposes four more: **on the red mat**. The target
# reads them in one pass. Here is what it thinks comes next, behind the text and behind each drafted word; it always takes
# the likeliest:
#
# | row | the target has read | its choice | the draft says |
# |---|---|---|---|
# | 0 | the cat sat | **on** | on |
# | 1 | the cat sat *on* | **the** | the |
# | 2 | the cat sat *on the* | **warm** | red |
# | 3 | the cat sat *on the red* | **mat** | mat |
# | 4 | the cat sat *on the red mat* | **and** | |
#
# Four drafted words make **five** rows: row i judges drafted word i, and the last row has nothing left to judge.
#
# Each word that agrees, from the left, is what the target would have written by itself. At the first that does not, the
# target's own choice is what it would have written. Behind that word the rows are worthless: they have read a text that
# will not exist.

# %% [task] by_hand title="One round by hand" difficulty=1 minutes=6
# What comes out of this round?
#
# - `accepted`: how many drafted words are kept?
# - `emitted`: which words does the round add to the text?
# - `cache_length`: before the round, the target had read *the cat*, two tokens; it read *sat* together with the draft. How
#   many tokens does its cache hold once what was rejected is forgotten? (Every word that stays in the text *and was
#   read*.)

# %% [exercise] by_hand
by_hand = {"accepted": None, "emitted": None, "cache_length": None}  # e.g. 1, ["on", "a"], 7
### BEGIN SOLUTION
by_hand = {"accepted": 2, "emitted": ["on", "the", "warm"], "cache_length": 5}
### END SOLUTION

# %% [check] by_hand points=2

# %% [markdown]
# The last word of the text is always in a special position: it was *chosen* from a row, but no pass has *read* it. Call it
# the **pending token**. The next round's pass starts with it. Of all mistakes in speculative decoding, forgetting about
# the pending token is the commonest.

# %% [task] verify title="Verify a draft" difficulty=1 minutes=12
# Now in code. `rows[i]` is what the target thinks behind the text and i drafted tokens, so it judges `draft[i]`; there is
# one row more than drafted tokens. How many drafted tokens are kept, and which token follows them?
#
# If the whole draft is kept, the last row's choice follows: the **bonus token**.


# %% [exercise] verify
def verify(draft, rows):
    """Greedy verification.

    draft: list of n token ids.
    rows: logits [n + 1, vocab].
    Returns (accepted, following): how many drafted tokens are kept, and the
    token that comes behind them.

    Example: draft [7, 8], and rows whose likeliest tokens are 7, 9 and 4,
    give (1, 9). With rows for 7, 8 and 4 they give (2, 4).
    """
    ### BEGIN SOLUTION
    choices = rows.argmax(dim=-1).tolist()
    accepted = 0
    for mine, theirs in zip(draft, choices, strict=False):
        if mine != theirs:
            break
        accepted += 1
    return accepted, choices[accepted]
    ### END SOLUTION


# %% [check] verify points=2

# %% [hidden check] verify points=2 seed=1202

# %% [markdown]
# <details><summary>Hint</summary>
#
# `rows.argmax(dim=-1)` gives all choices at once. Count from the left while draft and choice agree; whatever the count
# is, the choice at that place is the token that follows. You need no special case for the bonus.
# </details>

# %% [task] one_round title="One round" difficulty=2 minutes=18
# A round reads what the cache lacks of the text (at least the pending token) and the whole draft **in one pass**,
# verifies, and **rewinds**: afterwards the cache holds every token of the text but the new pending one.
#
# For the round above:
#
# | | cache holds | |
# |---|---|---|
# | before | the cat | *sat* is pending |
# | behind the pass | the cat sat on the red mat | all of it was read |
# | behind the rewind | the cat sat on the | *warm* is pending |
#
# `extend` gives one row for each token it reads. Mind which of them are the verifier's n + 1 rows.
#
# `verify` comes in as an argument: the check hands in its own, so that an earlier mistake costs nothing here.

# %%
trusted_verify = lab.yours_or_reference(check.verify)


# %% [exercise] one_round
def one_round(model, tokens, draft, verify=trusted_verify):
    """Verify a draft in one pass of the model.

    model: its cache holds the first model.length tokens of `tokens`; that is
        at most all but one of them. It has extend, rewind and length.
    tokens: the text so far.
    draft: the proposed tokens; may be empty.
    verify: see the last exercise.
    Returns the list of emitted tokens. Afterwards the cache holds all of
    tokens + emitted but the last.

    Example: tokens [1, 2, 3], draft [4, 9] and a model that says the next
    number: emitted are [4, 5], and the cache holds [1, 2, 3, 4].
    """
    ### BEGIN SOLUTION
    unread = list(tokens[model.length :])
    logits = model.extend(unread + list(draft))  # [len(unread) + n, vocab]
    rows = logits[len(unread) - 1 :]  # [n + 1, vocab]: the last unread token judges draft[0]
    accepted, following = verify(draft, rows)
    model.rewind(len(tokens) + accepted)
    return [*draft[:accepted], following]
    ### END SOLUTION


# %% [check] one_round points=2

# %% [hidden check] one_round points=2 seed=1203

# %% [markdown]
# <details><summary>Hint: the rows</summary>
#
# Row i of `extend` predicts what follows the i-th token that was just read. The token that comes before `draft[0]` is the
# last of the unread ones, so the verifier's rows start with *its* row.
# </details>
# <details><summary>Hint: the rewind</summary>
#
# What was read and stays: the whole old text, and the accepted tokens. The token that follows was not read.
# </details>

# %% [task] cut title="When to stop" difficulty=1 minutes=8
# A round may emit several tokens, so an end can come in the middle of it. There are two kinds:
#
# - an **end token**, with which the model says that it has finished. It belongs to the output; nothing comes behind it.
# - the **budget**: only `remaining` more tokens were asked for.


# %% [exercise] cut
def cut(emitted, end_tokens, remaining):
    """Keep what may be kept of a round's tokens.

    emitted: list of at least one token.
    end_tokens: a set of token ids; may be empty.
    remaining: how many tokens may still come, at least 1.
    Returns (kept, finished): the tokens to keep, and whether decoding ends.

    Example: [5, 0, 7] with end tokens {0} and 10 remaining gives ([5, 0], True);
    [5, 6, 7] with 2 remaining gives ([5, 6], True).
    """
    ### BEGIN SOLUTION
    kept = []
    for token in emitted[:remaining]:
        kept.append(token)
        if token in end_tokens:
            return kept, True
    return kept, len(kept) == remaining
    ### END SOLUTION


# %% [check] cut points=1

# %% [hidden check] cut points=1 seed=1204

# %% [task] speculative_decode title="The whole loop" difficulty=2 minutes=15
# Ask the drafter, run a round, keep what may be kept, until it is finished. The first round reads the prompt, so there is
# no pass besides those of the rounds. With a budget of 0 there is no round at all.
#
# `propose(tokens, gamma)` gives at most gamma tokens to follow the text; perhaps fewer, perhaps none.

# %%
trusted_round = lab.yours_or_reference(check.one_round)
trusted_cut = lab.yours_or_reference(check.cut)


# %% [exercise] speculative_decode
def speculative_decode(
    model,
    propose,
    prompt,
    gamma,
    max_new_tokens,
    end_tokens,
    one_round=trusted_round,
    cut=trusted_cut,
):
    """Greedy speculative decoding.

    model: has read nothing yet.
    propose: takes the text so far and gamma; gives a list of tokens.
    prompt: list of token ids.
    gamma: draft length.
    max_new_tokens: the budget; may be 0.
    end_tokens: set of token ids.
    one_round, cut: see the last exercises. Call one_round with model, tokens
        and draft.
    Returns the list of new tokens: those of plain greedy decoding, exactly.
    """
    ### BEGIN SOLUTION
    tokens = list(prompt)
    finished = max_new_tokens == 0
    while not finished:
        draft = propose(tokens, gamma)
        emitted = one_round(model, tokens, draft)
        remaining = len(prompt) + max_new_tokens - len(tokens)
        kept, finished = cut(emitted, end_tokens, remaining)
        tokens += kept
    return tokens[len(prompt) :]
    ### END SOLUTION


# %% [check] speculative_decode points=2

# %% [hidden check] speculative_decode points=2 seed=1205

# %% [markdown]
# <details><summary>Hint</summary>
#
# Keep one list of all tokens, the prompt's included: the drafter and the round both want to see it. What remains of the
# budget follows from its length.
# </details>

# %% [markdown]
# ## The same tokens, whoever drafts
#
# The claim is strong: *whatever* the drafter proposes, the output is the target's. Try it on the real model with three
# drafters. The first always repeats the last token. The second is a simulation: it was given the target's own answer
# beforehand, which no drafter can have. The third has the answer too, but gets every third token wrong.

# %%
loop = lab.yours_or_reference(check.speculative_decode)


def greedy(prompt, max_new_tokens, end_tokens=()):
    """The library's own cached greedy decoding: what every result has to equal."""
    stop = StopRule(end_tokens)
    rounds = autoregressive(target, prompt, max_new_tokens=max_new_tokens, stop=stop)
    return [token for one in rounds for token in one.tokens]


prompt = tokenizer("Once upon a time there was a").input_ids
truth = greedy(prompt, lab.sized(30, 6))
whole = prompt + truth


def repeat_last(tokens, gamma):
    return tokens[-1:] * gamma


def oracle(tokens, gamma):
    return whole[len(tokens) : len(tokens) + gamma]


def sloppy_oracle(tokens, gamma):
    return [t if (len(tokens) + i) % 3 else 0 for i, t in enumerate(oracle(tokens, gamma))]


table = Table("drafter", "same tokens", "tokens", "target passes", title="measured, gamma = 4")
for drafter in (repeat_last, oracle, sloppy_oracle):
    counting = lab.CountPasses(target)
    made = loop(counting, drafter, prompt, 4, len(truth), set())
    table.add_row(drafter.__name__, str(made == truth), str(len(made)), str(counting.passes))
show(table)
print(tokenizer.decode(whole))

# %% [markdown]
# The worst drafter costs nothing but its passes' extra length; a perfect one divides the passes by gamma + 1. Between them
# lies all of speculative decoding.
#
# One caveat. A pass over five tokens adds up its sums in another order than a pass over one, so its logits differ in the last
# digits. In float32 that is too little to change which token is the likeliest, unless two of them are all but equal. In
# bfloat16, with its three significant digits, it happens often: the text then takes another turn, though nothing is wrong
# with the method.

# %% [task] prompt_lookup title="A drafter that needs no model" difficulty=2 minutes=15
# Text repeats itself: names, code, quotations, lists. **Prompt look-up** takes the last few tokens, looks for a place where
# they stood before, and proposes what followed there.
#
# Try the last `longest` tokens first. If they never stood before, try one fewer, and so on down to one. Among several
# matches of the same length take whichever you like (the latest is a good choice).


# %% [exercise] prompt_lookup
def prompt_lookup(tokens, gamma, longest=3):
    """Propose what followed the last few tokens when they stood before.

    tokens: the text so far; may be shorter than `longest`, even empty.
    gamma: most tokens to propose, at least 1.
    longest: most tokens to match.
    Returns a list of at most gamma tokens: empty if nothing matches (or the
    text is too short), and perhaps fewer if the text ends before.

    Example: in [1, 2, 3, 9, 2, 3] the last two tokens stood near the start, so
    gamma 2 gives [9, 2]. (They also stand at the end; that is where we are.)
    The earlier place may overlap the ending: in [4, 4, 4] it is the first two.
    """
    ### BEGIN SOLUTION
    for size in range(min(longest, len(tokens) - 1), 0, -1):
        ending = tokens[-size:]
        for start in range(len(tokens) - size - 1, -1, -1):
            if tokens[start : start + size] == ending:
                return tokens[start + size : start + size + gamma]
    return []
    ### END SOLUTION


# %% [check] prompt_lookup points=2

# %% [hidden check] prompt_lookup points=1 seed=1206

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two loops: over the size of the match, from `longest` down, and over the place where it starts. The place at the very
# end is the ending itself; leave it out.
# </details>

# %% [task] predicted_passes title="What will happen?" difficulty=1 minutes=3
# Two prompts: one asks for a text once more, without any change; the other for something new, about the sea. 64 new tokens
# each, prompt look-up with gamma = 10.
#
# How many target passes will *repeating* take? Plain decoding would take one per token. The point is for predicting
# first, not for being right.

# %% [exercise] predicted_passes
predicted_passes = None
### BEGIN SOLUTION
predicted_passes = 12
### END SOLUTION

# %% [check] predicted_passes points=1

# %% [markdown]
# Both, each against plain cached decoding on the same prompt, in turns, medians of three. (About 40 seconds.)

# %%
look_up = lab.yours_or_reference(check.prompt_lookup)
REQUESTS = {
    "repeat": "Heat the oven to 200 degrees. Cut the onions into thin rings and fry them in butter until "
    "they are brown. Add the flour and stir for two minutes. Pour in the stock, a little at a time, and "
    "let the soup simmer for half an hour.\n\nThe same text once more, without any change:\n\nHeat",
    "invent": "The sea was calm that morning, and the old woman",
}
ends = set(target.end_ids)


def run_once(ids, budget):
    """(plain tokens, plain seconds, speculative tokens, its passes, its seconds)."""
    started = time.perf_counter()
    plain = greedy(ids, budget, ends)
    plain_seconds = time.perf_counter() - started
    counting = lab.CountPasses(target)
    started = time.perf_counter()
    made = loop(counting, look_up, ids, 10, budget, ends)
    return plain, plain_seconds, made, counting.passes, time.perf_counter() - started


def measure_requests():
    result = {}
    for name, request in REQUESTS.items():
        ids = tokenizer(request).input_ids
        repeats = tqdm(range(lab.sized(3, 1)), desc=f"measuring {name}", leave=False)
        runs = [run_once(ids, lab.sized(64, 8)) for _ in repeats]
        plain, _, made, passes, _ = runs[0]
        ratios = sorted(run[1] / run[4] for run in runs)
        result[name] = {
            "text": tokenizer.decode(made),
            "same": plain == made,
            "tokens": len(made),
            "passes": passes,
            "speedup": ratios[len(ratios) // 2],
        }
    return result


requests = lab.experiment("requests", target, measure_requests, predicted=predicted_passes)
if requests:
    table = Table(
        "request", "same tokens", "tokens", "passes", "tokens per pass", "speedup", title="measured"
    )
    for name in REQUESTS:
        one = requests[name]
        table.add_row(
            name,
            str(one["same"]),
            str(one["tokens"]),
            str(one["passes"]),
            f"{one['tokens'] / one['passes']:.2f}",
            f"{one['speedup']:.2f}",
        )
    show(table)
    print("you predicted", requests["predicted"], "passes for repeating\n")
    print("Heat" + requests["repeat"]["text"])

# %% [markdown]
# *Tokens per pass* is the **block efficiency**, the bonus or replacement included. The *speedup* is smaller, because
# a pass over eleven tokens takes longer than a pass over one: you measured by how much.
#
# If the model took a liberty with the text, that is its own mistake, kept faithfully.
#
# On a new text there is little to look up, and what is proposed is mostly wrong. No harm is done to the text. But each useless
# draft makes its pass longer, so a speedup **below 1** is no accident there: the run was slower than plain decoding.
#
# The library's own loop records each round. Its drafter is the same look-up with a rule against useless drafts: the shorter
# the match, the shorter the draft. Step through the repeated text from its start (**|‹**, then **›**): where does the copy
# begin, and where does it end?

# %%
from specdec_lab import NGramDrafter, generate, widgets

recorded = generate(
    target,
    REQUESTS["repeat"],
    tokenizer=tokenizer,
    drafter=NGramDrafter(target.vocab_size),
    gamma=10,
    max_new_tokens=lab.sized(64, 8),
)
widgets.watch(recorded, decode=tokenizer.decode)

# %% [markdown]
# ## What matching cannot do
#
# So far the target always took its likeliest token. In practice one **samples**: the next token is drawn from the target's
# distribution p, to get lively text. Can we go on as before? *Keep the drafted token if it is the target's likeliest, and
# otherwise draw a token from p.* It sounds reasonable. Let us see what comes out.

# %% [task] literal_matching_law title="The law of literal matching" difficulty=3 minutes=12
# One position. The drafter draws a token x from q. If x is the likeliest token of p, it is kept. If not, a token is drawn
# from p, *all* of p, and that one comes out.
#
# With what probability does each token come out? Do not simulate: there are two ways for a token to come out; add their
# probabilities.


# %% [exercise] literal_matching_law
def literal_matching_law(p, q):
    """The probabilities [vocab] of what comes out of literal matching.

    p, q: the target's and the drafter's probabilities, tensors [vocab]. The
    likeliest token of p is unique.

    Example: p = (0.6, 0.4) and q = (0.5, 0.5). Token 0 is kept with
    probability 0.5; else (0.5) token 0 is drawn with 0.6. Together 0.8, and
    token 1 gets 0.2.
    """
    ### BEGIN SOLUTION
    likeliest = int(p.argmax())
    kept = q[likeliest]
    law = (1 - kept) * p
    law[likeliest] += kept
    return law
    ### END SOLUTION


# %% [check] literal_matching_law points=1

# %% [hidden check] literal_matching_law points=1 seed=1208

# %% [markdown]
# Beside it, another rule that is easily confused with it: *draw a token from p first; keep the draft if it equals that
# token, else use the token that was drawn.* Twenty thousand draws of each, from made-up p and q:

# %%
law_of = lab.yours_or_reference(check.literal_matching_law)
p = torch.tensor([0.45, 0.30, 0.15, 0.10])
q = torch.tensor([0.60, 0.20, 0.15, 0.05])
generator = torch.Generator().manual_seed(0)
draws = lab.sized(20_000, 2_000)
drafted = torch.multinomial(q, draws, replacement=True, generator=generator)
from_p = torch.multinomial(p, draws, replacement=True, generator=generator)

literal = torch.where(drafted == p.argmax(), drafted, from_p)
sampled = torch.where(drafted == from_p, drafted, from_p)


def shares(tokens):
    counts = Counter(tokens.tolist())
    return [counts[token] / draws for token in range(len(p))]


plots.laws(
    ["A", "B", "C", "D"],
    {
        "the target's p": p.tolist(),
        "literal matching, drawn": shares(literal),
        "matching a sampled token, drawn": shares(sampled),
        "literal matching, your law": law_of(p, q).tolist(),
    },
    "simulated",
    f"{draws} draws from made-up p and q; p and your law are theory",
)

# %% [markdown]
# Literal matching makes the likeliest token likelier still: lively text turns dull, and no test of a single output would
# show it. The other rule is exact, and the reason is almost silly: *what comes out is always the token drawn from p.* The
# draft only decides whether we get it early. But it keeps a draft less often than it could.
#
# The next notebook finds the rule that is exact *and* keeps as many drafts as any rule can.
#
# ## The key insight
#
# **Verification keeps exactly the drafted tokens that the target would have chosen, and adds one of its own, so the
# output never depends on the drafter. The drafter only decides how many tokens each pass yields.**

# %% [quiz] points=5
# 1. A draft has five tokens. How many rows of logits does its verification use?
# - 5, one for each token | Those judge the five tokens. One more says what follows if all are kept.
# + 6 | Yes: one in front of each drafted token, and one behind the last.
# - 4 | Even the first drafted token has to be judged, by the row of the pending token.
# 2. Which row judges the first drafted token?
# - The row of the first drafted token | That row predicts what comes *after* it.
# + The row of the token before it, the pending one | Yes. That is why the pending token has to be read in the same pass.
# - The last row of the previous round | That row chose the pending token. It has not seen it.
# 3. The rewind is forgotten after a rejection. What happens?
# - Only memory is wasted | The model reads on behind tokens that are not in the text.
# - The next round is a little slower | It would be wrong, not slow.
# + The target's later choices are made behind a wrong text | Yes. The cache is the model's idea of what has been written.
# 4. With gamma = 4, how many tokens does a round emit?
# - Always 5 | Only if the whole draft is kept.
# + From 1 to 5, unless an end token or the budget cuts it | Yes: none to four accepted, and one from the target.
# - From 0 to 4 | There is always the target's own token, so progress is certain.
# 5. When sampling: keep the draft if it is the likeliest token of p, else draw from p. What is wrong?
# + The likeliest token comes out too often | Yes: it comes out when it was drafted, and again with its full share of p when it was not.
# - Nothing, as long as q is close to p | Even with q = p, a likeliest token of probability 0.5 would come out with 0.5 + 0.5 x 0.5 = 0.75.
# - The draft's tokens come out too often, whichever they are | Only one drafted token is ever kept: the target's likeliest. The others come out too rarely.
# - It only works for gamma = 1 | It is wrong at a single position already.

# %% [markdown]
# ## What was claimed here
#
# | claim | kind | scope |
# |---|---|---|
# | greedy speculation emits exactly the target's greedy tokens | stable concept | any drafter; float32, short of exact near ties. Compared here token for token |
# | a round emits 1 to gamma + 1 tokens for one target pass | stable concept | the bonus or replacement included |
# | passes, tokens per pass, speedup | measured | SmolLM2-135M-Instruct, two prompts, your machine; medians of 3 against cached decoding |
# | the bias of literal matching; matching a sampled token is exact | theory | any p and q with a unique likeliest token; the picture's draws are simulated |
#
# Sources: Leviathan et al. 2023 ([arXiv 2211.17192](https://arxiv.org/abs/2211.17192)); Chen et al. 2023 ([arXiv
# 2302.01318](https://arxiv.org/abs/2302.01318)); look-up drafting: Saxena 2023, "Prompt lookup decoding", and Yang et al.
# 2023 ([arXiv 2304.04487](https://arxiv.org/abs/2304.04487)). Verified 2026-11-30; next review 2027-11.
#
# **Next:** [3. Exact speculative sampling](../03_exact_speculative_sampling/03_exact_speculative_sampling.ipynb)

# %% [markdown]
# # 3. Exact speculative sampling
#
# **You build** the rule that keeps as many drafted tokens as any rule can, the decoder around it, and a proof that the
# decoder is right.
# **Time:** about 130 minutes. **The question:** the draft model guesses, the dice are thrown, and some guesses are kept.
# How can what comes out be a fair draw from the *target*?
#
# With greedy decoding you could hold two texts side by side. Now every run gives another text, the right decoder's and
# the wrong one's alike, and both read well. So in this notebook nothing is believed because it looks right, and hardly
# anything is sampled. Probabilities are added up, all of them.
#
# Nothing here depends on your solutions of the last notebook. Words are in the [glossary](../../docs/glossary.md).

# %%
import torch
from rich import print as show
from rich.table import Table

from specdec_lab import RandomLM, audit_decoder, audit_step, lab, load_pair, plots
from specdec_lab.checks import exact_speculative_sampling as check

pair = load_pair("embedded")
target, draft_model, tokenizer = pair.target, pair.draft, pair.tokenizer

# %% [markdown]
# ## Two letters
#
# In this course **p is always the target's** distribution of the next token and **q the draft's**, as in Leviathan et al.
# 2023. Chen et al. 2023 found the same method at the same time and call the target's q and the draft's p. Code in the
# wild does either. Whoever copies a formula from one and its letters from the other gets min(1, *q/p*), the commonest
# wrong version there is. Its output reads quite well.
#
# ## One token
#
# The text so far is *I would most like to live in*. Four words are possible:
#
# | | Paris | London | Rome | Berlin |
# |---|---|---|---|---|
# | p, the target's | 0.35 | 0.40 | 0.20 | 0.05 |
# | q, the draft's | 0.55 | 0.25 | 0.15 | 0.05 |
#
# The draft is too fond of Paris. This is the rule:
#
# 1. Draw a token x from q.
# 2. Keep it with probability **min(1, p(x) / q(x))**. What the draft proposes too rarely, or just often enough, is always
#    kept. What it proposes too often is kept only sometimes.
# 3. If it was rejected, draw another one in its place, from what is still lacking: **max(0, p - q), normalised** so that
#    it sums to 1. This is the **residual distribution**.

# %% [task] by_hand title="The audit, by hand" difficulty=1 minutes=12
# Before any code: follow every token through the rule. In the order Paris, London, Rome, Berlin; three decimals are
# enough.
#
# - `acceptance`: the chance that the token is kept, *once it was drafted*.
# - `accepted`: the chance that it is drafted *and* kept.
# - `rejection_mass`: the chance that the drafted token is rejected, whichever it is.
# - `residual`: what a replacement is drawn from.
# - `final`: the chance that this token comes out in the end, as a kept draft or as a replacement.

# %% [exercise] by_hand
by_hand = {
    "acceptance": [None, None, None, None],
    "accepted": [None, None, None, None],
    "rejection_mass": None,
    "residual": [None, None, None, None],
    "final": [None, None, None, None],
}
### BEGIN SOLUTION
by_hand = {
    "acceptance": [7 / 11, 1, 1, 1],
    "accepted": [0.35, 0.25, 0.15, 0.05],
    "rejection_mass": 0.2,
    "residual": [0, 0.75, 0.25, 0],
    "final": [0.35, 0.40, 0.20, 0.05],
}
### END SOLUTION

# %% [check] by_hand points=2

# %% [markdown]
# ## Why it is exact
#
# What you just did with four numbers works with letters. A token x comes out in two ways.
#
# *It is drafted and kept.* That has probability q(x) · min(1, p(x)/q(x)) = **min(p(x), q(x))**.
#
# *Another one is rejected, and x is drawn in its place.* Something is rejected with probability R = 1 - Σ min(p, q), the
# **rejection mass**. The residual of x is max(0, p(x) - q(x)) over the sum of max(0, p - q). But p - min(p, q) is the same
# as max(0, p - q), token by token, so that sum is 1 - Σ min(p, q), which is R again. It cancels, and what is left is
# **max(0, p(x) - q(x))**.
#
# Together: min(p, q) + max(0, p - q) = **p**. Whatever q is. Nothing was used about q except that x was *really* drawn
# from it. Keep that sentence in mind: many a wrong decoder breaks it.
#
# Now the two rules in code.

# %% [task] acceptance_probability title="When to keep" difficulty=1 minutes=5
# The chance to keep a token that was drafted.


# %% [exercise] acceptance_probability
def acceptance_probability(p_of_token, q_of_token):
    """The chance to keep a drafted token.

    p_of_token: its probability under the target; a float, may be 0.
    q_of_token: its probability under the draft. It was drawn, so this is not 0.

    Example: 0.35 and 0.55 give 0.6364; 0.4 and 0.25 give 1.0.
    """
    ### BEGIN SOLUTION
    return min(1.0, p_of_token / q_of_token)
    ### END SOLUTION


# %% [check] acceptance_probability points=1

# %% [hidden check] acceptance_probability points=1 seed=1302

# %% [task] residual title="What is still lacking" difficulty=1 minutes=8
# What the replacement is drawn from. One case needs care: where p and q are equal nothing is lacking, and 0/0 is no
# distribution. With exact numbers nothing would be rejected there; with rounded ones it happens once in a while. Then p
# itself is the right answer.


# %% [exercise] residual
def residual(p, q):
    """What the replacement of a rejected token is drawn from.

    p, q: the target's and the draft's probabilities, tensors [vocab].
    Returns a tensor [vocab] that sums to 1. Where p is nowhere above q, returns p.

    Example: p = (0.6, 0.3, 0.1) and q = (0.2, 0.2, 0.6) give (0.8, 0.2, 0).
    """
    ### BEGIN SOLUTION
    lacking = (p - q).clamp(min=0.0)
    if lacking.sum() == 0.0:
        return p
    return lacking / lacking.sum()
    ### END SOLUTION


# %% [check] residual points=1

# %% [hidden check] residual points=1 seed=1303

# %% [task] step_law title="The audit, in code" difficulty=2 minutes=12
# What you did by hand, for any p and q, and for **any two rules**, right or wrong: `acceptance` and `residual` come in as
# arguments. With what probability does each token come out? All of these together are the **law** of the step: the exact
# distribution of what it emits.
#
# Do not use that the result ought to be p. An audit that assumes its verdict is no audit.


# %% [exercise] step_law
def step_law(p, q, acceptance, residual):
    """The probabilities [vocab] of what comes out of one step.

    p, q: tensors [vocab].
    acceptance: takes p(x) and q(x), two floats; gives the chance to keep x. It is not defined
        for q(x) = 0: the draft never proposes such a token.
    residual: takes p and q, tensors [vocab]; gives what a replacement is drawn from, [vocab].

    Example: p = (0.6, 0.4), q = (0.5, 0.5), a rule that always keeps with 0.5 and a residual that is
    q: kept (0.25, 0.25), rejected 0.5 in all, together (0.5, 0.5).
    """
    ### BEGIN SOLUTION
    chances = [
        acceptance(p_of_token, q_of_token) if q_of_token > 0.0 else 0.0
        for p_of_token, q_of_token in zip(p.tolist(), q.tolist(), strict=True)
    ]
    accepted = q * torch.tensor(chances, dtype=q.dtype)
    rejection_mass = 1.0 - accepted.sum()
    return accepted + rejection_mass * residual(p, q)
    ### END SOLUTION


# %% [check] step_law points=1

# %% [hidden check] step_law points=1 seed=1304

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two ways for a token to come out, as in the derivation. The rejection mass is what is left of 1 when everything that is
# accepted is taken away.
# </details>

# %% [markdown]
# Your rules and your audit, on the four cities. Beside them the library's audit, on the same two rules, with every step
# shown. (It can also compute in fractions, and then the error is not small but 0: `specdec-lab audit`.)

# %%
keep = lab.yours_or_reference(check.acceptance_probability)
lacking = lab.yours_or_reference(check.residual)
law_of = lab.yours_or_reference(check.step_law)

CITIES = ["Paris", "London", "Rome", "Berlin"]
p = torch.tensor([0.35, 0.40, 0.20, 0.05], dtype=torch.float64)
q = torch.tensor([0.55, 0.25, 0.15, 0.05], dtype=torch.float64)

print("your audit:", [round(float(x), 6) for x in law_of(p, q, keep, lacking)])
step = audit_step(p, q, CITIES, acceptance=keep, residual=lacking)
show(step)
plots.audit_step(step)

# %% [markdown]
# Blue is what acceptance brings: the part of q that lies under p. Orange is what the residual restores. Together they
# reach the solid lines, which are p. Now some rules that sound just as good, and how far their laws are from p: the sum of
# the differences' absolute values, called the **L1 distance**.

# %%
WRONG_RULES = {
    "p and q exchanged": (lambda p, q: min(1.0, q / p), lacking),
    "keep if p >= q, no dice": (lambda p, q: float(p >= q), lacking),
    "replace from p": (keep, lambda p, q: p),
    "replace from |p - q|": (keep, lambda p, q: (p - q).abs() / (p - q).abs().sum()),
}

table = Table("rule", *CITIES, "L1 from p", title="theory: what comes out")
table.add_row("p", *[f"{x:.3f}" for x in p.tolist()], "")
for name, (acceptance, replacement) in {"yours": (keep, lacking), **WRONG_RULES}.items():
    law = torch.as_tensor(law_of(p, q, acceptance, replacement))
    table.add_row(name, *[f"{x:.3f}" for x in law.tolist()], f"{float((law - p).abs().sum()):.2g}")
show(table)

# %% [markdown]
# Now move p and q yourself. Is there any pair for which the two rules fail? Try *equal* and *disjoint* from the menu, too,
# and watch what happens to the residual. (The rules here are the library's own.)

# %%
from specdec_lab import widgets

widgets.audit_view()

# %% [markdown]
# ## How many drafts are kept?

# %% [task] overlap title="Alpha" difficulty=1 minutes=5
# **alpha** is the chance that a drafted token is kept, whichever it is. From the derivation: add up min(p(x), q(x)).
#
# Seen as a picture, it is the area that two histograms have in common. And it is 1 minus the **total variation** of p and q,
# which is half of their L1 distance, the sum of |p - q|.


# %% [exercise] overlap
def overlap(p, q):
    """alpha, the chance that a token drawn from q is kept.

    p, q: tensors [vocab].
    Returns a number from 0 to 1.

    Example: p = (0.6, 0.4) and q = (0.5, 0.5) give 0.9.
    """
    ### BEGIN SOLUTION
    return float(torch.minimum(p, q).sum())
    ### END SOLUTION


# %% [check] overlap points=1

# %%
alpha_of = lab.yours_or_reference(check.overlap)
plots.overlap(CITIES, p.tolist(), q.tolist(), f"alpha = {alpha_of(p, q):.2f}, made-up p and q")

# %% [markdown]
# What only q has is thrown away, what only p has is restored. The two have the same area, because p and q both have an
# area of 1. That is the whole method in one picture.
#
# **No exact rule keeps more.** Whatever rule you think of: x is kept at most as often as it was drafted, q(x), and at most
# as often as it may come out at all, p(x). So never more than min(p, q). The rule of the last notebook, *keep the draft if
# it equals a token drawn from p*, is exact as well, but keeps x only with p(x) · q(x): here 0.325 in all instead of 0.80.
#
# And the real pair? A question, an answer that the target drew at temperature 1, and p and q at its first token:

# %%
from specdec_lab import ModelDrafter, Sampling, audit_positions

QUESTION = "What would you take along on a night train across Europe?"
answered = pair.generate(
    QUESTION, chat=True, drafter=None, sampling=Sampling(1.0), seed=3, max_new_tokens=lab.sized(48, 8)
)
print(answered.text)

target.reset(), draft_model.reset()
p_real = target.extend(answered.prompt_tokens, rows=1)[0].softmax(-1)
q_real = draft_model.extend(answered.prompt_tokens, rows=1)[0].softmax(-1)
likeliest = (p_real + q_real).topk(8).indices
plots.overlap(
    [tokenizer.decode([token]) for token in likeliest.tolist()],
    p_real[likeliest].tolist(),
    q_real[likeliest].tolist(),
    f"alpha = {alpha_of(p_real, q_real):.2f} over all {len(p_real):,} tokens; the 8 likeliest are shown",
    kind="measured",
)

# %% [markdown]
# The same at every place of an answer: the darker a token, the lower alpha was where it stands, and the number below it says
# how low. (Another answer: this one is drawn while it is audited.)

# %%
positions = audit_positions(
    target,
    ModelDrafter(draft_model),
    [QUESTION],
    tokenizer=tokenizer,
    chat=True,
    max_new_tokens=lab.sized(48, 8),
    sampling=Sampling(temperature=1.0),
)
print(f"alpha is {positions.alpha:.2f} on average over {len(positions.judged)} places")
widgets.acceptance_map(positions)

# %% [markdown]
# Where does the draft fail? Mostly where a word with content of its own is chosen. Where a phrase or a word only goes on, as
# in *let me know*, it is nearly always kept.
#
# ## Temperature and top-p
#
# So far p and q came out of a softmax. In use, the logits are changed before: divided by a **temperature**, and cut
# to the likeliest tokens (**top-p**, also called nucleus sampling). What is speculative sampling exact *to*, then? To
# the distribution that plain decoding would draw from: **p is p after all of that.** And q is what the drafted token was
# really drawn from, after whatever was done on *its* side.

# %% [task] processed title="From logits to p" difficulty=2 minutes=12
# 1. Divide the logits by the temperature, and take the softmax.
# 2. Sort by probability. Keep the likeliest tokens until their sum reaches `top_p`; the token that crosses the limit is
#    still kept. (With `top_p` = 1 nothing is cut, even where a sum of rounded numbers reaches 1 before the last token.)
# 3. The others get probability 0, and what is left is divided by its sum.


# %% [exercise] processed
def processed(logits, temperature, top_p):
    """The distribution that a token is drawn from.

    logits: tensor [vocab], float32 or float64, or bfloat16: compute in float32 at least.
    temperature: above 0.
    top_p: above 0, at most 1; 1 keeps everything.
    Returns a tensor [vocab] that sums to 1.

    Example: probabilities (0.5, 0.3, 0.2) at temperature 1 with top_p 0.6 give (0.625, 0.375, 0):
    0.5 is not enough, 0.8 is. With top_p 0.4 they give (1, 0, 0).
    """
    ### BEGIN SOLUTION
    scores = logits if logits.dtype == torch.float64 else logits.float()
    probabilities = (scores / temperature).softmax(dim=-1)
    if top_p == 1.0:
        return probabilities
    ordered, tokens = probabilities.sort(descending=True)
    before = ordered.cumsum(dim=-1) - ordered  # the mass in front of each token
    probabilities[tokens[before >= top_p]] = 0.0
    return probabilities / probabilities.sum()
    ### END SOLUTION


# %% [check] processed points=1

# %% [hidden check] processed points=1 seed=1307

# %% [markdown]
# <details><summary>Hint</summary>
#
# `sort(descending=True)` gives values and the tokens they belong to. A token is kept if the sum of those *in front* of it
# has not reached `top_p` yet.
# </details>

# %% [markdown]
# What does it do to alpha? The mean over all places of the answer that was printed above, with both sides processed alike,
# or only the target's.

# %%
trusted_processed = lab.yours_or_reference(check.processed)
target.reset(), draft_model.reset()
whole_text, length = answered.prompt_tokens + answered.tokens, len(answered.tokens)
p_logits = target.extend(whole_text, rows=length)
q_logits = draft_model.extend(whole_text, rows=length)

table = Table("temperature", "top-p", "both processed", "only the target's", title="alpha, measured")
for temperature, top_p in ((1.0, 1.0), (0.7, 1.0), (0.4, 1.0), (1.0, 0.8), (0.7, 0.8)):
    both = alone = 0.0
    for p_row, q_row in zip(p_logits, q_logits, strict=True):
        p_here = trusted_processed(p_row, temperature, top_p)
        both += alpha_of(p_here, trusted_processed(q_row, temperature, top_p)) / length
        alone += alpha_of(p_here, q_row.softmax(-1)) / length
    table.add_row(f"{temperature:g}", f"{top_p:g}", f"{both:.2f}", f"{alone:.2f}")
show(table)

# %% [markdown]
# A low temperature makes both sides surer of their favourites. Where that is the same token, alpha rises, where it is
# another one, it falls; on an answer drawn at temperature 1, which is not made of favourites, the two nearly cancel. If
# only the target gets surer, alpha falls.
#
# Both columns are **exact**, as long as q is the distribution that was drawn from. A drafter may draw as it likes; it
# usually loses alpha, and nothing else, if it draws otherwise than the target. What breaks exactness is to draw from one q and
# to judge by another: a draft at temperature 0.5 judged by its q at 1, or a greedy draft judged by its softmax.
#
# ## A whole draft
#
# Now gamma tokens in a row. The draft model draws the first from its q, the second behind the first from another q, and so
# on. The target reads all of them in one pass, and gives a p in front of each, and one behind the last.
#
# All chance in your code comes from one object, the **chooser**:
#
# | | |
# |---|---|
# | `chooser.accept(probability)` | True with this probability |
# | `chooser.sample(distribution)` | a token drawn from a tensor [vocab] |
#
# Usually it throws dice. But in front of an auditor it does not: there your code is run again and again, and each time
# the chooser gives other answers, until *every* answer has been given to every question. That is why nothing else may
# be random, and why the seed is not your business.

# %% [task] exact_verify title="Judge a draft" difficulty=2 minutes=15
# From the left: keep each token by the rule. At the first rejection, draw the replacement at *that* place and stop:
# what was drafted behind it continues a text that does not exist. If everything was kept, draw the bonus token.
#
# The two rules come in as arguments, so that an earlier mistake costs nothing here.


# %% [exercise] exact_verify
def exact_verify(draft, q, p, chooser, acceptance=keep, residual=lacking):
    """Judge a draft by the rejection rule.

    draft: list of n token ids; may be empty.
    q: list of n tensors [vocab]: q[i] is what draft[i] was drawn from.
    p: list of n + 1 tensors [vocab]: p[i] is the target's, behind i drafted tokens.
    chooser: has accept and sample, see above.
    acceptance, residual: see above.
    Returns (accepted, following): how many drafted tokens are kept, and the token behind them.

    Example: draft [3, 1]. The first is kept, the second is not, and residual(p[1], q[1])
    gives a 2: the result is (1, 2).
    """
    ### BEGIN SOLUTION
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(float(p[i][token]), float(q[i][token]))):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[len(draft)])
    ### END SOLUTION


# %% [check] exact_verify points=2

# %% [hidden check] exact_verify points=1 seed=1308

# %% [markdown]
# <details><summary>Hint: which row?</summary>
#
# p[i], q[i] and draft[i] belong together, for the coin and for the residual. p has one more, and it is used only when
# nothing was rejected.
# </details>
# <details><summary>I get "sample() was asked to draw from something that sums to ..."</summary>
#
# `chooser.sample` wants a distribution. Take the residual as it is handed in; it is normalised.
# </details>

# %% [task] propose title="Draw a draft" difficulty=2 minutes=12
# The draft model has a cache, too, and after a rejection there are tokens in it that the text does not have. Three things
# help:
#
# | | |
# |---|---|
# | `model.rewind_to_match(tokens)` | forgets what does not agree with the text; gives the list of the tokens that are still to be read, at least the last one |
# | `model.extend(unread)` | reads them; gives a row of logits for each, about the token that comes next. With `rows=1` only the last row |
# | `process(logits)` | makes a distribution of a row of logits: the temperature and top-p of this run are in it |
#
# The check asks whether what you hand over is right, not how much was read for it: whoever reads everything again for each
# token is slow, and exact.


# %% [exercise] propose
def propose(model, tokens, gamma, process, chooser):
    """Draw a draft.

    model: the draft model; its cache may hold anything. It has extend, rewind_to_match, length.
    tokens: the text so far, a list of at least one token.
    gamma: how many tokens to draw; may be 0.
    process: takes logits [vocab], gives the distribution [vocab] to draw from.
    chooser: see above.
    Returns (draft, q): a list of gamma tokens, and the list of the gamma distributions that they
    were drawn from.

    Example: gamma 2 reads the text, draws a token, reads *that*, and draws another. Nobody
    reads the last one.
    """
    ### BEGIN SOLUTION
    draft, q = [], []
    for _ in range(gamma):
        unread = model.rewind_to_match(tokens + draft)
        q.append(process(model.extend(unread)[-1]))
        draft.append(chooser.sample(q[-1]))
    return draft, q
    ### END SOLUTION


# %% [check] propose points=1

# %% [hidden check] propose points=1 seed=1309

# %% [task] speculative_sample title="The whole decoder" difficulty=3 minutes=25
# Propose, read the draft in **one** pass of the target, judge, keep, and go on until `max_new_tokens` are there. You know
# the loop from the last notebook; `rewind_to_match` works for the target, too. No end tokens this time.
#
# Your decoder is then audited: run along every path that chance can take, on toy models with three tokens, and the exact
# law of what it emits is compared with the target's own. How it gets there is up to you, as long as all chance comes from
# the chooser. Three things are counted besides:
#
# - never more and never fewer than `max_new_tokens` tokens, 0 and 1 included;
# - where the draft model *is* the target and sure of itself, each pass of the target yields gamma + 1 tokens;
# - no more passes than rounds: the first round reads the prompt. (A decoder that asks the target for each token alone is
#   exact, too, and no use.)

# %%
trusted_verify = lab.yours_or_reference(check.exact_verify)
trusted_propose = lab.yours_or_reference(check.propose)


# %% [exercise] speculative_sample
def speculative_sample(
    target,
    draft_model,
    prompt,
    gamma,
    max_new_tokens,
    process,
    chooser,
    propose=trusted_propose,
    verify=trusted_verify,
):
    """Speculative sampling.

    target, draft_model: have read nothing yet.
    prompt: list of at least one token id.
    gamma: draft length.
    max_new_tokens: the budget; may be 0.
    process: takes logits [vocab], gives the distribution [vocab]; for both models.
    chooser: the only source of chance.
    propose, verify: see the last exercises; you may use them.
    Returns the list of the max_new_tokens new tokens.
    """
    ### BEGIN SOLUTION
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        rows = target.extend(unread + draft)[len(unread) - 1 :]
        p = [process(row) for row in rows]
        accepted, following = verify(draft, q, p, chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]
    ### END SOLUTION


# %% [check] speculative_sample points=2

# %% [hidden check] speculative_sample points=3 seed=1310

# %% [markdown]
# <details><summary>Hint: the rows</summary>
#
# `extend` gives a row for each token it reads. The row of the last unread token judges the first drafted one, as in the last
# notebook.
# </details>
# <details><summary>Hint: the budget</summary>
#
# A round emits one token more than it accepts. So near the end, draft one token fewer than may still come. (Cutting off what
# is too much is just as exact.)
# </details>
# <details><summary>The check says that a sequence comes too often</summary>
#
# Look at the sequence that it shows, and play it by hand: which token is accepted, which is replaced, what stands in which
# cache? A cache that holds a rejected token shows only in the *second* round.
# </details>

# %% [markdown]
# ## The verdict on your decoder
#
# You have seen the check pass. Here is what it does, on one pair of toy models: three tokens in the vocabulary, another
# random distribution behind every prefix, three new tokens, gamma = 2.

# %%
decode = lab.yours_or_reference(check.speculative_sample)
toy_target, toy_draft = RandomLM(3, seed=1), RandomLM(3, seed=501)


def mine(target, prompt, max_new_tokens, chooser):
    toy_draft.reset()
    return decode(target, toy_draft, prompt, 2, max_new_tokens, lambda row: row.softmax(-1), chooser)


verdict = audit_decoder(mine, toy_target, (0, 1), 3, name="your decoder")
show(verdict)
plots.audit_decoder(verdict)

# %% [markdown]
# Read the numbers. The *paths* are how often your decoder ran, each time with other answers from the chooser; their
# probabilities sum to 1. The table has the sequences that are furthest off, the L1 distance is over all of them, and what
# is left of it is the rounding of sixteen digits. That is not a test that found nothing. It is **the law itself**.
#
# (What it proves is about *these* toy models. But your code does not know which models it is given, and random
# distributions behind every prefix leave no coincidence to hide in. What an audit cannot see is in `docs/audit.md`.)
#
# And the real pair, at temperature 1, by the library's decoder, which works like yours. Click a token that is struck through:
# you see its p, its q, the die that was cast, and the residual from which its replacement was drawn.

# %%
widgets.watch(pair, QUESTION, temperature=1.0, seed=1, max_new_tokens=lab.sized(40, 8))

# %% [markdown]
# ## Three famous mistakes
#
# Each of these was found in real code, and each writes fluent text:
#
# - **a**: after a rejection, the replacement is drawn from p itself.
# - **b**: the draft model takes its likeliest token, but hands over its softmax as q.
# - **c**: when the whole draft was kept, the bonus token is the likeliest instead of a drawn one.

# %% [task] predicted_worst title="Which is the furthest off?" difficulty=1 minutes=4
# By the L1 distance between its law and the target's, on the toy models above. Think before you look; the point is for
# predicting, not for being right.

# %% [exercise] predicted_worst
predicted_worst = None  # "a", "b" or "c"
### BEGIN SOLUTION
predicted_worst = "b"
### END SOLUTION

# %% [check] predicted_worst points=1

# %%
from specdec_lab.audit import GALLERY
from specdec_lab.audit.gallery import with_draft

FAMOUS = {"a": "resampled from p", "b": "greedy draft, softmax q", "c": "argmax bonus"}
members = {member.name: member for member in GALLERY}

audits = {}
if predicted_worst is None:
    print("Make your prediction first, in the cell above; then run this one.")
else:
    title = "theory: exact laws, enumerated"
    table = Table("", "decoder", "verdict", "L1", "why", title=title, width=90)
    for letter, name in FAMOUS.items():
        decoder = with_draft(members[name].decoder, toy_draft)
        audits[letter] = audit_decoder(decoder, toy_target, (0, 1), 3, name=name)
        found = audits[letter]
        table.add_row(letter, name, found.verdict, f"{found.l1_error:.3f}", found.reason)
    show(table)
    worst = max(audits, key=lambda letter: audits[letter].l1_error)
    print(f"You said {predicted_worst}; it is {worst}. Here is {worst}:")
plots.audit_decoder(audits[worst]) if audits else None

# %% [markdown]
# **b** is the sentence from above, broken: q is not what was drawn from. The draft's favourite is drafted every time, and judged
# as if it were drafted only with its softmax q(x). Kept with min(1, p/q), where p would be right, it comes far too often;
# and what the draft likes less comes only by way of the residual: some sequences never. **a** is wrong only where something
# was rejected, **c** only where nothing was.
#
# Would you have noticed? A test by sampling compares how often each sequence comes with how often it should. To tell
# two laws apart that differ by a total variation of d takes in the order of 1/d² samples. For mistake a (half its L1 is
# 0.14) that is about 50, *if* you know p of every sequence, which for a real model with 49,152 tokens you do not. The
# gallery has decoders that are wrong by 0.00001: ten billion samples. Enumeration tells the mildest of them from an exact one
# in a tenth of a second.
#
# ## On the real pair
#
# Your decoder, the real models, and a chooser that throws dice:

# %%
from specdec_lab import SeededChooser

for seed in range(lab.sized(3, 1)):
    counting = lab.CountPasses(target)
    draft_model.reset()
    made = decode(
        counting,
        draft_model,
        answered.prompt_tokens,
        3,
        lab.sized(40, 6),
        lambda row: trusted_processed(row, 0.8, 0.95),
        SeededChooser(seed),
    )
    print(f"seed {seed}: {len(made)} tokens in {counting.passes} passes: {tokenizer.decode(made)!r}\n")

# %% [markdown]
# Three fair draws from the target at temperature 0.8 and top-p 0.95. How fast that is: the next notebook.
#
# ## Precision
#
# One thing was brushed aside. A pass over five tokens adds up its sums in another order than a pass over one, so its logits
# differ in the last digits, and with them p. How much is that? Here the same row of logits twice: read in a pass by itself,
# and as the last of five. (About a quarter of a minute.)

# %%
table = Table(
    "dtype", "total variation, median", "largest", "argmax changed", title="measured: one row, two ways"
)
text = tokenizer(
    "The old lighthouse keeper climbed the stairs every evening. He lit the lamp, sat down by the window "
    "and wrote into his book which ships had passed, what the weather was like and how he felt."
).input_ids
for dtype in ("float32", "bfloat16"):
    model = target if dtype == "float32" else load_pair("embedded", dtype=dtype).target
    distances, changed = [], 0
    places = range(8, lab.sized(len(text), 12))
    for place in places:
        model.reset()
        model.extend(text[: place - 5], rows=1)
        together = model.extend(text[place - 5 : place], rows=1)[0]
        model.rewind(place - 5)
        for token in text[place - 5 : place]:
            alone = model.extend([token])[0]
        p_one, p_five = alone.double().softmax(-1), together.double().softmax(-1)
        distances.append(float((p_one - p_five).abs().sum()) / 2)
        changed += int(p_one.argmax()) != int(p_five.argmax())
    ordered = sorted(distances)
    table.add_row(
        dtype,
        f"{ordered[len(ordered) // 2]:.1e}",
        f"{ordered[-1]:.1e}",
        f"{changed} of {len(places)}",
    )
show(table)

# %% [markdown]
# In bfloat16, which keeps eight binary digits, p moves by a few percent, in float32 by about a millionth. That does two
# very different things.
#
# **Greedy** decoding takes the largest logit. Where two tokens are nearly tied, a change in the last digit flips the choice,
# and the text takes another turn from there on. So in bfloat16 greedy speculation does not always give the same tokens as
# plain greedy decoding. Nothing is broken: plain decoding with another batch size or on another chip would differ in the
# same way.
#
# **Sampling** has no such cliff. The rule is exact for the p that the pass has computed, whichever it is, so all that is
# left is that this p is a slightly different one: the next token's law moves exactly as much as its p does. (Over a long text
# that adds up, as it does in plain decoding.) What *would* break it
# is to be careless with the ratio: p/q and the residual computed in bfloat16 are themselves wrong by up to a percent, and
# the audit sees it ("half precision" in the gallery). Models may be in bfloat16. Probabilities are not.
#
# ## The key insight
#
# **Keep a drafted token with probability min(1, p/q), else replace it from what is lacking: what comes out is p. The draft may
# be good or bad, provided that q is the distribution its tokens were really drawn from. Its quality decides nothing but
# alpha: how much is kept.**

# %% [quiz] points=5
# 1. p(x) = 0.3 and q(x) = 0.2. The draft proposes x. With what probability is it kept?
# - 2/3 | That is q/p: the letters are exchanged.
# - 0.3 | That is p(x): how often a token drawn from p would agree with it. The rule keeps more.
# + 1 | Yes: x is drafted too rarely as it is. Every one is kept, and the residual adds what is lacking.
# - 0.06 | That is p times q: the chance that x is drafted *and* drawn from p. Here it was drafted already.
# 2. Why is the replacement not drawn from p itself?
# - It would be, if the vocabulary were small | The size does not matter; with four cities the error is plain to see.
# + Accepted drafts have brought part of p already, and they would be counted twice | Yes. Only what is lacking may come on top: max(0, p - q).
# - Because the rejected token could come out again | It could, and it should not here; but striking it out of p is wrong, too.
# - Because drawing from p costs another pass | p is there already: it is the row that judged the token.
# 3. A drafter takes the likeliest token without any chance. Which q makes the decoder exact?
# - The softmax of its logits | The token was not drawn from that. Tokens that the softmax finds unlikely are never drafted, and likely ones always.
# + All of the probability on the token it took | Yes: the draft is drawn from that, if trivially. It is kept with probability p(x).
# - None: such a drafter cannot be exact | Any drafter can, if its q is what it draws from.
# - The target's p at that place | Then everything would be kept, and the output would be the drafter's.
# 4. alpha is 0.8 at a place. What is the total variation between p and q there?
# + 0.2 | Yes: the total variation is 1 - alpha, and so is the rejection mass.
# - 0.4 | That is the L1 distance, twice as much.
# - 0.8 | That would be alpha itself.
# - It cannot be known from alpha | It can: both count what p and q have in common.
# 5. A decoder passed a test on 10,000 samples with a p-value of 0.4. What is known?
# - It is exact | A test that finds nothing has not shown that there is nothing.
# - It is exact with a probability of 0.4 | A p-value says how often an exact decoder would look at least as odd.
# + That a large error is unlikely; a total variation of 0.001 would hardly show | Yes: that would take about a million samples. An exact law has no such limit.
# - It is not exact | An exact decoder gives a p-value below 0.4 in two of five tests.

# %% [markdown]
# ## What was claimed here
#
# | claim | kind | scope |
# |---|---|---|
# | min(1, p/q) and the residual give p | theory | any p, and any q that was really drawn from; proved above |
# | no exact rule keeps more than the sum of min(p, q) | theory | one token at a time; rules that judge a block together can do a little better |
# | your decoder's law is the target's | theory, by enumeration | toy models with three tokens; rounding of float64 |
# | the laws of the three mistakes | theory, by enumeration | the same toy models |
# | alpha, texts, passes | measured | SmolLM2-135M-Instruct and its draft model, one or two prompts |
# | p differs between a pass over one and over five tokens | measured | your machine, one text |
#
# Sources: Leviathan, Kalman, Matias 2023 ([arXiv 2211.17192](https://arxiv.org/abs/2211.17192)), algorithm 1, theorem 3.5 and
# appendix A.1; Chen et al. 2023 ([arXiv 2302.01318](https://arxiv.org/abs/2302.01318)), where the letters are swapped; block
# verification: Sun et al. 2024 ([arXiv 2403.10444](https://arxiv.org/abs/2403.10444)). Verified 2026-11-30;
# next review 2027-11.
#
# **Next:** [4. How fast is it, really?](../04_speed_experiments/04_speed_experiments.ipynb)

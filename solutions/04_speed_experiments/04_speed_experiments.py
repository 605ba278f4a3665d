# %% [markdown]
# # 4. How fast is it, really?
#
# **You build** the formulas that predict a speedup, a race that is fair, and a recommendation that you can defend.
# **Time:** about 130 minutes. **The question:** the output is the target's own, exactly. Is it also there sooner, by how
# much, and when not?
#
# The rule of this notebook: **first predict, then measure, then explain the gap.** A measurement that was not expected to be
# anything teaches little. Each prediction earns its point for being made; being wrong is where it gets interesting.
#
# What you measure is kept in `results/` beside this notebook, and handed in with it; if you measure again, the last one
# before stays, too. Let the computer alone while it measures: a video call in the background is worth a factor of two. Words
# are in the [glossary](../../docs/glossary.md).

# %%
import time

from rich import print as show
from rich.box import SIMPLE_HEAD
from rich.table import Table

from specdec_lab import autoregressive, lab, load_pair, plots, speculative
from specdec_lab.bench import lesson
from specdec_lab.bench.prompts import SIX_KINDS
from specdec_lab.bench.results import committed
from specdec_lab.checks import speed_experiments as check

# Float32 on a CPU. With dtype="bfloat16" everything below changes: try it later, in a copy of this folder.
pair = load_pair("embedded")
target, tokenizer = pair.target, pair.tokenizer

# %% [markdown]
# ## What theory says
#
# Four numbers decide. You know them all:
#
# | | | from notebook |
# |---|---|---|
# | **alpha** | the chance that a drafted token is kept, once those before it were | 3 |
# | **gamma** | the draft length | 2 |
# | **c** | time of one drafted token, in one-token passes of the target | here |
# | **v(n)** | time of a target pass over n tokens, in one-token passes | 1 |
#
# First the tokens. The first drafted token is kept with alpha, the second with alpha² (the first had to be kept as
# well), and so on; and one token comes in any case. Theory takes alpha to be the same everywhere, which it is not.

# %% [task] tokens_per_round title="Tokens of a round" difficulty=1 minutes=6
# How many tokens does a round emit, on average? Add up, for each place, the chance that a token comes out there.


# %% [exercise] tokens_per_round
def tokens_per_round(alpha, gamma):
    """Expected number of tokens that a round emits, the bonus or replacement included.

    alpha: the chance that a drafted token is kept, once all before it were; 0 to 1.
    gamma: the draft length; may be 0.

    Example: alpha 0.5 and gamma 2 give 1 + 0.5 + 0.25 = 1.75.
    """
    ### BEGIN SOLUTION
    return sum(alpha**accepted for accepted in range(gamma + 1))
    ### END SOLUTION


# %% [check] tokens_per_round points=1

# %%
trusted_tokens = lab.yours_or_reference(check.tokens_per_round)

table = Table("alpha", *[f"gamma {n}" for n in (1, 2, 4, 8, 16)], title="tokens of a round (theory)")
for alpha in (0.3, 0.5, 0.7, 0.9):
    table.add_row(f"{alpha}", *[f"{trusted_tokens(alpha, n):.2f}" for n in (1, 2, 4, 8, 16)])
show(table)

# %% [markdown]
# Each row stops growing, and the sooner, the lower alpha is: with 0.5 a round never yields more than 2 tokens, however long
# the draft. But the *cost* of a draft grows with each of its tokens.

# %% [task] expected_speedup title="What a round costs" difficulty=2 minutes=10
# In one-token passes of the target, a round costs gamma drafted tokens, and one pass that verifies them. How many tokens
# does that pass read? (It starts with the pending token.)
#
# Plain decoding makes one token in a time of 1. So the speedup is the tokens of a round over its cost.


# %% [exercise] expected_speedup
def expected_speedup(alpha, gamma, c, v, tokens_per_round=trusted_tokens):
    """The speedup over plain decoding that theory promises.

    alpha, gamma: as above.
    c: time of one drafted token, in one-token passes of the target.
    v: dict from n to v(n), the time of a target pass over n tokens, in one-token passes.
    tokens_per_round: see the last exercise.

    Example: alpha 0.5, gamma 2, c 0.1 and v(3) = 1.2 give 1.75 / (0.2 + 1.2) = 1.25.
    With gamma 0 nothing is drafted, and the speedup is 1 (v(1) is 1).
    """
    ### BEGIN SOLUTION
    return tokens_per_round(alpha, gamma) / (gamma * c + v[gamma + 1])
    ### END SOLUTION


# %% [check] expected_speedup points=1

# %% [hidden check] expected_speedup points=1 seed=1402

# %%
trusted_speedup = lab.yours_or_reference(check.expected_speedup)

# %% [task] best_gamma title="The best draft length" difficulty=1 minutes=6
# Too short a draft wastes the pass, too long a draft wastes itself. And sometimes the best draft is none.


# %% [exercise] best_gamma
def best_gamma(alpha, c, v, expected_speedup=trusted_speedup):
    """The draft length with the highest expected speedup; 0 means: do not draft.

    alpha, c, v: as above. v tells which lengths can be asked for: gamma needs v[gamma + 1].
        v[1] is there. The lengths may have gaps.
    expected_speedup: see the last exercise.

    Example: with v = {1: 1.0, 2: 1.1, 3: 1.2, 5: 1.4} the lengths are 0, 1, 2 and 4.
    """
    ### BEGIN SOLUTION
    return max((n - 1 for n in sorted(v)), key=lambda gamma: expected_speedup(alpha, gamma, c, v))
    ### END SOLUTION


# %% [check] best_gamma points=1

# %% [task] least_alpha title="When does it pay at all?" difficulty=2 minutes=10
# You are offered a draft model. You can time it in a minute (c), and you have v. How good does it have to be?


# %% [exercise] least_alpha
def least_alpha(gamma, c, v, expected_speedup=trusted_speedup):
    """The smallest alpha at which drafting gamma tokens is no slower than plain decoding.

    gamma, c, v: as above; gamma is at least 1.
    expected_speedup: see above. It grows with alpha.
    Returns a number from 0 to 1, right to three decimals, or None if not even alpha = 1 is enough.

    Example: gamma 1, c 0.1 and v(2) = 1.2 give 0.3, because (1 + 0.3) / (0.1 + 1.2) = 1.
    """
    ### BEGIN SOLUTION
    if expected_speedup(1.0, gamma, c, v) < 1.0:
        return None
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if expected_speedup(middle, gamma, c, v) < 1.0:
            low = middle
        else:
            high = middle
    return high
    ### END SOLUTION


# %% [check] least_alpha points=1

# %% [markdown]
# <details><summary>Hint</summary>
#
# The speedup grows with alpha, so you can halve the interval from 0 to 1 again and again: look at its middle, and keep the
# half in which the speedup passes 1. Twenty steps are plenty.
# </details>

# %% [markdown]
# All four formulas at once. Which of the sliders moves the best draft length, and which the height of the curve? From which
# c on does no alpha help any more? (v grows along a straight line here: an assumption, and the next table will test it.)

# %%
from specdec_lab import widgets

widgets.explore()

# %% [markdown]
# Now the costs of *this* machine: v(n), and c for three models that could draft. The target's first 20 of 30 layers
# (**layer-skip**) share its weights; the target itself is the best draft model there is, and the dearest. (10 to 20
# seconds.)

# %%
from specdec_lab.bench.sweep import costs, drafters_of

GAMMAS = lab.sized((1, 2, 4, 8), (2,))
drafters = drafters_of(pair)


def measure_costs():
    return costs(target, drafters, GAMMAS, lab.sized(15, 1))


measured_costs = lab.experiment("costs", target, measure_costs)
v = {int(n): value for n, value in measured_costs["v"].items()} | {1: 1.0}
c = measured_costs["c"]["draft model"]

choose = lab.yours_or_reference(check.best_gamma)
need = lab.yours_or_reference(check.least_alpha)
offered = {n: v[n] for n in (1, *(gamma + 1 for gamma in GAMMAS))}

print("v:", {n: round(offered[n], 2) for n in sorted(offered)}, "measured")
table = Table(title="c: measured. Best gamma at alpha 0.5, and from where each pays: theory")
table.add_column("drafter", no_wrap=True)
for name in ("c", "best", *[f"gamma {n}" for n in GAMMAS]):
    table.add_column(name)
for name in ("draft model", "layer-skip", "the target itself"):
    cost = measured_costs["c"][name]
    needed = [need(gamma, cost, v) for gamma in GAMMAS]
    shown = ["never" if one is None else f"from {one:.2f}" for one in needed]
    table.add_row(name, f"{cost:.3f}", str(choose(0.5, cost, offered)), *shown)
show(table)

# %% [markdown]
# This table was made without decoding a single token, and it already rules things out.
#
# Does v grow evenly on your machine? It need not: how a product of matrices is computed depends on how many rows it has, and
# a small number of rows may be worse off than a larger one. Of two machines that this was tried on, both in float32, one had
# v(3) = 1.1 and v(5) = 1.4, the other 2.0 and 1.4 to 1.6 (measured). That is why v is measured and not assumed.
#
# ## A fair race
#
# A speedup is a ratio of two times, and there are many ways to get it wrong without noticing. You met some in the
# first notebook: no warm-up, a clock read too early, the mean of runs of which one was disturbed. Three more come with
# decoding:
#
# - **The prompt.** Drafts do not make its reading any faster (the draft model has to read it, too). Left in, it pulls every
#   ratio towards 1, the more the shorter the text.
# - **Drift.** A processor that gets warm, or a neighbour that wakes up, slows down whatever runs *then*. So the two must
#   **take turns**, and be compared within a turn.
# - **The opponent.** The ratio is to plain decoding *with* a cache, by the same library. Anything else flatters.

# %% [task] paired_speedup title="The race" difficulty=3 minutes=25
# Write it. `clock` and `synchronize` are arguments again, so that the check can hand in a device of its own. Which of the
# two goes first in a turn is up to you.


# %% [exercise] paired_speedup
def paired_speedup(plain, drafted, turns, clock, synchronize):
    """How many times as fast as plain decoding: the median over turns.

    plain, drafted: calling one starts a run and gives an iterator over its rounds. A round's work is
        done when the iterator is asked for it; what it gives is how many tokens the round emitted.
        The first round reads the prompt as well.
    turns: how many turns are timed. In each, both run to their end, one right after the other.
        Before the first, both run once, untimed.
    clock: gives the time in seconds.
    synchronize: waits until the device has finished everything.

    A run's pace is seconds per token over all rounds *but the first*. A turn's speedup is the plain
    run's pace over the drafted run's.

    Example: plain rounds of 1 token take 0.04 s each, drafted rounds of 3 tokens 0.06 s: the
    pace is 0.04 and 0.02, the speedup 2.
    """
    ### BEGIN SOLUTION
    from statistics import median

    def pace(start):
        rounds = start()
        next(rounds)
        synchronize()
        started = clock()
        tokens = sum(rounds)
        synchronize()
        return (clock() - started) / tokens

    pace(plain), pace(drafted)
    return median(pace(plain) / pace(drafted) for _ in range(turns))
    ### END SOLUTION


# %% [check] paired_speedup points=1

# %% [hidden check] paired_speedup points=2 seed=1405

# %% [markdown]
# <details><summary>Hint</summary>
#
# Write a function for the pace of *one* run first: start it, take its first round with `next`, wait for the device, read the
# clock, take the rest, wait, read the clock.
# </details>

# %% [markdown]
# A first race, on the real pair, with your stopwatch. (About 15 seconds.)

# %%
race = lab.yours_or_reference(check.paired_speedup)
chat = [{"role": "user", "content": SIX_KINDS["conversation"][0]}]
ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
budget = lab.sized(24, 6)


def plain():
    return (len(one.tokens) for one in autoregressive(target, ids, max_new_tokens=budget))


def drafted_by(drafter, gamma):
    def drafted():
        rounds = speculative(target, drafter, ids, gamma=gamma, max_new_tokens=budget)
        return (len(one.tokens) for one in rounds)

    return drafted


def measure_race(drafter, gamma):
    contender = drafted_by(drafter, gamma)
    return race(plain, contender, lab.sized(5, 1), time.perf_counter, target.synchronize)


ratio = measure_race(drafters["draft model"], 2)
print(f"{ratio:.2f} times as fast as plain decoding (measured, one prompt, {budget} tokens, gamma 2)")

# %% [markdown]
# One prompt is an anecdote, as one run was. So now a whole sweep: three prompts, four draft lengths, and six drafters
# of very different quality and cost:
#
# | drafter | what it is |
# |---|---|
# | n-gram | looks up what followed the last few tokens before; costs nothing |
# | draft model | two layers, trained to imitate the target |
# | draft model, 10% trained | the same, as it was after a tenth of its training |
# | draft model, 50% noise | every other token is drawn from all 49,152, blindly |
# | layer-skip | the target's first 20 layers of 30, untrained for the job |
# | the target itself | never wrong |

# %% [task] predictions title="What do you expect?" difficulty=1 minutes=5
# For the trained **draft model**: at which of the draft lengths 1, 2, 4 and 8 will it be fastest, and how fast, over plain
# decoding? You have c and v of this machine. What you do not have is alpha; in notebook 3 you saw it along a text.

# %% [exercise] predictions
predictions = {"gamma": None, "speedup": None}  # such as 4 and 2.5
### BEGIN SOLUTION
predictions = {"gamma": 4, "speedup": 1.3}
### END SOLUTION

# %% [check] predictions points=1

# %% [markdown]
# The sweep; greedy, so that all write the same text. It keeps most of your race's rules: warmed up, the prompt left out, and
# on each prompt one setting after the other, with plain decoding again after every eighth. But 24 settings take their time,
# so each runs only **once a prompt** (the last three drafters on one prompt only), and its speedup is the mean plain time over
# its mean time. That is coarser than five turns; how much coarser, you will see. (About two minutes. If you stop it, nothing
# is kept.)

# %%
KINDS = lab.sized(("conversation", "summarising", "questions"), ("questions",))


def measure_sweep():
    prompts = {kind: SIX_KINDS[kind][0] for kind in KINDS}
    return lesson.sweep(pair, prompts, GAMMAS, budget, measured_costs)


sweep = lab.experiment("sweep", target, measure_sweep, predicted=lab.filled(predictions))
runs = {(run["drafter"], run["gamma"]): run for run in sweep.get("runs", [])}


def promised(run):
    """What theory says for a run's alpha, c and v; None where one of them is not known."""
    if run["alpha"] is None or run["c"] is None:
        return None
    return trusted_speedup(run["alpha"], run["gamma"], run["c"], {run["gamma"] + 1: run["v"]})


plots.promises(sweep, {key: promised(run) for key, run in runs.items()})

# %% [markdown]
# The dotted lines use the alpha that *this* sweep measured (and c and v from above), so they are not quite a prediction; what
# they test is the formula. The noisy draft has none: it drafts anew behind each spoiled token, so it has no c to speak of. All
# of it in numbers:


# %%
def cell(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


title = "measured, greedy; theory from this alpha, c and v"
table = Table(title=title, box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
table.add_column("drafter", no_wrap=True)
for name in ("gamma", "alpha", "c", "v", "tokens", "plain\nms", "drafted\nms", "speedup", "theory"):
    table.add_column(name, justify="right")
for run in runs.values():
    table.add_row(
        run["drafter"],
        str(run["gamma"]),
        cell(run["alpha"]),
        cell(run["c"], 3),
        cell(run["v"]),
        cell(run["tokens_per_round"]),
        cell(run["plain_ms"], 1),
        cell(run["drafted_ms"], 1),
        cell(run["speedup"]),
        cell(promised(run)),
    )
show(table)
best = max(runs.values(), key=lambda run: run["speedup"], default=None)
if best and best["alpha"] is not None:
    even = trusted_tokens(best["alpha"], best["gamma"])
    print(
        f"{best['drafter']}, gamma {best['gamma']}: {best['tokens_per_round']:.2f} tokens a round (measured);"
    )
    print(f"    an alpha of {best['alpha']:.2f} at all places makes {even:.2f} (theory)")

# %% [markdown]
# Your points on the curve that you know. Choose a drafter in the menu, and its alpha, c and v become the sliders'. If its
# curve runs past its points: how much of that is the straight line that v is not, and what else would you have to change?

# %%
widgets.explore(sweep)

# %% [markdown]
# ## Explain the gap
#
# Where a marker lies off its dotted line, one of the two halves of the formula was wrong: the **tokens** of a round, or its
# **time**. For the time, here is a round taken apart, promised and measured, in steps of plain decoding:

# %%
plots.round_split(
    sweep,
    lab.sized(4, 2),
    ["n-gram", "draft model", "draft model, 10% trained", "layer-skip", "the target itself"],
)

# %% [markdown]
# Look for these four:
#
# - **Shorter drafts.** Look-up finds nothing in many rounds, and then makes one token in one pass; and near the end of the
#   24 tokens, every draft is cut short. Theory takes every round to have gamma drafted tokens, so it promises too many
#   tokens at too high a cost, most of all for *n-gram*. (alpha counts only what was drafted.)
# - **Acceptance is not the same everywhere.** A draft that is right in the middle of a phrase goes on being right, and where
#   a new thought begins, everything fails. In easy places more of a draft gets judged, so they weigh more in alpha than in
#   the tokens. Say every other round keeps both of two drafted tokens, and the rest keep none: that makes 3 and 1, on
#   average 2 tokens. But three tokens were judged and two kept: alpha is 0.67, and theory makes 1 + 0.67 + 0.44 = 2.11 of it.
# - **The costs.** c and v were timed minutes before, by themselves. In the sweep they may be others: compare the pale bars
#   with the saturated ones. What is neither drafting nor verifying (the loop, the verdicts) is nothing in theory and less
#   than one percent of a step in our own run: too thin to be seen.
# - **Noise.** A run of 24 tokens takes a second or so. Any difference of a few percent may be the neighbour's music.
#
# And what is *not* a gap: the drafter that is never wrong gains nothing. With alpha = 1 it makes gamma + 1 tokens a
# round, and pays for gamma steps of the target and a verifying pass. **Quality is worth only what it costs less.** It is
# also your **control**: there is nothing to gain, so its distance from its own theory, either way, is how far you can trust the
# others.
#
# And how much is *one* run worth? You are about to look at the best of 24 settings, and the best of many noisy numbers is
# flattered: luck had a say in the choice. So it races again, with your stopwatch, in five turns, and the control with it. See
# also what matters more: another run, or another prompt. (About half a minute.)


# %%
def in_the_sweep(name, gamma):
    """The speedup of a single run, on the prompt of the race; it is the sweep's first."""
    here = sweep["prompts"][0]
    its = [run for run in here["runs"] if (run["drafter"], run["gamma"]) == (name, gamma)]
    return here["plain"]["seconds_per_token"] / its[0]["seconds_per_token"]


if best:
    for name in (best["drafter"], "the target itself"):
        again = measure_race(drafters[name], best["gamma"])
        once, pooled = in_the_sweep(name, best["gamma"]), runs[name, best["gamma"]]["speedup"]
        print(f"{name}, gamma {best['gamma']}: {pooled:.2f} in the sweep. On this one prompt")
        print(f"    {once:.2f} in the sweep's one run, {again:.2f} in five turns (measured)")

# %% [markdown]
# Beside your numbers, those that were measured for this course, over 36 prompts of six kinds (the control, layer-skip and
# noise over six), on another machine and in bfloat16, where verifying is nearly free: the files are in
# `benchmarks/results/full`, the report is [RESULTS.md](../../benchmarks/RESULTS.md). Their control comes out at
# 1.02 to 1.09, above 1: plain steps were a little slower in that sweep than where c and v were timed, and every speedup in it
# profits from that.

# %%
from specdec_lab.bench.groups import by_length, groups_of

theirs = committed("sweep")
table = Table("drafter", *[f"gamma {n}" for n in GAMMAS], title="speedup, measured: yours / committed")
for name in dict.fromkeys(drafter for drafter, _ in runs):
    groups = [one for one in groups_of(theirs) if one.drafter == name and one.temperature == 0.0]
    pooled = by_length(groups)
    both = [(runs[name, gamma]["speedup"], pooled[gamma].speedup.value) for gamma in GAMMAS]
    table.add_row(name, *[f"{mine:.2f} / {other:.2f}" for mine, other in both])
show(table)
made = theirs.provenance
print(f"committed: {made['hardware']}, {made['dtype']}, {made['threads']} threads, {made['date'][:10]}")

# %% [markdown]
# ## What a reader feels
#
# Milliseconds per token are what a bill is made of. Somebody who reads along sees something else: nothing for a while,
# then words that come in steps. Three numbers describe it. The **time to the first token** is mostly the prompt's, and drafting
# makes it longer: the draft model reads the prompt as well, and the first draft has to be written. The **p50** and **p95** of the
# waits say how long it usually takes until something more appears, and how long at least in the worst twentieth of cases.
#
# Here is one run of each, from its start. A black dot is a token that appears.

# %%
turn = {"max_new_tokens": lab.sized(40, 6)}
seen_drafted = pair.generate(ids, drafter=drafters["draft model"], gamma=4, **turn)
seen_plain = pair.generate(ids, drafter=None, **turn)
plots.timeline(seen_drafted, seen_plain)

# %% [task] latency title="Latency" difficulty=2 minutes=10
# From the rounds of a run, what its reader has to wait.


# %% [exercise] latency
def latency(rounds):
    """What somebody who reads along has to wait, in seconds.

    rounds: list of (tokens, seconds) of one run, in order; at least three. A round's tokens appear
        together, when the round is over. The first round reads the prompt as well.
    Returns a dict:
        "first": the time until the first tokens appear;
        "p50", "p95": of the waits from one appearance to the next (numpy.percentile of them);
        "per_token": the seconds for one token, over all rounds but the first.

    Example: [(1, 0.5), (2, 0.05), (3, 0.07), (1, 0.06)] gives first 0.5, p50 0.06,
    p95 0.069 and per_token 0.03.
    """
    ### BEGIN SOLUTION
    import numpy as np

    waits = [seconds for _, seconds in rounds[1:]]
    return {
        "first": rounds[0][1],
        "p50": float(np.percentile(waits, 50)),
        "p95": float(np.percentile(waits, 95)),
        "per_token": sum(waits) / sum(tokens for tokens, _ in rounds[1:]),
    }
    ### END SOLUTION


# %% [check] latency points=1

# %% [markdown]
# Three turns on one prompt; the waits of all turns together, because the p95 of twenty waits is hardly less than the longest
# one. Add the setting that you would recommend, if it is not there. (About half a minute.)

# %%
import statistics

wait = lab.yours_or_reference(check.latency)
settings = [("draft model", 2), ("draft model", 4), ("draft model", 8), ("n-gram", 8)]
if best and (best["drafter"], best["gamma"]) not in settings:
    settings.append((best["drafter"], best["gamma"]))


def measure_waits():
    return lesson.waits(pair, ids, settings, lab.sized(40, 6), lab.sized(3, 1))


waits = lab.experiment("waits", target, measure_waits)
table = Table("decoding", "first", "p50", "p95", "per token", title="milliseconds, measured, greedy")
for name, turns in waits["ways"].items():
    first = statistics.median(turn[0][1] for turn in turns)
    felt = wait([(turns[0][0][0], first), *[one for turn in turns for one in turn[1:]]])
    table.add_row(name, *[f"{1000 * felt[key]:.0f}" for key in ("first", "p50", "p95", "per_token")])
show(table)

# %% [markdown]
# With a long draft the text comes in larger and rarer lumps: each wait is *longer* than in plain decoding, even where the
# mean time per token is shorter. Which of them matters depends on the product. A voice assistant needs the first sentence;
# an agent that reads the whole answer needs the last token; a chat needs no wait above some threshold, so its number is
# the p95. A speedup without the p95 beside it is half a measurement. And a server has many requests: some with text
# that is easy to draft and some without, and the p95 *over requests* is made of the latter.
#
# ## Where it loses
#
# Five settings, each measured against plain decoding in the same setting:
#
# - **a**: a weak draft: the draft model after 1 % of its training, gamma = 8
# - **b**: a costly draft: the target drafts for itself, gamma = 4
# - **c**: a small target: the draft model as the *target*, one of its two layers as its drafter, gamma = 2
# - **d**: a large batch: 16 sequences decoded together, the usual draft model, gamma = 4
# - **e**: a long context: the usual draft model behind about 1,200 tokens, gamma = 4

# %% [task] slower title="Where will it lose?" difficulty=2 minutes=8
# Which of them is the slowest, compared with plain decoding? By how much (a speedup below 1)? And why: which of alpha, c
# and v is to blame? A sentence of eight words or more.

# %% [exercise] slower
slower = {"setting": None, "speedup": None, "because": None}  # such as "a", 0.9, "..."
### BEGIN SOLUTION
slower = {
    "setting": "c",
    "speedup": 0.6,
    "because": "half of the target's layers draft, so c is about one half: two drafted tokens cost a whole "
    "step, and an untrained early exit has a low alpha, so it gets little for it",
}
### END SOLUTION

# %% [check] slower points=1

# %% [markdown]
# Measured, and predicted from an alpha taken on *other* prompts and from c and v timed in that very setting; the usual case
# (short chats, gamma = 2) beside them. (About a minute.)

# %%
from tqdm.auto import tqdm

from specdec_lab.bench.slower import USUAL, cases_of, one_case

SETTINGS = {
    USUAL: "",
    "a weak draft": "a",
    "a costly draft": "b",
    "a small target": "c",
    "a large batch": "d",
    "a long context": "e",
}


def measure_slower():
    cases = [
        case for case in cases_of(pair) if case.key in lab.sized(tuple(SETTINGS), ("a costly draft",))
    ]
    size = {"budget": lab.sized(16, 4), "most": lab.sized(2, 1), "repeats": lab.sized(5, 1)}
    rows = []
    for case in tqdm(cases, desc="measuring", leave=False):
        usual = next((row for row in rows if row["key"] == USUAL), None)
        rows.append({"key": case.key, **one_case(case, **size, usual=usual)})
    return {"rows": rows}


lost = lab.experiment("slower", target, measure_slower, predicted=lab.filled(slower))
if lost:
    theirs = {row["key"]: row["speedup"] for row in committed("slower").rows}
    table = Table("", "setting", "alpha", "c", "v", "predicted", "measured", "to blame", "committed")
    table.caption = "alpha, c, v, measured and committed: measured; predicted and to blame: theory"
    for row in sorted(lost["rows"], key=lambda row: SETTINGS[row["key"]]):
        table.add_row(
            SETTINGS[row["key"]],
            row["key"],
            *[cell(row[name]) for name in ("alpha", "c", "v", "predicted", "speedup")],
            row["because"] or "",
            cell(theirs[row["key"]]),
        )
    show(table)
    said = lost["predicted"]
if lost and said:
    print(f"You said {said['setting']}, at {said['speedup']}: {said['because']}")

# %% [markdown]
# *To blame* is the one of alpha, c and v that would raise the prediction the most, were it what it is in the usual case. And
# where prediction and measurement part the most, alpha is the first to be suspected: it was taken on two other prompts (for
# **e** on one), 16 tokens each.
#
# - **a, e**: few tokens are kept, and a draft of 8 or 4 costs the same as if all were. Behind a long context v grows as well,
#   because each token of the pass reads the whole cache.
# - **b, c**: the draft costs too much. In setting **c**, half of a two-layer model takes more than half of its time: both end
#   in the same output layer, which has as many weights as two of the others. That makes (1 + 2) / (2 + 2) = 0.75 (theory).
# - **d**: look at its v. With one sequence, the arithmetic of the five tokens that a pass verifies fits (nearly) into the
#   time in which the weights arrive anyway: that was the gap of notebook 1. Sixteen sequences have filled it already, and a
#   draft's tokens have to queue. **Speculation spends idle hardware; a busy server has none.** That is why serving systems
#   switch it off, or draft less, as the load grows.
#
# ## Other people's speedups
#
# | who | what | speedup | kind |
# |---|---|---|---|
# | Leviathan et al. 2023 | T5-XXL (11 billion parameters), small T5 models draft | 2 to 3 | cited: arXiv 2211.17192, abstract |
# | Chen et al. 2023 | Chinchilla (70 billion), distributed over several chips, a 4-billion model drafts | 2 to 2.5 | cited: arXiv 2302.01318, abstract |
# | this course | 135 million parameters, two CPU cores, bfloat16, a two-layer draft | 1.33 greedy, 1.45 at temperature 1 (gamma 2) | measured: `benchmarks/RESULTS.md` |
# | you | the same models, your machine | your sweep's best | measured: `results/sweep.json` |
#
# Larger targets gain more, and that is no accident: next to 70 billion parameters a good draft model is small (c of a few
# percent), and a chip with that much arithmetic has a flat v. Our target is so small that *nothing* is much smaller. None of
# these numbers carries over to another pair, text or machine. What carries over is how to predict one.
#
# ## Not the same as thinking longer
#
# Two things are done with spare computing time. **Thinking longer** (long chains of thought, many samples and a vote, search)
# spends it to get *another, better answer*. **Speculative decoding** spends it to get *the same answer sooner*: the
# distribution of the text does not change, as you proved in notebook 3 under its assumptions (q is what was drawn from,
# and p what the pass computed). They go together well: long thoughts are many tokens, and much of them is
# easy to draft. But they are judged differently. Ask of the first whether the answers got better, of the second
# whether they stayed the same.

# %% [task] my_numbers title="The numbers you defend" difficulty=1 minutes=8
# Choose the drafter and draft length that you would recommend for *this* pair on *this* machine (a setting of the sweep for
# which theory says something), and write down its numbers from the sweep's table, the drafter's name as it stands there. If
# you would not draft at all, take the setting that comes closest: a "no" needs numbers, too. `v` is that of the verifying
# pass, v(gamma + 1); `predicted` is the column *theory*; the times are milliseconds for one token.
#
# The check looks at whether they agree with each other, and with the measurement that is saved in `results/sweep.json`.

# %% [exercise] my_numbers
my_numbers = {
    "drafter": None,  # its name in the table
    "gamma": None,
    "alpha": None,
    "c": None,
    "v": None,
    "predicted": None,
    "plain_ms": None,
    "drafted_ms": None,
    "speedup": None,
}
### BEGIN SOLUTION
mine = [run for run in runs.values() if run["drafter"] == "draft model"]  # look-up is no help in chats
chosen = max(mine, key=lambda run: run["speedup"])
my_numbers = {key: chosen[key] for key in my_numbers if key != "predicted"}
my_numbers["predicted"] = promised(chosen)
### END SOLUTION

# %% [check] my_numbers points=1

# %% [task] recommendation title="What do you recommend?" difficulty=3 minutes=25
# Somebody runs this pair on a machine like yours, for chats with one person at a time. In eight to twelve sentences:
#
# - Should they use speculative decoding, with which drafter and which draft length? Or not?
# - Which numbers say so? Give the speedup, the acceptance and the p95 of the waits beside that of plain decoding, and of each
#   number whether it is measured, theory or cited.
# - How far do theory (its column) and your measurement lie apart for this setting, and which of the gaps above explains how
#   much of it? And your own guess from before the sweep?
# - What would change your mind: which other target, machine, text or load?

# %% [written] recommendation points=3
### BEGIN SOLUTION
# Use the trained draft model with four tokens a draft, and prompt look-up instead where the answer repeats its prompt. In my
# sweep (float32, two cores, three prompts, greedy) the draft model at gamma 4 was 1.18 times as fast as plain cached decoding
# (measured), and on the chat of the race 1.90 times (measured, five turns). It kept 60 % of what it drafted (measured), with
# c = 0.13 and v(5) = 1.39 (measured apart), from which theory promises 1.21 (theory). The waits become longer, their p50 from
# 39 to 74 ms and their p95 from 43 to 79 ms (measured), while a token takes 27 instead of 40 ms; somebody who reads a chat will
# hardly see that it comes in lumps. Two tokens a draft came to 0.85 and eight to 0.99 (measured): on this machine a pass over
# three tokens is dearer than one over five, v(3) = 2.07. I had said 1.3. Theory and measurement agree here, but two errors
# cancel: a round made 2.17 tokens instead of the 2.29 that one alpha for all places promises, and it took 1.84 steps
# (2.17 / 1.18) instead of 4 x 0.129 + 1.39 = 1.91. The control (the target as its own draft) came to 0.82 where theory says
# 0.93, so differences of a tenth mean little. I would change my mind for a batch of several texts (0.71 at 16, measured; v
# grows), choose another gamma for a machine with another v, and expect more of a larger target with the same draft (c
# falls) and of text that repeats itself (alpha of look-up rises). Published speedups of 2 to 3 (cited) are of such larger targets.
#
# *Rubric, 3 points. 1 point: a clear recommendation with drafter, draft length and speedup from their own saved numbers, each
# marked measured, theory or cited, the p95 among them. 1 point: the gap between prediction and measurement, put down to alpha,
# c, v or the rest with a number. 1 point: at least two conditions under which the recommendation would change, each with the
# quantity (alpha, c, v, batch) that changes. A well-founded "do not use it" earns full points.*
### END SOLUTION

# %% [markdown]
# ## The key insight
#
# **The speedup is tokens per round over cost per round. Acceptance decides the first, c and v the second, and all can be
# measured before anything is built. It is spare hardware that buys the speed: where there is none, drafting loses.**

# %% [quiz] points=5
# 1. alpha is 0.5. How many tokens does a round emit at most, on average, however long the draft?
# + 2 | Yes: 1 + 1/2 + 1/4 + ... Longer drafts cost more and bring next to nothing.
# - 1.5 | That is gamma = 1 already; a second drafted token adds a quarter.
# - gamma + 1 | Only if every token is kept.
# - There is no limit | Each further token is needed half as often as the one before.
# 2. A draft model has c = 0.5. v(n) is 1 for all n. gamma is 2, and alpha is 0.5. What happens?
# - Twice as fast | The tokens of a round are 1.75, and it costs 2 x 0.5 + 1 = 2.
# - 1.75 times as fast | That would be so if drafting cost nothing.
# + A little slower than plain decoding | Yes: 1.75 tokens in the time of 2 steps, a speedup of 0.875.
# - It depends on the prompt's length | Not in this formula: everything is counted in steps.
# 3. The target drafts for itself, alpha = 1. Why is it not faster?
# - Because some tokens are rejected | None is, up to rounding.
# + Because each drafted token costs a whole step of the target | Yes: c = 1. gamma steps for drafting and one pass to verify what was known already.
# - Because its cache is too large | It has two caches, but that is not what costs the time.
# - Because the bonus token is missing | It gets one in every round.
# 4. A service has 16 requests in every batch. Speculation made a single request 1.4 times as fast. What do you expect?
# - 1.4, as before | v(n) was measured with idle arithmetic. A batch has used it up.
# - More: 16 texts accept 16 times as many tokens | They also draft and verify 16 times as many.
# + Less, perhaps below 1: verifying is not nearly free any more | Yes. Measure c and v in the batch, and predict again.
# - Exactly 1 | It can be slower than plain decoding, as you measured or saw in the committed results.
# 5. "Our assistant is three times as fast with speculation, and its answers got better, too." What do you make of it?
# - Well possible: drafts bring new ideas | What the target would not say is rejected.
# + The first may be true; the second cannot come from exact speculation | Yes: the answers' distribution is the target's own. Somebody changed something else, or the decoder is not exact.
# - Both follow from a higher acceptance | Acceptance decides the speed only.
# - The second proves the first | Quality says nothing about time.

# %% [markdown]
# ## What was claimed here
#
# | claim | kind | scope |
# |---|---|---|
# | tokens per round, speedup, best gamma, least alpha | theory | Leviathan et al. 2023, equation 1 and theorem 3.8, with v in it; the same alpha at every place |
# | c, v, alpha, speedups, waits | measured | your machine, SmolLM2-135M-Instruct in float32 (or what you chose), a few prompts, greedy |
# | the committed columns | measured | two CPU cores, bfloat16; `benchmarks/RESULTS.md` has conditions and intervals |
# | speedups of 2 to 3 | cited | the abstracts of the two papers; other models and hardware |
# | a busy machine leaves less to gain | stable concept | wherever decoding is memory-bound alone and compute-bound in a batch |
#
# Sources: Leviathan, Kalman, Matias 2023 ([arXiv 2211.17192](https://arxiv.org/abs/2211.17192)); Chen et al. 2023 ([arXiv
# 2302.01318](https://arxiv.org/abs/2302.01318)); kinds of prompts after Xia et al. 2024, Spec-Bench ([arXiv
# 2401.07851](https://arxiv.org/abs/2401.07851)). Verified 2026-11-30; next review 2027-11.

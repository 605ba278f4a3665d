# %% [markdown]
# # Start here: a faster answer that is the same answer
#
# **You build** nothing yet: you watch. **Time:** about 15 minutes. **The question:** how can a model write several
# tokens for the price of one, and still write what it would have written anyway?
#
# A language model writes one token at a time, and for each token it reads all of its weights. **Speculative
# decoding** makes it read them less often. Something cheap *drafts* a few tokens, and the model, the *target*,
# checks them all in one pass. What it agrees with is kept; the first disagreement is replaced.
#
# The output is the target's own. Only the time changes. If the likeliest token is always taken (*greedy* decoding, as on
# this page), the result is the same token for token; if tokens are drawn at random, they come with exactly the same probabilities.
#
# Run each cell with Shift-Enter. All words of the course are in the [glossary](../../docs/glossary.md).

# %% [markdown]
# ## Is everything here?
#
# If a line says **NO**, it also says what to do.

# %%
from rich import print as show

from specdec_lab.environment import check_environment, environment_table

show(environment_table(check_environment()))

# %% [markdown]
# ## The idea, without a model
#
# Below, a made-up target knows one sentence, and a made-up drafter proposes four tokens at a time. **This run is
# simulated**: the loop, the checks and the counts are real, but no model is involved and no time is measured.

# %%
from specdec_lab import widgets

widgets.watch()

# %% [markdown]
# Go to its start (**|‹**) and step through it (**›**), or let it play. Point at a token, and it says where it came from.
#
# In round 1 all four drafted tokens were right. The target has read all of them in its one pass, so it also says what
# comes next: a fifth token for nothing, the *bonus*. In round 2 three were right. The fourth was not, and the target's own
# token takes its place: the *replacement*.
#
# Nine tokens, two passes. What that would be worth is written below the player, twice. *Counted* is this run: 9 tokens at
# the cost of 2 target passes and 8 drafted tokens at 0.15 of a pass each, 9 / 3.2 = 2.81. *Theory* asks what to expect on
# average when each drafted token is right with probability 7/8, and gets 2.44 (Leviathan et al. 2023, theorem 3.8). A run
# may be luckier than the average. Move the two sliders: when is it no gain any more?
#
# Both take a pass of the target to cost the same however many tokens it checks. On a real computer it does not, quite.

# %% [markdown]
# ## The same with a real model
#
# SmolLM2-135M-Instruct, on your computer. Beside it, a *draft model* that was trained to say what it would say. It has
# two layers where the target has thirty, knows a quarter of the target's tokens, and takes about a tenth of the time
# ([model card](../../specdec_lab/draft/MODEL_CARD.md)). Loading takes a few seconds, and so do the two runs, one with drafts
# and one by the target alone.

# %%
from specdec_lab import lab, load_pair

pair = load_pair("embedded")
widgets.watch(pair, "Why is the sky blue?", max_new_tokens=lab.sized(40, 8))

# %% [markdown]
# Some drafts are taken whole, many fail at their first token: a tenth of the time does not buy the same mind. But every
# round is one pass of the target, and many rounds give two or three tokens. And what comes out is the target's answer,
# however wrong the draft: the last line compares the two runs token by token. **Speculation is never wrong, but it is
# not always faster.**
#
# Try it: another prompt, a longer draft, another drafter, then **Run again**. (Is *speedup, measured* below 1? Then a pass
# over three tokens is dear on your computer; try a gamma of 4. Notebook 4 gets to the bottom of it. And with a *temperature*
# above 0 the tokens are drawn at random: then the bars below the text show what p, q and the residual were, of which notebook
# 3 tells more.)
#
# A drafter need not be a model. The simplest there is looks for where the last few tokens stood before, and
# proposes what followed there (*prompt look-up*). It costs next to nothing. Where a text repeats itself, that is hard to beat:

# %%
from specdec_lab import plots
from specdec_lab.demo import run_demo
from specdec_lab.terminal import demo_table

prompt = (
    "The river rises in the hills. In spring it floods the meadows, and the farmers move their sheep "
    "to higher ground. In summer children swim below the bridge.\n\n"
    "The same text once more, without any change:\n\nThe river"
)
size = lab.sized(48, 8)
demo = run_demo(
    pair, prompt, drafter=pair.drafter("ngram"), gamma=10, max_new_tokens=size, progress=True
)

widgets.watch(demo.speculative, decode=pair.tokenizer.decode, baseline=demo.baseline)

# %%
show(demo_table(demo))

# %% [markdown]
# It copies the text, ten drafted tokens at a time; then it goes on in its own words, and the drafter has little to offer.
# Whatever the drafter did, the text is the target's own: the last line of the table compares the tokens of two runs that
# your computer just made on the same prompt, one with the drafter and one by the target alone.
#
# Read the rest of the table from the top. *Target forwards for tokens out* is the point of it all: fewer passes than
# tokens. *Block efficiency* is their ratio. *Speedup* compares the two runs' tokens per second. Both keep what the
# model has computed for earlier tokens (its *key-value cache*), so neither reads the text anew for each token.
#
# One more look, at the cost of a pass. Both runs to scale, in the time that they took; each black dot is a token that came out.

# %%
plots.timeline(demo.speculative, demo.baseline)

# %% [markdown]
# A pass over eleven tokens takes longer than a pass over one, but far less than eleven times as long. That gap is what
# speculative decoding spends. Where it comes from is the subject of the next notebook.
#
# ## The key insight
#
# **A model can check a whole draft in one pass, because it scores every token it reads. So what counts is not how many
# tokens are written, but how many passes it takes to write them.**

# %% [quiz] points=0
# 1. What does the target do with a draft of four tokens?
# - It runs four passes, one for each token | That would save nothing. The whole draft goes through in one pass, which says what should follow behind each of its tokens.
# + It reads all four in one pass and compares | Yes: one pass gives the target's opinion on every drafted token at once.
# - It trusts them if the drafter is good | It trusts nothing. Every token that comes out is one that the target would have written itself.
# 2. What happens to a drafted token that comes after the first rejected one?
# - It is kept if the target agrees with it | Agreement means nothing there: it was proposed, and judged, behind a token that is no longer in the text.
# + It is dropped | Yes. It was proposed behind a text that will not exist.
# - It is tried again in the next round | The drafter starts afresh behind the replacement. It may propose the same token again, but nobody remembers it.
# 3. Where does the bonus token come from?
# + From the target, which has read the whole draft when all of it was accepted | Yes: so it also says what follows the last drafted token.
# - From the drafter, which proposes one token more | The drafter's tokens have to be verified. The bonus needs no verification, since the target said it.
# - From an extra pass of the target | It costs no extra pass; that is why it is a bonus.
# 4. With greedy decoding, how does the text differ from the target's own?
# - It is a little worse where the draft was wrong | A wrong drafted token never comes out; the target's own token does.
# - It is the drafter's text, corrected now and then | It may look like that, but every token that comes out is the target's choice.
# + Not at all | Yes. The drafter decides how fast it goes, never what comes out.
# 5. The drafter is wrong every time. What happens?
# - The text is wrong | The text never depends on the drafter.
# - Nothing comes out | Each round still gives one token: the replacement.
# + Each pass gives one token, as without it, and the time for drafting is lost | Yes. Speculation is never wrong, but it can be slower.

# %% [markdown]
# ## What was claimed here
#
# | claim | kind | scope |
# |---|---|---|
# | greedy speculation gives the target's own tokens | stable concept | any target and drafter, short of exact near ties in rounding; here compared token for token in float32 |
# | 9 tokens in 2 passes, 2.81x | simulated | the made-up sentence; costs assumed |
# | 2.44x | theory | Leviathan et al. 2023, theorem 3.8, with acceptance 7/8, drafts of 4, a drafted token at 0.15 of a pass |
# | the draft model: a tenth of the target's time | measured | its model card; two CPU cores |
# | the counts, times and speedup of the real runs | measured | your computer, just now, one run each: a repeat differs |
#
# Sources: Leviathan, Kalman, Matias 2023 ([arXiv 2211.17192](https://arxiv.org/abs/2211.17192)); Chen et al. 2023
# ([arXiv 2302.01318](https://arxiv.org/abs/2302.01318)). Verified 2026-11-30; next review 2027-11.

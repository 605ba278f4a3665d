# %% [markdown]
# # The views, one by one
#
# What the course and the library show runs with, each once. In JupyterLab, Notebook and VS Code they are live: run this
# notebook there (`jupyter lab docs/views.ipynb`; about a minute). Elsewhere, as on GitHub, what you see is the static face that
# each of them leaves behind. Every view says what kind of numbers it shows: **measured**, **simulated** or **theory**.
#
# (A notebook that is opened again keeps its players. Sliders and buttons come back when their cell is run.)
#
# All of them are in `specdec_lab.widgets`, the pictures in `specdec_lab.plots`. They show what was recorded (`Round`,
# `Generation`, an audit, a sweep) and compute nothing of their own.

# %%
from specdec_lab import Sampling, lab, load_pair, plots, widgets

pair = load_pair("embedded")
length = lab.sized(40, 8)

# %% [markdown]
# ## The stream player
#
# `watch()` explains the idea on a scripted run, without any model.
#
# Buttons, slider or arrow keys step through the rounds; Space plays. Tokens are buttons, too: point at one, or walk over them
# with Tab and the arrow keys, and the box below says why it is there.

# %%
widgets.watch()

# %% [markdown]
# `watch(pair, prompt)` decodes on the real pair, with drafts and without, and can run again with other settings: a round at a
# time, so that the notebook stays usable and the run can be cancelled.

# %%
widgets.watch(pair, "Why is the sky blue?", gamma=4, temperature=0.8, seed=3, max_new_tokens=length)

# %% [markdown]
# `watch(generation)` shows a run that is there already. With `trace=True` it was recorded with p, q and the residual.

# %%
request = "Repeat this text exactly as it is: Cut the onions into thin rings and fry them until they are brown."
drafted = pair.generate(
    request, chat=True, drafter="ngram", gamma=10, max_new_tokens=length, trace=True, progress=True
)
plain = pair.generate(request, chat=True, drafter=None, max_new_tokens=length, progress=True)
widgets.watch(drafted, decode=pair.tokenizer.decode, baseline=plain)

# %% [markdown]
# ## The timeline
#
# The same two runs, to scale: lumps against drips.

# %%
plots.timeline(drafted, plain)

# %% [markdown]
# ## The acceptance map
#
# Where does the draft fail? By alpha, at every place of a text that the target draws at temperature 1:

# %%
from specdec_lab import ModelDrafter, audit_positions

positions = audit_positions(
    pair.target,
    ModelDrafter(pair.draft),
    ["Why do cats bring dead mice into the house?"],
    tokenizer=pair.tokenizer,
    chat=True,
    max_new_tokens=length,
    sampling=Sampling(temperature=1.0),
)
widgets.acceptance_map(positions)

# %% [markdown]
# Or by the chance that each drafted token of a run was given:

# %%
sampled = pair.generate(
    "Why do cats bring dead mice into the house?",
    chat=True,
    gamma=4,
    sampling=Sampling(temperature=1.0),
    seed=1,
    max_new_tokens=length,
)
widgets.acceptance_map(sampled, decode=pair.tokenizer.decode)

# %% [markdown]
# ## The audit view
#
# One step of speculative sampling: move p and q, and see that p comes out. "A real position" has p and q of the pair behind a
# prompt.

# %%
widgets.audit_view(pair=pair, prompt="The capital of France is")

# %% [markdown]
# ## The speedup explorer
#
# Theory, to walk through. `explore(sweep)` draws measured points on top: the dict or the file that notebook 04 keeps.

# %%
widgets.explore()

# %% [markdown]
# ## The roofline
#
# What a machine can do, and what a decoding step and a verifying one make of it; here from the committed results. Notebook
# 01 measures it for the machine at hand.

# %%
from specdec_lab.bench.results import committed
from specdec_lab.plots.speed import decode_roofline
from specdec_lab.roofline import ModelShape

shape = ModelShape.of(pair.target.model.config)
decode_roofline(committed("decode"), shape, "float32", committed("verify"))

# %% [markdown]
# ## The quiz
#
# What each notebook ends with. A choice is explained at once and kept in `answers.json` beside the notebook, which is handed
# in with it; letters typed into the notebook win over it.

# %%
widgets.quiz("00_start_here")

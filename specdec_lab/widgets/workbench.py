"""The player over runs of a real pair: what to decode, a button to run it again, and one to cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import ipywidgets

from specdec_lab.decoding import to_the_end
from specdec_lab.pretrained import Pair
from specdec_lab.records import Generation, Round
from specdec_lab.sampling import Sampling
from specdec_lab.text import decoder
from specdec_lab.widgets.live import Live, Message
from specdec_lab.widgets.player import Player
from specdec_lab.widgets.stream import stream
from specdec_lab.widgets.watched import Watched

EXAMPLES = (
    "Why is the sky blue?",
    "Repeat word for word: The river rises in the hills. In spring it floods the meadows.",
    "Write a Python function that adds up the even numbers of a list.",
    "Write a poem of four lines about a lighthouse.",
)
DRAFTERS = {
    "draft model": "model",
    "n-gram (prompt look-up)": "ngram",
    "layer-skip (the target's first layers)": "layerskip",
    "corrupted (30% noise)": "corrupted",
}
PAUSE = 0.01
"""Seconds between two rounds of a re-run, in which the kernel does what else it is asked for."""
WARM_UP = 4
"""Tokens that come before what is measured and are thrown away."""
Steps = Generator[Round, None, tuple[Generation, Generation]]


@dataclass(frozen=True)
class Settings:
    """What a run of the pair is made with."""

    prompt: str
    drafter: str
    gamma: int
    temperature: float
    chat: bool
    max_new_tokens: int
    seed: int

    @property
    def tokens(self) -> int:
        """How many come out at most, of both runs and their warm-ups."""
        return 2 * (WARM_UP + self.max_new_tokens)

    def __post_init__(self) -> None:
        if not isinstance(self.prompt, str) or not self.prompt.strip():
            raise ValueError(f"prompt: got {self.prompt!r}, expected some text")
        if self.gamma < 1:
            raise ValueError(f"gamma: got {self.gamma}, expected 1 or more")
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens: got {self.max_new_tokens}, expected 1 or more")


def steps(pair: Pair, settings: Settings) -> Steps:
    """Decode with drafts, then without, a round at a time.

    A few tokens of each come first and are thrown away: neither is to pay for what happens only once.

    Yields:
        Every round, those of the warm-up as well.

    Returns:
        The speculative run and the plain one, both with their distributions.
    """
    drafter = pair.drafter(settings.drafter)
    options: dict[str, Any] = {
        "gamma": settings.gamma,
        "chat": settings.chat,
        "sampling": Sampling(temperature=settings.temperature),
        "seed": settings.seed,
        "trace": True,
    }
    for one in (drafter, None):
        yield from pair.stepwise(settings.prompt, drafter=one, max_new_tokens=WARM_UP, **options)
    options["max_new_tokens"] = settings.max_new_tokens
    drafted = yield from pair.stepwise(settings.prompt, drafter=drafter, **options)
    plain = yield from pair.stepwise(settings.prompt, drafter=None, **options)
    return drafted, plain


class Workbench(Watched):
    """A pair, a prompt, the controls, and the player over the latest run.

    The first run is made when the object is, with a progress bar. A run asked for by the button goes a
    round at a time on the kernel's own loop: between two rounds the notebook stays usable, and the run
    can be cancelled. The player before stays until there is another.
    """

    def __init__(self, pair: Pair, settings: Settings) -> None:
        self.pair = pair
        self.settings = settings
        self.decode = decoder(pair.tokenizer)
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False
        run = steps(pair, settings)
        self._take(settings, to_the_end(run, settings.tokens, label="with drafts, then without"))

    def _take(self, settings: Settings, made: tuple[Generation, Generation]) -> None:
        self.settings = settings
        self.generation, self.baseline = made
        self.player = Player(
            stream(self.generation, self.decode, self.baseline, remarks=_remarks(made, settings))
        )

    def _controls(self) -> Live:
        self._inputs = inputs = _inputs(self.pair, self.settings)
        self._run = ipywidgets.Button(description="Run again", icon="play", button_style="primary")
        self._cancel = ipywidgets.Button(description="Cancel", icon="stop", disabled=True)
        self._bar = ipywidgets.IntProgress(
            min=0, max=1, layout=ipywidgets.Layout(width="12rem", visibility="hidden")
        )
        self._message = Message()
        self._message.say("Change what you like, then run it again. Nothing runs before.")
        self._run.on_click(self._clicked)
        self._cancel.on_click(lambda _: self._stop())
        examples = inputs["examples"]
        examples.observe(lambda change: setattr(inputs["prompt"], "value", change["new"]), "value")
        rows = [
            ipywidgets.HBox([examples, inputs["chat"]]),
            inputs["prompt"],
            ipywidgets.HBox([inputs["drafter"], inputs["seed"]]),
            ipywidgets.HBox([inputs["gamma"], inputs["temperature"], inputs["max_new_tokens"]]),
            ipywidgets.HBox([self._run, self._cancel, self._bar]),
            self._message,
        ]
        for row in rows:
            if isinstance(row, ipywidgets.HBox):
                row.layout.flex_flow = "row wrap"
        return Live(rows)

    def _clicked(self, _: ipywidgets.Button) -> None:
        with self._message.showing_errors():
            wanted = {name: box.value for name, box in self._inputs.items() if name != "examples"}
            settings = Settings(**wanted)
            self._cancelled = False
            self._busy(True, settings.tokens)
            self._task = asyncio.get_running_loop().create_task(self._run_again(settings))

    def _stop(self) -> None:
        self._cancelled = True

    async def _run_again(self, settings: Settings) -> None:
        with self._message.showing_errors():
            await self._follow(steps(self.pair, settings), settings)
        self._busy(False)

    async def _follow(self, run: Steps, settings: Settings) -> None:
        self._message.say("Decoding, a round at a time: first with drafts, then without.")
        while not self._cancelled:
            try:
                self._bar.value += len(next(run).tokens)
            except StopIteration as end:
                self._take(settings, end.value)
                self._show_again()
                self._message.say(
                    f"Done: {settings.drafter}, gamma {settings.gamma}. The player below shows it."
                )
                return
            await asyncio.sleep(PAUSE)
        run.close()
        self._message.say("Cancelled. The player below still shows the run before.")

    def _busy(self, busy: bool, total: int = 1) -> None:
        self._run.disabled, self._cancel.disabled = busy, not busy
        self._bar.value, self._bar.max = 0, total
        self._bar.layout.visibility = "visible" if busy else "hidden"


def _inputs(pair: Pair, settings: Settings) -> dict[str, ipywidgets.Widget]:
    wide = ipywidgets.Layout(width="34rem", max_width="100%")
    usual = ipywidgets.Layout(width="20rem")
    label = {"description_width": "6.5rem"}
    kinds = [
        (name, kind) for name, kind in DRAFTERS.items() if kind != "model" or pair.draft is not None
    ]
    examples = [settings.prompt, *(text for text in EXAMPLES if text != settings.prompt)]
    return {
        "examples": ipywidgets.Dropdown(
            options=[(text if len(text) < 60 else text[:58] + "…", text) for text in examples],
            description="examples",
            layout=wide,
            style=label,
        ),
        "prompt": ipywidgets.Textarea(
            settings.prompt, description="prompt", rows=2, layout=wide, style=label
        ),
        "drafter": ipywidgets.Dropdown(
            options=kinds, value=settings.drafter, description="drafter", layout=wide, style=label
        ),
        "gamma": ipywidgets.IntSlider(
            settings.gamma, 1, max(16, settings.gamma), description="gamma", layout=usual, style=label
        ),
        "temperature": ipywidgets.FloatSlider(
            settings.temperature, min=0.0, max=max(1.5, settings.temperature), step=0.1,
            description="temperature", readout_format=".1f", layout=usual, style=label,
        ),
        "chat": ipywidgets.Checkbox(settings.chat, description="as a chat turn", indent=False),
        "max_new_tokens": ipywidgets.IntSlider(
            settings.max_new_tokens, 4, max(128, settings.max_new_tokens), description="new tokens",
            layout=usual, style=label,
        ),
        "seed": ipywidgets.BoundedIntText(
            settings.seed, min=0, max=2**31, description="seed",
            layout=ipywidgets.Layout(width="13rem"), style=label,
        ),
    }  # fmt: skip


def _remarks(made: tuple[Generation, Generation], settings: Settings) -> list[str]:
    drafted, plain = made
    if settings.temperature > 0.0:
        return ["Sampled: the target alone drew other tokens just now, from the same distribution."]
    if drafted.tokens == plain.tokens:
        return [
            "Greedy: the same tokens as the target alone gave just now, compared one by one. At "
            "temperature 0 all of p lies on one token; at a higher one the bars show more."
        ]
    return [
        "Greedy, and NOT the same tokens as the target alone: in half precision, near ties are rounded "
        "differently in one-token and many-token passes."
    ]

"""``watch``: what it shows for what it is given, and runs that are asked for by a button."""

import asyncio
import html
import re

import pytest
import torch
from helpers import tiny_model
from test_pretrained import tokenizer
from tqdm import tqdm

from specdec_lab import decoding
from specdec_lab.draft_model import new_draft
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair
from specdec_lab.simulation import simulate
from specdec_lab.theory import expected_speedup
from specdec_lab.widgets import watch
from specdec_lab.widgets import workbench as module
from specdec_lab.widgets.player import Player
from specdec_lab.widgets.scripted import estimates, round_costs


@pytest.fixture(scope="module")
def pair():
    target = tiny_model("llama", tie_word_embeddings=True)
    words = tokenizer()
    words.chat_template = "{{ messages[0]['content'] }} w9"
    return Pair(HFCausalLM(target), HFCausalLM(new_draft(target, torch.arange(0, 37, 2))), words)


class Shown:
    """In the place of a notebook's output."""

    def __init__(self):
        self.players = []

    def update(self, player):
        self.players.append(player)


@pytest.fixture
def bench(pair):
    """A pair at work, its controls made, its output caught."""
    made = watch(pair, "w1 w2", gamma=3, temperature=1.0, max_new_tokens=8)
    made._controls()
    made._shown = Shown()
    return made


def click(bench, meanwhile=lambda turn: None):
    """Press the button and let the loop turn, as the kernel does, until the run has ended."""

    async def turns():
        bench._run.click()
        for turn in range(500):
            if bench._task is None or bench._task.done():
                return
            meanwhile(turn)
            await asyncio.sleep(module.PAUSE)
        raise AssertionError("the run has not ended")

    asyncio.run(turns())


def said(bench):
    return html.unescape(re.sub("<[^>]*>", "", bench._message.value))


def test_a_pair_is_run_with_drafts_and_without(pair):
    bench = watch(pair, "w1 w2", gamma=3, max_new_tokens=8)
    assert len(bench.generation.tokens) == len(bench.baseline.tokens) == 8
    assert bench.generation.tokens == bench.baseline.tokens
    assert bench.player.stream.kind == "measured"
    assert bench.player.stream.traced
    assert "speedup, measured" in dict(bench.player.stream.counts[-1])
    assert bench.player.stream.remarks[0].startswith("Greedy: the same tokens")
    assert repr(bench).startswith("measured: ")


def test_a_run_again_takes_the_settings_of_the_controls(bench, pair):
    bench._inputs["gamma"].value = 2
    bench._inputs["temperature"].value = 0.0
    bench._inputs["seed"].value = 7
    click(bench)
    assert said(bench).startswith("Done: model, gamma 2")
    (player,) = bench._shown.players
    assert player is bench.player
    assert max(one.drafted for one in bench.generation.rounds) == 2
    expected = pair.generate("w1 w2", chat=True, gamma=2, max_new_tokens=8, drafter=None)
    assert bench.generation.tokens == expected.tokens
    assert (bench._run.disabled, bench._cancel.disabled) == (False, True)


def test_a_run_can_be_cancelled_and_the_one_before_stays(bench):
    before = bench.player

    def cancel(turn):
        assert bench._run.disabled
        if turn == 2:
            bench._cancel.click()

    click(bench, cancel)
    assert said(bench).startswith("Cancelled.")
    assert bench.player is before
    assert bench._shown.players == []
    click(bench)
    assert len(bench._shown.players) == 1


def test_the_pair_can_be_used_between_two_rounds(bench, pair):
    """Greedy, so that the tokens have to be the target's own, whatever its cache was used for."""
    bench._inputs["temperature"].value = 0.0
    click(bench, lambda turn: pair.generate("w5 w6 w7", max_new_tokens=2))
    assert bench.generation.tokens == bench.baseline.tokens


def test_what_goes_wrong_is_said_in_the_view(bench, monkeypatch):
    bench._inputs["prompt"].value = "  "
    click(bench)
    assert said(bench) == "✗ ValueError: prompt: got '  ', expected some text"
    bench._inputs["prompt"].value = "w1"

    def broken(*_, **__):
        raise RuntimeError("no <memory> left")

    monkeypatch.setattr(Pair, "stepwise", broken)
    click(bench)
    assert said(bench) == "✗ RuntimeError: no <memory> left"
    assert "<memory>" not in bench._message.value
    assert not bench._run.disabled


def test_the_examples_fill_the_prompt(bench):
    bench._inputs["examples"].value = module.EXAMPLES[1]
    assert bench._inputs["prompt"].value == module.EXAMPLES[1]


def test_without_a_draft_model_there_is_none_to_choose(pair):
    bench = watch(Pair(pair.target, None, pair.tokenizer), "w1 w2 w1 w2", max_new_tokens=4)
    bench._controls()
    assert "model" not in dict(bench._inputs["drafter"].options).values()
    assert bench.settings.drafter == "ngram"


def test_the_script_explains_its_two_numbers():
    made = watch()
    assert made.player.stream.kind == "simulated"
    costs, sentences = round_costs(made.simulation), estimates(made.simulation)
    assert "4 x 0.15 = 0.60 of a target step" in costs[0]
    assert costs[0].endswith("all are accepted, and the bonus follows. 5 tokens for 1.60.")
    assert costs[1].endswith("3 are accepted, and the replacement follows. 4 tokens for 1.60.")
    assert "a = 7/8, g = 4, c = 0.15 is 2.44x" in sentences[0]
    assert "9 / (2 + 8 x 0.15) = 9 / 3.20 = 2.81x" in sentences[1]
    assert list(made.player.stream.remarks) == costs + sentences


def test_the_scripts_sliders_play_another_one():
    made = watch(gamma=2)
    made._controls()
    made._shown = Shown()
    made.gamma.value, made.cost.value = 3, 0.5
    assert len(made._shown.players) == 2
    expected = simulate(3, 0.5).generation.metrics
    theory = expected_speedup(expected.acceptance_rate, 3, 0.5)
    assert f"c = 0.50 is {theory:.2f}x" in " ".join(made.player.stream.remarks)
    assert all(one.player.stream.kind == "simulated" for one in [made])


def test_a_finished_run_is_shown_as_it_is():
    player = watch(simulate().generation, decode=lambda tokens: "x" * len(tokens))
    assert isinstance(player, Player)
    assert {span.text for span in player.stream.spans} == {"x"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"what": 3}, "what: got int"),
        ({"prompt": ""}, "prompt: got ''"),
        ({"gamma": 0}, "gamma: got 0"),
        ({"max_new_tokens": 0}, "max_new_tokens: got 0"),
        ({"drafter": "oracle"}, "kind: got 'oracle'"),
        ({"temperature": -1.0}, "temperature"),
    ],
)
def test_bad_arguments_are_named(pair, arguments, named):
    with pytest.raises(ValueError, match=re.escape(named)):
        watch(**{"what": pair, "prompt": "w1"} | arguments)


def test_the_bar_counts_tokens_and_ends_where_the_run_does(pair, monkeypatch):
    bars = []

    class Bar(tqdm):
        def __init__(self, **options):
            super().__init__(**options)
            bars.append(self)

    monkeypatch.setattr(decoding, "tqdm", Bar)
    run = pair.stepwise("w1 w2", gamma=3, max_new_tokens=8, end_ids=[])
    made = decoding.to_the_end(run, total=20, label="a run")
    (bar,) = bars
    assert (bar.n, bar.total) == (len(made.tokens), len(made.tokens)) == (8, 8)

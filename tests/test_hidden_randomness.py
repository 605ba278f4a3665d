"""Randomness behind the chooser's back is found, whoever draws it, and nothing else is."""

import random
from random import Random

import numpy as np
import pytest
import torch

from specdec_lab.hidden_randomness import GlobalTwins, watched

PRIVATE, MADE_BEFORE = torch.Generator(), Random(3)


@pytest.mark.parametrize(
    ("draw", "who"),
    [
        (lambda: torch.rand(3), "torch"),
        (lambda: torch.multinomial(torch.ones(3), 1), "torch"),
        (lambda: torch.manual_seed(0), "torch"),
        (lambda: np.random.rand(), "numpy"),
        (lambda: np.random.seed(0), "numpy"),
        (lambda: random.random(), "Python"),
        (lambda: random.seed(0), "Python"),
    ],
)
def test_use_of_a_global_generator_is_seen(draw, who):
    twins = GlobalTwins()
    assert twins.used() == []
    draw()
    assert twins.used() == [who]
    twins.restore()
    assert twins.used() == []
    twins.restore()


def test_the_global_generators_are_left_as_they_were():
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    twins = GlobalTwins()
    for _ in range(3):
        twins.used()
    twins.restore()
    after = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


@pytest.mark.parametrize(
    ("draw", "what"),
    [
        (lambda: torch.rand(()), "torch's rand in"),
        (lambda: torch.rand((), generator=PRIVATE), "torch's rand in"),
        (lambda: torch.randint(0, 3, (1,), generator=PRIVATE), "torch's randint in"),
        (lambda: torch.multinomial(torch.ones(3), 1, generator=PRIVATE), "torch's multinomial in"),
        (lambda: torch.zeros(2).uniform_(generator=PRIVATE), "torch's uniform_ in"),
        (lambda: torch.nn.functional.dropout(torch.ones(9)), "torch's dropout in"),
        (lambda: torch.nn.functional.gumbel_softmax(torch.ones(3)), "torch's gumbel_softmax in"),
        (lambda: random.Random(0), "random.Random.__init__ in"),
        (lambda: Random(0), "random.Random.__init__ in"),
        (lambda: MADE_BEFORE.seed(0), "random.Random.seed in"),
        (lambda: MADE_BEFORE.random(), "random.Random.random in"),
        (lambda: MADE_BEFORE.choice([1, 2]), "random.Random.getrandbits in"),
        (lambda: np.random.Generator(np.random.PCG64(7)).random(), "numpy.random.PCG64 in"),
        (lambda: np.random.default_rng(0).random(), "numpy.random.default_rng in"),
        (lambda: np.random.RandomState(0).rand(), "numpy.random.RandomState in"),
    ],
)
def test_the_watch_names_what_was_called_and_where(draw, what):
    with torch.random.fork_rng(devices=[]), watched() as found:
        draw()
    assert found[0].startswith(what)
    assert "test_hidden_randomness.py:" in found[0]


def test_the_watch_lets_everything_else_pass():
    with watched() as found:
        rows = torch.zeros(2, 5).softmax(-1)
        torch.nn.functional.dropout(rows, training=False)
        query = torch.ones(1, 1, 2, 4)
        torch.nn.functional.scaled_dot_product_attention(query, query, query)
        rows.cumsum(-1).argmax()
        assert isinstance(random.random, type(random.random))
    assert found == []


def test_the_watch_leaves_nothing_behind():
    with watched():
        pass
    assert random.Random(1).random() == random.Random(1).random()
    assert random.Random.__module__ == "random"

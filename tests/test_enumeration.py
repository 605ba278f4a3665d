"""Enumeration: every path once, nothing hidden, and a program that breaks the rules is caught."""

import math

import pytest
import torch
from helpers import law_of
from hypothesis import given
from hypothesis import strategies as st

from specdec_lab.enumeration import Enumeration, Misconduct, enumerate_outcomes, estimate_paths

THIRDS = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)


def three_draws(chooser):
    return tuple(chooser.sample(THIRDS) for _ in range(3))


def test_it_walks_every_path_once():
    def run(chooser):
        first = chooser.sample(torch.tensor([0.5, 0.0, 0.5]))
        if first == 0:
            return (first, chooser.accept(0.25))
        return (first, chooser.sample(torch.tensor([0.1, 0.2, 0.7])))

    outcomes = list(enumerate_outcomes(run))
    assert len(outcomes) == 5
    assert dict(outcomes) == pytest.approx(
        {(0, True): 0.125, (0, False): 0.375, (2, 0): 0.05, (2, 1): 0.1, (2, 2): 0.35}, abs=1e-7
    )


def test_it_skips_impossible_answers():
    assert law_of(lambda chooser: [chooser.accept(1.0), chooser.accept(0.0)]) == {(True, False): 1.0}


def test_a_ratio_above_one_is_always_accepted():
    assert law_of(lambda chooser: [chooser.accept(1.7)]) == {(True,): 1.0}


def test_a_run_without_choices_has_one_path():
    assert list(enumerate_outcomes(lambda _: "done")) == [("done", 1.0)]


@given(
    st.recursive(
        st.just(()), lambda child: st.lists(st.tuples(st.integers(1, 9), child), min_size=1, max_size=3)
    )
)
def test_any_tree_is_walked_whole(tree):
    def run(chooser):
        node, path = tree, []
        while node:
            weights = torch.tensor([float(weight) for weight, _ in node], dtype=torch.float64)
            path.append(chooser.sample(weights / weights.sum()))
            node = node[path[-1]][1]
        return tuple(path)

    def leaves(node):
        return sum(leaves(child) for _, child in node) if node else 1

    outcomes = list(enumerate_outcomes(run))
    assert len({path for path, _ in outcomes}) == len(outcomes) == leaves(tree)
    assert sum(mass for _, mass in outcomes) == pytest.approx(1.0, abs=1e-12)


def test_the_likeliest_branch_goes_next_and_the_rest_is_counted():
    enumeration = Enumeration(three_draws, max_paths=5)
    visits = list(enumeration)
    assert visits[0].outcome == (0, 0, 0)
    assert enumeration.paths == len(visits) == 5
    walked = sum(visit.probability for visit in visits)
    assert walked + enumeration.unwalked == pytest.approx(1.0, abs=1e-12)
    assert enumeration.unwalked > 0.3


def test_pruned_mass_is_counted_to_the_last_bit_of_it():
    enumeration = Enumeration(three_draws, prune_below=0.02)
    walked = sum(visit.probability for visit in enumeration)
    small = sum(m for m in law_of(three_draws).values() if m < 0.02)
    assert enumeration.pruned == pytest.approx(small) == pytest.approx(0.008 + 3 * (0.012 + 0.018))
    assert walked + enumeration.pruned == pytest.approx(1.0, abs=1e-12)


def test_a_run_that_goes_on_for_ever_is_pruned_where_it_becomes_too_unlikely():
    def until_accepted(chooser):
        tries = 1
        while not chooser.accept(0.5):
            tries += 1
        return tries

    enumeration = Enumeration(until_accepted, prune_below=1e-6)
    law = {visit.outcome: visit.probability for visit in enumeration}
    assert law[3] == 0.125
    assert sum(law.values()) + enumeration.pruned == pytest.approx(1.0, abs=1e-12)
    assert enumeration.pruned == 2 * 2.0**-20  # the first two stems below a millionth


def never_ends(chooser):
    while True:
        chooser.accept(1.0)


def swallows_everything(chooser):
    try:
        chooser.sample(torch.tensor([0.5, 0.6]))
    except BaseException:
        return "nothing happened"


@pytest.mark.parametrize(
    ("run", "fault", "says"),
    [
        (never_ends, "never ends", "after 1000 random choices"),
        (lambda chooser: chooser.accept(-0.25), "bad distribution", "probability of -0.25"),
        (lambda chooser: chooser.accept(math.nan), "bad distribution", "probability of nan"),
        (lambda chooser: chooser.sample(torch.tensor([0.2, 0.2])), "bad distribution", "sums to 0.4"),
        (
            lambda chooser: chooser.sample(torch.tensor([1.5, -0.5])),
            "bad distribution",
            "smallest entry -0.5",
        ),
        (lambda chooser: chooser.sample(torch.tensor([math.nan, 1.0])), "bad distribution", "nan"),
        (swallows_everything, "bad distribution", "sums to 1.1"),
    ],
)
def test_misconduct_is_named(run, fault, says):
    with pytest.raises(Misconduct, match=says) as caught:
        list(enumerate_outcomes(run))
    assert caught.value.fault == fault


def test_misconduct_tells_the_path_that_led_there():
    def run(chooser):
        if chooser.sample(THIRDS) == 2 and not chooser.accept(0.9):
            chooser.sample(torch.zeros(3))

    with pytest.raises(Misconduct) as caught:
        list(enumerate_outcomes(run))
    assert [str(choice) for choice in caught.value.path] == ["draw 2", "reject"]


def test_a_program_with_a_memory_is_not_repeatable():
    seen = []

    def run(chooser):
        seen.append(chooser.sample(THIRDS * 0 + torch.tensor([0.4, 0.3, 0.3]) if seen else THIRDS))
        return seen[-1]

    with pytest.raises(Misconduct) as caught:
        list(enumerate_outcomes(run))
    assert caught.value.fault == "not repeatable"


def test_a_program_that_asks_less_the_second_time_is_not_repeatable():
    runs = []

    def run(chooser):
        runs.append(1)
        return [chooser.sample(THIRDS) for _ in range(2 if len(runs) == 1 else 1)]

    with pytest.raises(Misconduct) as caught:
        list(enumerate_outcomes(run))
    assert caught.value.fault == "not repeatable"


def test_a_program_that_asks_another_question_is_not_repeatable():
    runs = []

    def run(chooser):
        runs.append(1)
        first = chooser.sample(THIRDS) if len(runs) == 1 else chooser.sample(THIRDS[[0, 1]] / 0.8)
        return first, chooser.accept(0.5), chooser.accept(0.5)

    # The stem of the third-likeliest path draws a 2, which the second run has no more.
    with pytest.raises(Misconduct) as caught:
        list(enumerate_outcomes(run))
    assert caught.value.fault == "not repeatable"


def test_a_path_can_be_walked_again():
    enumeration = Enumeration(three_draws)
    for visit in enumeration:
        assert enumeration.replay(visit) == visit.outcome


def test_the_estimate_is_exact_where_all_branches_are_alike():
    assert estimate_paths(three_draws, probes=3) == 27.0


def test_the_estimate_is_near_where_they_are_not():
    def lopsided(chooser):
        return chooser.accept(0.5) and [chooser.sample(THIRDS), chooser.sample(THIRDS)]

    # 10 leaves; a probe gives 2 or 18 with equal chance, so 400 probes err by 2 (five standard
    # deviations of 0.4) with a probability below 1e-6. The seed is fixed besides.
    assert estimate_paths(lopsided, probes=400) == pytest.approx(10.0, abs=2.0)


def test_the_estimate_of_a_huge_tree_is_a_number():
    def wide(chooser):
        return [chooser.sample(THIRDS) for _ in range(700)]

    assert estimate_paths(wide, probes=2) == math.inf


def test_the_estimate_of_an_endless_run_is_infinite():
    assert estimate_paths(never_ends, probes=2) == math.inf

"""Metrics: each counts what its definition says, and nothing that was not emitted."""

import json
from dataclasses import asdict

import pytest
from helpers import near_twin, tiny_lm
from hypothesis import given
from hypothesis import strategies as st

from specdec_lab.decoding import generate
from specdec_lab.drafters import ModelDrafter, ScriptedDrafter
from specdec_lab.language_model import TableLM
from specdec_lab.randomness import SeededChooser
from specdec_lab.records import Position, Round, Seconds, measure
from specdec_lab.sampling import Sampling


def made_round(pattern, seconds=1.0, kind="replacement", cut=None):
    """A round whose drafted tokens were accepted (1), rejected (0) or never judged (None)."""
    positions = tuple(
        Position(token, 0.5, accepted=None if mark is None else bool(mark))
        for token, mark in enumerate(pattern)
    )
    one = Round(positions, 99, kind, len(pattern) + 1, Seconds(0.25 * seconds, 0.75 * seconds, 0.0))
    return one if cut is None else one.cut(cut)


def test_only_accepted_tokens_before_the_first_rejection_count():
    # The drafter is right at places 0 and 2 of four, but place 2 lies behind the rejection.
    chain = TableLM({(): [0, 0, 0, 0, 1.0], (4,): [0, 1.0, 0, 0, 0], (1,): [0, 0, 1.0, 0, 0]})
    made = generate(chain, [0], drafter=ScriptedDrafter(5, [4, 0, 2, 0]), gamma=4, max_new_tokens=5)
    first = made.rounds[0]
    assert [one.accepted for one in first.positions] == [True, False, None, None]
    assert (first.drafted, first.accepted, first.tokens) == (4, 1, [4, 1])


def test_rates_by_hand():
    rounds = [
        made_round([1, 1, 0, None], 2.0),
        made_round([1, 1, 1, 1], kind="bonus"),
        made_round([0, None, None, None]),
        made_round([]),
    ]
    metrics = measure(rounds)
    assert (metrics.new_tokens, metrics.target_forwards) == (3 + 5 + 1 + 1, 4)
    assert (metrics.drafted, metrics.accepted, metrics.acceptance_rate) == (12, 6, 0.5)
    assert metrics.block_efficiency == 2.5
    assert metrics.acceptance_histogram == {0: 2, 2: 1, 4: 1}
    assert metrics.position_acceptance == pytest.approx([2 / 3, 2 / 3, 1 / 3, 1 / 3])
    assert metrics.conditional_acceptance == pytest.approx([2 / 3, 1.0, 0.5, 1.0])


def test_times_by_hand():
    metrics = measure([made_round([1, 1], 2.0, "bonus"), made_round([0], 1.0), made_round([1], 4.0)])
    assert (metrics.seconds, metrics.tokens_per_second) == (7.0, 6 / 7.0)
    assert metrics.time_to_first_token == 2.0
    # Arrivals at 2, 2, 2, 3, 7, 7: the gaps are 0, 0, 1, 4, 0.
    assert metrics.inter_token_p50 == 0.0
    assert metrics.inter_token_p95 == pytest.approx(3.4)
    # The first round reads the prompt and is left out of the median round.
    assert (metrics.draft_seconds, metrics.verify_seconds) == (0.625, 1.875)


def test_a_run_without_rounds_has_no_rates():
    metrics = measure([])
    assert metrics.new_tokens == 0
    assert metrics.acceptance_rate is None
    assert metrics.block_efficiency is None
    assert metrics.tokens_per_second is None
    assert metrics.inter_token_p50 is None


@given(st.integers(0, 5), st.integers(0, 5), st.integers(1, 6))
def test_a_cut_round_ends_with_its_last_kept_token(accepted, dropped, count):
    pattern = [1] * accepted + ([0] + [None] * (dropped - 1) if dropped else [])
    whole = made_round(pattern)
    cut = whole.cut(count)
    assert cut.tokens == whole.tokens[:count]
    if count < len(whole.tokens):
        assert cut.drafted == cut.accepted == count
        assert cut.closing is cut.closing_kind is None


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("gamma", [0, 1, 5])
def test_counts_of_a_real_run_agree_with_each_other(gamma, temperature):
    target, drafter = tiny_lm(), ModelDrafter(near_twin("llama"))
    made = generate(
        target,
        [1, 2, 3],
        drafter=drafter,
        gamma=gamma,
        max_new_tokens=25,
        sampling=Sampling(temperature),
        seed=1,
    )
    metrics = made.metrics
    assert metrics.new_tokens == len(made.tokens) == 25
    assert metrics.new_tokens == metrics.accepted + sum(o.closing is not None for o in made.rounds)
    assert metrics.acceptance_rate is None if gamma == 0 else 0.0 <= metrics.acceptance_rate <= 1.0
    assert all(0.0 <= rate <= 1.0 for rate in metrics.conditional_acceptance)
    assert 1.0 <= metrics.block_efficiency <= gamma + 1
    assert sum(metrics.acceptance_histogram.values()) == metrics.target_forwards
    assert metrics.seconds == pytest.approx(sum(o.seconds.total for o in made.rounds))


def test_fresh_state_for_every_repeat():
    target, drafter = tiny_lm(), ModelDrafter(near_twin("llama"))
    runs = [generate(target, [1, 2, 3], drafter=drafter, max_new_tokens=20, gamma=4) for _ in range(3)]
    assert len({(o.metrics.drafted, o.metrics.accepted, o.rounds[0].fed) for o in runs}) == 1


def test_a_trace_records_the_tops_at_every_position():
    made = generate(
        tiny_lm(),
        [1, 2, 3],
        drafter=ModelDrafter(near_twin("llama")),
        max_new_tokens=12,
        sampling=Sampling(1.0, top_k=4),
        trace=True,
        seed=0,
    )
    judged = [one for o in made.rounds for one in o.positions if one.accepted is not None]
    assert all(len(one.top.p) == len(one.top.q) == 4 for one in judged)
    assert all(one.top.residual for one in judged)
    assert all(o.closing_top for o in made.rounds if o.closing_kind in ("bonus", "plain"))


def test_only_a_seed_that_repeats_the_run_is_reported():
    options = {"max_new_tokens": 3, "sampling": Sampling(1.0)}
    assert generate(tiny_lm(), [1], seed=3, **options).seed == 3
    assert generate(tiny_lm(), [1], chooser=SeededChooser(3), **options).seed is None
    fresh = generate(tiny_lm(), [1], **options)
    assert generate(tiny_lm(), [1], seed=fresh.seed, **options).tokens == fresh.tokens


def test_records_are_plain_enough_for_json():
    made = generate(tiny_lm(), [1], drafter=ModelDrafter(tiny_lm()), max_new_tokens=5, trace=True)
    assert json.loads(json.dumps(asdict(made)))["tokens"] == made.tokens


def test_provenance_says_how_a_run_was_made():
    made = generate(tiny_lm(), [1], drafter=ModelDrafter(tiny_lm()), max_new_tokens=2, seed=9)
    origin = made.provenance
    assert origin["kind"] == "measured"
    assert (origin["device"], origin["dtype"], origin["seed"]) == ("cpu", "float32", 9)
    assert (origin["target"], origin["drafter"]) == ("LlamaForCausalLM", "model")
    assert origin["draft_model"] == "LlamaForCausalLM"
    assert set(origin["versions"]) == {"specdec_lab", "python", "torch", "transformers"}
    assert origin["hardware"]
    assert origin["threads"] >= 1


def test_a_scripted_drafter_makes_a_run_a_simulation():
    made = generate(tiny_lm(), [1], drafter=ScriptedDrafter(37, [1, 2]), max_new_tokens=2)
    assert made.simulated
    assert made.provenance["kind"] == "simulated"

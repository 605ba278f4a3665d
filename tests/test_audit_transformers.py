"""transformers' assisted generation, driven by the chooser: its own code walks every path."""

import pytest
import torch

from specdec_lab.audit.assisted import (
    LENGTH,
    NETWORK_TOLERANCE,
    PROMPT,
    DrivenRandomness,
    acceptance_step,
    assisted_decoder,
    audit_transformers_assisted,
    tiny_pair,
)
from specdec_lab.audit.decoder import audit_decoder
from specdec_lab.enumeration import enumerate_outcomes
from specdec_lab.language_model import HFCausalLM, RandomLM
from specdec_lab.sampling import Sampling

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers' advice on its own internal calls


def test_torchs_random_functions_ask_the_chooser():
    def run(chooser):
        with DrivenRandomness(chooser):
            token = torch.multinomial(torch.tensor([[0.25, 0.0, 0.75]]), num_samples=1)
            ratios = torch.tensor([2.0, 0.5])
            return int(token), (torch.rand_like(ratios) <= ratios).tolist()

    law = {str(outcome): mass for outcome, mass in enumerate_outcomes(run)}
    assert law == {
        "(0, [True, True])": 0.125,
        "(0, [True, False])": 0.125,
        "(2, [True, True])": 0.375,
        "(2, [True, False])": 0.375,
    }


@pytest.mark.parametrize(
    "draw",
    [
        lambda weights: torch.multinomial(7 * weights, 1),
        lambda weights: torch.multinomial(input=weights, num_samples=1),
        lambda weights: weights.multinomial(1),
        lambda weights: torch.multinomial(weights.bfloat16(), 1),
    ],
)
def test_every_way_to_call_multinomial_is_driven(draw):
    def run(chooser):
        with DrivenRandomness(chooser):
            return int(draw(torch.tensor([0.25, 0.25, 0.5])))

    assert dict(enumerate_outcomes(run)) == pytest.approx({0: 0.25, 1: 0.25, 2: 0.5})


def test_more_than_one_draw_at_once_is_refused():
    def run(chooser):
        with DrivenRandomness(chooser):
            torch.multinomial(torch.ones(3) / 3, num_samples=2)

    with pytest.raises(ValueError, match="num_samples: got 2, expected 1"):
        list(enumerate_outcomes(run))


def test_the_acceptance_step_is_exact_and_its_relaxed_setting_is_not():
    target = RandomLM(3, seed=1)
    exact = audit_decoder(acceptance_step(), target, PROMPT, LENGTH)
    assert exact.verdict == "exact"
    assert exact.l1_error < 1e-12
    relaxed = audit_decoder(acceptance_step(0.7), target, PROMPT, LENGTH)
    assert relaxed.verdict == "not exact"
    assert relaxed.output.block_efficiency > exact.output.block_efficiency


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "sampling"),
    [
        ({}, Sampling(1.0)),
        ({"temperature": 0.6}, Sampling(0.6)),
        ({"top_k": 2}, Sampling(1.0, top_k=2)),
        ({"repetition_penalty": 1.5}, Sampling(1.0, repetition_penalty=1.5)),
    ],
)
def test_generate_is_exact(options, sampling):
    target, draft = tiny_pair()
    decoder = assisted_decoder(target, draft, **options)
    audit = audit_decoder(
        decoder,
        HFCausalLM(target),
        PROMPT,
        LENGTH,
        sampling=sampling,
        tolerance=NETWORK_TOLERANCE,
    )
    assert audit.verdict == "exact"
    assert audit.l1_error < 1e-5


@pytest.mark.slow
def test_the_whole_demonstration():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    audit = audit_transformers_assisted(samples=150)
    assert torch.equal(torch.rand(2), expected)  # the samples leave the global generator alone
    assert audit.exact
    assert audit.samples.verdict == "no bias found"  # a false alarm has a probability of 1e-6
    answer = audit.to_json()
    assert answer["generate"]["verdict"] == "exact"
    assert answer["relaxed_step"]["verdict"] == "not exact"
    assert "lossy by design" in audit._repr_html_()

"""From logits to p: truncation, temperature, penalties, each applied once with the right prefix."""

import pytest
import torch

from specdec_lab.randomness import SeededChooser
from specdec_lab.sampling import Sampling, TargetRows

LOGITS = torch.tensor([0.5, 0.3, 0.2]).log()


def row(sampling, logits=LOGITS, prefix=(0,)):
    return sampling.distribution(list(prefix), logits).tolist()


def test_temperature_one_is_the_softmax():
    assert row(Sampling(1.0)) == pytest.approx([0.5, 0.3, 0.2])


def test_temperature_divides_the_logits():
    expected = torch.tensor([0.5, 0.3, 0.2]) ** 2
    assert row(Sampling(0.5)) == pytest.approx((expected / expected.sum()).tolist())


def test_top_p_keeps_the_token_that_crosses_the_threshold():
    assert row(Sampling(1.0, top_p=0.7)) == pytest.approx([0.625, 0.375, 0.0])


def test_top_k_and_min_p():
    assert row(Sampling(1.0, top_k=1)) == [1.0, 0.0, 0.0]
    assert row(Sampling(1.0, min_p=0.5)) == pytest.approx([0.625, 0.375, 0.0])


def test_truncation_follows_temperature():
    # At temperature 0.25 the first token has 0.87 of the mass, so top-p 0.8 keeps only that one.
    assert row(Sampling(0.25, top_p=0.8)) == [1.0, 0.0, 0.0]


def test_temperature_zero_is_argmax_and_an_exact_tie_goes_to_the_lowest_id():
    assert row(Sampling(0.0), torch.tensor([1.0, 7.0, 7.0, 7.0])) == [0.0, 1.0, 0.0, 0.0]
    assert Sampling(0.0).argmax([0], torch.tensor([7.0, 1.0, 7.0])) == 0
    # A small epsilon would divide by zero or tie; argmax does neither.
    assert row(Sampling(0.0), torch.tensor([0.0, 1e30, -1e30])) == [0.0, 1.0, 0.0]


def test_greedy_still_applies_penalties():
    greedy = Sampling(0.0, repetition_penalty=2.0)
    logits = torch.tensor([3.0, 2.0, 1.0])
    assert greedy.argmax([0], logits) == 1
    assert greedy.argmax([2], logits) == 0


def test_penalties_see_the_prefix_of_their_own_position():
    sampling = Sampling(1.0, no_repeat_ngram_size=2)
    rows = TargetRows(sampling, [0, 1, 0, 1], torch.zeros(3, 3))
    # Behind [0, 1] nothing repeats; behind [0, 1, 0] a second "0 1" is forbidden; and so on.
    assert rows[0].tolist() == pytest.approx([1 / 3] * 3)
    assert rows[1].tolist() == pytest.approx([0.5, 0.0, 0.5])
    assert rows[2].tolist() == pytest.approx([0.0, 0.5, 0.5])


def test_a_processor_that_writes_into_its_scores_leaves_the_logits_alone():
    def ban_first(input_ids, scores):
        scores[:, 0] = -float("inf")
        return scores

    logits = torch.zeros(3)
    assert row(Sampling(1.0, processors=(ban_first,)), logits) == pytest.approx([0.0, 0.5, 0.5])
    assert logits.tolist() == [0.0, 0.0, 0.0]


def test_custom_processors_come_before_truncation():
    def lift_last(input_ids, scores):
        return scores + torch.tensor([0.0, 0.0, 50.0])

    assert row(Sampling(1.0, top_k=1, processors=(lift_last,))) == [0.0, 0.0, 1.0]


def test_half_precision_logits_give_float32_probabilities():
    sampling = Sampling(0.7, top_p=0.9)
    assert sampling.distribution([0], LOGITS.bfloat16()).dtype == torch.float32
    assert sampling.distribution([0], LOGITS.double()).dtype == torch.float64


def test_rows_are_processed_only_when_asked_for():
    seen = []

    def note(input_ids, scores):
        seen.append(input_ids.shape[1])
        return scores

    rows = TargetRows(Sampling(1.0, processors=(note,)), [0, 1, 2, 0], torch.zeros(4, 3))
    _ = rows[1]
    assert seen == [2]


@pytest.mark.parametrize("logits", [[float("nan"), 0.0], [float("-inf")] * 2])
def test_logits_that_leave_no_token_are_refused(logits):
    row = torch.tensor(logits)
    with pytest.raises(ValueError, match="logits: got NaN or nothing but minus infinity"):
        Sampling(0.0).argmax([0], row)
    with pytest.raises(ValueError, match="distribution: sums to nan"):
        SeededChooser(0).sample(Sampling(1.0).distribution([0], row))


def test_processors_may_be_a_list_but_not_a_function():
    assert Sampling(processors=[lambda ids, scores: -scores]).argmax([0], LOGITS) == 2
    with pytest.raises(ValueError, match="processors: got one function, expected a tuple"):
        Sampling(processors=lambda ids, scores: scores)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"min_p": -0.1}, "min_p"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"no_repeat_ngram_size": 0}, "no_repeat_ngram_size"),
    ],
)
def test_values_out_of_range_are_refused_by_name(options, name):
    with pytest.raises(ValueError, match=f"^{name}: got"):
        Sampling(**options)

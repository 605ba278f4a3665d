"""The exhaustive audit: hand calculations, every drafter, and decoders that misbehave."""

import copy
import random

import pytest
import torch
from helpers import decoder_with, law_of, plain_decoder

from specdec_lab.audit import DecoderFault, audit_decoder, output_law, target_law
from specdec_lab.audit.decoder import path_text
from specdec_lab.audit.gallery.member import PLAIN, judged_by, loop, with_draft
from specdec_lab.audit.gallery.rules import from_the_target
from specdec_lab.audit.own import audit_cases, audit_own_decoder
from specdec_lab.decoding import autoregressive
from specdec_lab.drafters import (
    ModelDrafter,
)
from specdec_lab.enumeration import Choice, Enumeration
from specdec_lab.language_model import RandomLM, TableLM
from specdec_lab.randomness import SeededChooser
from specdec_lab.sampling import Sampling

VOCAB = 3
PROMPT = [0, 1]


# --- by hand ------------------------------------------------------------------------------------


def test_a_wrong_decoder_has_the_law_that_was_worked_out_by_hand():
    # p = (1/2, 1/2) and q = (4/5, 1/5) behind every prefix; two tokens, one drafted in the first
    # round. Token 0 is drafted with 4/5 and kept with (1/2)/(4/5) = 5/8: mass 1/2. Token 1 is drafted
    # with 1/5 and always kept: mass 1/5. The rest, 3/10, is rejected, and the fault resamples it from
    # p: 3/20 for each token. So the first token is 0 with 13/20 and 1 with 7/20, where 1/2 and 1/2 is
    # right; the second one is drawn from p, as a bonus or in a round of its own.
    target, draft = TableLM({(): [0.5, 0.5]}), TableLM({(): [0.8, 0.2]})
    rogue = with_draft(loop(verifier=judged_by(replacement=from_the_target), gamma=1), draft)
    audit = audit_decoder(rogue, target, PROMPT, 2)
    assert audit.law == pytest.approx({(0, 0): 0.325, (0, 1): 0.325, (1, 0): 0.175, (1, 1): 0.175})
    assert audit.target == pytest.approx({(i, j): 0.25 for i in (0, 1) for j in (0, 1)})
    assert audit.l1_error == pytest.approx(0.3)
    assert audit.total_variation == pytest.approx((0.15, 0.15))
    assert audit.verdict == "not exact"


def test_the_right_decoder_has_the_law_and_the_forwards_that_were_worked_out_by_hand():
    # p and q as above, but behind a 0 the target now says (1/4, 3/4). First token: 1/2 and 1/2, since
    # what is rejected (3/10) goes to token 1 alone. Second token from the row of the first.
    target = TableLM({(): [0.5, 0.5], (0,): [0.25, 0.75]})
    decoder = with_draft(loop(gamma=1), TableLM({(): [0.8, 0.2]}))
    audit = audit_decoder(decoder, target, [1], 2)
    by_hand = {(0, 0): 1 / 8, (0, 1): 3 / 8, (1, 0): 1 / 4, (1, 1): 1 / 4}
    assert audit.law == pytest.approx(by_hand, abs=1e-15)
    assert audit.verdict == "exact"
    # Kept with 7/10, and then the bonus comes in the same forward; otherwise it takes a second one.
    assert audit.output.block_efficiency == pytest.approx(2 / (0.7 * 1 + 0.3 * 2))
    # Paths: draft 0 kept, draft 0 replaced by 1, draft 1 kept; each with two second tokens.
    assert audit.output.paths == 6


def test_the_targets_own_law_is_the_product_of_its_rows():
    target = TableLM({(): [0.5, 0.5], (0,): [0.25, 0.75]})
    law = target_law(target, [1], 2, end_ids=[1])
    assert law == pytest.approx({(1,): 0.5, (0, 0): 0.125, (0, 1): 0.375})
    assert target_law(target, [1], 0) == {(): 1.0}


MODEL = decoder_with(lambda _: ModelDrafter(RandomLM(VOCAB, seed=2)))


def test_the_librarys_own_audit():
    audit = audit_own_decoder()
    assert audit.output.paths == 2835
    assert audit.l1_error < 1e-12
    assert audit.output.block_efficiency > 1.5


# --- unwalked mass is never hidden ----------------------------------------------------------------


def test_a_budget_leaves_an_honest_decoder_undecided():
    target = RandomLM(VOCAB, seed=1)
    audit = audit_decoder(MODEL, target, PROMPT, 3, max_paths=20)
    assert audit.verdict == "undecided"
    assert audit.output.paths == 20
    assert audit.output.covered + audit.output.unwalked == pytest.approx(1.0, abs=1e-12)
    least, most = audit.total_variation
    assert least < 1e-12 < audit.output.unwalked == pytest.approx(most)
    assert "raise the budget" in audit.reason


def test_a_budget_does_not_save_a_rogue():
    target = RandomLM(VOCAB, seed=1)
    rogue = with_draft(loop(verifier=judged_by(replacement=from_the_target)), RandomLM(VOCAB, seed=2))
    short = audit_decoder(rogue, target, PROMPT, 3, max_paths=60)
    whole = audit_decoder(rogue, target, PROMPT, 3)
    assert short.verdict == whole.verdict == "not exact"
    least, most = short.total_variation
    truth = whole.total_variation[0]
    assert least < truth < most


def test_pruned_mass_is_reported_and_counts_as_missing():
    target = RandomLM(VOCAB, seed=1)
    audit = audit_decoder(MODEL, target, PROMPT, 3, prune_below=1e-3)
    assert audit.output.pruned > 1e-3
    assert audit.verdict == "undecided"
    assert audit.total_variation[1] == pytest.approx(audit.output.pruned, abs=1e-9)


# --- decoders that misbehave ----------------------------------------------------------------------


def never_ends(target, prompt, length, chooser):
    while True:
        chooser.sample(torch.tensor([1.0, 0.0]))


def hangs(target, prompt, length, chooser):
    while True:
        pass


def crashes_late(target, prompt, length, chooser):
    if chooser.sample(torch.tensor([0.9, 0.1])) == 1:
        raise KeyError("cache")
    return [0]


def own_generator(target, prompt, length, chooser):
    generator = torch.Generator().manual_seed(0)
    return [int(torch.multinomial(torch.ones(3), 1, generator=generator))]


def rarely_random(target, prompt, length, chooser):
    first = chooser.sample(torch.tensor([0.9, 0.1]))
    return [first if first == 0 else random.randrange(2)]


def forgets_the_chooser(target, prompt, length, chooser):
    return [
        t
        for one in autoregressive(target, prompt, max_new_tokens=length, sampling=PLAIN)
        for t in one.tokens
    ]


class BadRepr:
    def __repr__(self):
        raise RuntimeError


def yields_for_ever(target, prompt, length, chooser):
    while True:
        if chooser is None:
            yield 0


def yields_and_fails(target, prompt, length, chooser):
    yield 0
    raise ValueError("boom")


def leaves_the_program(target, prompt, length, chooser):
    raise SystemExit(0)


def hides_it(target, prompt, length, chooser):
    try:
        return [chooser.sample(torch.tensor([0.2, 0.2]))]
    except BaseException as error:
        raise KeyError("something else") from error


CALLS = []


def remembers(target, prompt, length, chooser):
    CALLS.append(1)
    return [chooser.sample(torch.tensor([0.5, 0.5])), len(CALLS)]


@pytest.mark.parametrize(
    ("decoder", "fault", "says", "path"),
    [
        (never_ends, "never ends", "after 1000 random choices", ["draw 0"] * 1000),
        (hangs, "never ends", "still running after 0.2 s", []),
        (crashes_late, "crashed", "KeyError in test_audit_decoder.py", ["draw 1"]),
        (own_generator, "hidden randomness", "torch's multinomial in test_audit_decoder.py", []),
        (rarely_random, "hidden randomness", "getrandbits in test_audit_decoder.py", ["draw 1"]),
        (forgets_the_chooser, "hidden randomness", "torch's rand", []),
        (remembers, "not repeatable", "another output", ["draw 0"]),
        (lambda *_: None, "bad output", "returned None", []),
        (lambda *_: [0.5], "bad output", r"returned \[0.5\] with 0.5 in it", []),
        (lambda *_: "010", "bad output", "returned '010' with '0' in it", []),
        (lambda *_: BadRepr(), "bad output", "returned a BadRepr", []),
        (yields_for_ever, "never ends", "still running after 0.2 s", []),
        (yields_and_fails, "crashed", "ValueError in test_audit_decoder.py", []),
        (leaves_the_program, "crashed", "SystemExit in test_audit_decoder.py", []),
        (lambda t, p, n, c: [c.sample([0.5, 0.5])], "bad distribution", "from a list", []),
        (
            lambda t, p, n, c: [c.sample(torch.ones(1, 2) / 2)],
            "bad distribution",
            r"shape \[1, 2\]",
            [],
        ),
        (lambda t, p, n, c: t.extend([]), "crashed", "ValueError in test_audit_decoder.py", []),
        (hides_it, "bad distribution", "sums to 0.4", []),
        (
            lambda t, p, n, c: [c.sample(torch.tensor([0.5, 0.4]))],
            "bad distribution",
            "sums to 0.9",
            [],
        ),
    ],
)
def test_a_decoder_without_a_law_is_told_why_and_where(decoder, fault, says, path):
    target = RandomLM(VOCAB, seed=1)
    with pytest.raises(DecoderFault, match=says) as caught:
        output_law(decoder, target, PROMPT, 2, seconds_per_path=0.2)
    assert caught.value.fault == fault
    assert [str(choice) for choice in caught.value.path] == path
    audit = audit_decoder(decoder, target, PROMPT, 2, seconds_per_path=0.2)
    assert (audit.verdict, audit.l1_error, audit.total_variation) == (fault, None, None)


def test_token_ids_of_every_kind_are_taken():
    target = RandomLM(VOCAB, seed=1)

    def as_tensor(target, prompt, length, chooser):
        return torch.tensor(plain_decoder()(target, prompt, length, chooser))

    def as_array(target, prompt, length, chooser):
        return as_tensor(target, prompt, length, chooser).numpy()

    def one_by_one(target, prompt, length, chooser):
        yield from plain_decoder()(target, prompt, length, chooser)

    for decoder in (as_tensor, as_array, one_by_one):
        assert audit_decoder(decoder, target, PROMPT, 2).verdict == "exact"


@pytest.mark.parametrize("cut", [None, 2])
def test_an_output_with_the_prompt_in_front_is_told_so(cut):
    def decode(target, prompt, length, chooser):
        return (prompt + plain_decoder()(target, prompt, length, chooser))[:cut]

    audit = audit_decoder(decode, RandomLM(VOCAB, seed=1), PROMPT, 2)
    assert audit.verdict == "not exact"
    assert "begins with the prompt" in audit.reason


def test_an_output_behind_an_end_token_is_told_so():
    audit = audit_decoder(plain_decoder(), RandomLM(VOCAB, seed=1), PROMPT, 3, end_ids=[2])
    assert "goes on behind an end token, with probability" in audit.reason


def test_token_ids_may_be_tensors_and_models_may_be_copied():
    def with_tensors(target, prompt, length, chooser):
        ids = torch.tensor(prompt)
        for _ in range(length):
            row = target.extend(ids[target.length :])[-1].softmax(-1)
            ids = torch.cat([ids, torch.tensor([chooser.sample(row)])])
        return ids[len(prompt) :]

    def with_copies(target, prompt, length, chooser):
        tokens = list(prompt)
        for _ in range(length):
            snapshot = copy.deepcopy(target)
            tokens.append(chooser.sample(snapshot.extend(tokens)[-1].softmax(-1)))
        return tokens[len(prompt) :]

    for decoder in (with_tensors, with_copies):
        assert audit_decoder(decoder, RandomLM(VOCAB, seed=1), PROMPT, 3).verdict == "exact"


def test_a_memory_that_changes_nothing_is_no_fault():
    rows = {}

    def remembering(target, prompt, length, chooser):
        tokens = list(prompt)
        for _ in range(length):
            if tuple(tokens) not in rows:
                target.reset()
                rows[tuple(tokens)] = target.extend(tokens)[-1].softmax(-1)
            tokens.append(chooser.sample(rows[tuple(tokens)]))
        return tokens[len(prompt) :]

    assert audit_decoder(remembering, RandomLM(VOCAB, seed=1), PROMPT, 3).verdict == "exact"


def test_a_loop_that_ends_in_all_likelihood_is_not_called_endless():
    def patient(target, prompt, length, chooser):
        while not chooser.accept(0.04):
            pass
        return plain_decoder()(target, prompt, length, chooser)

    audit = audit_decoder(patient, RandomLM(VOCAB, seed=1), PROMPT, 1, max_paths=4000)
    assert audit.verdict in ("exact", "undecided")
    assert audit.output.covered > 0.999


def test_the_budget_bounds_the_memory_too():
    def wide(chooser):
        return [chooser.sample(torch.full((500,), 1 / 500)) for _ in range(3)]

    enumeration = Enumeration(wide, max_paths=50)
    walked = sum(visit.probability for visit in enumeration)
    assert len(enumeration._pending) < 1200
    assert walked + enumeration.unwalked == pytest.approx(1.0, abs=1e-12)


def test_efficiency_is_said_to_be_of_the_walked_part():
    target = RandomLM(VOCAB, seed=1)
    part = audit_decoder(MODEL, target, PROMPT, 3, max_paths=20).sheet().notes[-1]
    whole = audit_decoder(MODEL, target, PROMPT, 3).sheet().notes[-1]
    assert "in exact expectation of the part that was walked" in part
    assert "in exact expectation (includes" in whole


def test_a_decoder_that_draws_nothing_is_told_so():
    audit = audit_decoder(plain_decoder(Sampling(0.0)), RandomLM(VOCAB, seed=1), PROMPT, 2)
    assert audit.verdict == "not exact"
    assert "asked the chooser nothing" in audit.reason


def test_the_audit_leaves_the_global_generators_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    audit_decoder(plain_decoder(), RandomLM(VOCAB, seed=1), PROMPT, 2)
    assert torch.equal(torch.rand(3), expected)


def test_a_stale_cache_is_seen_because_rows_depend_on_the_whole_prefix():
    model = RandomLM(VOCAB, seed=1)
    assert not torch.equal(model.extend([0, 2, 1])[-1], RandomLM(VOCAB, seed=1).extend([2, 2, 1])[-1])
    order_one = TableLM.random(VOCAB, order=1)
    assert torch.equal(order_one.extend([0, 2, 1])[-1], TableLM.random(VOCAB).extend([2, 2, 1])[-1])


def test_five_pairs_are_tried_and_a_twin_is_kept_whole():
    audits = {audit.name.partition(", ")[2]: audit for audit in audit_cases(loop(), name="ours")}
    assert [audit.verdict for audit in audits.values()] == ["exact"] * 5
    assert audits["a draft like the target"].output.block_efficiency == pytest.approx(3.0)
    different, impossible = audits["different models"], audits["impossible tokens"]
    assert len(impossible.target) < len(different.target)
    assert all(len(tokens) == 1 for tokens in audits["one token"].law)
    assert 0.0 < min(audits["very unlikely tokens"].target.values()) < 1e-8


def through_rows(change):
    """Plain decoding with something done to each row; the draft model is not used."""

    def decode(target, draft, prompt, length, chooser):
        tokens = list(prompt)
        for _ in range(length):
            target.reset()
            tokens.append(chooser.sample(change(target.extend(tokens)[-1].softmax(-1))))
        return tokens[len(prompt) :]

    return decode


def without_the_tail(row):
    kept = torch.where(row < 1e-4, 0.0, row)
    return kept / kept.sum()


def always_three(target, draft, prompt, length, chooser):
    return plain_decoder()(target, prompt, 3, chooser)


def last_two_of_the_prompt(target, draft, prompt, length, chooser):
    return plain_decoder()(target, prompt[-2:], length, chooser)


@pytest.mark.parametrize(
    ("decoder", "case"),
    [
        (through_rows(without_the_tail), "very unlikely tokens"),
        (always_three, "one token"),
        (last_two_of_the_prompt, "one token"),
    ],
)
def test_what_one_pair_cannot_show_another_does(decoder, case):
    audits = list(audit_cases(decoder, name="theirs"))
    condemned = [audit.name for audit in audits if audit.verdict == "not exact"]
    assert f"theirs, {case}" in condemned
    assert audits[0].verdict == "exact"
    assert [audit.verdict for audit in audit_cases(through_rows(lambda row: row))] == ["exact"] * 5


def test_cases_refuse_what_cannot_work():
    with pytest.raises(ValueError, match="vocab: got 1, expected 2 or more"):
        next(audit_cases(loop(), vocab=1))
    with pytest.raises(ValueError, match="end_ids: got 3, expected 0 to 2"):
        next(audit_cases(loop(), end_ids=(3,)))


def test_a_random_model_is_the_same_everywhere_and_may_have_impossible_tokens():
    row = RandomLM(3, seed=1).extend([0, 1])[-1].exp()
    assert row.tolist() == pytest.approx([0.5053451, 0.0128156, 0.4818393], abs=1e-6)
    sparse = RandomLM(5, seed=1, zeros=0.4).extend([0, 1, 2]).exp()
    assert (sparse == 0.0).sum(dim=-1).tolist() == [2, 2, 2]
    assert sparse.sum(dim=-1).tolist() == pytest.approx([1.0] * 3)
    with pytest.raises(ValueError, match="zeros: got 1"):
        RandomLM(3, zeros=1.0)


def test_the_law_is_the_one_that_sampling_follows():
    # 4,000 samples against the enumerated law; an exact pair fails with a probability below 1e-9 per
    # sequence (Hoeffding: 2 exp(-2 * 4000 * 0.052^2) = 8e-10). The seed is fixed besides.
    target, decoder = RandomLM(VOCAB, seed=1), MODEL
    law = output_law(decoder, target, PROMPT, 2).law
    chooser = SeededChooser(0)
    drawn = [tuple(decoder(target, PROMPT, 2, chooser)) for _ in range(4000)]
    for tokens, mass in law.items():
        assert abs(drawn.count(tokens) / len(drawn) - mass) < 0.052


def test_the_old_enumeration_and_the_audit_agree():
    target, decoder = RandomLM(VOCAB, seed=1), MODEL
    assert law_of(lambda chooser: decoder(target, PROMPT, 2, chooser)) == pytest.approx(
        output_law(decoder, target, PROMPT, 2).law
    )


def test_a_long_path_is_shortened_in_its_middle():
    path = [Choice("sample", i, 0.5) for i in range(30)]
    assert path_text(path).startswith("draw 0, draw 1")
    assert "(18 more)" in path_text(path)
    assert path_text(path).endswith("draw 28, draw 29")
    assert path_text([]) == "before the first random choice"

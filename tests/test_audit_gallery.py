"""The gallery: every rogue is condemned, every honest member cleared, on more than one pair."""

import io

import pytest
from rich.console import Console

from specdec_lab import plots
from specdec_lab.audit.gallery import GALLERY, GalleryAudit, audit_member
from specdec_lab.audit.samples import detectable_bias

HONEST = [member for member in GALLERY if member.honest]
ROGUES = [member for member in GALLERY if not member.honest]


def by_name(members):
    return pytest.mark.parametrize("member", members, ids=lambda member: member.name)


@pytest.fixture(scope="module")
def some():
    """A small gallery: honest, wrong, without a law."""
    names = ("speculative()", "resampled from p", "residual not normalised", "seed of its own")
    chosen = [member for member in GALLERY if member.name in names]
    return GalleryAudit(tuple((member, audit_member(member)) for member in chosen))


def test_there_are_enough_of_both_and_every_name_is_its_own():
    assert len(ROGUES) >= 15
    assert len(HONEST) >= 10
    assert len({member.name for member in GALLERY}) == len(GALLERY)
    assert all(member.what and len(member.what) < 75 for member in GALLERY)


@pytest.mark.parametrize("seed", [1, 2])
@by_name(ROGUES)
def test_every_rogue_is_condemned_for_what_it_does(member, seed):
    audit = audit_member(member, seed)
    assert audit.verdict == member.expected
    if member.expected == "not exact":
        assert audit.l1_error > 1e-5
    else:
        assert audit.message


@pytest.mark.parametrize("zeros", [0.0, 0.34])
@pytest.mark.parametrize("seed", [1, 2])
@by_name(HONEST)
def test_every_honest_member_is_cleared(member, seed, zeros):
    audit = audit_member(member, seed, zeros)
    assert audit.verdict == "exact"
    assert audit.l1_error < 1e-12
    assert audit.output.covered == pytest.approx(1.0, abs=1e-12)


def test_a_random_rogue_names_the_line_that_draws():
    audits = {member.name: audit_member(member) for member in GALLERY if "of its own" in member.name}
    assert "torch's rand in loops.py:" in audits["coins of its own"].reason
    assert "torch's rand in loops.py:" in audits["seed of its own"].reason


def test_a_fault_is_seen_that_no_sample_of_reasonable_size_would_show():
    (epsilon,) = [member for member in GALLERY if member.name == "epsilon below"]
    error = audit_member(epsilon).l1_error
    assert 1e-6 < error < 1e-4
    assert detectable_bias(1_000_000, 26, 1e-6) > 50 * error / 2


def test_the_table_says_who_is_who(some):
    console = Console(file=io.StringIO(), width=110, color_system=None)
    console.print(some)
    text = console.file.getvalue()
    assert "cleared 1 of 1 honest, condemned 3 of 3 rogues" in text
    assert "replaces from p, not from the residual" in text
    assert some.surprises == []
    assert "<td" in some._repr_html_()


def test_a_verdict_that_is_not_deserved_is_a_surprise(some):
    (honest, good), (rogue, bad), *_ = some.audits
    swapped = GalleryAudit(((honest, bad), (rogue, good)))
    assert swapped.surprises == [honest.name, rogue.name]
    assert swapped.sheet().rows[0][1].text == "not exact, expected exact"
    assert "cleared 0 of 1 honest, condemned 0 of 1 rogues" in swapped.sheet().notes[0].text


def test_machines_get_a_verdict_and_an_error_for_each(some):
    answers = {answer["name"]: answer for answer in some.to_json()}
    assert answers["speculative()"]["verdict"] == "exact"
    assert answers["speculative()"]["l1_error"] < 1e-12
    assert answers["speculative()"]["honest"] is True
    assert answers["seed of its own"]["l1_error"] is None
    assert answers["resampled from p"]["expected"] == "not exact"


def test_the_picture_shows_those_that_have_a_law(some):
    figure = plots.gallery(some)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["speculative()", "resampled from p"]
    assert any("2 more rogues have no law" in text.get_text() for text in figure.texts)

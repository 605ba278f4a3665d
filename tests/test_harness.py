"""What a learner is told: each kind of wrong answer has a message, each reasonable right one passes."""

import contextlib
import logging
import sys
import time
import warnings
from collections import namedtuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from specdec_lab.checks import CheckFailed, afresh, guard, harness
from specdec_lab.checks.harness import Attempt, check
from specdec_lab.checks.toys import FakeDevice, SpyLM, greedy
from specdec_lab.decoding import autoregressive


def library_double(x):
    return 2 * x


@check(read="Doubling", reference=library_double)
def double(attempt: Attempt, seed: int | None) -> None:
    """Twice the number."""
    attempt.same_number(attempt(21), 42, suspects={"that is the number itself.": 21})


@check(read="Listing")
def listing(attempt: Attempt, seed: int | None) -> None:
    """Three tokens."""
    attempt.same_tokens(attempt(), [1, 2, 3])


@check(read="Sharing")
def share(attempt: Attempt, seed: int | None) -> None:
    """A distribution."""
    attempt.same_distribution(attempt(), torch.tensor([0.25, 0.75], dtype=torch.float64))


@check(read="Searching", reference=library_double)
def find(attempt: Attempt, seed: int | None) -> None:
    """None, because there is none."""
    found = attempt(21, may_be_none=True)
    attempt.require(found is None, "there is none.")


def message(check_, answer, **options) -> str:
    with pytest.raises(CheckFailed) as failure:
        check_(answer, **options)
    return str(failure.value)


# --- what passes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [42, 42.0, np.int64(42), np.float32(42), torch.tensor(42), torch.tensor(42.0), np.array(42.0)],
    ids=repr,
)
def test_any_kind_of_number_passes(value, capsys):
    double(lambda x: value)
    assert capsys.readouterr() == ("✓ double\n", "")


@pytest.mark.parametrize(
    "tokens",
    [
        [1, 2, 3],
        (1, 2, 3),
        torch.tensor([1, 2, 3]),
        np.array([1, 2, 3]),
        [torch.tensor(1), np.int32(2), 3],
        namedtuple("Three", "a b c")(1, 2, 3),
    ],
    ids=repr,
)
def test_any_kind_of_token_list_passes(tokens):
    listing(lambda: tokens)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_any_kind_of_distribution_passes(dtype):
    share(lambda: torch.tensor([0.25, 0.75], dtype=dtype))
    share(lambda: [0.25, 0.75])
    share(lambda: np.array([0.25, 0.75]))
    share(lambda: torch.tensor([0.25, 0.75], requires_grad=True))


def test_none_passes_where_it_is_an_answer():
    find(lambda x: None)
    assert "there is none." in message(find, lambda x: x)
    assert "calls the library's `library_double`" in message(find, lambda x: library_double(x))


# --- what does not -----------------------------------------------------------------------------


class AlwaysEqual:
    def __eq__(self, other):
        return True

    __hash__ = None  # type: ignore[assignment]


class EqualFloat(float):
    def __eq__(self, other):
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "returned None. Is there a `return`"),
        (True, "a value of type bool, expected a number"),
        ("42", "a value of type str, expected a number"),
        ([42], "a list of 1, expected a number"),
        (torch.tensor([42]), "a tensor of shape [1] and dtype int64, expected a number"),
        (AlwaysEqual(), "a value of type AlwaysEqual, expected a number"),
        (EqualFloat(1.0), "this is not the right number."),
        (float("nan"), "it gave nan, expected a finite number"),
        (42 + 0j, "a value of type complex"),
        (21, "that is the number itself."),
        (43, "yours     43\n  expected  42"),
    ],
    ids=repr,
)
def test_lookalikes_of_a_number_are_told_apart(value, says):
    assert says in message(double, lambda x: value)


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ([1.0, 2.0, 3.0], "a value of type float, expected a whole number"),
        (torch.tensor([1.0, 2.0, 3.0]), "expected a whole number"),
        (torch.tensor([[1, 2, 3]]), "a tensor of shape [1, 3] and dtype int64, expected one row"),
        ("123", "a value of type str, expected a list of token ids"),
        ({1, 2, 3}, "a value of type set"),
        ([1, 2], "yours     [1, 2]\n  expected  [1, 2, 3]"),
        ([True, 2, 3], "a value of type bool"),
        ([AlwaysEqual()] * 3, "a value of type AlwaysEqual"),
        (iter([1, 2, 3]), "a value of type list_iterator"),
    ],
    ids=repr,
)
def test_lookalikes_of_tokens_are_told_apart(tokens, says):
    assert says in message(listing, lambda: tokens)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (torch.tensor([[0.25, 0.75]]), "shape [1, 2] and dtype float32, expected 2 numbers"),
        ([0.25], "a tensor of shape [1]"),
        ([0.75, 0.25], "yours     [0.75, 0.25]\n  expected  [0.25, 0.75]"),
        (np.array(["a", "b"]), "an array of shape [2] and dtype <U1"),
        (torch.tensor([float("nan"), 0.75]), "these are not the right probabilities."),
    ],
    ids=repr,
)
def test_lookalikes_of_a_distribution_are_told_apart(row, says):
    assert says in message(share, lambda: row)


@pytest.mark.parametrize("answer", [None, ...])
def test_a_blank_value_is_not_implemented_yet(answer):
    assert message(double, answer) == f"✗ double: not implemented yet: `double` is still {answer}."


def test_a_stub_is_not_implemented_yet_and_nothing_more():
    def stub(x):
        raise NotImplementedError("not implemented yet")

    assert message(double, stub) == "✗ double: not implemented yet.\n  read      Doubling"


def test_a_value_in_place_of_the_function():
    assert "`double` is a value of type int, expected your function" in message(double, 42)


def test_an_exception_shows_the_learners_own_line():
    def learner(x):
        helper = [1, 2]
        return helper[x]

    text = message(double, learner)
    assert "your code raised IndexError: list index out of range" in text
    assert "return helper[x]" in text
    assert "called    double(21)" in text


def test_an_exception_deep_in_a_library_shows_the_learners_line():
    def learner(x):
        return torch.zeros(3) @ torch.zeros(x)

    text = message(double, learner)
    assert "your code raised RuntimeError" in text
    assert "return torch.zeros(3) @ torch.zeros(x)" in text


def test_a_function_of_the_wrong_shape():
    assert "it cannot be called like this" in message(double, lambda: 42)


@pytest.mark.parametrize("leave", [sys.exit, exit, lambda: (_ for _ in ()).throw(SystemExit)])
def test_an_exit_is_a_failure_like_any_other(leave):
    assert "your code raised" in message(double, lambda x: leave() or list(leave()))


def test_what_the_learner_printed_is_shown_on_failure_only(capsys):
    def noisy(x):
        print("x is", x)
        print("warned", file=sys.stderr)
        warnings.warn("careful", stacklevel=1)
        logging.getLogger("mine").error("logged")
        return 42

    double(noisy)
    assert capsys.readouterr() == ("✓ double\n", "")
    assert "printed   x is 21" in message(double, lambda x: print("x is", x) or 1)


def test_a_flood_of_output_is_cut():
    def flood(x):
        for _ in range(10_000):
            print("x" * 100)
        return 1

    assert len(message(double, flood)) < 1000


def test_an_endless_loop_is_ended(monkeypatch):
    monkeypatch.setattr(harness, "SECONDS", 0.2)

    def endless(x):
        while True:
            with contextlib.suppress(Exception):
                time.sleep(0.01)

    assert "not finished after 0.2 seconds. A loop that never ends, or far too much work?" in message(
        double, endless
    )


# --- closed books ------------------------------------------------------------------------------


def test_calling_the_reference_is_noticed_by_any_name():
    alias = library_double
    assert "calls the library's `library_double`" in message(double, lambda x: alias(x))
    assert "calls the library's `library_double`" in message(double, library_double)


def test_calling_the_reference_is_noticed_even_when_the_objection_is_caught():
    def sly(x):
        try:
            return library_double(x)
        except BaseException:
            return 42

    assert "calls the library's `library_double`" in message(double, sly)


def test_the_books_are_open_again_afterwards():
    with pytest.raises(CheckFailed):
        double(library_double)
    assert library_double(2) == 4
    assert sys.getprofile() is None


def test_a_class_and_a_module_can_be_closed():
    codes = guard.codes_of(SpyLM, harness)
    assert SpyLM.forward.__code__ in codes
    assert harness.check.__code__ in codes
    assert torch.nn.functional.relu.__code__ not in codes


def test_checks_loaded_afresh_forget_what_was_replaced(monkeypatch):
    import specdec_lab.checks.memory_bound_decoding as module
    from specdec_lab import roofline

    saved = {name: m for name, m in sys.modules.items() if name.startswith("specdec_lab.checks")}
    monkeypatch.setattr(module, "cached_decode", lambda *a, **k: None)
    monkeypatch.setattr(roofline, "matrix_weights", lambda shape: 5)
    try:
        with pytest.raises(Exception, match="this is not the number of weights"):
            afresh("memory_bound_decoding").matrix_weights(lambda shape: 5)
        with pytest.raises(Exception, match="calls the library's `attainable_flops`"):
            afresh("memory_bound_decoding").attainable_flops(roofline.attainable_flops)
        assert sys.modules["specdec_lab.roofline"] is roofline
        with pytest.raises(Exception, match="not implemented yet"):
            afresh("memory_bound_decoding").cached_decode(None)
    finally:
        sys.modules.update(saved)


# --- the notebook's view -----------------------------------------------------------------------


def test_ipython_shows_the_message_and_no_stack():
    failure = CheckFailed("double", "wrong.", [("yours", "1\n2")], "Doubling")
    assert failure._render_traceback_() == [
        "✗ double: wrong.",
        "  yours     1",
        "            2",
        "  read      Doubling",
    ]


def test_passes_is_silent(capsys):
    assert double.passes(lambda x: 42)
    assert not double.passes(lambda x: print("?"))
    assert capsys.readouterr() == ("", "")


# --- toys --------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_the_toys_greedy_decoding_is_the_librarys(seed, prompt):
    model = SpyLM.make(seed)
    truth = [token for one in autoregressive(model, prompt, max_new_tokens=6) for token in one.tokens]
    model.reset()
    assert greedy(model, prompt, 6) == truth
    assert model.length == 0


def test_a_fake_device_works_behind_the_programs_back():
    device = FakeDevice([2.0, 3.0], launch=0.5)
    device.run()
    assert device.clock() == 100.5
    device.run()
    device.synchronize()
    assert device.clock() == pytest.approx(100.5 + 2.0 + 3.0)

"""Budgets, ends and limits: never a token too many, never one behind a stop."""

import pytest
from helpers import byte_decode, tiny_lm, tokens_of

from specdec_lab.decoding import autoregressive, generate, speculative
from specdec_lab.drafters import Drafter, ModelDrafter, NGramDrafter, ScriptedDrafter
from specdec_lab.language_model import TableLM
from specdec_lab.records import Draft
from specdec_lab.stopping import StopRule


def chain(text: bytes, **options) -> TableLM:
    """A model over bytes that is certain of ``text`` (whose neighbouring pairs must be distinct)."""
    table = {(): one_hot(0)}
    for place in range(1, len(text)):
        table[tuple(text[max(0, place - 3) : place])] = one_hot(text[place])
    return TableLM(table, **options)


def one_hot(token):
    return [float(token == other) for other in range(256)]


TEXT = b"abcdefghij\x00klmnop"
TARGET = chain(TEXT)
PROMPT = [TEXT[0]]
REST = list(TEXT[1:])


def decode(gamma, target=TARGET, script=REST, **options):
    drafter = ScriptedDrafter(256, script)
    return list(speculative(target, drafter, PROMPT, gamma=gamma, **options))


@pytest.mark.parametrize("gamma", [0, 1, 4, 9])
@pytest.mark.parametrize("budget", [0, 1, 2, 5, 8])
def test_the_budget_is_met_exactly(budget, gamma):
    rounds = decode(gamma, max_new_tokens=budget)
    assert tokens_of(rounds) == REST[:budget]
    assert [one.stop_reason for one in rounds] == [None] * (len(rounds) - 1) + ["budget"] * bool(budget)
    assert tokens_of(autoregressive(TARGET, PROMPT, max_new_tokens=budget)) == REST[:budget]


@pytest.mark.parametrize("budget", [1, 2])
def test_a_draft_never_overruns_the_budget(budget):
    (one,) = decode(8, max_new_tokens=budget)
    assert one.drafted == budget - 1


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize("gamma", [0, 3, 5])
def test_nothing_follows_an_end_token_at_any_place_of_the_draft(place, gamma):
    rounds = decode(gamma, max_new_tokens=16, stop=StopRule([REST[place]]))
    assert tokens_of(rounds) == REST[: place + 1]
    assert rounds[-1].stop_reason == "end token"
    assert sum(one.accepted for one in rounds) <= place + 1


def test_tokens_behind_an_accepted_end_token_are_not_counted():
    (one,) = decode(6, max_new_tokens=16, stop=StopRule([REST[2]]))
    assert (one.drafted, one.accepted, one.closing, one.closing_kind) == (3, 3, None, None)
    assert one.fed == 1 + 3  # they were not even verified


def test_the_first_of_several_end_tokens_ends_it():
    rounds = decode(5, max_new_tokens=16, stop=StopRule([REST[6], REST[3], 200]))
    assert tokens_of(rounds) == REST[:4]


def test_an_end_token_in_the_prompt_ends_nothing():
    rounds = decode(4, max_new_tokens=5, stop=StopRule(PROMPT))
    assert tokens_of(rounds) == REST[:5]


def test_an_end_token_on_the_last_token_of_the_budget_is_an_end():
    rounds = decode(9, max_new_tokens=4, stop=StopRule([REST[3]]))
    assert tokens_of(rounds) == REST[:4]
    assert rounds[-1].stop_reason == "end token"


def test_a_stop_and_the_budget_inside_one_block():
    rounds = decode(9, max_new_tokens=6, stop=StopRule([], ["de"], byte_decode))
    assert tokens_of(rounds) == REST[:4]
    assert rounds[-1].stop_reason == "stop string"


@pytest.mark.parametrize("gamma", [0, 2, 8])
def test_a_stop_string_may_span_tokens_and_end_inside_a_block(gamma):
    rounds = decode(gamma, max_new_tokens=16, stop=StopRule([], ["zz", "efg"], byte_decode))
    assert tokens_of(rounds) == list(b"bcdefg")
    assert TARGET.length == len(PROMPT) + 6 - 1  # the cache holds all but the last


def test_without_end_ids_the_budget_decides():
    assert len(tokens_of(decode(3, max_new_tokens=16))) == 16


def test_token_zero_is_an_ordinary_token():
    rounds = decode(12, max_new_tokens=13)
    assert 0 in tokens_of(rounds)
    assert tokens_of(rounds) == REST[:13]
    assert tokens_of(decode(4, max_new_tokens=16, stop=StopRule([0]))) == REST[:10]


def test_one_token_prompts_need_no_prefill():
    rounds = decode(3, max_new_tokens=4)
    assert rounds[0].fed == 1 + 3


@pytest.mark.parametrize("gamma", [0, 4])
def test_the_models_context_ends_a_generation(gamma):
    target = chain(TEXT, context_limit=6)
    rounds = decode(gamma, target, max_new_tokens=16)
    assert tokens_of(rounds) == REST[:5]
    assert rounds[-1].stop_reason == "context limit"


def test_a_prompt_that_fills_the_context_is_refused():
    target = chain(TEXT, context_limit=4)
    with pytest.raises(ValueError, match=r"prompt: got 4 tokens, expected fewer than 4.*context"):
        list(autoregressive(target, list(TEXT[:4]), max_new_tokens=1))
    assert list(autoregressive(target, list(TEXT[:4]), max_new_tokens=0)) == []


def test_the_context_limit_of_a_real_architecture():
    target, small = tiny_lm(max_position_embeddings=12), tiny_lm(seed=1)
    for drafter in (None, ModelDrafter(small)):
        made = generate(target, [1, 2, 3], drafter=drafter, max_new_tokens=50)
        assert (len(made.tokens), made.stop_reason) == (9, "context limit")


@pytest.mark.parametrize("draft_context", [1, 4, 6, 11])
def test_a_draft_model_with_a_shorter_context_drafts_less_and_then_nothing(draft_context):
    target, small = tiny_lm(seed=0), tiny_lm(seed=0, max_position_embeddings=draft_context)
    plain = generate(target, [1, 2, 3], max_new_tokens=20)
    rounds = list(speculative(target, ModelDrafter(small), [1, 2, 3], max_new_tokens=20, gamma=4))
    assert tokens_of(rounds) == plain.tokens
    assert all(
        len(plain.prompt_tokens) + sum(len(o.tokens) for o in rounds[:i]) + one.drafted
        <= draft_context + 1
        for i, one in enumerate(rounds)
        if one.drafted
    )
    assert rounds[-1].drafted == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": []}, "prompt: got no tokens"),
        ({"max_new_tokens": -1}, "max_new_tokens: got -1"),
        ({"gamma": -2}, "gamma: got -2"),
        ({"prompt": [999]}, "tokens: got id 999, expected 0 to 255"),
        ({"drafter": NGramDrafter(255)}, "drafter: got a vocabulary of 255, expected 256"),
    ],
)
def test_arguments_that_cannot_work_are_refused_by_name(options, message):
    arguments = {
        "target": TARGET,
        "drafter": NGramDrafter(256),
        "prompt": PROMPT,
        "max_new_tokens": 4,
        "gamma": 2,
    } | options
    with pytest.raises(ValueError, match=f"^{message}"):
        list(speculative(**arguments))


def test_a_drafter_that_proposes_too_much_is_refused():
    class Chatty(Drafter):
        def propose(self, prefix, gamma, chooser) -> Draft:
            return self.certain_draft([1] * (gamma + 1))

    with pytest.raises(ValueError, match="drafter: proposed 3 tokens, expected at most 2"):
        list(speculative(TARGET, Chatty(256), PROMPT, max_new_tokens=9, gamma=2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], ["", "x"], byte_decode), "stop_strings: got an empty string"),
        (([], ["x"]), "stop_strings: got some but no tokenizer"),
        (([], "stop", byte_decode), "stop_strings: got 'stop', expected a list"),
    ],
)
def test_stop_strings_that_cannot_work_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        StopRule(*arguments)

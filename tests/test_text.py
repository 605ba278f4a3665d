"""Text as it comes: pieces add up to the whole, characters and stop strings may span tokens."""

import pytest
from helpers import byte_decode, tiny_lm
from hypothesis import given
from hypothesis import strategies as st

from specdec_lab.decoding import generate
from specdec_lab.text import Transcript, encode, transcribe, visible


@given(st.text(max_size=12), st.integers(0, 3))
def test_pieces_of_any_bytes_add_up(text, broken):
    tokens = list(text.encode())
    tokens = tokens[: len(tokens) - broken]  # may end inside a character
    transcript = Transcript(byte_decode)
    pieces = [transcript.push(token) for token in tokens] + [transcript.finish()]
    assert "".join(pieces) == transcript.text == byte_decode(tokens)


def test_an_unfinished_character_is_held_back():
    transcript = Transcript(byte_decode)
    assert [transcript.push(token) for token in "é!".encode()] == ["", "é", "!"]


@given(
    st.text("abc", max_size=20),
    st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_the_text_ends_behind_the_first_stop_string_to_be_completed(text, stops):
    ends = [text.find(stop) + len(stop) for stop in stops if stop in text]
    expected = text[: min(ends)] if ends else text
    assert transcribe(list(text.encode()), byte_decode, stops) == expected


def test_a_stop_string_inside_a_token_cuts_the_token():
    words = ["Hello", " world. Bye", " now"]
    transcript = Transcript(lambda tokens: "".join(words[token] for token in tokens), ["."])
    assert [transcript.push(token) for token in range(3)] == ["Hello", " world.", ""]
    assert transcript.text == "Hello world."
    assert transcript.finish() == ""


def test_of_two_stop_strings_in_one_token_the_first_to_be_completed_cuts():
    assert transcribe([0], lambda tokens: "one. two! three" if tokens else "", ["!", "."]) == "one."


def test_a_leading_space_that_a_tokenizer_drops_is_not_dropped_in_the_middle():
    words = ["▁one", "▁two", "▁three"]

    def decode(tokens):
        return "".join(words[token] for token in tokens).replace("▁", " ").removeprefix(" ")

    assert transcribe([0, 1, 2], decode) == "one two three"


def test_prompts_that_cannot_be_read_are_refused():
    with pytest.raises(ValueError, match="prompt: got text without a tokenizer"):
        generate(tiny_lm(), "hello", max_new_tokens=1)
    with pytest.raises(ValueError, match="chat: got True with token ids"):
        encode(None, [1, 2], chat=True)
    with pytest.raises(ValueError, match="seed: got 1 beside a chooser"):
        generate(tiny_lm(), [1], seed=1, chooser=object())


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (" sky", " sky"),
        ("  ", "␣␣"),
        ("\n", "⏎"),
        (".\n\n", ".⏎⏎"),
        ("\ta\r", "⇥a␍"),
        ("\x1b[0m", "⟨U+001B⟩[0m"),
        ("\u200b", "⟨U+200B⟩"),
        ("\u202e", "⟨U+202E⟩"),
        ("שלום", "שלום"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("", ""),
    ],
)
def test_every_character_of_a_token_can_be_seen(text, seen):
    assert visible(text) == seen

"""Tokens to text as they come: pieces that add up to the whole, and stop strings that span tokens."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Tokenizer: TypeAlias = "PreTrainedTokenizerBase"

UNFINISHED = "\N{REPLACEMENT CHARACTER}"
"""What a decoder prints for a character whose bytes have not all arrived."""

Decode = Callable[[list[int]], str]
_SIGNS = {"\n": "⏎", "\t": "⇥", "\r": "␍"}
_HIDDEN = ("Cc", "Cf", "Zl", "Zp", "Co", "Cs")
_JOINERS = "\u200c\u200d"
"""Within an emoji, and between letters that are written together."""


class Transcript:
    """The text of a growing sequence of tokens.

    Decoding each token by itself is wrong (a character may span tokens; some tokenizers drop a
    leading space), and decoding everything anew for each token is quadratic. So a window is decoded:
    the tokens already shown last, and those not shown yet.

    Args:
        decode: token ids -> text, special tokens left out.
        stop_strings: the text ends right behind the first of these to be completed.
    """

    def __init__(self, decode: Decode, stop_strings: Sequence[str] = ()) -> None:
        self._decode = decode
        self._stop_strings = tuple(stop_strings)
        self._shown: list[int] = []
        self._waiting: list[int] = []
        self.text = ""
        self.stopped = False

    def push(self, token: int) -> str:
        """The text that ``token`` completes: empty while a character is unfinished, or once stopped."""
        if self.stopped:
            return ""
        self._waiting.append(token)
        piece = self._new_text()
        if piece.endswith(UNFINISHED):
            return ""
        self._shown, self._waiting = self._waiting, []
        return self._append(piece)

    def finish(self) -> str:
        """What was still held back, with replacement characters for bytes that never came."""
        if self.stopped or not self._waiting:
            return ""
        piece = self._new_text()
        self._waiting = []
        return self._append(piece)

    def _new_text(self) -> str:
        return self._decode(self._shown + self._waiting)[len(self._decode(self._shown)) :]

    def _append(self, piece: str) -> str:
        end = self._end_of_stop_string(piece)
        if end is not None:
            self.stopped = True
            piece = piece[: end - len(self.text)]
        self.text += piece
        return piece

    def _end_of_stop_string(self, piece: str) -> int | None:
        """Where, in the whole text, the first stop string to be completed by ``piece`` ends."""
        ends = []
        for stop in self._stop_strings:
            start = max(0, len(self.text) - len(stop) + 1)
            found = (self.text[start:] + piece).find(stop)
            if found >= 0:
                ends.append(start + found + len(stop))
        return min(ends, default=None)


def transcribe(tokens: Sequence[int], decode: Decode, stop_strings: Sequence[str] = ()) -> str:
    """The whole text of finished ``tokens``; the same as streaming them, and cut at the same place."""
    transcript = Transcript(decode, stop_strings)
    for token in tokens:
        transcript.push(token)
    transcript.finish()
    return transcript.text


def encode(tokenizer: Tokenizer | None, prompt: str | Sequence[int], chat: bool = False) -> list[int]:
    """Token ids of a prompt; ids pass through.

    Args:
        tokenizer: needed for text.
        prompt: text or token ids.
        chat: wrap the text in the tokenizer's chat template, as the user's turn.

    Raises:
        ValueError: for text without a tokenizer, or ``chat`` without a template or with ids.
    """
    if not isinstance(prompt, str):
        if chat:
            raise ValueError("chat: got True with token ids, expected a text prompt")
        return [int(token) for token in prompt]
    if tokenizer is None:
        raise ValueError("prompt: got text without a tokenizer, expected token ids or a tokenizer")
    if not chat:
        return list(tokenizer(prompt).input_ids)
    if not tokenizer.chat_template:
        raise ValueError("chat: got True, expected a tokenizer that has a chat template")
    turns = [{"role": "user", "content": prompt}]
    text = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    return list(tokenizer(text, add_special_tokens=False).input_ids)


def decoder(tokenizer: Tokenizer) -> Decode:
    """Token ids -> text with special tokens left out and spaces exactly as the tokens have them."""

    def decode(tokens: list[int]) -> str:
        return str(
            tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )

    return decode


def visible(text: str) -> str:
    """A token's text on one line, of which nothing is hidden or changes what stands around it.

    White space alone, line ends and tabs become signs; other control characters, and those that turn
    the direction of writing, become their numbers.
    """
    if not text.strip(" "):
        return "␣" * len(text)
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    hidden = unicodedata.category(character) in _HIDDEN and character not in _JOINERS
    return f"⟨U+{ord(character):04X}⟩" if hidden else character

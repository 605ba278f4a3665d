"""When a generation ends before its budget: end tokens and stop strings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specdec_lab.records import StopReason
from specdec_lab.text import Decode, Transcript


class StopRule:
    """Ends a generation at the first of several end tokens, or behind the first stop string.

    Only new tokens are looked at: an end token in the prompt ends nothing.

    Args:
        end_ids: end-of-sequence token ids; empty for none. The end token itself is emitted.
        stop_strings: may span tokens. The token that completes one is the last to be emitted.
        decode: token ids -> text; needed with ``stop_strings``.

    Raises:
        ValueError: for an empty stop string, or stop strings without ``decode``.
    """

    def __init__(
        self,
        end_ids: Iterable[int] = (),
        stop_strings: Sequence[str] = (),
        decode: Decode | None = None,
    ) -> None:
        if isinstance(stop_strings, str):
            raise ValueError(f"stop_strings: got {stop_strings!r}, expected a list of strings")
        if any(not stop for stop in stop_strings):
            raise ValueError("stop_strings: got an empty string, expected at least one character")
        if stop_strings and decode is None:
            raise ValueError("stop_strings: got some but no tokenizer, expected one to read text with")
        self.end_ids = frozenset(end_ids)
        self._stop_strings = tuple(stop_strings)
        self._decode = decode

    def watch(self) -> StopWatch:
        """A watcher for one generation."""
        if self._decode is None or not self._stop_strings:
            return StopWatch(self.end_ids, None)
        return StopWatch(self.end_ids, Transcript(self._decode, self._stop_strings))


class StopWatch:
    """Reads one generation's new tokens, in order, and says where it ends."""

    def __init__(self, end_ids: frozenset[int], transcript: Transcript | None) -> None:
        self._end_ids = end_ids
        self._transcript = transcript

    def read(self, tokens: Sequence[int]) -> tuple[int, StopReason | None]:
        """How many of ``tokens`` may be emitted, and why no more than that."""
        for count, token in enumerate(tokens, start=1):
            if token in self._end_ids:
                return count, "end token"
            if self._transcript is not None:
                self._transcript.push(token)
                if self._transcript.stopped:
                    return count, "stop string"
        return len(tokens), None

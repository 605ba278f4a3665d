"""The verdict on a whole decoder: its exact output law beside the target's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from specdec_lab.audit.law import (
    MAX_PATHS,
    PRUNE_BELOW,
    SECONDS_PER_PATH,
    Decoder,
    DecoderFault,
    Fault,
    Law,
    OutputLaw,
    Tokens,
    output_law,
    target_law,
)
from specdec_lab.enumeration import Choice
from specdec_lab.language_model import CausalLM
from specdec_lab.sampling import Sampling
from specdec_lab.sheet import Sheet, Shown, Tone, Toned

Verdict = Literal["exact", "not exact", "undecided"] | Fault

TOLERANCE = 1e-6
"""Total variation that is put down to rounding. Toy models make 1e-7 at most with probabilities in
float32, and 1e-15 in float64; the mildest of the gallery's faults makes 8e-6."""
NETWORK_TOLERANCE = 1e-5
"""The same for a network in float32: with and without its cache it gives rows that differ by 1e-7 to
1e-6."""
ROUNDING = 1e-12
"""Probability that sums in float64 may lose."""
SHOWN = 3
TONES: dict[str, Tone] = {"exact": "good", "undecided": "unsure"}


@dataclass(frozen=True)
class DecoderAudit(Shown):
    """What a decoder emits, beside what the target would emit by itself.

    Args:
        name: what to call the decoder.
        prompt: what both continue.
        length: the most tokens it was asked for.
        end_ids: the end tokens it was meant to stop at.
        target: the target's own law, multiplied out without any decoder.
        output: the decoder's law; empty if it has none.
        tolerance: total variation that is put down to rounding.
        fault: what the decoder did if it could not be enumerated, with ``message`` and ``path``.
    """

    name: str
    prompt: Tokens
    length: int
    end_ids: frozenset[int]
    target: Law
    output: OutputLaw = field(default_factory=OutputLaw)
    tolerance: float = TOLERANCE
    fault: Fault | None = None
    message: str = ""
    path: tuple[Choice, ...] = ()

    @property
    def law(self) -> Law:
        """The decoder's own law, as far as it was walked."""
        return self.output.law

    @cached_property
    def differences(self) -> dict[Tokens, float]:
        """Decoder minus target, for each sequence that either can emit."""
        every = self.law | self.target
        return {key: self.law.get(key, 0.0) - self.target.get(key, 0.0) for key in every}

    @property
    def l1_error(self) -> float | None:
        """Sum of the absolute differences, unwalked mass counted as missing; None without a law."""
        return None if self.fault else sum(map(abs, self.differences.values()))

    @property
    def total_variation(self) -> tuple[float, float] | None:
        """Bounds on the total variation between the two laws; equal if every path was walked.

        What is over-produced so far only grows by walking on; what is under-produced can only shrink.
        """
        if self.fault:
            return None
        differences = self.differences.values()
        over = sum(max(0.0, difference) for difference in differences)
        under = sum(max(0.0, -difference) for difference in differences)
        return min(over, under), max(over, under)

    @property
    def verdict(self) -> Verdict:
        """ "exact", "not exact", "undecided" (too much was left unwalked), or what it did wrong."""
        if self.fault:
            return self.fault
        assert self.total_variation is not None
        least, most = self.total_variation
        if most <= self.tolerance:
            return "exact"
        return "not exact" if least > self.tolerance else "undecided"

    @property
    def reason(self) -> str:
        """The verdict's grounds in one sentence."""
        if self.fault:
            return self.message
        assert self.total_variation is not None
        most = self.total_variation[1]
        if self.verdict == "exact":
            return f"every sequence is as likely as under the target (TV at most {small_number(most)})"
        if self.verdict == "undecided":
            left = self.output.unwalked + self.output.pruned
            return f"a probability of {left:.1e} was not walked; raise the budget of paths"
        if self._begins_with_the_prompt:
            return "every output begins with the prompt, expected only what is new"
        overlong = self._mass_of(lambda tokens: len(tokens) > self.length)
        if overlong > self.tolerance:
            return f"emits more than {self.length} tokens, with probability {overlong:.3g}"
        past_the_end = self._mass_of(lambda tokens: not self.end_ids.isdisjoint(tokens[:-1]))
        if past_the_end > self.tolerance:
            return f"goes on behind an end token, with probability {past_the_end:.3g}"
        if not self.output.choices:
            return f"it asked the chooser nothing, so it always emits {list(next(iter(self.law)))}"
        tokens = max(self.differences, key=lambda key: abs(self.differences[key]))
        return (
            f"{list(tokens)} comes with probability {self.law.get(tokens, 0.0):.6f} instead of "
            f"{self.target.get(tokens, 0.0):.6f}"
        )

    @property
    def _begins_with_the_prompt(self) -> bool:
        start = self.prompt[: self.length]
        return all(key[: len(start)] == start for key in self.law) and not all(
            key[: len(start)] == start for key in self.target
        )

    def _mass_of(self, condition: Callable[[Tokens], bool]) -> float:
        return sum(mass for tokens, mass in self.law.items() if condition(tokens))

    def to_json(self) -> dict[str, Any]:
        """The verdict and the numbers behind it, for machines."""
        bounds = self.total_variation
        return {
            "name": self.name,
            "verdict": self.verdict,
            "reason": self.reason,
            "l1_error": self.l1_error,
            "total_variation": None if bounds is None else list(bounds),
            "paths": self.output.paths,
            "choices": self.output.choices,
            "mass_covered": self.output.covered,
            "mass_pruned": self.output.pruned,
            "mass_unwalked": self.output.unwalked,
            "block_efficiency": self.output.block_efficiency or None,
            "path_to_fault": [str(choice) for choice in self.path],
            "seconds": self.output.seconds,
        }

    def sheet(self) -> Sheet:
        """The sequences that differ the most, and the verdict below them."""
        ranked = sorted(self.differences.items(), key=lambda item: item[1], reverse=True)
        if len(ranked) > 2 * SHOWN:
            ranked = ranked[:SHOWN] + ranked[-SHOWN:]
        rows = [
            (
                " ".join(map(str, tokens)) or "(nothing)",
                f"{self.law.get(tokens, 0.0):.6f}",
                f"{self.target.get(tokens, 0.0):.6f}",
                f"{difference:+.1e}",
            )
            for tokens, difference in ranked
        ]
        return Sheet(
            title=f"The law of {self.name}, and the target's own",
            columns=("tokens", "decoder", "target", "difference"),
            rows=() if self.fault else tuple(rows),
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Iterable[str | Toned]:
        yield Toned(f"{self.verdict}: {self.reason}", TONES.get(self.verdict, "bad"))
        if self.fault:
            yield "path: " + path_text(self.path)
            return
        out = self.output
        rate = out.paths / max(out.seconds, 1e-9)
        yield (
            f"L1 {small_number(self.l1_error)} over {len(self.differences)} sequences; "
            f"{out.paths:,} paths, which cover a probability of {out.covered:.6g}, "
            f"in {out.seconds:.1f} s ({rate:,.0f} a second)"
        )
        if out.unwalked > 0.0:
            yield f"{out.unwalked:.1e} of the probability was left for want of budget"
        if out.pruned > 0.0:
            yield f"{out.pruned:.1e} of the probability lies on paths too unlikely to follow"
        if out.block_efficiency:
            walked = "" if out.unwalked + out.pruned < ROUNDING else " of the part that was walked"
            yield (
                f"{out.block_efficiency:.2f} tokens per target forward, in exact expectation{walked} "
                "(includes the bonus; 1 is plain decoding)"
            )


def audit_decoder(
    decoder: Decoder,
    target: CausalLM,
    prompt: Sequence[int],
    length: int,
    *,
    sampling: Sampling | None = None,
    end_ids: Iterable[int] = (),
    name: str | None = None,
    tolerance: float = TOLERANCE,
    prune_below: float = PRUNE_BELOW,
    max_paths: int = MAX_PATHS,
    seconds_per_path: float = SECONDS_PER_PATH,
    progress: bool = False,
) -> DecoderAudit:
    """Compare the exact law of a decoder's output with the target's own.

    Args:
        decoder: (target, prompt, max_new_tokens, chooser) -> the new tokens. The target comes freshly
            reset, and every random choice has to be made through the chooser.
        target: a model with a small vocabulary. ``RandomLM`` is the strictest: its rows depend on the
            whole prefix, so no stale cache goes unseen.
        prompt: token ids.
        length: most new tokens.
        sampling: the temperature and truncation that the decoder is meant to have; None is temperature
            1 and nothing else.
        end_ids: end tokens that the decoder is meant to stop at.
        name: what to call it in reports; None is the function's own name.
        tolerance: total variation that is put down to rounding; ``NETWORK_TOLERANCE`` for networks in
            float32.
        prune_below, max_paths, seconds_per_path, progress: as in ``output_law``.

    Never raises for what the decoder does: that is the verdict.

    Raises:
        ValueError: for a budget below 1, or more sequences than can be written down.
    """
    title = name or str(getattr(decoder, "__name__", type(decoder).__name__))
    end_ids = frozenset(end_ids)
    own = target_law(target, prompt, length, sampling=sampling, end_ids=end_ids)
    audit = DecoderAudit(title, tuple(prompt), length, end_ids, own, tolerance=tolerance)
    try:
        output = output_law(
            decoder,
            target,
            prompt,
            length,
            prune_below=prune_below,
            max_paths=max_paths,
            seconds_per_path=seconds_per_path,
            progress=progress,
        )
    except DecoderFault as found:
        return replace(audit, fault=found.fault, message=found.message, path=found.path)
    return replace(audit, output=output)


def path_text(path: Sequence[Choice], most: int = 12) -> str:
    """A path in words, shortened in its middle."""
    words = [str(choice) for choice in path]
    if len(words) > most:
        words = [*words[: most // 2], f"... ({len(words) - most} more) ...", *words[-most // 2 :]]
    return ", ".join(words) or "before the first random choice"


def small_number(value: float | None) -> str:
    """An error in two digits; "0" only if it is exactly 0, "-" if there is none."""
    if value is None:
        return "-"
    return f"{value:.2g}"

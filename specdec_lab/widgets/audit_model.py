"""What the audit view shows, as data: the given p and q, the edited ones, and the step between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import torch
from torch import Tensor

from specdec_lab.audit.step import EXAMPLE_LABELS, EXAMPLE_P, EXAMPLE_Q, Row, StepAudit, audit_step
from specdec_lab.distributions import alpha
from specdec_lab.pretrained import Pair
from specdec_lab.provenance import Kind, provenance
from specdec_lab.randomness import SeededChooser
from specdec_lab.sampling import Sampling
from specdec_lab.sheet import Sheet
from specdec_lab.text import decoder, encode, visible

Side = Literal["p", "q"]
MOST_TOKENS = 12
"""More rows of sliders than this nobody reads."""
DECIMALS = 3
"""What a slider can hold of a weight."""
SHOWN_TOKENS = 5
"""Tokens of a real position that are shown by themselves; all others are in two lumps."""
LUMPS = ("rest, p ≥ q", "rest, p < q")
ROUNDING = 1e-12
"""An L1 error below this is what float64 leaves."""


@dataclass(frozen=True)
class Case:
    """A p and a q to begin with.

    Args:
        name: as it stands in the menu.
        labels: what to call the tokens, every character visible.
        p, q: weights; normalised they are the two distributions.
        about: what there is to see.
        kind, origin: what kind of numbers they are, and where they come from.
        below: what holds of the unedited numbers.
    """

    name: str
    labels: tuple[str, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    about: str
    kind: Kind = "theory"
    origin: str = "made-up weights, audited in float64"
    below: str = ""


_EXAMPLE = (tuple(map(float, EXAMPLE_P)), tuple(map(float, EXAMPLE_Q)))
_HAIR = 1e-9
MADE_UP = (
    Case(
        "Paris", EXAMPLE_LABELS, *_EXAMPLE, "The draft is too fond of Paris: it is often turned down."
    ),
    Case(
        "equal",
        EXAMPLE_LABELS,
        _EXAMPLE[0],
        _EXAMPLE[0],
        "Nothing is ever rejected, and the residual, which would be 0/0, is p and never drawn from.",
    ),
    Case(
        "disjoint",
        EXAMPLE_LABELS,
        (0.6, 0.4, 0.0, 0.0),
        (0.0, 0.0, 0.7, 0.3),
        "Everything is rejected, and the residual is p: slow, and still exact.",
    ),
    Case(
        "nearly equal",
        EXAMPLE_LABELS,
        _EXAMPLE[0],
        (0.35 + _HAIR, 0.40 - _HAIR, 0.20 + 2 * _HAIR, 0.05 - 2 * _HAIR),
        "q is off by 1e-9 or 2e-9, too little for three decimals: the residual is there all the same.",
    ),
)


@dataclass(frozen=True)
class Look:
    """One audit with what may be said of its numbers."""

    audit: StepAudit
    kind: Kind
    origin: str

    @property
    def sheet(self) -> Sheet:
        """The table; the sentences below it are left to ``figures``."""
        return replace(self.audit.sheet(), notes=())

    @property
    def figures(self) -> tuple[tuple[str, str, str], ...]:
        """(name, value, what it means) of the three numbers that sum the step up."""
        error = float(self.audit.l1_error)
        exact = "✓ p comes out, up to rounding" if error < ROUNDING else "✗ something else comes out"
        return (
            ("alpha", f"{100 * self.audit.alpha:.1f} %", "a draft is kept"),
            ("rejection mass", f"{100 * self.audit.rejection_mass:.3g} %", "a draft is replaced"),
            ("L1 error", f"{error:.1e}" if error else "0", exact),
        )


class Desk:
    """The state behind the view: which case, the weights as edited, and the last audit that was valid.

    Args:
        cases: to choose from; the first one is on the desk.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = {case.name: case for case in cases}
        self.choose(cases[0].name)

    def choose(self, name: str) -> None:
        """Take a case, or take it anew."""
        self.case = self.cases[name]
        self.weigh(self.case.p, self.case.q)

    def weigh(self, p: Sequence[float], q: Sequence[float]) -> None:
        """Set all weights; with nothing but zeros in p or q, the last valid audit stays."""
        self.weights: dict[Side, tuple[float, ...]] = {"p": tuple(p), "q": tuple(q)}
        if self.trouble:
            return
        audit = audit_step(normalised(p), normalised(q), self.case.labels)
        kind: Kind = "theory" if self.edited else self.case.kind
        origin = f"edited; it began as: {self.case.name}" if self.edited else self.case.origin
        self.look = Look(audit, kind, origin)

    def move(self, side: Side, token: int, value: float) -> None:
        """Set one weight from its slider.

        A slider knows three decimals, and says so when it is drawn: where that is the weight, rounded,
        nobody has moved it, and the weight stays what it is.
        """
        weights = list(self.weights[side])
        if round(value, DECIMALS) != round(weights[token], DECIMALS):
            weights[token] = value
            self.weigh(**(self.weights | {side: weights}))

    @property
    def edited(self) -> bool:
        """Whether the weights are not the case's any more."""
        return (self.weights["p"], self.weights["q"]) != (self.case.p, self.case.q)

    @property
    def trouble(self) -> str:
        """Why there is nothing to audit; empty if there is."""
        empty = " and of ".join(side for side, weights in self.weights.items() if not any(weights))
        if not empty:
            return ""
        return f"All weights of {empty} are 0: raise one. Shown is the last valid step."

    def shares(self, side: Side) -> tuple[str, ...]:
        """The weights of p or q as probabilities, in three decimals; dashes where they have no sum."""
        weights = self.weights[side]
        return tuple(map(_share, normalised(weights))) if any(weights) else ("–",) * len(weights)


def given_case(p: Row | None, q: Row | None, labels: Sequence[str] | None) -> Case | None:
    """The case of the caller's own p and q; None if there are none.

    Args:
        p, q: weights per token; both or neither.
        labels: what to call the tokens; None is their numbers.

    Raises:
        ValueError: for one without the other, lengths that do not fit, or weights that cannot be
            normalised.
    """
    if p is None and q is None:
        if labels is not None:
            raise ValueError("labels: got some without p and q, expected all three or none")
        return None
    rows = {"p": _weights("p", p), "q": _weights("q", q)}
    names = [str(i) for i in range(len(rows["p"]))] if labels is None else list(map(str, labels))
    if not len(rows["p"]) == len(rows["q"]) == len(names):
        raise ValueError(
            f"p, q, labels: got {len(rows['p'])}, {len(rows['q'])} and {len(names)} entries, expected "
            "as many of each as there are tokens"
        )
    shown = tuple(map(label, names))
    return Case("as given", shown, rows["p"], rows["q"], "p and q as they were given.")


def position_case(pair: Pair, prompt: str) -> Case:
    """p and q of a pair for the token behind a prompt, at temperature 1, with the rare tokens lumped.

    Args:
        pair: with a draft model.
        prompt: text.

    Raises:
        ValueError: for a pair without a draft model, or a prompt without tokens.
    """
    if pair.draft is None:
        raise ValueError("pair: got one without a draft model, expected one that has a q")
    tokens = encode(pair.tokenizer, prompt)
    if not tokens:
        raise ValueError(f"prompt: got {prompt!r}, expected text with at least one token")
    sampling, drafter = Sampling(temperature=1.0), pair.drafter("model")
    drafter.begin(sampling)
    draft = drafter.propose(tokens, 1, SeededChooser(0))
    logits = pair.target.extend(pair.target.rewind_to_match(tokens), rows=1)[0]
    p = sampling.distribution(tokens, logits).double().cpu()
    q = draft.row(0, len(p)).double().cpu()
    p, q = p / p.sum(), q / q.sum()
    singles, p_row, q_row = lumped(p, q)
    decode, made = decoder(pair.tokenizer), provenance(pair.target, drafter)
    return Case(
        "a real position",
        (*(label(decode([token])) for token in singles), *LUMPS),
        p_row,
        q_row,
        f"The token behind “{visible(prompt)}”: the {len(singles)} likeliest, all others in two lumps.",
        "measured",
        f"p of {made['target']}, q of {made['draft_model']}, {made['dtype']} on {made['device']}, "
        "temperature 1",
        f"Before any edit, alpha here is alpha over the whole vocabulary of {len(p)} tokens "
        f"({100 * alpha(p, q):.1f} %), exactly: within a lump the smaller of p and q is the same one "
        "for every token, so the sum of the minima is the minimum of the sums.",
    )


def lumped(
    p: Tensor, q: Tensor, most: int = SHOWN_TOKENS
) -> tuple[list[int], tuple[float, ...], tuple[float, ...]]:
    """The tokens that p or q makes likeliest, and p and q over these and over two lumps of all others.

    In the first lump p >= q holds for every token, in the second p < q; so alpha, and every other sum
    of the step, is the same over these few entries as over ``[vocab]``.

    Args:
        p, q: ``[vocab]``, float64.
        most: how many tokens stay by themselves.

    Returns:
        The tokens, likeliest first, and p and q with two entries more than these.
    """
    singles = torch.maximum(p, q).topk(min(most, len(p))).indices
    rest = torch.ones_like(p, dtype=torch.bool)
    rest[singles] = False
    lumps = (rest & (p >= q), rest & (p < q))
    rows = ((*row[singles].tolist(), *(float(row[lump].sum()) for lump in lumps)) for row in (p, q))
    p_row, q_row = rows
    return singles.tolist(), p_row, q_row


def normalised(weights: Sequence[float]) -> list[float]:
    """Weights as the distribution that they stand for."""
    total = sum(weights)
    return [weight / total for weight in weights]


def label(text: str) -> str:
    """A token's text with the spaces at its ends visible, too."""
    core = text.strip(" ")
    if not core:
        return visible(text) or "(empty)"
    before, _, after = text.partition(core)
    return "␣" * len(before) + visible(core) + "␣" * len(after)


def _weights(name: str, row: Row | None) -> tuple[float, ...]:
    if row is None:
        other = "q" if name == "p" else "p"
        raise ValueError(f"{name}: got none beside {other}, expected both or neither")
    if isinstance(row, Tensor) and row.dim() != 1:
        raise ValueError(f"{name}: got shape {list(row.shape)}, expected [vocab]")
    weights = [float(weight) for weight in (row.tolist() if isinstance(row, Tensor) else row)]
    if not 1 <= len(weights) <= MOST_TOKENS:
        raise ValueError(f"{name}: got {len(weights)} entries, expected 1 to {MOST_TOKENS}")
    if not (min(weights) >= 0.0 and 0.0 < sum(weights) < inf):
        raise ValueError(
            f"{name}: got entries that sum to {sum(weights):g} with smallest {min(weights):g}, "
            "expected weights: nothing negative, and not all zero"
        )
    return tuple(normalised(weights))


def _share(probability: float) -> str:
    return "<.001" if 0.0 < probability < 0.0005 else f"{probability:.3f}"

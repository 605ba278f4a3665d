"""Right answers to the exercises whose form the library does not have itself.

The course falls back on them where a learner's own does not pass its check yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from specdec_lab import distributions
from specdec_lab.distributions import wide
from specdec_lab.language_model import CausalLM
from specdec_lab.randomness import Chooser

Verify = Callable[[Sequence[int], Tensor], tuple[int, int]]
OneRound = Callable[[CausalLM, Sequence[int], Sequence[int]], list[int]]
Cut = Callable[[Sequence[int], set[int], int], tuple[list[int], bool]]
Propose = Callable[[Sequence[int], int], list[int]]
Acceptance = Callable[[float, float], float]
Residual = Callable[[Tensor, Tensor], Tensor]
Process = Callable[[Tensor], Tensor]
"""Logits ``[vocab]`` -> the distribution ``[vocab]`` that a token is drawn from."""
ProposeSampled = Callable[
    [CausalLM, Sequence[int], int, Process, Chooser], tuple[list[int], list[Tensor]]
]
ExactVerify = Callable[[Sequence[int], Sequence[Tensor], Sequence[Tensor], Chooser], tuple[int, int]]


def naive_decode(
    forward: Callable[[list[int]], Tensor], prompt: Sequence[int], max_new_tokens: int
) -> list[int]:
    """Greedy decoding that reads the whole text for each token."""
    tokens = list(prompt)
    for _ in range(max_new_tokens):
        tokens.append(int(forward(tokens)[-1].argmax()))
    return tokens[len(prompt) :]


def cached_decode(model: CausalLM, prompt: Sequence[int], max_new_tokens: int) -> list[int]:
    """Greedy decoding that reads each token once."""
    new, unread = list[int](), list(prompt)
    for _ in range(max_new_tokens):
        unread = [int(model.extend(unread)[-1].argmax())]
        new += unread
    return new


def verify(draft: Sequence[int], rows: Tensor) -> tuple[int, int]:
    """How many drafted tokens greedy decoding would have chosen, and the token it chooses next."""
    choices = rows.argmax(dim=-1).tolist()
    accepted = 0
    while accepted < len(draft) and draft[accepted] == choices[accepted]:
        accepted += 1
    return accepted, choices[accepted]


def one_round(
    model: CausalLM, tokens: Sequence[int], draft: Sequence[int], verify: Verify = verify
) -> list[int]:
    """Read the draft in one forward, verify it, rewind; the emitted tokens."""
    unread = list(tokens[model.length :])
    rows = model.extend([*unread, *draft])[len(unread) - 1 :]
    accepted, following = verify(draft, rows)
    model.rewind(len(tokens) + accepted)
    return [*draft[:accepted], following]


def cut(emitted: Sequence[int], end_tokens: set[int], remaining: int) -> tuple[list[int], bool]:
    """What may be kept of a round's tokens, and whether decoding ends with them."""
    kept = list[int]()
    for token in emitted:
        if len(kept) == remaining:
            break
        kept.append(token)
        if token in end_tokens:
            return kept, True
    return kept, len(kept) == remaining


def speculative_decode(
    model: CausalLM,
    propose: Propose,
    prompt: Sequence[int],
    gamma: int,
    max_new_tokens: int,
    end_tokens: set[int],
    one_round: OneRound = one_round,
    cut: Cut = cut,
) -> list[int]:
    """Draft, verify, keep, until a stop."""
    tokens, finished = list(prompt), max_new_tokens == 0
    while not finished:
        draft = propose(tokens, gamma)
        emitted = one_round(model, tokens, draft)
        kept, finished = cut(emitted, end_tokens, len(prompt) + max_new_tokens - len(tokens))
        tokens += kept
    return tokens[len(prompt) :]


def prompt_lookup(tokens: Sequence[int], gamma: int, longest: int = 3) -> list[int]:
    """What followed the last few tokens when they stood before; nothing if they never did."""
    tokens = list(tokens)
    for size in range(min(longest, len(tokens) - 1), 0, -1):
        for start in range(len(tokens) - size - 1, -1, -1):
            if tokens[start : start + size] == tokens[-size:]:
                return tokens[start + size : start + size + gamma]
    return []


def literal_matching_law(p: Tensor, q: Tensor) -> Tensor:
    """What comes out when a draft from q is kept if it is p's argmax, and else a token drawn from p."""
    likeliest = int(p.argmax())
    law = (1.0 - q[likeliest]) * p
    law[likeliest] += q[likeliest]
    return law


def step_law(p: Tensor, q: Tensor, acceptance: Acceptance, residual: Residual) -> Tensor:
    """What one step gives: drafted and kept, or rejected and replaced."""
    pairs = zip(p.tolist(), q.tolist(), strict=True)
    accepted = torch.tensor([y * acceptance(x, y) if y > 0.0 else 0.0 for x, y in pairs], dtype=p.dtype)
    return accepted + (1.0 - accepted.sum()) * residual(p, q)


def processed(logits: Tensor, temperature: float, top_p: float) -> Tensor:
    """Temperature, then top-p with the token that crosses the limit kept."""
    probabilities = (wide(logits) / temperature).softmax(dim=-1)
    if top_p == 1.0:
        return probabilities
    ordered, tokens = probabilities.sort(descending=True)
    in_front = ordered.cumsum(dim=-1) - ordered
    probabilities[tokens[in_front >= top_p]] = 0.0
    return probabilities / probabilities.sum()


def exact_verify(
    draft: Sequence[int],
    q: Sequence[Tensor],
    p: Sequence[Tensor],
    chooser: Chooser,
    acceptance: Acceptance = distributions.acceptance_probability,
    residual: Residual = distributions.residual,
) -> tuple[int, int]:
    """Keep drafted tokens by the rejection rule; how many, and the token behind them."""
    for i, token in enumerate(draft):
        if not chooser.accept(acceptance(float(p[i][token]), float(q[i][token]))):
            return i, chooser.sample(residual(p[i], q[i]))
    return len(draft), chooser.sample(p[len(draft)])


def propose(
    model: CausalLM, tokens: Sequence[int], gamma: int, process: Process, chooser: Chooser
) -> tuple[list[int], list[Tensor]]:
    """Draw a draft, and give the distributions that it was drawn from."""
    draft, q = list[int](), list[Tensor]()
    for _ in range(gamma):
        unread = model.rewind_to_match([*tokens, *draft])
        q.append(process(model.extend(unread)[-1]))
        draft.append(chooser.sample(q[-1]))
    return draft, q


def speculative_sample(
    target: CausalLM,
    draft_model: CausalLM,
    prompt: Sequence[int],
    gamma: int,
    max_new_tokens: int,
    process: Process,
    chooser: Chooser,
    propose: ProposeSampled = propose,
    verify: ExactVerify = exact_verify,
) -> list[int]:
    """Propose, read the draft in one pass, judge, keep, until the budget is used up."""
    tokens, end = list(prompt), len(prompt) + max_new_tokens
    while len(tokens) < end:
        draft, q = propose(draft_model, tokens, min(gamma, end - len(tokens) - 1), process, chooser)
        unread = target.rewind_to_match(tokens)
        rows = target.extend([*unread, *draft])[len(unread) - 1 :]
        accepted, following = verify(draft, q, [process(row) for row in rows], chooser)
        tokens += [*draft[:accepted], following]
    return tokens[len(prompt) :]

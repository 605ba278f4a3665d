"""Right answers to the exercises whose form the library does not have itself.

The course falls back on them where a learner's own does not pass its check yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from specdec_lab.language_model import CausalLM

Verify = Callable[[Sequence[int], Tensor], tuple[int, int]]
OneRound = Callable[[CausalLM, Sequence[int], Sequence[int]], list[int]]
Cut = Callable[[Sequence[int], set[int], int], tuple[list[int], bool]]
Propose = Callable[[Sequence[int], int], list[int]]


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

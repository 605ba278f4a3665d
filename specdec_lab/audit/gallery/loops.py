"""Rogues whose fault lies in the draft, in the loop around the rules, or in where chance comes from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from specdec_lab.audit.gallery.member import (
    END,
    GAMMA,
    PLAIN,
    DraftedDecoder,
    Member,
    exact_acceptance,
    exact_replacement,
    kept,
    loop,
)
from specdec_lab.distributions import acceptance_probability
from specdec_lab.drafters import ModelDrafter
from specdec_lab.language_model import CausalLM
from specdec_lab.randomness import Chooser, SeededChooser
from specdec_lab.records import Draft
from specdec_lab.sampling import Sampling, TargetRows
from specdec_lab.verification import Verdict, verify_by_sampling

# --- a q that was not drawn from ----------------------------------------------------------------


class GreedyDraftScoredWithItsSoftmax(ModelDrafter):
    """Drafts the argmax, and hands over the softmax as if the token had been drawn from it."""

    def propose(self, prefix: Sequence[int], gamma: int, chooser: Chooser) -> Draft:
        tokens, q = list(prefix), list[Tensor]()
        for _ in range(gamma):
            logits = self.model.extend(self.model.rewind_to_match(tokens), rows=1)[0]
            q.append(PLAIN.distribution(tokens, logits))
            tokens.append(int(q[-1].argmax()))
        return Draft(tokens[len(prefix) :], torch.stack(q)) if q else self.certain_draft([])


class ColdDraftScoredWarm(ModelDrafter):
    """Draws at temperature 0.5, and hands over q at temperature 1."""

    def propose(self, prefix: Sequence[int], gamma: int, chooser: Chooser) -> Draft:
        draft = super().propose(prefix, gamma, chooser)
        warm = draft.q.sqrt()
        return Draft(draft.tokens, warm / warm.sum(dim=-1, keepdim=True)) if draft.tokens else draft


def cold_drafter(model: CausalLM) -> ColdDraftScoredWarm:
    """The drafter above, drawing at its own temperature."""
    return ColdDraftScoredWarm(model, Sampling(0.5))


class FirstRowForAll(ModelDrafter):
    """Hands over the q of the draft's first position for every position."""

    def propose(self, prefix: Sequence[int], gamma: int, chooser: Chooser) -> Draft:
        draft = super().propose(prefix, gamma, chooser)
        return Draft(draft.tokens, draft.q[:1].expand_as(draft.q)) if draft.tokens else draft


# --- a p that is not the target's ---------------------------------------------------------------

TOP_P = Sampling(1.0, top_p=0.9)


def drop_the_crossing_token(_: Tensor, scores: Tensor) -> Tensor:
    """top-p that keeps tokens while their sum stays below the limit, the crossing one left out."""
    ordered, tokens = torch.softmax(scores, dim=-1).sort(dim=-1, descending=True)
    too_much = ordered.cumsum(dim=-1) > 0.9
    too_much[..., 0] = False
    return scores.masked_fill(too_much.gather(-1, tokens.argsort(dim=-1)), float("-inf"))


def stale_target_cache(
    target: CausalLM, draft: CausalLM, prompt: Sequence[int], length: int, chooser: Chooser
) -> list[int]:
    """Never rewinds the target: rejected tokens stay in its cache."""
    tokens, drafter = list(prompt), ModelDrafter(draft)
    drafter.begin(PLAIN)
    unread = list(prompt)
    while (left := len(prompt) + length - len(tokens)) > 0:
        proposal = drafter.propose(tokens, min(GAMMA, left - 1), chooser)
        tokens += _judged(target, tokens, unread, proposal, chooser)
        unread = tokens[-1:]
    return tokens[len(prompt) :]


def _judged(
    target: CausalLM, tokens: list[int], unread: list[int], proposal: Draft, chooser: Chooser
) -> list[int]:
    """What one exact round emits, the target having read what it has read."""
    logits = target.extend(unread + proposal.tokens, rows=len(proposal) + 1)
    p = TargetRows(PLAIN, tokens + proposal.tokens, logits)
    return verify_by_sampling(p, proposal, chooser).tokens


# --- where it ends ------------------------------------------------------------------------------


def over_budget(
    target: CausalLM, draft: CausalLM, prompt: Sequence[int], length: int, chooser: Chooser
) -> list[int]:
    """Looks at the budget between rounds only, so the last round may run over it."""
    tokens, drafter = list(prompt), ModelDrafter(draft)
    drafter.begin(PLAIN)
    while len(tokens) < len(prompt) + length:
        proposal = drafter.propose(tokens, GAMMA, chooser)
        tokens += _judged(target, tokens, target.rewind_to_match(tokens), proposal, chooser)
    return tokens[len(prompt) :]


def redrafting(sampling: Sampling) -> DraftedDecoder:
    """A rejected token is not replaced; another one is drafted in its place.

    At temperature 0 that is the same one, for ever.
    """

    def redrafted_until_accepted(
        target: CausalLM, draft: CausalLM, prompt: Sequence[int], length: int, chooser: Chooser
    ) -> list[int]:
        tokens, drafter = list(prompt), ModelDrafter(draft)
        drafter.begin(sampling)
        while len(tokens) < len(prompt) + length:
            proposal = drafter.propose(tokens, 1, chooser)
            p = sampling.distribution(tokens, target.extend(target.rewind_to_match(tokens), rows=1)[0])
            token = proposal.tokens[0]
            if chooser.accept(acceptance_probability(float(p[token]), float(proposal.q[0][token]))):
                tokens.append(token)
        return tokens[len(prompt) :]

    return redrafted_until_accepted


GREEDY = Sampling(0.0)

# --- where chance comes from --------------------------------------------------------------------


def own_coins(p: TargetRows, draft: Draft, chooser: Chooser, trace: bool = False) -> Verdict:
    """Tosses its coins with torch.rand instead of asking the chooser."""
    for i in range(len(draft)):
        if not torch.rand(()) < exact_acceptance(p, draft, i):
            return kept(draft, i, chooser.sample(exact_replacement(p, draft, i)))
    return kept(draft, len(draft), chooser.sample(p[len(draft)]))


def own_seed(p: TargetRows, draft: Draft, chooser: Chooser, trace: bool = False) -> Verdict:
    """Seeds a generator of its own for each round: always the same numbers, never a sample."""
    return verify_by_sampling(p, draft, SeededChooser(0))


def _drafts(name: str, what: str, drafter: type[ModelDrafter]) -> Member:
    return Member(name, what, loop(make_drafter=drafter), "not exact")


LOOPS = [
    _drafts(
        "greedy draft, softmax q",
        "drafts the argmax and hands over its softmax as q",
        GreedyDraftScoredWithItsSoftmax,
    ),
    Member(
        "cold draft, warm q",
        "draws at temperature 0.5, hands over q at 1",
        loop(make_drafter=cold_drafter),
        "not exact",
    ),
    _drafts("first q for all", "hands over the first row of q for every token", FirstRowForAll),
    Member(
        "top-p without the crossing",
        "drops the token that crosses top-p",
        loop(sampling=Sampling(1.0, processors=(drop_the_crossing_token,))),
        "not exact",
        sampling=TOP_P,
    ),
    Member(
        "stale target cache", "leaves rejected tokens in the cache", stale_target_cache, "not exact"
    ),
    Member("end token ignored", "goes on behind the end token", loop(), "not exact", end_ids=(END,)),
    Member("over budget", "looks at the budget only between rounds", over_budget, "not exact"),
    Member(
        "redrafted until accepted",
        "drafts again instead of replacing",
        redrafting(PLAIN),
        "not exact",
    ),
    Member(
        "redrafted, greedy",
        "the same at temperature 0: for ever",
        redrafting(GREEDY),
        "never ends",
        sampling=GREEDY,
    ),
    Member(
        "coins of its own",
        "tosses coins with torch.rand",
        loop(verifier=own_coins),
        "hidden randomness",
    ),
    Member(
        "seed of its own",
        "seeds a new generator in every round",
        loop(verifier=own_seed),
        "hidden randomness",
    ),
]

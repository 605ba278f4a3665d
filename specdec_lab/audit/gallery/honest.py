"""Honest members: unusual, slow or clumsy, and exact. An audit that condemns one of them is broken."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from specdec_lab.audit.gallery.member import (
    END,
    GAMMA,
    PLAIN,
    Member,
    exact_acceptance,
    exact_replacement,
    judged_by,
    kept,
    loop,
)
from specdec_lab.decoding import autoregressive
from specdec_lab.drafters import CorruptedDrafter, ModelDrafter, NGramDrafter
from specdec_lab.language_model import CausalLM
from specdec_lab.randomness import Chooser
from specdec_lab.records import Draft
from specdec_lab.sampling import Sampling, TargetRows
from specdec_lab.verification import Verdict


def plain_decoding(
    target: CausalLM, draft: CausalLM, prompt: Sequence[int], length: int, chooser: Chooser
) -> list[int]:
    """The target alone."""
    rounds = autoregressive(target, prompt, max_new_tokens=length, sampling=PLAIN, chooser=chooser)
    return [token for one in rounds for token in one.tokens]


def literal_match(p: TargetRows, draft: Draft, chooser: Chooser, trace: bool = False) -> Verdict:
    """Draw the target's own token at each position, and keep the drafted one while it is the same."""
    for i, token in enumerate(draft.tokens):
        own = chooser.sample(p[i])
        if own != token:
            return kept(draft, i, own)
    return kept(draft, len(draft), chooser.sample(p[len(draft)]))


def all_coins_first(p: TargetRows, draft: Draft, chooser: Chooser, trace: bool = False) -> Verdict:
    """Judge every position at once, as vectorised code does, and only then look for a rejection."""
    coins = [chooser.accept(exact_acceptance(p, draft, i)) for i in range(len(draft))]
    if all(coins):
        return kept(draft, len(draft), chooser.sample(p[len(draft)]))
    first = coins.index(False)
    return kept(draft, first, chooser.sample(exact_replacement(p, draft, first)))


def without_a_cache(
    target: CausalLM, draft: CausalLM, prompt: Sequence[int], length: int, chooser: Chooser
) -> list[int]:
    """Read the whole text again for every single row."""
    tokens, judge = list(prompt), judged_by()

    def row(model: CausalLM, prefix: list[int]) -> torch.Tensor:
        model.reset()
        return PLAIN.distribution(prefix, model.extend(prefix, rows=1)[0])

    end = len(prompt) + length
    while len(tokens) < end:
        drafted, q = list[int](), list[torch.Tensor]()
        for _ in range(min(GAMMA, end - len(tokens) - 1)):
            q.append(row(draft, tokens + drafted))
            drafted.append(chooser.sample(q[-1]))
        proposal = Draft(drafted, torch.stack(q) if q else torch.zeros(0, target.vocab_size))
        p = [row(target, tokens + drafted[:i]) for i in range(len(drafted) + 1)]
        tokens += judge(p, proposal, chooser, False).tokens  # type: ignore[arg-type]
    return tokens[len(prompt) :]


def draft_thrown_away(p: TargetRows, draft: Draft, chooser: Chooser, trace: bool = False) -> Verdict:
    """Pay for a draft and use the target's own token."""
    return kept(draft, 0, chooser.sample(p[0]))


class DraftOfRandomLength(ModelDrafter):
    """Toss a coin before the draft: two tokens or one."""

    def propose(self, prefix: Sequence[int], gamma: int, chooser: Chooser) -> Draft:
        return super().propose(prefix, gamma if chooser.accept(0.5) else min(gamma, 1), chooser)


class DraftFromAStaleCache(ModelDrafter):
    """The draft model never forgets what was rejected: a worse q, but the q it draws from."""

    def begin(self, sampling: Sampling) -> None:
        super().begin(sampling)
        self._read = 0

    def propose(self, prefix: Sequence[int], gamma: int, chooser: Chooser) -> Draft:
        unread, self._read = list(prefix[self._read :]), len(prefix)
        tokens, q = list[int](), list[torch.Tensor]()
        for _ in range(gamma):
            q.append(PLAIN.distribution([], self.model.extend(unread, rows=1)[0]))
            tokens.append(chooser.sample(q[-1]))
            unread = tokens[-1:]
        return Draft(tokens, torch.stack(q)) if q else self.certain_draft([])


def greedy_draft(model: CausalLM) -> ModelDrafter:
    """The draft model's argmax, handed over with a one-hot q: nothing random in it."""
    return ModelDrafter(model, Sampling(0.0))


def eager_ngram(model: CausalLM) -> NGramDrafter:
    """Prompt look-up on a single token of context."""
    return NGramDrafter(model.vocab_size, longest=2, shortest=1)


def corrupted(model: CausalLM) -> CorruptedDrafter:
    """A greedy draft with noise, and a q that says so."""
    return CorruptedDrafter(greedy_draft(model), 0.4)


NUCLEUS = Sampling(0.8, top_p=0.9)

HONEST = [
    Member("plain decoding", "no draft at all", plain_decoding, "exact"),
    Member("speculative()", "the library's own loop with a draft model", loop(), "exact"),
    Member(
        "speculative(), top-p",
        "the same at temperature 0.8 with top-p 0.9",
        loop(sampling=NUCLEUS),
        "exact",
        sampling=NUCLEUS,
    ),
    Member(
        "speculative(), end token",
        "the same, ending at an end token",
        loop(end_ids=(END,)),
        "exact",
        end_ids=(END,),
    ),
    Member(
        "greedy draft",
        "drafts the argmax and says so: q is one-hot",
        loop(make_drafter=greedy_draft),
        "exact",
    ),
    Member(
        "n-gram draft",
        "looks the draft up in the text; q is one-hot",
        loop(make_drafter=eager_ngram),
        "exact",
    ),
    Member(
        "corrupted draft",
        "mixes noise into the draft and into q",
        loop(make_drafter=corrupted),
        "exact",
    ),
    Member(
        "draft of random length",
        "tosses a coin for gamma",
        loop(make_drafter=DraftOfRandomLength),
        "exact",
    ),
    Member(
        "stale draft cache",
        "the draft model reads rejected tokens too; q is still what it drew from",
        loop(make_drafter=DraftFromAStaleCache),
        "exact",
    ),
    Member(
        "literal match",
        "keeps a drafted token if it equals one sampled from the target",
        loop(verifier=literal_match),
        "exact",
    ),
    Member(
        "all coins first",
        "judges every position before looking for a rejection",
        loop(verifier=all_coins_first),
        "exact",
    ),
    Member("no cache", "reads the whole text for every row", without_a_cache, "exact"),
    Member(
        "draft thrown away",
        "drafts, and then samples from the target anyway",
        loop(verifier=draft_thrown_away),
        "exact",
    ),
]

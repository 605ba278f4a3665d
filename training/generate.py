"""Write the training text: the target's own answers and continuations, as token ids.

    python -m training.generate                     go on until 3.2 million tokens are there
    python -m training.generate --tokens 500000     or fewer, or more
    python -m training.generate --worker 1 --of 2   beside another: every second shard

A shard is some hundred documents, made from the target, the shard's number and (for openings of code)
Python's standard library. It is saved in one step: a run that was killed goes on with the shard it was
at, and several workers never meet.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tqdm.auto import tqdm

from specdec_lab.pretrained import load_pair
from training.batched import continue_all
from training.sources import code_openings
from training.texts import Document, save_shard, shard_file, tokens_there
from training.topics import (
    INSTRUCTIONS,
    OPENINGS,
    REQUESTS_ABOUT_A_TEXT,
    lines,
    subjects,
)

BATCH = 192
BATCHES = 2
"""Batches in a shard. Their documents are sorted by length first, so that a batch is even."""
REPLY = 192
"""Most tokens that the target adds to a prompt."""
QUESTION = 64
PASSAGE = 80
TEMPERATURES = (0.0, 0.7, 0.7, 1.0, 1.0)
MIX = ("question", "composed", "question", "plain", "question", "passage")
"""Shard i is of kind ``MIX[i % 6]``."""
DEFAULT_TOKENS = 3_200_000


@dataclass(frozen=True)
class Author:
    """The target, its tokenizer, and the tokens of its chat template."""

    model: Any
    tokenizer: Any

    @cached_property
    def chat_frame(self) -> tuple[list[int], list[int]]:
        """What the chat template puts before and behind the user's words."""
        whole = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": "\0"}], add_generation_prompt=True, tokenize=False
        )
        before, behind = whole.split("\0")
        return self.encode(before), self.encode(behind)

    @property
    def end_ids(self) -> list[int]:
        return sorted(
            {self.tokenizer.eos_token_id, self.tokenizer.convert_tokens_to_ids("<|endoftext|>")}
        )

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False).input_ids)

    def ask(self, words: Sequence[int]) -> list[int]:
        """The prompt in which the user says ``words``."""
        before, behind = self.chat_frame
        return [*before, *words, *behind]

    def write(
        self, prompts: list[list[int]], temperatures: list[float], longest: int, seed: int
    ) -> list[list[int]]:
        """Continue each prompt, in even batches."""
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        written: list[list[int]] = [[] for _ in prompts]
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            continued = continue_all(
                self.model,
                [prompts[row] for row in rows],
                [temperatures[row] for row in rows],
                max_new_tokens=longest,
                end_ids=self.end_ids,
                seed=seed + start,
            )
            for row, tokens in zip(rows, continued, strict=True):
                written[row] = tokens
        return written


def questions(author: Author, rng: random.Random, count: int, seed: int) -> list[list[int]]:
    """Prompts that the target makes up, in the user's place (Xu et al. 2024, arXiv 2406.08464)."""
    before, _ = author.chat_frame
    temperatures = [rng.choice((0.8, 0.9, 1.0)) for _ in range(count)]
    turns = author.write([before] * count, temperatures, QUESTION, seed)
    ended = [turn[:-1] for turn in turns if turn[-1] in author.end_ids and len(turn) > 4]
    return [author.ask(turn) for turn in ended]


def composed(author: Author, rng: random.Random, count: int, seed: int) -> list[list[int]]:
    """Instructions filled with subjects."""
    return [author.ask(author.encode(_filled(rng, INSTRUCTIONS))) for _ in range(count)]


def plain(author: Author, rng: random.Random, count: int, seed: int) -> list[list[int]]:
    """Openings of texts and of code, to continue without any chat template."""
    code = code_openings(rng, count // 2)
    texts = [_filled(rng, OPENINGS) for _ in range(count - len(code))]
    return [author.encode(opening) for opening in texts + code]


def passages(author: Author, rng: random.Random, count: int, seed: int) -> list[list[int]]:
    """Requests about a passage that the target wrote just before."""
    openings = [author.encode(_filled(rng, OPENINGS)) for _ in range(count)]
    bodies = author.write(openings, [0.7] * count, PASSAGE, seed)
    prompts = []
    for opening, body in zip(openings, bodies, strict=True):
        passage = author.tokenizer.decode(opening + body, skip_special_tokens=True).strip()
        request = rng.choice(lines(REQUESTS_ABOUT_A_TEXT)).replace("{}", passage)
        prompts.append(author.ask(author.encode(request)))
    return prompts


KINDS: dict[str, Callable[[Author, random.Random, int, int], list[list[int]]]] = {
    "question": questions,
    "composed": composed,
    "plain": plain,
    "passage": passages,
}


def _filled(rng: random.Random, block: str) -> str:
    template = rng.choice(lines(block))
    for subject in rng.sample(subjects(), template.count("{}")):
        template = template.replace("{}", subject, 1)
    return template[0].upper() + template[1:]


def make_shard(author: Author, number: int) -> list[Document]:
    """The documents of one shard."""
    kind = MIX[number % len(MIX)]
    rng = random.Random(number)
    seed = 1_000_000 * number
    prompts = KINDS[kind](author, rng, BATCH * BATCHES, seed + 500_000)
    temperatures = [rng.choice(TEMPERATURES) for _ in prompts]
    replies = author.write(prompts, temperatures, REPLY, seed)
    return [
        Document(prompt + reply, len(prompt), temperature)
        for prompt, reply, temperature in zip(prompts, replies, temperatures, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tokens", type=int, default=DEFAULT_TOKENS, help="stop at so many in all")
    parser.add_argument("--worker", type=int, default=0)
    parser.add_argument("--of", type=int, default=1, help="number of workers")
    options = parser.parse_args()
    pair = load_pair(target="embedded", dtype="bfloat16")
    author = Author(pair.target.model, pair.tokenizer)
    number, mine, began = options.worker, 0, time.perf_counter()
    with tqdm(total=options.tokens, unit="token", unit_scale=True) as bar:
        while (there := tokens_there()) < options.tokens:
            bar.n = there
            bar.set_postfix_str(
                f"shard {number}, own rate {mine / (time.perf_counter() - began):.0f}/s"
            )
            if not shard_file(number).exists():
                documents = make_shard(author, number)
                save_shard(number, documents, kind=MIX[number % len(MIX)])
                mine += sum(len(document.tokens) - document.reply_start for document in documents)
            number += options.of


if __name__ == "__main__":
    main()

"""The training text on disk: shards of documents, as token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from specdec_lab.files import replacing

FOLDER = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Document:
    """A prompt and what the target made of it.

    Args:
        tokens: both, as token ids.
        reply_start: where the target's part begins.
        temperature: at which the target wrote it; 0 is greedy.
    """

    tokens: list[int]
    reply_start: int
    temperature: float


def shard_file(number: int) -> Path:
    """Where that shard lies, or will lie."""
    return FOLDER / f"{number:04d}.npz"


def shards_there() -> list[Path]:
    """All that have been written, in order of their numbers."""
    return sorted(FOLDER.glob("*.npz"))


def save_shard(number: int, documents: Sequence[Document], kind: str) -> None:
    """Write a shard in one step."""
    with replacing(shard_file(number)) as part, part.open("wb") as file:
        np.savez_compressed(
            file,
            tokens=np.concatenate([np.array(one.tokens, dtype=np.uint16) for one in documents]),
            lengths=np.array([len(one.tokens) for one in documents], dtype=np.uint16),
            reply_starts=np.array([one.reply_start for one in documents], dtype=np.uint16),
            temperatures=np.array([one.temperature for one in documents], dtype=np.float16),
            kind=np.array(kind),
        )


def load_shard(path: Path) -> list[Document]:
    """The documents of a shard."""
    with np.load(path) as shard:
        tokens = np.split(shard["tokens"].astype(np.int64), np.cumsum(shard["lengths"])[:-1])
        columns = (shard["reply_starts"].tolist(), shard["temperatures"].astype(float).tolist())
        return [
            Document(part.tolist(), start, round(temperature, 3))
            for part, start, temperature in zip(tokens, *columns, strict=True)
        ]


def tokens_there() -> int:
    """Tokens in all shards, prompts included."""
    total = 0
    for path in shards_there():
        with np.load(path) as shard:
            total += int(shard["lengths"].sum(dtype=np.int64))
    return total

"""Train the draft model: two layers and a reduced head, to say what the target would say.

    python -m training.distill                        the shipped draft; resumes after a kill
    python -m training.distill --run try --passes 1   another run beside it
    python -m training.distill --run more --after try  begins with another run's checkpoint

A run's folder in the user's cache holds its checkpoint, its ancestors and its curve. The same command
goes on where it was; another setting under the same name is refused.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor
from tqdm.auto import tqdm
from transformers import LlamaForCausalLM

from specdec_lab.draft_model import load_draft, new_draft, save_draft
from specdec_lab.files import replacing
from specdec_lab.pretrained import Pair, load_pair
from specdec_lab.weights import sha256_of
from training.generate import Author
from training.held_out import HeldOut, held_out_text, left_out
from training.losses import TargetHead, distance
from training.teacher import cache_folder, scores_of
from training.texts import load_shard, shards_there

SHARDS_THAT_CHOOSE_THE_HEAD = 12
ANCESTORS = {"early": 0.013, "middle": 0.1}
"""Name -> the share of the training after which the draft is kept as it is."""


@dataclass(frozen=True)
class Settings:
    """What decides how a run turns out, beside the text itself.

    Args:
        layers: of the draft.
        kept: tokens that the head covers.
        passes: over the text, about.
        shards: how many of them to train on, from the first.
        step_tokens: tokens in a step, at least; its last document is taken whole.
        learning_rate: of the matrices; its highest, after the warm-up.
        seed: of the order of the documents.
    """

    layers: int = 2
    kept: int = 12_288
    passes: float = 3.5
    shards: int = 45
    step_tokens: int = 1_536
    learning_rate: float = 4e-3
    seed: int = 0


@dataclass(frozen=True)
class Text:
    """All documents with their scores, one document behind the other."""

    tokens: Tensor
    hidden: Tensor
    log_sum: Tensor
    mass: Tensor
    """``[vocab]``, each token's share of the target's probability over the first shards, summed."""
    spans: list[tuple[int, int, int]]
    """Of each document: where it starts, where it ends, and from which position on it counts."""


@dataclass(frozen=True)
class Slope:
    """The loss on some documents: means over their positions, and the gradient of the mean."""

    positions: int
    cross_entropy: float
    overlap: float
    gradients: tuple[Tensor, ...]


class Trainer:
    """A run: the draft, its optimizers, and how far it is.

    Args:
        pair: the target, and its tokenizer.
        settings: what decides the outcome.
        folder: of the run.
        workers: into how many parts a step's documents go, each on a thread of its own.
    """

    def __init__(self, pair: Pair, settings: Settings, folder: Path, workers: int = 1) -> None:
        self.settings = settings
        self.workers = workers
        self.pool = ThreadPoolExecutor(workers)
        self.folder = folder
        self.target = pair.target.model
        self.device = self.target.device
        shards = shards_there()[: settings.shards]
        if len(shards) < settings.shards:
            raise SystemExit(f"shards: got {len(shards)}, expected {settings.shards}: generate first")
        self.data = [sha256_of(shard) for shard in shards]
        self.text = _load_text(pair, shards)
        kept = _frequent_tokens(self.text.mass, settings.kept)
        # The draft's own weights in float32, on an embedding that no gradient reaches.
        self.draft = new_draft(self.target, kept, settings.layers)
        for own in (self.draft.model.layers, self.draft.model.norm, self.draft.lm_head):
            own.float()
        self.draft.model.embed_tokens.requires_grad_(False)
        head = self.target.get_output_embeddings().weight.detach()[kept.to(self.device)]
        self.target_head = TargetHead(head.to(torch.bfloat16))
        self.trained = [values for values in self.draft.parameters() if values.requires_grad]
        self.optimizers = _optimizers(self.draft)
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.steps = round(settings.passes * len(self.text.tokens) / settings.step_tokens)
        self.curve: list[dict[str, Any]] = []

    def batches(self) -> Iterator[list[int]]:
        """Document numbers, step by step: from here to the end of the run."""
        done = 0
        for number in count():
            for batch in _batches(self.text.spans, self.settings, number):
                done += 1
                if done > self.steps:
                    return
                if done > self.step:
                    yield batch

    def train_on(self, batch: Sequence[int]) -> dict[str, float]:
        """One step of the optimizers."""
        started = time.perf_counter()
        progress = self.step / self.steps
        share = overlap_share(progress)
        self.set_learning_rate(learning_rate_factor(progress))
        parts = [batch[worker :: self.workers] for worker in range(min(self.workers, len(batch)))]
        found = list(self.pool.map(lambda part: self.slope(part, share), parts))
        positions = sum(one.positions for one in found)
        for values, first, *others in zip(self.trained, *(one.gradients for one in found), strict=True):
            values.grad = first.mul_(found[0].positions / positions)
            for gradient, one in zip(others, found[1:], strict=True):
                values.grad.add_(gradient, alpha=one.positions / positions)
        torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        list(self.pool.map(lambda optimizer: optimizer.step(), self.optimizers))
        self.step += 1
        self.tokens += sum(end - start for start, end, _ in (self.text.spans[i] for i in batch))
        self.seconds += time.perf_counter() - started
        return {
            "cross_entropy": sum(one.cross_entropy * one.positions for one in found) / positions,
            "overlap": sum(one.overlap * one.positions for one in found) / positions,
        }

    def slope(self, documents: Sequence[int], share: float) -> Slope:
        """The loss on these documents and its gradient."""
        ids, where = self.gather(documents)
        # The cache of cast weights would be shared between the threads, and each weight is used once.
        with torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False):
            states = self.draft.model(ids, use_cache=False).last_hidden_state
        rows = torch.cat([states[i, first:last] for i, (first, last, _) in enumerate(where)])
        spots = torch.cat([torch.arange(at + first, at + last) for first, last, at in where])
        loss, cross_entropy, overlap = distance(
            rows.to(torch.bfloat16),
            self.draft.lm_head.weight,
            self.target_head,
            self.text.hidden[spots].to(self.device),
            self.text.log_sum[spots].to(self.device),
            share,
        )
        gradients = torch.autograd.grad(loss, self.trained)
        return Slope(len(spots), float(cross_entropy), float(overlap), gradients)

    def gather(self, batch: Sequence[int]) -> tuple[Tensor, list[tuple[int, int, int]]]:
        """Token ids ``[documents, longest]``; of each row the positions that count, and its place."""
        spans = [self.text.spans[i] for i in batch]
        ids = torch.zeros(len(batch), max(end - start for start, end, _ in spans), dtype=torch.long)
        for row, (start, end, _) in enumerate(spans):
            ids[row, : end - start] = self.text.tokens[start:end]
        where = [(first, end - start - 1, start) for start, end, first in spans]
        return ids.to(self.device), where

    def set_learning_rate(self, factor: float) -> None:
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.settings.learning_rate * factor

    def save(self) -> None:
        with replacing(self.folder / "checkpoint.pt") as part:
            torch.save(
                {
                    "settings": asdict(self.settings),
                    "data": self.data,
                    "draft": {n: p for n, p in self.draft.state_dict().items() if "embed" not in n},
                    "optimizers": [one.state_dict() for one in self.optimizers],
                    "step": self.step,
                    "tokens": self.tokens,
                    "seconds": self.seconds,
                    "curve": self.curve,
                },
                part,
            )
        with replacing(self.folder / "curve.json") as part:
            part.write_text(json.dumps(self.curve, indent=0) + "\n")

    def resume(self) -> bool:
        """Go on where this run was killed; whether there was anything to go on from."""
        file = self.folder / "checkpoint.pt"
        if not file.exists():
            return False
        stored = torch.load(file, weights_only=True)
        if stored["settings"] != asdict(self.settings):
            raise SystemExit(
                f"{file}: made with {stored['settings']}, expected {asdict(self.settings)}"
            )
        if stored["data"] != self.data:
            raise SystemExit(f"{file}: made from other shards than those that are there")
        self._restore(stored)
        return True

    def go_on_from(self, other: Path) -> None:
        """Begin where another run's checkpoint is, whatever it was trained on; its ancestors too.

        Raises:
            SystemExit: if there is none, or its draft has other layers or a head over other tokens.
        """
        file = other / "checkpoint.pt"
        if not file.exists():
            raise SystemExit(f"{file}: expected a run's checkpoint")
        stored = torch.load(file, weights_only=True)
        kept = stored["draft"]["lm_head.token_ids"]
        shape = (stored["settings"]["layers"], kept.tolist())
        if shape != (self.settings.layers, self.draft.lm_head.token_ids.tolist()):
            raise SystemExit(f"{file}: expected the same layers, and a head over the same tokens")
        self._restore(stored)
        for name in ANCESTORS:
            if (ancestor := other / f"{name}.safetensors").exists():
                shutil.copyfile(ancestor, self.folder / ancestor.name)

    def _restore(self, stored: dict[str, Any]) -> None:
        self.draft.load_state_dict(stored["draft"], strict=False)
        for optimizer, state in zip(self.optimizers, stored["optimizers"], strict=True):
            # Another run's checkpoint brings its own weight decay along; this run's is what counts.
            own = [group["weight_decay"] for group in optimizer.param_groups]
            optimizer.load_state_dict(state)
            for group, weight_decay in zip(optimizer.param_groups, own, strict=True):
                group["weight_decay"] = weight_decay
        self.step, self.tokens, self.seconds = stored["step"], stored["tokens"], stored["seconds"]
        self.curve = stored["curve"]


def learning_rate_factor(progress: float) -> float:
    """Up in the first hundredth, level, and down to nothing over the last two fifths."""
    warm_up, cool_down = 0.01, 0.4
    return max(0.0, min((progress + 1e-4) / warm_up, 1.0, (1.0 - progress) / cool_down))


def overlap_share(progress: float) -> float:
    """The cross-entropy first, the overlap later."""
    return min(0.9, max(0.0, (progress - 0.02) / 0.15))


def _optimizers(draft: LlamaForCausalLM) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices, which learns more from each token here; AdamW for the rest.

    Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks".
    """
    trained = {name: values for name, values in draft.named_parameters() if values.requires_grad}
    matrices = [p for name, p in trained.items() if p.dim() == 2 and "lm_head" not in name]
    others = [p for name, p in trained.items() if p.dim() != 2 or "lm_head" in name]
    return [  # two of the first, to step side by side
        torch.optim.Muon(matrices[::2], weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        torch.optim.Muon(matrices[1::2], weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
    ]


def _load_text(pair: Pair, shards: Sequence[Path]) -> Text:
    before, _ = Author(pair.target.model, pair.tokenizer).chat_frame
    tokens, hidden, log_sum, mass, spans, at = [], [], [], [], [], 0
    for shard in tqdm(shards, desc="scores", unit="shard"):
        scores = scores_of(pair.target.model, shard)
        hidden.append(scores["hidden"])
        log_sum.append(scores["log_sum"])
        mass.append(scores["mass"])
        documents = load_shard(shard)
        forbidden = left_out(documents, pair.tokenizer.decode)
        for number, document in enumerate(documents):
            is_chat = document.tokens[: len(before)] == before
            if number not in forbidden:
                first = len(before) - 1 if is_chat else 0
                spans.append((at, at + len(document.tokens), first))
            tokens.extend(document.tokens)
            at += len(document.tokens)
    total_mass = torch.stack(mass[:SHARDS_THAT_CHOOSE_THE_HEAD]).sum(dim=0)
    return Text(torch.tensor(tokens), torch.cat(hidden), torch.cat(log_sum), total_mass, spans)


def _frequent_tokens(mass: Tensor, kept: int) -> Tensor:
    """The tokens with the most of the target's probability, in order of id."""
    top = mass.topk(kept)
    print(f"head: {kept} tokens carry {float(top.values.sum() / mass.sum()):.2%} of the probability")
    return top.indices.sort().values


def _batches(spans: Sequence[tuple[int, int, int]], settings: Settings, number: int) -> list[list[int]]:
    """One pass over the documents in an order of its own, in batches of alike lengths."""
    rng = random.Random(1000 * settings.seed + number)
    order = list(range(len(spans)))
    rng.shuffle(order)
    batches: list[list[int]] = []
    for start in range(0, len(order), 512):
        by_length = sorted(order[start : start + 512], key=lambda i: spans[i][1] - spans[i][0])
        batch, tokens = list[int](), 0
        for document in by_length:
            batch.append(document)
            tokens += spans[document][1] - spans[document][0]
            if tokens >= settings.step_tokens:
                batches.append(batch)
                batch, tokens = [], 0
        if batch:
            batches.append(batch)
    rng.shuffle(batches)
    return batches


def run(
    pair: Pair,
    settings: Settings,
    folder: Path,
    workers: int = 1,
    every_seconds: float = 60.0,
    after: Path | None = None,
) -> Trainer:
    """Train to the end, with a checkpoint and a point on the curve once a minute.

    The last point also judges the draft as it is stored, in 8 bits.
    """
    trainer = Trainer(pair, settings, folder, workers)
    if not trainer.resume() and after is not None:
        trainer.go_on_from(after)
    held_out: HeldOut = held_out_text(pair)
    ancestors = {max(1, round(share * trainer.steps)): name for name, share in ANCESTORS.items()}
    recent: list[dict[str, float]] = []
    last = time.perf_counter()
    with tqdm(total=trainer.steps, initial=trainer.step, unit="step", desc=folder.name) as bar:
        for batch in trainer.batches():
            recent.append(trainer.train_on(batch))
            bar.update()
            if trainer.step in ancestors:
                save_draft(trainer.draft, folder / f"{ancestors[trainer.step]}.safetensors")
            if time.perf_counter() - last > every_seconds or trainer.step == trainer.steps:
                last = time.perf_counter()
                trainer.curve.append(_point(trainer, recent, held_out))
                recent = []
                trainer.save()
                bar.set_postfix(trainer.curve[-1])
    file = folder / "draft.safetensors"
    save_draft(trainer.draft, file)
    trainer.curve[-1]["stored"] = held_out.judge(load_draft(pair.target.model, file))
    trainer.save()
    return trainer


def _point(trainer: Trainer, recent: Sequence[dict[str, float]], held_out: HeldOut) -> dict[str, Any]:
    means = {key: mean(one[key] for one in recent) for key in recent[0]}
    return {
        "step": trainer.step,
        "tokens": trainer.tokens,
        "seconds": round(trainer.seconds),
        "overlap_share": round(overlap_share(trainer.step / trainer.steps), 3),
        "training": {key: round(value, 4) for key, value in means.items()},
        "held_out": held_out.judge(trainer.draft),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--run", default="main", help="its name (main)")
    parser.add_argument("--after", metavar="RUN", help="begin with this run's checkpoint")
    for name, default in asdict(Settings()).items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    options = vars(parser.parse_args())
    folder = cache_folder() / options.pop("run")
    after = options.pop("after")
    other = cache_folder() / after if after else None
    folder.mkdir(parents=True, exist_ok=True)
    pair = load_pair(target="embedded", dtype="bfloat16", progress=False)
    workers = torch.get_num_threads() if pair.target.device.type == "cpu" else 1
    torch.set_num_threads(1)  # a thread for each worker gains more than threads within each operation
    trainer = run(pair, Settings(**options), folder, workers, after=other)
    print(json.dumps(trainer.curve[-1]))


if __name__ == "__main__":
    main()

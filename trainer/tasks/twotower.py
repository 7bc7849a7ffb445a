"""Retrieval with two towers: find the vector that follows a context, among the batch's and hard negatives."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from ..data import pairs
from ..data.negatives import NegativeSampler
from ..data.pair_inspection import inspect_pairs
from ..device import Device
from ..errors import UsageError
from ..inspection import Inspection
from ..models.contrastive import info_nce, ranks
from ..models.mamba import parameter_groups
from ..models.twotower import BACKBONES, TwoTower
from ..options import fraction, positive, positive_number, whole
from . import Batch, Defaults, Loss, Task

_EVALUATION_BATCH = 256
_DEVICE_SHARE = 4
_UNKNOWN_DEVICE_BYTES = 4 << 30


class TwoTowerTask(Task):
    """InfoNCE between a query tower over contexts and a payload tower over target vectors."""

    HELP: ClassVar[str] = "retrieve the vector that follows a context: two towers, InfoNCE, mamba, gru or transformer"
    DEFAULTS: Defaults = Defaults(
        epochs=20, batch_size=256, lr=1e-3, clip=1.0, drop_last=True, better={"val_mrr": "max"}
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Data, negatives and model."""
        parser.add_argument(
            "--train-npz",
            type=Path,
            metavar="FILE",
            help="context_sequences, target_vectors, truth_keys; else synthetic",
        )
        parser.add_argument("--nearmiss-jsonl", type=Path, metavar="FILE", help="mined near misses, a query a line")
        parser.add_argument("--p-cache-npy", type=Path, metavar="FILE", help="payload vectors that negatives come from")
        parser.add_argument(
            "--same-article-k", type=whole, default=4, metavar="K", help="negatives of the same article"
        )
        parser.add_argument("--nearmiss-k", type=whole, default=4, metavar="K", help="near misses a query (default 4)")
        parser.add_argument("--backbone", choices=tuple(BACKBONES), default="mamba")
        parser.add_argument("--width", type=positive, default=256, metavar="N", help="inside the towers")
        parser.add_argument("--layers", type=positive, default=2, metavar="N")
        parser.add_argument("--embedding", type=positive, default=256, metavar="N", help="what both towers give")
        parser.add_argument("--tau", type=positive_number, default=0.07, help="temperature of InfoNCE")
        parser.add_argument("--validation-share", type=fraction, default=0.1, metavar="X", help="of the articles")
        parser.add_argument("--pool", type=positive, default=5000, metavar="N", help="validation rows ranked at most")
        parser.add_argument("--limit", type=positive, metavar="N", help="train on the first N rows only")
        parser.add_argument("--shuffle-labels", action="store_true", help="a control: nothing can be learnt from this")

    def __init__(self, args: argparse.Namespace) -> None:
        """Open or generate the pairs."""
        self._args = args
        self._pairs = _read(args)
        self._sampler = NegativeSampler(self._pairs, same_article=args.same_article_k, near=args.nearmiss_k)
        self._held_out = _evenly(self._pairs.validation_rows, args.pool)
        self.train_size = len(self._pairs.train_rows)
        if self.train_size < 2 or len(self._held_out) < 2:
            raise UsageError(
                f"{self._pairs.name} has fewer than two rows to train on or to validate on; give more rows"
            )
        self.synthetic = args.train_npz is None
        self.data = _in_words(self._pairs, len(self._held_out))
        _, self._length, self._inputs = self._pairs.contexts.shape
        self.signature: Mapping[str, Any] = {
            "backbone": args.backbone,
            "width": args.width,
            "layers": args.layers,
            "embedding": args.embedding,
            "inputs": self._inputs,
            "length": self._length,
        }

    @staticmethod
    def inspect(args: argparse.Namespace) -> Inspection:
        """Count the rows and name the bad ones."""
        return inspect_pairs(_read(args))

    def build_model(self) -> nn.Module:
        """Both towers."""
        args = self._args
        return TwoTower(
            self._inputs,
            self._length,
            backbone=args.backbone,
            width=args.width,
            layers=args.layers,
            embedding=args.embedding,
        )

    def parameter_groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """Matrices decay; biases, norms and the decay rates of Mamba do not."""
        return parameter_groups(model)

    def to_device(self, device: Device) -> None:
        """Keep all vectors on an accelerator when they fit into a quarter of it."""
        pairs = self._pairs
        stores = {id(rows): rows for rows in (pairs.contexts, pairs.targets, pairs.payloads)}.values()
        limit = device.memory().limit or _UNKNOWN_DEVICE_BYTES
        fits = sum(rows.bytes for rows in stores) <= limit // _DEVICE_SHARE
        if device.type != "cpu" and self._args.workers == 0 and fits:
            for rows in stores:
                rows.put(device)

    def batch(self, samples: torch.Tensor, seed: int) -> Batch:
        """Contexts, their targets, and hard negatives; ``rows`` are row numbers in the file, whatever the order."""
        pairs = self._pairs
        rows = pairs.train_rows[samples]
        answers = pairs.target_rows[rows]
        negatives, usable = self._sampler.draw(answers, torch.Generator().manual_seed(seed))
        return {
            "rows": rows,
            "contexts": pairs.contexts.take(rows),
            "targets": pairs.targets.take(answers),
            "target_ids": pairs.target_ids[answers],
            "negative_rows": negatives,
            "negatives": pairs.payloads.take(negatives),
            "usable": usable,
        }

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """InfoNCE over the micro-batch; reports how often a query's own payload scores highest, and its cosine."""
        targets, negatives = batch["targets"], batch["negatives"]
        count, extra, width = negatives.shape
        queries, encoded = model(batch["contexts"], torch.cat([targets, negatives.reshape(-1, width)]))
        payloads, others = encoded[:count], encoded[count:].view(count, extra, -1)
        value, hits = info_nce(queries, payloads, batch["target_ids"], others, batch["usable"], self._args.tau)
        cosine = (queries.detach() * payloads.detach()).sum(dim=1).mean()
        return Loss(value, {"accuracy": hits, "cosine": cosine})

    def evaluate(self, model: nn.Module, device: Device) -> Iterator[dict[str, float] | None]:
        """Recall among all held-out targets, cosine with the right one, and the loss without hard negatives."""
        queries, payloads = [], []
        for start in range(0, len(self._held_out), _EVALUATION_BATCH):
            rows = self._held_out[start : start + _EVALUATION_BATCH]
            found = model(*device.put((self._pairs.contexts.take(rows), self._pairs.targets.take(rows))))
            queries.append(found[0].float())
            payloads.append(found[1].float())
            yield None
        ids = device.put(self._pairs.target_ids[self._held_out])
        yield measures(torch.cat(queries), torch.cat(payloads), ids, self._args.tau)


def measures(queries: torch.Tensor, payloads: torch.Tensor, ids: torch.Tensor, tau: float) -> dict[str, float]:
    """The validation metrics of unit vectors (rows, width), with ids (rows,) that are equal for equal payloads."""
    places, losses = [], []
    for start in range(0, len(ids), _EVALUATION_BATCH):
        own = torch.arange(start, min(start + _EVALUATION_BATCH, len(ids)), device=ids.device)
        part, none = queries[own], payloads.new_zeros(len(own), 0, payloads.shape[1])
        places.append(ranks(part, payloads, ids, own))
        usable = torch.zeros(len(own), 0, dtype=torch.bool, device=ids.device)
        losses.append(info_nce(part, payloads[own], ids[own], none, usable, tau)[0] * len(own))
    rank = torch.cat(places)
    recalls = [(rank < most).float().mean() for most in (1, 5, 10)]
    reciprocal = (1 / (1 + rank)).mean()
    cosine = (queries * payloads).sum(dim=1).mean()
    loss = torch.stack(losses).sum() / len(ids)
    names = ("val_loss", "val_recall@1", "val_recall@5", "val_recall@10", "val_mrr", "val_cosine")
    return dict(zip(names, torch.stack([loss, *recalls, reciprocal, cosine]).tolist(), strict=True))


def _read(args: argparse.Namespace) -> pairs.PairSet:
    seed = args.seed or 0
    if args.train_npz:
        found = pairs.read(
            args.train_npz, cache=args.p_cache_npy, near=args.nearmiss_jsonl, validation_share=args.validation_share
        )
    else:
        for flag, path in (("--nearmiss-jsonl", args.nearmiss_jsonl), ("--p-cache-npy", args.p_cache_npy)):
            if path:
                raise UsageError(f"{flag} {path} names rows of a file: give that file too, with --train-npz")
        found = pairs.synthetic(seed)
    if args.limit:
        found = found.limited(args.limit)
    return found.with_shuffled_labels(seed) if args.shuffle_labels else found


def _evenly(rows: torch.Tensor, most: int) -> torch.Tensor:
    """At most this many of the rows, evenly spaced."""
    if len(rows) <= most:
        return rows
    return rows[torch.arange(most) * len(rows) // most]


def _in_words(pairs: pairs.PairSet, ranked: int) -> str:
    stored = "mapped" if pairs.contexts.mapped else "in memory"
    near = "" if pairs.near is None else f", {int((pairs.near.counts > 0).sum()):,} queries with near misses"
    told = "".join(f"; {note}" for note in pairs.notes)
    counts = f"{len(pairs.train_rows):,} training rows, {ranked:,} validation rows ranked"
    return f"{pairs.name} ({stored}): {counts}, {int(pairs.articles.max()) + 1:,} articles{near}{told}"

"""Classification of DNA by a bidirectional Mamba that takes both strands into account (after Caduceus)."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from ..data import genomes, sequences
from ..data.sequences import TOKENS, SequenceSet
from ..device import Device
from ..errors import UsageError
from ..inspection import Inspection
from ..models.caduceus import NORMS, Caduceus
from ..models.mamba import parameter_groups
from ..options import positive
from . import Batch, Defaults, Loss, Task

_EVALUATION_BATCH = 128


_CADUCEUS_TOKENS = ("CLS", "SEP", "BOS", "MASK", "PAD", "RESERVED", "UNK", "A", "C", "G", "T", "N")
_OF_CADUCEUS = (
    (r"^(?:caduceus\.)?backbone\.", ""),
    (r"\.submodule(?=\.)", ""),
    (r"^embeddings\.word_embeddings(?:\.embedding)?\.", "embed."),
    (r"^layers\.(\d+)\.(?:mixer\.)?", r"blocks.\1."),
    (r"^norm_f\.", "norm."),
    *((rf"\.{theirs}(?=\.|$)", f".{ours}") for theirs, ours in (
        ("mamba_fwd", "forwards"), ("mamba_rev", "backwards"), ("in_proj", "in_projection"),
        ("conv1d", "convolution"), ("x_proj", "selection"), ("dt_proj", "step_projection"),
        ("A_log", "log_decay"), ("D", "skip"), ("out_proj", "out_projection"),
    )),
)  # fmt: skip
"""Patterns in the names of https://github.com/kuleshov-group/caduceus, and their names here."""


class Genomics(Task):
    """One class for each sequence, from Genomic Benchmarks, FASTA and BED, or synthetic sequences."""

    HELP: ClassVar[str] = "classify DNA: bidirectional Mamba, equivariant under reverse complement (after Caduceus)"
    DEFAULTS: Defaults = Defaults(
        epochs=10, batch_size=64, accumulate=2, lr=1e-3, clip=1.0, better={"val_accuracy": "max"}
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Data, folds, strands and model."""
        parser.add_argument("--data", type=Path, metavar="DIR", help="a benchmark with train/CLASS/*.txt and test/")
        parser.add_argument("--fasta", type=Path, metavar="FILE", help="a genome, cut by --bed (may be gzipped)")
        parser.add_argument("--bed", type=Path, metavar="FILE", help="intervals; column 4 is the class, 6 the strand")
        parser.add_argument(
            "--fold", type=int, choices=range(sequences.FOLDS), metavar="K", help="validate on fold K (0 to 4) by seed"
        )
        parser.add_argument(
            "--block", type=positive, metavar="BASES", help="with --bed: folds are whole blocks of this many bases"
        )
        parser.add_argument(
            "--max-length", type=positive, default=1024, metavar="N", help="cut longer sequences evenly"
        )
        parser.add_argument("--limit", type=positive, metavar="N", help="train and validate on N sequences at most")
        parser.add_argument("--conjoin", action="store_true", help="no shared strands; validate on the mean of both")
        parser.add_argument("--rc-aug", action="store_true", help="no shared strands; train on a random one of the two")
        parser.add_argument("--width", type=positive, default=128, metavar="N", help="of the model (default 128)")
        parser.add_argument("--layers", type=positive, default=4, metavar="N", help="of the model (default 4)")
        parser.add_argument("--states", type=positive, default=16, metavar="N", help="of each channel (default 16)")
        parser.add_argument("--norm", choices=tuple(NORMS), default="rms", help="RMSNorm (default) or LayerNorm")
        parser.add_argument("--shuffle-labels", action="store_true", help="a control: nothing can be learnt from this")

    def __init__(self, args: argparse.Namespace) -> None:
        """Read or generate the sequences."""
        self._args = args
        self._train, self._validation = _read(args)
        longest = int(torch.cat([self._train.lengths, self._validation.lengths]).max())
        self._length = min(longest, args.max_length)
        self._shared_strands = not (args.conjoin or args.rc_aug)
        self.train_size = len(self._train)
        self.synthetic = not (args.data or args.fasta)
        self.data = self._in_words()
        self.signature: Mapping[str, Any] = {
            "width": args.width,
            "layers": args.layers,
            "states": args.states,
            "norm": args.norm,
            "classes": len(self._train.classes),
            "strands": "shared" if self._shared_strands else "single",
        }

    @staticmethod
    def inspect(args: argparse.Namespace) -> Inspection:
        """Count sequences by split and class, and name what is wrong."""
        _check_sources(args)
        if args.data:
            found, problems = genomes.scan_folder(args.data)
            return Inspection(str(args.data), _counted(found), problems)
        if args.fasta:
            cut, problems = genomes.scan_intervals(args.fasta, args.bed)
            return Inspection(f"{args.bed} of {args.fasta}", _counted({"all": cut} if cut else {}), problems)
        train, validation = sequences.synthetic(args.seed or 0)
        return Inspection(train.name, _counted({"train": train, "test": validation}))

    def build_model(self) -> nn.Module:
        """The classifier."""
        args = self._args
        return Caduceus(
            tokens=len(TOKENS), classes=len(self._train.classes), width=args.width, layers=args.layers,
            states=args.states, norm=args.norm, both_strands=self._shared_strands,
            opposite=sequences.reverse_complement, reverse=sequences.reversed_in_place,
        )  # fmt: skip

    def translated(self, weights: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        """Translate weights of the public Caduceus, whose layers compute the same; keep only the tokens we have."""
        found = {}
        for name, weight in weights.items():
            for pattern, ours in _OF_CADUCEUS:
                name = re.sub(pattern, ours, name)
            of_tokens = name == "embed.weight" and len(weight) >= len(_CADUCEUS_TOKENS) > len(TOKENS)
            found[name] = weight[[_CADUCEUS_TOKENS.index(token) for token in TOKENS]] if of_tokens else weight
        return found

    def parameter_groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """Matrices decay; biases, norms and the decay rates of Mamba do not."""
        return parameter_groups(model)

    def batch(self, samples: torch.Tensor, seed: int) -> Batch:
        """Tokens, lengths and labels; with --rc-aug from a random strand of each."""
        tokens, lengths = self._train.take(samples, self._length)
        if self._args.rc_aug:
            other = torch.rand(len(samples), generator=torch.Generator().manual_seed(seed)) < 0.5
            tokens = torch.where(other[:, None], sequences.reverse_complement(tokens, lengths), tokens)
        return {"tokens": tokens, "lengths": lengths, "labels": self._train.labels[samples]}

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Cross-entropy; reports the training accuracy too."""
        logits = model(batch["tokens"], batch["lengths"]).float()
        hits = (logits.detach().argmax(dim=1) == batch["labels"]).float().mean()
        return Loss(F.cross_entropy(logits, batch["labels"]), {"accuracy": hits})

    def evaluate(self, model: nn.Module, device: Device) -> Iterator[dict[str, float] | None]:
        """Loss, accuracy and Matthews correlation over every validation sequence."""
        found = self._validation
        classes = len(found.classes)
        loss = torch.zeros((), device=device.torch)
        confusion = torch.zeros(classes * classes, device=device.torch)
        for start in range(0, len(found), _EVALUATION_BATCH):
            numbers = torch.arange(start, min(start + _EVALUATION_BATCH, len(found)))
            tokens, lengths, labels = device.put((*found.take(numbers, self._length), found.labels[numbers]))
            logits = self._logits(model, tokens, lengths)
            loss += F.cross_entropy(logits, labels, reduction="sum")
            confusion += F.one_hot(labels * classes + logits.argmax(dim=1), classes * classes).sum(dim=0)
            yield None
        counts = confusion.cpu().view(classes, classes)
        accuracy = float(counts.diagonal().sum() / counts.sum())
        yield {"val_loss": float(loss) / len(found), "val_accuracy": accuracy, "val_mcc": matthews(counts)}

    def _logits(self, model: nn.Module, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = model(tokens, lengths).float()
        if not self._args.conjoin:
            return logits
        opposite: torch.Tensor = model(sequences.reverse_complement(tokens, lengths), lengths).float()
        return (logits + opposite) / 2

    def _in_words(self) -> str:
        cut = sum(int((found.lengths > self._length).sum()) for found in (self._train, self._validation))
        counts = f"{self.train_size:,} training, {len(self._validation):,} validation sequences"
        fold = "" if self._args.fold is None else f", fold {self._args.fold} of {sequences.FOLDS}"
        told = f", {cut:,} of them cut to {self._length:,} bases" if cut else f" of up to {self._length:,} bases"
        blocks = f", split by blocks of {self._args.block:,} bases" if self._args.block else ""
        return f"{self._train.name}: {counts}{told}{fold}{blocks}"


def matthews(confusion: torch.Tensor) -> float:
    """Matthews correlation for any number of classes (Gorodkin, 2004), 0 where it is not defined.

    Args:
        confusion: counts, (classes, classes): true class by predicted class.
    """
    counts = confusion.to("cpu", torch.float64)
    true, said, total = counts.sum(dim=1), counts.sum(dim=0), counts.sum()
    covariance = counts.diagonal().sum() * total - (true * said).sum()
    spread = (total.square() - said.square().sum()) * (total.square() - true.square().sum())
    return float(covariance / spread.sqrt()) if spread > 0 else 0.0


def _check_sources(args: argparse.Namespace) -> None:
    if bool(args.fasta) != bool(args.bed):
        given, missing = ("--fasta", "--bed") if args.fasta else ("--bed", "--fasta")
        raise UsageError(f"{given} needs {missing}: one has the bases, the other says which of them and their class")
    if args.block and not args.fasta:
        raise UsageError("--block splits a genome by position; give --fasta and --bed, or leave it out")
    if args.data and args.fasta:
        raise UsageError("--data and --fasta are two sources of sequences; give one of them")


def _read(args: argparse.Namespace) -> tuple[SequenceSet, SequenceSet]:
    """What is trained on and what is validated on."""
    _check_sources(args)
    seed = args.seed or 0
    if args.fasta and args.block:
        train, validation = genomes.read_blocks(args.fasta, args.bed, args.block, args.fold or 0, seed)
    elif args.fasta:
        train, validation = genomes.read_intervals(args.fasta, args.bed).folded(args.fold or 0, seed)
    else:
        train, validation = genomes.read_folder(args.data) if args.data else sequences.synthetic(seed)
        if args.fold is not None:
            train, validation = train.folded(args.fold, seed)
    if not len(train) or not len(validation):
        raise UsageError(f"{train.name} has too few sequences to train and to validate on; give more")
    if args.limit:
        train, validation = train.limited(args.limit, seed), validation.limited(args.limit, seed)
    return (train.with_shuffled_labels(seed) if args.shuffle_labels else train), validation


def _counted(sets: Mapping[str, SequenceSet]) -> dict[str, int]:
    return {
        f"{split} {name}": int((found.labels == label).sum())
        for split, found in sets.items()
        for label, name in enumerate(found.classes)
    }

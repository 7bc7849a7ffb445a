"""What a model of coding DNA must beat: rules and logistic regressions on the very sequences that it is given.

    python -m tests.bench.hexamers --fasta genome.fa --bed coding.bed --block 50000 [--fold K] [--seed N]

Takes the options of `python -m trainer genomics` that say what is trained and validated on. For two classes:

open frame   a sequence is the one class when one of its six frames has no stop codon, else the other
GC           logistic regression on the share of G and C
hexamers     the same on how often each of the 4,096 words of six bases is in it, counted on both strands
together     the same on all of these, with the number of frames that have no stop codon

The strength of the regressions' penalty is chosen on a fifth of what is trained on. Accuracy and Matthews correlation.
"""

from __future__ import annotations

import argparse
import sys

import torch
import torch.nn.functional as F

from trainer import options
from trainer.data.sequences import TOKENS, SequenceSet, reverse_complement
from trainer.tasks.genomics import Genomics, matthews

WORD = 6
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
STOPS = torch.tensor([[3, 0, 0], [3, 0, 2], [3, 2, 0]]) @ torch.tensor([16, 4, 1])
"""Codes of TAA, TAG and TGA."""


def words(found: SequenceSet, numbers: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes of the words of ``length`` at every place of both strands, (n, 2, places), and where they are whole."""
    tokens, lengths = found.take(numbers, int(found.lengths[numbers].max()))
    strands = torch.stack([tokens, reverse_complement(tokens, lengths)], dim=1)
    codes = strands - TOKENS.index("A")
    parts = codes.unfold(2, length, 1)
    whole = ((parts >= 0) & (parts < 4)).all(dim=-1)
    powers = 4 ** torch.arange(length - 1, -1, -1)
    return torch.where(whole, (parts * powers).sum(dim=-1), 0), whole


def hexamers(found: SequenceSet) -> torch.Tensor:
    """Square roots of the shares of all words."""
    rows = []
    for numbers in torch.split(torch.arange(len(found)), 512):
        codes, whole = words(found, numbers, WORD)
        counts = torch.zeros(len(numbers), 4**WORD)
        counts.scatter_add_(1, codes.flatten(1), whole.flatten(1).float())
        rows.append((counts / counts.sum(dim=1, keepdim=True).clamp_min(1)).sqrt())
    return torch.cat(rows)


def gc(found: SequenceSet) -> torch.Tensor:
    """Share of G and C, (n, 1)."""
    rows = []
    for numbers in torch.split(torch.arange(len(found)), 4096):
        tokens, lengths = found.take(numbers, int(found.lengths[numbers].max()))
        strong = (tokens == TOKENS.index("G")) | (tokens == TOKENS.index("C"))
        rows.append(strong.sum(dim=1, keepdim=True) / lengths[:, None])
    return torch.cat(rows).float()


def open_frames(found: SequenceSet) -> torch.Tensor:
    """How many of the six frames have no stop codon."""
    rows = []
    for numbers in torch.split(torch.arange(len(found)), 4096):
        codes, whole = words(found, numbers, 3)
        stops = torch.isin(codes, STOPS) & whole
        frames = torch.stack([stops[:, :, frame::3].any(dim=2) for frame in range(3)], dim=2)
        rows.append((~frames).flatten(1).sum(dim=1))
    return torch.cat(rows)


def fitted(inputs: torch.Tensor, labels: torch.Tensor, penalty: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and offset of a logistic regression with a squared penalty."""
    weights = torch.zeros(inputs.shape[1], requires_grad=True)
    offset = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights, offset], max_iter=200, history_size=20, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        value = F.binary_cross_entropy_with_logits(inputs @ weights + offset, labels.float())
        value = value + penalty * weights.square().sum()
        torch.autograd.backward(value)
        return value

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return weights.detach(), offset.detach()


def regressed(train: torch.Tensor, labels: torch.Tensor, judged: torch.Tensor) -> tuple[torch.Tensor, float]:
    """What a regression says of each judged row, and its penalty."""
    mean, deviation = train.mean(dim=0), train.std(dim=0).clamp_min(1e-6)
    train, judged = (train - mean) / deviation, (judged - mean) / deviation
    held = torch.randperm(len(train), generator=torch.Generator().manual_seed(0)) % 5 == 0

    def right(penalty: float) -> float:
        weights, offset = fitted(train[~held], labels[~held], penalty)
        return float((((train[held] @ weights + offset) > 0) == labels[held].bool()).float().mean())

    best = max(PENALTIES, key=right)
    weights, offset = fitted(train, labels, best)
    return ((judged @ weights + offset) > 0).long(), best


def told(name: str, said: torch.Tensor, labels: torch.Tensor, note: str = "") -> None:
    confusion = F.one_hot(labels * 2 + said, 4).sum(dim=0).view(2, 2)
    print(f"{name:11} accuracy {confusion.diagonal().sum() / confusion.sum():.4f}  MCC {matthews(confusion):.4f}{note}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    Genomics.add_arguments(parser)
    options.add_arguments(parser, Genomics.DEFAULTS)
    torch.set_num_threads(1)
    task = Genomics(parser.parse_args())
    train, judged = task._train, task._validation
    if len(train.classes) != 2:
        sys.exit(f"{len(train.classes)} classes: it compares two")
    print(task.data)
    shares = ", ".join(f"{int((judged.labels == label).sum()):,} {name}" for label, name in enumerate(train.classes))
    print(f"validated on {shares}")
    frames, frames_judged = open_frames(train), open_frames(judged)
    alike = float(((frames > 0) == train.labels.bool()).float().mean()) >= 0.5
    told("open frame", ((frames_judged > 0) == alike).long(), judged.labels)
    found = {name: (features(train), features(judged)) for name, features in (("GC", gc), ("hexamers", hexamers))}
    counted = (frames[:, None].float(), frames_judged[:, None].float())
    found["together"] = tuple(torch.cat(parts, dim=1) for parts in zip(counted, *found.values(), strict=True))  # type: ignore[assignment]
    for name, (inputs, inputs_judged) in found.items():
        said, penalty = regressed(inputs, train.labels, inputs_judged)
        told(name, said, judged.labels, f"  (penalty {penalty:g})")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A hand-written CIFAR loop, as well made as we can, with nothing of the shared loop in it: bench-train's yardstick.

    python -m tests.bench.bare_cifar --device cuda --batch-size 512 --precision bf16 --compile --epochs 3

Data on the device, batched augmentation, channels last, fused optimizer, one read-back an epoch, one-cycle schedule.
Prints one JSON line: images per second of each epoch after the first, validation accuracy, peak memory. Better it:
everything mpstui's own loop is held to lies here.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from trainer.data import cifar, images
from trainer.models.resnet import ResNet

Pixels = torch.Tensor


@dataclass(frozen=True)
class Prepared:
    """Normalised pictures and their labels on the device."""

    pixels: Pixels
    labels: torch.Tensor
    validation: Pixels
    wanted: torch.Tensor
    classes: int


def arguments(text: str | None) -> argparse.Namespace:
    """What every contender of bench-train is told."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--replay", action="store_true", help="compiled, each pass as one CUDA graph")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    return args


def prepare(args: argparse.Namespace) -> Prepared:
    """Read the data and put it on the device."""
    found = cifar.read(args.data, "cifar10") if args.data else images.synthetic(0)
    if args.limit:
        found = found.limited(args.limit)
    mean, deviation = (part.to(args.device).view(1, -1, 1, 1) for part in found.statistics())

    def normalised(pixels: Pixels) -> Pixels:
        scaled = (pixels.to(args.device).float() / 255 - mean) / deviation
        return scaled.contiguous(memory_format=torch.channels_last)

    return Prepared(
        normalised(found.train_images),
        found.train_labels.to(args.device),
        normalised(found.validation_images),
        found.validation_labels.to(args.device),
        found.classes,
    )


def make_model(args: argparse.Namespace, classes: int) -> Any:
    """ResNet-18 on the device, channels last, compiled when asked for."""
    network = ResNet((2, 2, 2, 2), args.width, classes)
    placed = network.to(args.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    if not args.compile:
        return placed
    return torch.compile(placed, mode="reduce-overhead", dynamic=False) if args.replay else torch.compile(placed)


def augmented(pixels: Pixels, padding: int = 4) -> Pixels:
    """Random crops and flips of a whole batch on its own device."""
    count, _, height, width = pixels.shape
    device = pixels.device
    padded = F.pad(pixels, (padding,) * 4)
    top = torch.randint(0, 2 * padding + 1, (count, 1), device=device)
    left = torch.randint(0, 2 * padding + 1, (count, 1), device=device)
    columns = torch.arange(width, device=device).expand(count, width)
    columns = left + torch.where(torch.rand(count, 1, device=device) < 0.5, width - 1 - columns, columns)
    rows = top + torch.arange(height, device=device)
    sample = torch.arange(count, device=device)[:, None, None]
    return padded[sample, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def synchronise(device: torch.device) -> None:
    """Wait for everything that was asked of the device."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    elif device.type == "mps":
        torch.mps.synchronize()


def accuracy(model: Any, pixels: Pixels, labels: torch.Tensor, autocast: Any) -> float:
    """Share of right answers."""
    model.eval()
    hits = torch.zeros((), device=pixels.device)
    with torch.no_grad(), autocast:
        for start in range(0, len(labels), 1000):
            hits += (model(pixels[start : start + 1000]).argmax(1) == labels[start : start + 1000]).sum()
    model.train()
    return float(hits / len(labels))


def main() -> None:
    """Train and print what it took."""
    args = arguments(__doc__)
    torch.backends.cudnn.benchmark = True
    device = torch.device(args.device)
    data = prepare(args)
    model = make_model(args, data.classes)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True, fused=device.type != "mps"
    )
    steps = len(data.labels) // args.batch_size
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, args.epochs * steps, pct_start=0.2)
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=args.precision == "bf16")
    rates = []
    for _ in range(args.epochs):
        synchronise(device)
        began = time.perf_counter()
        order = torch.randperm(len(data.labels), device=device)
        for step in range(steps):
            chosen = order[step * args.batch_size : (step + 1) * args.batch_size]
            pixels = augmented(data.pixels[chosen])
            optimizer.zero_grad(set_to_none=True)
            with autocast:
                loss = F.cross_entropy(model(pixels).float(), data.labels[chosen])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
        synchronise(device)
        rates.append(steps * args.batch_size / (time.perf_counter() - began))
    result = {
        "images_per_second": rates[1:] or rates,
        "val_accuracy": accuracy(model, data.validation, data.wanted, autocast),
        "peak_bytes": torch.cuda.max_memory_allocated() if device.type == "cuda" else None,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

"""The same model and data under Lightning's Trainer: a peer for bench-train. Needs `pip install lightning`.

    python -m tests.bench.lightning_cifar --device cuda --batch-size 512 --precision bf16 --epochs 3

Well meant: data and augmentation on the device, batches made by the loader, no progress bar, no checkpoints, the loss
logged once in 50 steps. Prints one JSON line with the images per second of each epoch after the first.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import lightning
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset

from .bare_cifar import arguments, augmented, make_model, prepare, synchronise


class Shuffled(IterableDataset[tuple[torch.Tensor, torch.Tensor]]):
    """Whole augmented batches in a new order each epoch."""

    def __init__(self, pixels: torch.Tensor, labels: torch.Tensor, batch_size: int) -> None:
        self._pixels, self._labels, self._batch_size = pixels, labels, batch_size

    def __len__(self) -> int:
        return len(self._labels) // self._batch_size

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        order = torch.randperm(len(self._labels), device=self._labels.device)
        for step in range(len(self)):
            chosen = order[step * self._batch_size : (step + 1) * self._batch_size]
            yield augmented(self._pixels[chosen]), self._labels[chosen]


class Classifier(lightning.LightningModule):
    """The network, its loss and its optimizer."""

    def __init__(self, network: Any, lr: float, steps: int) -> None:
        super().__init__()
        self.network, self._lr, self._steps = network, lr, steps
        self.rates: list[float] = []

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], _: int) -> torch.Tensor:
        """Cross-entropy."""
        pixels, labels = batch
        loss = F.cross_entropy(self.network(pixels).float(), labels)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        """What the bare loop has."""
        fused = self.device.type != "mps"
        optimizer = torch.optim.SGD(
            self.parameters(), lr=self._lr, momentum=0.9, weight_decay=5e-4, nesterov=True, fused=fused
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self._lr, self._steps, pct_start=0.2)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Stopwatch(lightning.Callback):
    """Images per second of every epoch, the device's work included."""

    def __init__(self, images: int) -> None:
        self.rates: list[float] = []
        self._images = images
        self._began = 0.0

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        """Start the watch on an idle device."""
        synchronise(module.device)
        self._began = time.perf_counter()

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        """Stop it when the device is done."""
        synchronise(module.device)
        self.rates.append(self._images / (time.perf_counter() - self._began))


def main() -> None:
    """Train and print the rates."""
    args = arguments(__doc__)
    torch.backends.cudnn.benchmark = True
    data = prepare(args)
    network = make_model(args, data.classes)
    loader = DataLoader(Shuffled(data.pixels, data.labels, args.batch_size), batch_size=None)
    steps = len(data.labels) // args.batch_size
    watch = Stopwatch(steps * args.batch_size)
    trainer = lightning.Trainer(
        accelerator={"cuda": "gpu"}.get(args.device, args.device),
        devices=1,
        max_epochs=args.epochs,
        precision="bf16-mixed" if args.precision == "bf16" else "32-true",
        callbacks=[watch],
        enable_progress_bar=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        log_every_n_steps=50,
        logger=False,
    )
    trainer.fit(Classifier(network, args.lr, args.epochs * steps), loader)
    print(json.dumps({"images_per_second": watch.rates[1:] or watch.rates}))


if __name__ == "__main__":
    main()

"""The same model and data under Hugging Face's Trainer: a peer for bench-train. Needs transformers and accelerate.

    python -m tests.bench.transformers_cifar --device cuda --batch-size 512 --precision bf16 --epochs 3

Well meant: the pictures lie on the device and are fetched and augmented there as whole batches, the loader hands over
indices only; nothing is saved or evaluated, the loss is logged once in 50 steps. Prints one JSON line with the images
per second of each epoch after the first.
"""

from __future__ import annotations

import json
import tempfile
import time
from typing import Any

import torch
import torch.nn.functional as F
import transformers

from .bare_cifar import Prepared, arguments, augmented, make_model, prepare, synchronise


class Classifier(torch.nn.Module):
    """The network and its loss, as Trainer calls them."""

    def __init__(self, network: Any, data: Prepared) -> None:
        super().__init__()
        self.network, self._data = network, data

    def forward(self, index: torch.Tensor) -> dict[str, torch.Tensor]:
        """Cross-entropy of the pictures with these numbers."""
        logits = self.network(augmented(self._data.pixels[index]))
        return {"loss": F.cross_entropy(logits.float(), self._data.labels[index])}


class Stopwatch(transformers.TrainerCallback):
    """Images per second of every epoch, the device's work included."""

    def __init__(self, device: torch.device, images: int) -> None:
        self.rates: list[float] = []
        self._device, self._images = device, images
        self._began = 0.0

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start the watch on an idle device."""
        synchronise(self._device)
        self._began = time.perf_counter()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop it when the device is done."""
        synchronise(self._device)
        self.rates.append(self._images / (time.perf_counter() - self._began))


def main() -> None:
    """Train and print the rates."""
    args = arguments(__doc__)
    torch.backends.cudnn.benchmark = True
    data = prepare(args)
    model = Classifier(make_model(args, data.classes), data)
    steps = len(data.labels) // args.batch_size
    optimizer = torch.optim.SGD(
        model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True, fused=args.device != "mps"
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, args.epochs * steps, pct_start=0.2)
    watch = Stopwatch(data.pixels.device, steps * args.batch_size)
    with tempfile.TemporaryDirectory() as folder:
        settings = transformers.TrainingArguments(
            output_dir=folder,
            num_train_epochs=args.epochs,
            per_device_train_batch_size=args.batch_size,
            bf16=args.precision == "bf16",
            use_cpu=args.device == "cpu",
            max_grad_norm=0.0,
            logging_steps=50,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_drop_last=True,
            dataloader_pin_memory=args.device == "cuda",
            remove_unused_columns=False,
        )
        trainer = transformers.Trainer(
            model=model,
            args=settings,
            train_dataset=list(range(len(data.labels))),
            data_collator=lambda chosen: {"index": torch.tensor(chosen)},
            optimizers=(optimizer, schedule),
            callbacks=[watch],
        )
        trainer.train()
    print(json.dumps({"images_per_second": watch.rates[1:] or watch.rates}))


if __name__ == "__main__":
    main()

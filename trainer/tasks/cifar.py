"""Image classification on CIFAR-10 or CIFAR-100, or on synthetic images when no data is given."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from ..data import cifar, images
from ..device import Device
from ..inspection import Inspection
from ..kernels import kernels
from ..models.resnet import ResNet, WideResNet
from ..models.whitened import WhitenedNet
from ..optimizers import with_weight_decay_on_matrices
from ..options import fraction, positive, whole
from ..order import mixed
from . import Batch, Defaults, Loss, Task, Tuned

_DEFAULT_WIDTHS = {"resnet18": 64, "wrn-16-4": 4, "tiny": 16, "whitened-6": 64, "whitened-9": 128}
MODELS = tuple(_DEFAULT_WIDTHS)
_WHITENED = {"whitened-6": (2, (1, 4, 4)), "whitened-9": (3, (1, 3, 4))}
"""Convolutions of a stage, and the widths of the three as multiples of the first."""
_WHITENING_IMAGES = 5_000
_EVALUATION_BATCH = {"cuda": 2_000, "mps": 500, "cpu": 500}
"""So large that a GPU with its own memory waits less for the CPU: 10,000 images are 5 batches."""
# The product of rate and decay is what shrinks a weight in a step: for AdamW and the like as in Loshchilov and Hutter
# (2019, section 4) on CIFAR-10; for Lion the same product at its smaller rate (Chen et al., 2023, section 5).
_TUNED = {
    "adamw": Tuned(weight_decay=0.2),
    "radam": Tuned(weight_decay=0.2),
    "lion": Tuned(weight_decay=1.0),
    "muon": Tuned(weight_decay=0.1),
}


class Cifar(Task):
    """Residual networks, or one of two that train in seconds, on 32x32 images."""

    HELP: ClassVar[str] = "classify small images: ResNet-18 or WRN-16-4 on CIFAR-10/100, or on synthetic images"
    DEFAULTS: Defaults = Defaults(epochs=30, batch_size=128, tuned=_TUNED, better={"val_accuracy": "max"})

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Data, model and regularisation."""
        parser.add_argument("--data", type=Path, metavar="DIR", help="folder with CIFAR; without it: synthetic images")
        parser.add_argument("--dataset", choices=tuple(cifar.FOLDERS), default="cifar10")
        parser.add_argument("--model", choices=MODELS, default="resnet18")
        parser.add_argument("--width", type=positive, metavar="N", help="channels of the first stage (wrn: the factor)")
        parser.add_argument("--limit", type=positive, metavar="N", help="train on the first N images only")
        parser.add_argument("--label-smoothing", type=fraction, default=0.0, metavar="X")
        parser.add_argument(
            "--label-noise", type=fraction, default=0.0, metavar="SHARE", help="training labels made wrong"
        )
        parser.add_argument("--shuffle-labels", action="store_true", help="a control: nothing can be learnt from this")
        parser.add_argument(
            "--cutout", type=whole, default=0, metavar="PIXELS", help="side of a square left out, 0: none"
        )
        parser.add_argument(
            "--shift",
            type=whole,
            choices=range(images.CROP_PADDING + 1),
            default=images.CROP_PADDING,
            metavar="PIXELS",
            help=f"random crops: by how much an image moves at most, 0 to {images.CROP_PADDING} (default)",
        )
        parser.add_argument(
            "--border",
            choices=("mean", "reflect"),
            default="mean",
            help="what a moved image shows beyond its edge: the mean colour, or its own reflection",
        )
        parser.add_argument(
            "--flips",
            choices=("random", "alternate"),
            default="random",
            help="mirror an image by chance, or every other epoch (Jordan, 2024)",
        )
        parser.add_argument(
            "--views",
            type=int,
            choices=(1, 2, 6),
            default=1,
            help="judge a validation image alone (1), together with its mirror image (2), with both moved too (6)",
        )
        parser.add_argument("--no-augment", action="store_true", help="neither random crops nor flips")

    def __init__(self, args: argparse.Namespace) -> None:
        """Read or generate the images."""
        self._args = args
        found = _read(args)
        self._width = args.width or _DEFAULT_WIDTHS[args.model]
        self._classes = found.classes
        self._smoothing = args.label_smoothing
        # A mirrored grating is a grating of another class; a mirrored cat is a cat.
        self._flips = args.data is not None
        self._augment = not args.no_augment
        self._on_device = False
        self._mean, self._deviation = found.statistics()
        self._images, self._labels = found.train_images, found.train_labels
        self._padded = False
        self._first_images = found.train_images[:_WHITENING_IMAGES]
        generator = torch.Generator().manual_seed(mixed(args.seed or 0, 0xF11B))
        self._mirrored_first = torch.randint(0, 2, (len(self._labels),), generator=generator)
        self._validation = (found.validation_images, found.validation_labels)
        self.train_size = len(self._labels)
        self.synthetic = args.data is None
        self.data = f"{found.name}: {self.train_size:,} training, {len(self._validation[1]):,} validation images"
        self.signature: Mapping[str, Any] = {"model": args.model, "width": self._width, "classes": found.classes}

    @staticmethod
    def inspect(args: argparse.Namespace) -> Inspection:
        """Count the images of each split and name the files that are missing or not batches."""
        if args.data:
            return Inspection(f"{args.data}, {args.dataset}", *cifar.inspected(args.data, args.dataset))
        found = _read(args)
        counts = {"training images": len(found.train_labels), "validation images": len(found.validation_labels)}
        return Inspection(found.name, counts)

    def build_model(self) -> nn.Module:
        """The requested network."""
        if self._args.model == "wrn-16-4":
            return WideResNet(16, self._width, self._classes)
        if self._args.model in _WHITENED:
            convolutions, multiples = _WHITENED[self._args.model]
            model = WhitenedNet([self._width * multiple for multiple in multiples], convolutions, self._classes)
            model.whiten(images.normalised(self._first_images, self._mean, self._deviation))
            return model
        blocks = (2, 2, 2, 2) if self._args.model == "resnet18" else (1, 1, 1)
        return ResNet(blocks, self._width, self._classes)

    def parameter_groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """Convolutions and the head decay, norms and biases do not."""
        return model.parameter_groups() if isinstance(model, WhitenedNet) else with_weight_decay_on_matrices(model)

    def to_device(self, device: Device) -> None:
        """The whole data set (240 MB for CIFAR) lives on an accelerator, so that a step copies a few indices only."""
        self._mean, self._deviation = device.put((self._mean, self._deviation))
        self._on_device = device.type != "cpu" and self._args.workers == 0
        if self._on_device:
            self._images, self._labels = device.put((self._images, self._labels))
            self._validation = device.put(self._validation)
        self._pad()

    def batch(self, samples: torch.Tensor, seed: int) -> Batch:
        """The step's cropped and mirrored images, their labels, and the centres of the squares to cut out.

        If all images are on the device: their numbers and crops, shape (n, 4), for :meth:`loss`, instead of the images.
        """
        crops = images.drawn_crops(len(samples), seed, self._args.shift if self._augment else 0)
        if not (self._augment and self._flips):
            crops[:, 2] = 0
        elif self._args.flips == "alternate":
            crops[:, 2] = self._mirrored_first[samples] ^ (seed & 1)
        # One tensor, for a single copy to the device: a copy costs more than the crops themselves.
        numbers = torch.cat([samples[:, None], crops], dim=1)
        batch = {"crops": numbers} if self._on_device else self._cropped(numbers)
        if self._args.cutout:
            batch["centres"] = images.drawn_centres(len(samples), mixed(seed, 1))
        return batch

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Cross-entropy; reports the training accuracy too."""
        pixels, labels = self._shown(batch)
        logits = model(pixels)
        value = F.cross_entropy(logits.float(), labels, label_smoothing=self._smoothing)
        hits = (logits.detach().argmax(dim=1) == labels).float().mean()
        return Loss(value, {"accuracy": hits})

    def _shown(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """The pixels that the model sees, and their labels."""
        own = kernels("data.image_kernels") if "crops" in batch and self._images.is_cuda else None
        if own:
            numbers, centres, cut = batch["crops"], batch.get("centres"), self._args.cutout
            pixels = own.shown(self._images, numbers, self._mean, self._deviation, centres, cut)
            return pixels, self._labels[numbers[:, 0]]
        shown = self._cropped(batch["crops"]) if "crops" in batch else batch
        pixels = self._normalised(shown["images"])
        if self._args.cutout:
            pixels = images.cut_out(pixels, batch["centres"], self._args.cutout)
        return pixels, shown["labels"]

    def _cropped(self, numbers: torch.Tensor) -> Batch:
        self._pad()
        chosen = numbers[:, 0]
        return {"images": images.cropped(self._images, chosen, numbers[:, 1:]), "labels": self._labels[chosen]}

    def _pad(self) -> None:
        """Give the images their border, once, on the device that holds them: on a GPU that takes no time."""
        if not self._padded:
            colour = self._mean if self._args.border == "mean" else None
            self._images, self._padded = images.padded(self._images, colour), True

    def evaluate(self, model: nn.Module, device: Device) -> Iterator[dict[str, float] | None]:
        """Loss and accuracy over every validation image."""
        total = torch.zeros(2, device=device.torch)
        pixels, labels = self._validation
        size = _EVALUATION_BATCH[device.type]
        for start in range(0, len(labels), size):
            chunk = slice(start, start + size)
            shown, wanted = device.put((pixels[chunk], labels[chunk]))
            judged = [model(view).float() for view in images.views(self._normalised(shown), self._args.views)]
            logits = torch.stack(judged).mean(dim=0)
            hits = (logits.argmax(dim=1) == wanted).sum()
            total += torch.stack([F.cross_entropy(logits, wanted, reduction="sum"), hits])
            yield None
        loss, correct = (total / max(1, len(labels))).tolist()
        yield {"val_loss": loss, "val_accuracy": correct}

    def _normalised(self, pixels: torch.Tensor) -> torch.Tensor:
        # Channels-last from the start: the convolutions keep the layout they are given.
        return images.normalised(pixels.contiguous(memory_format=torch.channels_last), self._mean, self._deviation)


def _read(args: argparse.Namespace) -> images.ImageSet:
    seed = args.seed or 0
    found = cifar.read(args.data, args.dataset) if args.data else images.synthetic(seed, limit=args.limit or 0)
    if args.data and args.limit:
        found = found.limited(args.limit)
    if args.label_noise:
        found = found.with_label_noise(args.label_noise, seed)
    return found.with_shuffled_labels(seed) if args.shuffle_labels else found

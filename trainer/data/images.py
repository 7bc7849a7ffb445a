"""Labelled small images in memory, and operations on whole batches of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F

from ..order import mixed

CROP_PADDING = 4
_MEASURED_IMAGES = 10_000


@dataclass(frozen=True)
class ImageSet:
    """Training and validation images, uint8, shape (n, channels, height, width); labels int64, shape (n,)."""

    name: str
    """The name shown to the user; for generated data it says "synthetic"."""
    classes: int
    train_images: torch.Tensor
    train_labels: torch.Tensor
    validation_images: torch.Tensor
    validation_labels: torch.Tensor

    def limited(self, train: int) -> ImageSet:
        """The first ``train`` training images, and as many validation images at most."""
        if train >= len(self.train_labels):
            return self
        return replace(
            self,
            name=f"{self.name}, first {train:,}",
            train_images=self.train_images[:train],
            train_labels=self.train_labels[:train],
            validation_images=self.validation_images[:train],
            validation_labels=self.validation_labels[:train],
        )

    def with_label_noise(self, share: float, seed: int) -> ImageSet:
        """Give this share of the training labels a random *other* class."""
        generator = torch.Generator().manual_seed(mixed(seed, 0x4E01))
        labels = self.train_labels.clone()
        chosen = torch.randperm(len(labels), generator=generator)[: round(share * len(labels))]
        shift = torch.randint(1, self.classes, (len(chosen),), generator=generator)
        labels[chosen] = (labels[chosen] + shift) % self.classes
        return replace(self, name=f"{self.name}, {share:.0%} of the labels wrong", train_labels=labels)

    def with_shuffled_labels(self, seed: int) -> ImageSet:
        """Labels that say nothing about their images: a model can only memorise them."""
        generator = torch.Generator().manual_seed(mixed(seed, 0x5AFF))
        order = torch.randperm(len(self.train_labels), generator=generator)
        return replace(self, name=f"{self.name}, labels shuffled", train_labels=self.train_labels[order])

    def statistics(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and standard deviation of each channel of the training images, on the scale 0 to 1."""
        shown = self.train_images[:_MEASURED_IMAGES]
        # Counting the 256 values is exact, and a tenth of the work of floating-point sums.
        counts = torch.stack([torch.bincount(shown[:, one].flatten(), minlength=256) for one in range(shown.shape[1])])
        values = torch.arange(256.0, dtype=torch.float64) / 255
        total = counts.sum(dim=1)
        mean = counts.double() @ values / total
        variance = (counts * (values - mean[:, None]).square()).sum(dim=1) / (total - 1)
        return mean.float(), variance.sqrt().clamp_min(1e-3).float()


def normalised(images: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor) -> torch.Tensor:
    """uint8 images as float32 with channel means 0 and deviations 1; same shape."""
    scale, shift = affine(mean, deviation)
    return images * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1)


def affine(mean: torch.Tensor, deviation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Factor and offset of each channel that normalise values from 0 to 255; mean and deviation are from 0 to 1."""
    return 1 / (255 * deviation), -mean / deviation


def padded(images: torch.Tensor, colour: torch.Tensor | None) -> torch.Tensor:
    """Images with a border of ``CROP_PADDING`` pixels, ready for :func:`cropped`.

    Args:
        images: uint8, shape (n, channels, height, width).
        colour: of the border, from 0 to 1, shape (channels,); the mean colour becomes 0 when normalised. None: the
            border reflects the image.

    Returns:
        uint8, shape (n, height + 2 * CROP_PADDING, width + 2 * CROP_PADDING, channels).
    """
    count, channels, height, width = images.shape
    if colour is None:
        rows, columns = (_reflected(size).to(images.device) for size in (height, width))
        return images.permute(0, 2, 3, 1)[:, rows][:, :, columns].contiguous()
    border = (colour * 255).round().to(images)  # on the images' device: the colour may be on another
    bordered = border.expand(count, height + 2 * CROP_PADDING, width + 2 * CROP_PADDING, channels).contiguous()
    bordered[:, CROP_PADDING:-CROP_PADDING, CROP_PADDING:-CROP_PADDING] = images.permute(0, 2, 3, 1)
    return bordered


def _reflected(size: int) -> torch.Tensor:
    """For a row with borders, the index of the pixel at each position."""
    places = torch.arange(-CROP_PADDING, size + CROP_PADDING)
    return (size - 1) - ((size - 1) - places.abs()).abs()


def cropped(bordered: torch.Tensor, samples: torch.Tensor, crops: torch.Tensor) -> torch.Tensor:
    """Select images, each cropped at its own position and some mirrored: one gather for the whole batch.

    Args:
        bordered: from :func:`padded`.
        samples: int64, which images, shape (n,).
        crops: from :func:`drawn_crops`, on the device of ``bordered``.

    Returns:
        Shape (n, channels, height, width), the type of ``bordered``, channels last in memory.
    """
    side = bordered.shape[1] - 2 * CROP_PADDING
    along = torch.arange(side, device=bordered.device)
    rows = crops[:, :1] + along
    columns = (crops[:, 1:2] + along) + crops[:, 2:] * (side - 1 - 2 * along)
    return bordered[samples[:, None, None], rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def drawn_crops(count: int, seed: int, shift: int = CROP_PADDING) -> torch.Tensor:
    """Crops from ``seed`` alone: int64, shape (count, 3): top, left, and 1 to mirror.

    Args:
        shift: the most that top and left may differ from the middle, CROP_PADDING.
    """
    generator = torch.Generator().manual_seed(seed)
    corners = torch.randint(CROP_PADDING - shift, CROP_PADDING + shift + 1, (count, 2), generator=generator)
    return torch.cat([corners, torch.randint(0, 2, (count, 1), generator=generator)], dim=1)


def views(pixels: torch.Tensor, count: int) -> list[torch.Tensor]:
    """The views of images (n, channels, height, width) that are classified together. 1: as they are; 2: also mirrored;
    6: both also moved by a pixel along one diagonal, either way, with the edge repeated."""
    shown = [pixels]
    if count == 6:
        edged = F.pad(pixels, (1, 1, 1, 1), mode="replicate")
        shown += [edged[:, :, :-2, :-2], edged[:, :, 2:, 2:]]
    return shown if count == 1 else [one for view in shown for one in (view, view.flip(3))]


def cut_out(images: torch.Tensor, centres: torch.Tensor, side: int) -> torch.Tensor:
    """Zero one square of each image (DeVries and Taylor, 2017).

    Args:
        images: shape (n, channels, height, width).
        centres: int64 row and column of each square's centre, shape (n, 2); a square may reach over the edge.
        side: of the square, in pixels.
    """
    reach = torch.arange(images.shape[-1], device=images.device)
    inside = [((reach - centres[:, axis, None] + side // 2) // side) == 0 for axis in (0, 1)]
    return images.masked_fill((inside[0][:, :, None] & inside[1][:, None, :])[:, None], 0.0)


def drawn_centres(count: int, seed: int, size: int = 32) -> torch.Tensor:
    """Centres for :func:`cut_out`, from ``seed`` alone."""
    return torch.randint(0, size, (count, 2), generator=torch.Generator().manual_seed(seed))


@functools.lru_cache(maxsize=2)
def synthetic(seed: int, *, train: int = 4000, validation: int = 1000, classes: int = 10, limit: int = 0) -> ImageSet:
    """Gratings: a class is an angle and a spacing; phase, colours, contrast and noise differ from image to image.

    Any small convolutional network can learn them, but not from any single pixel. Training and validation images are
    drawn independently, so that validation accuracy is meaningful. Equal seeds give equal images.

    Args:
        limit: keep as many as :meth:`ImageSet.limited` would, without drawing the others; 0: all.
    """
    fewer = 0 < limit < train
    shown, judged = (limit, min(limit, validation)) if fewer else (train, validation)
    train_images, train_labels = _gratings(np.random.default_rng([seed, 1]), train, classes, shown)
    validation_images, validation_labels = _gratings(np.random.default_rng([seed, 2]), validation, classes, judged)
    name = f"synthetic gratings, seed {seed}" + (f", first {limit:,}" if fewer else "")
    return ImageSet(name, classes, train_images, train_labels, validation_images, validation_labels)


def _gratings(random: np.random.Generator, count: int, classes: int, kept: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The first ``kept`` of ``count`` images; pixel noise, which is drawn last, is drawn only for these."""
    labels = random.integers(0, classes, count)
    angles = (labels % 5) * (np.pi / 5) + random.normal(0, 0.12, count)
    cycles = np.where(labels % 10 < 5, 3.0, 5.0) * random.uniform(0.85, 1.15, count)
    phase = random.uniform(0, 2 * np.pi, count)
    colours = 0.25 * random.standard_normal((count, 3, 1, 1), dtype=np.float32)[:kept]
    ground = random.uniform(0.35, 0.65, (count, 3, 1, 1)).astype(np.float32)[:kept]
    labels = labels[:kept]
    angles, cycles, phase = (one[:kept, None, None] for one in (angles, cycles, phase))
    axis = np.linspace(-0.5, 0.5, 32, endpoint=False)
    down, across = np.meshgrid(axis, axis, indexing="ij")
    along = np.cos(angles) * across + np.sin(angles) * down
    waves = np.sin(2 * np.pi * cycles * along + phase).astype(np.float32)
    pixels = ground + colours * waves[:, None]
    pixels += 0.2 * random.standard_normal(pixels.shape, dtype=np.float32)
    images = torch.from_numpy((np.clip(pixels, 0, 1) * 255).astype(np.uint8))
    return images, torch.from_numpy(labels.astype(np.int64))

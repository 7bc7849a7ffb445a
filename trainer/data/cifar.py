"""CIFAR-10 and CIFAR-100 in their published layout: pickled batches, read without letting a pickle run code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import UsageError
from . import image_cache
from .cache_folder import cache_folder
from .images import ImageSet
from .restricted_pickle import load_restricted

FOLDERS = {"cifar10": "cifar-10-batches-py", "cifar100": "cifar-100-python"}
ARCHIVES = {
    "cifar10": "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    "cifar100": "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
}
_FILES = {
    "cifar10": ([f"data_batch_{number}" for number in range(1, 6)], ["test_batch"]),
    "cifar100": (["train"], ["test"]),
}
_LABELS = {"cifar10": b"labels", "cifar100": b"fine_labels"}
_CLASSES = {"cifar10": 10, "cifar100": 100}
_PIXELS = 3 * 32 * 32


def read(data: Path, dataset: str) -> ImageSet:
    """Read ``dataset`` (cifar10 or cifar100) from ``data`` or the published folder inside it.

    Raises:
        UsageError: the folder is not CIFAR, or one of its files cannot be read; names it and the remedy.
    """
    folder = _folder(data, dataset)
    cache = cache_folder(os.environ, "images")

    def decoded(names: list[str]) -> image_cache.Split:
        return image_cache.decoded(
            cache, [folder / name for name in names], lambda: _read_files(folder, names, dataset)
        )

    train, validation = (decoded(names) for names in _FILES[dataset])
    name = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}[dataset]
    return ImageSet(name, _CLASSES[dataset], *train, *validation)


def inspected(data: Path, dataset: str) -> tuple[dict[str, int], tuple[str, ...]]:
    """Read every file: the number of images in each split, and a sentence for each file that is missing or not a batch.

    Raises:
        UsageError: none of the files is there.
    """
    folder = _folder(data, dataset)
    counts, problems = {}, []
    for split, names in zip(("training", "validation"), _FILES[dataset], strict=True):
        counts[f"{split} images"] = 0
        for name in names:
            try:
                counts[f"{split} images"] += len(_read_file(folder / name, dataset)[1])
            except UsageError as error:
                problems.append(str(error))
    return counts, tuple(problems)


def _folder(data: Path, dataset: str) -> Path:
    """The folder that holds any of the files; a missing one is named when it is read."""
    needed = [name for names in _FILES[dataset] for name in names]
    candidates = [data, data / FOLDERS[dataset]]
    for folder in candidates:
        if any((folder / name).is_file() for name in needed):
            return folder
    raise UsageError(
        f"--data {data}: no {dataset} there (looked for {needed[0]} ... {needed[-1]} in it and in {FOLDERS[dataset]}/);"
        f" unpack {ARCHIVES[dataset]} into that folder, or leave --data out to train on synthetic images"
    )


def _read_files(folder: Path, names: list[str], dataset: str) -> tuple[torch.Tensor, torch.Tensor]:
    parts = [_read_file(folder / name, dataset) for name in names]
    images = np.concatenate([pixels for pixels, _ in parts]).reshape(-1, 3, 32, 32)
    labels = np.concatenate([values for _, values in parts])
    return torch.from_numpy(images), torch.from_numpy(labels)


def _read_file(path: Path, dataset: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    try:
        record = load_restricted(path.read_bytes())
        return _checked(record, _LABELS[dataset], _CLASSES[dataset])
    except FileNotFoundError as error:
        raise UsageError(f"{path} is missing; unpack {ARCHIVES[dataset]} again") from error
    except Exception as error:  # a hostile or broken pickle can raise anything
        raise UsageError(f"{path} is not a {dataset} batch ({error}); unpack {ARCHIVES[dataset]} again") from error


def _checked(
    record: Mapping[bytes, Any], label_key: bytes, classes: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    pixels, labels = np.ascontiguousarray(record[b"data"]), np.asarray(record[label_key], dtype=np.int64)
    if pixels.dtype != np.uint8 or pixels.shape != (len(labels), _PIXELS):
        raise ValueError(f"pixels of type {pixels.dtype} and shape {pixels.shape} for {len(labels)} labels")
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(f"labels run from {labels.min()} to {labels.max()}")
    return pixels, labels

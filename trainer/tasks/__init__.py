"""The training programs, and the base class by which the shared loop drives them.

A task is a module here with one subclass of :class:`Task`, and is called by the name of the module. A module whose name
begins with an underscore is part of a task. Another package adds a task by naming its class in ``pyproject.toml``::

    [project.entry-points."mpstui.training_tasks"]
    gru = "my_package.gru:Gru"

Nothing heavy is imported by this module.

The loop asks a task for a batch by *sample numbers and a seed*. So a batch is a pure function of its arguments, and a
resumed run sees the same samples with the same augmentation as one that never stopped, with any number of workers,
accumulation steps or ranks.
"""

from __future__ import annotations

import argparse
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import torch
    from torch import nn

    from ..device import Device
    from ..inspection import Inspection

ENTRY_POINTS = "mpstui.training_tasks"
Batch = dict[str, "torch.Tensor"]


@dataclass(frozen=True)
class Tuned:
    """Values that suit a task better with one optimizer than the optimizer's defaults; None: the default."""

    lr: float | None = None
    """Peak learning rate for steps of 128 samples; it grows with larger steps as the optimizer's own does."""
    weight_decay: float | None = None


@dataclass(frozen=True)
class Defaults:
    """A task's defaults for the shared options."""

    epochs: int = 30
    batch_size: int = 128
    accumulate: int = 1
    on_device: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Batch size and accumulation by type of device, where other values than the two above are known to be better."""
    optimizer: str = "adamw"
    lr: float | None = None
    """Peak learning rate of ``optimizer``, whatever the size of a step. None, or with another optimizer: the one in
    ``tuned``, else the optimizer's own."""
    tuned: Mapping[str, Tuned] = field(default_factory=dict)
    """By optimizer, so that its name alone on the command line is a sensible choice for this task."""
    warmup_epochs: float = 1.0
    clip: float = 0.0
    drop_last: bool = False
    """Whether to leave out a smaller last step of an epoch: a contrastive loss is different with fewer negatives."""
    better: Mapping[str, str] = field(default_factory=lambda: {"val_loss": "min"})
    """The metric of :meth:`Task.evaluate` that picks the best checkpoint, and whether ``min`` or ``max`` is better."""

    def sizes(self, device: str) -> tuple[int, int]:
        """Samples of a micro-batch, and micro-batches of a step, on this type of device."""
        return self.on_device.get(device, (self.batch_size, self.accumulate))


@dataclass(frozen=True)
class Loss:
    """The loss of one micro-batch, a scalar mean over its samples, and further scalar means to report."""

    value: torch.Tensor
    metrics: Mapping[str, torch.Tensor] = field(default_factory=dict)


class Task(ABC):
    """A training program as the loop sees it. It is made from the parsed command line: ``Task(args)``."""

    HELP: ClassVar[str]
    """One line for ``python -m trainer --help``."""
    JUDGED: ClassVar[Mapping[str, Any]] = {}
    """Options whose default differs when a checkpoint is only evaluated (``evaluate``)."""
    DEFAULTS: Defaults
    """Set on the class; an instance may override them when the command line decides."""

    train_size: int
    """Number of training samples."""
    data: str
    """The training data in a few words; for generated data they say "synthetic"."""
    synthetic: bool
    """Whether the data is generated: a model trained on real data is never evaluated on it."""
    signature: Mapping[str, Any]
    """What must be equal for a checkpoint to fit: model name, widths, classes (numbers and strings)."""

    @staticmethod
    @abstractmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the task's own arguments (not those of ``trainer.options``)."""

    @staticmethod
    @abstractmethod
    def inspect(args: argparse.Namespace) -> Inspection:
        """Check all of the data (``--check-data``): counts, and a sentence for each bad file or row.

        Raises UsageError when there is nothing to check.
        """

    @abstractmethod
    def __init__(self, args: argparse.Namespace) -> None:
        """Read the data, seeded by ``args.seed``. Raises UsageError with one sentence when that cannot be done."""

    @abstractmethod
    def build_model(self) -> nn.Module:
        """A fresh model on the CPU; torch's generators are seeded before this is called."""

    @abstractmethod
    def parameter_groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """Parameters for the optimizer; a group may set ``weight_decay``, ``lr_scale`` or ``muon``."""

    @abstractmethod
    def batch(self, samples: torch.Tensor, seed: int) -> Batch:
        """The training samples with these numbers; randomness comes from ``seed`` alone. Also called in workers."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Forward pass of one micro-batch, which is on the model's device, under autocast."""

    @abstractmethod
    def evaluate(self, model: nn.Module, device: Device) -> Iterable[dict[str, float] | None]:
        """Validate; yields None now and then (so that the loop can send heartbeats), and the metrics at the end.

        Called with the model in eval mode, without gradients, under autocast. Metric names start with ``val_``. All
        ranks of a sharded training run it together: each must call the model equally often, and only the leading rank
        may write files.
        """

    def translated(self, weights: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        """Weights of a public version of the model (``--init-from``) under our names; any others unchanged."""
        return weights

    def to_device(self, device: Device) -> None:  # noqa: B027 - most data stays where it is
        """Move to the device what can stay there for the whole run, such as a data set that fits."""


def task_names() -> list[str]:
    """What can be trained: the tasks of this package and those of other packages."""
    return sorted({*shipped_tasks(), *_plugins()})


def shipped_tasks() -> list[str]:
    """The tasks of this package."""
    return [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]


def find(name: str) -> type[Task]:
    """The class of a task; this package's tasks take precedence over another's of the same name.

    Raises:
        KeyError: there is no such task.
    """
    if name not in shipped_tasks():
        plugin: type[Task] = _plugins()[name].load()
        return plugin
    module = import_module(f".{name}", __package__)
    (found,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Task) and value.__module__ == module.__name__
    )
    return found


def _plugins() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}

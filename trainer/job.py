"""Everything a training consists of, assembled once and handed to the loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.optim import Optimizer

from . import rng
from .checkpoint import CheckpointFolder
from .control import Control
from .device import Device
from .distributed import Group
from .ema import WeightAverage
from .feed import Feed
from .network import Network, Precision
from .options import Options
from .progress import Progress
from .reports import Reports
from .schedule import Schedule
from .sharding import Layout
from .step import Stepper
from .tasks import Task


@dataclass(frozen=True, kw_only=True)
class Job:
    """The parts of a training."""

    name: str
    task: Task
    options: Options
    seed: int
    device: Device
    model: nn.Module
    layout: Layout
    network: Network
    optimizer: Optimizer
    schedule: Schedule
    stepper: Stepper
    feed: Feed
    average: WeightAverage | None
    folder: CheckpointFolder
    progress: Progress
    reports: Reports
    control: Control
    group: Group

    @property
    def precision(self) -> Precision:
        """The precision it runs in."""
        return self.stepper.precision

    def state_dict(self) -> dict[str, Any]:
        """Return everything a resumed run needs to continue as if it had never stopped.

        Every rank must call this; if each holds only a part, tensors are :class:`~trainer.parts.Rows`.
        """
        order = self.feed.order
        return {
            "task": self.name,
            "signature": dict(self.task.signature),
            "data": {"name": self.task.data, "synthetic": self.task.synthetic},
            "model": self.layout.model_state(),
            "optimizer": self.layout.optimizer_state(self.optimizer),
            "optimizer_name": self.options.optimizer,
            "scheduler": {"step": self.progress.step, "total_steps": self.schedule.total_steps},
            "scaler": self.stepper.scaler.state_dict(),
            "average": self.average.state_dict() if self.average else None,
            "rng": rng.capture(self.device),
            "progress": self.progress.state_dict(),
            "order": {
                "seed": self.seed,
                "size": order.size,
                "batch_size": self.stepper.micro_batch,
                "step_size": order.step_size,
            },
            "device": self.device.type,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load a :meth:`state_dict` from any device, except ``progress``, which was loaded before this was made.

        Raises:
            ValueError: optimizer state or averages do not fit.
            RuntimeError: model weights do not fit.
        """
        self.layout.load_model(state["model"])
        if state["optimizer_name"] == self.options.optimizer:
            self.layout.load_optimizer(self.optimizer, state["optimizer"])
        else:
            self.reports.notify(
                "note", f"{self.options.optimizer} starts from scratch: the checkpoint is {state['optimizer_name']}'s"
            )
        if state["scaler"] and self.stepper.scaler.is_enabled():
            self.stepper.scaler.load_state_dict(state["scaler"])
        if self.average and state["average"]:
            self.average.load_state_dict(state["average"])
        ranks, of_ranks = self.group.ranks, state.get("rng_of_ranks", ())
        if len(of_ranks) == ranks.world_size:
            rng.restore(of_ranks[ranks.rank], self.device)
        elif ranks.leads:
            rng.restore(state["rng"], self.device)
        else:
            rng.seed_everything(self.seed + ranks.rank + self.progress.step)

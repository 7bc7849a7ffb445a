"""Reads Ultralytics' trainer: it counts batches, several of which may make up one step of its optimizer.

Tried with ultralytics 8.4, never imported here.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

from ..wire.heartbeat import CheckpointNote

if TYPE_CHECKING:
    from .watch import Watch

_MOST_POINTS = 1000


class Ultralytics:
    """Watches the events of the trainers of this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._trainer: Any = None
        self._step = 0
        self._loss: Any = None
        """The loss of the newest step."""
        self._told = 0
        """The last step whose loss was reported."""
        self._trained = False
        """Whether an epoch's metrics are still to come: at the very end only the best weights are evaluated again."""
        self._newest: dict[str, float] = {}
        self._waiting: deque[tuple[int, dict[str, Optional[float]]]] = deque(maxlen=_MOST_POINTS)

    def before_event(self, trainer: Any, event: str, *args: Any, **kwargs: Any) -> None:
        """Before ``BaseTrainer.run_callbacks``."""
        if event == "on_train_start":
            self._trainer, self._watch.trainer = trainer, self.read
            self._step = trainer.start_epoch * len(trainer.train_loader)
        elif trainer is not self._trainer:
            return
        elif event == "on_train_epoch_start":  # the first one starts again if a batch did not fit
            self._step = trainer.epoch * len(trainer.train_loader)
        elif event == "on_train_batch_end":
            self._step, self._loss = self._step + 1, getattr(trainer, "loss", None)
            self._watch.goes_on(str(trainer.device).partition(":")[0])
        elif event == "on_train_epoch_end":
            self._trained = True
            self._keep(trainer.label_loss_items(trainer.tloss))
        elif event == "on_fit_epoch_end" and self._trained:
            self._trained = False
            self._keep({**(trainer.metrics or {}), "fitness": trainer.fitness})
        elif event == "on_model_save":
            self._saved(trainer)

    def _keep(self, measured: Mapping[str, Any]) -> None:
        found = {name: number for name, value in measured.items() if (number := _number(value)) is not None}
        self._newest.update(found)
        if found:
            self._waiting.append((self._step, dict(found)))

    def _saved(self, trainer: Any) -> None:
        best = trainer.best if trainer.best_fitness == trainer.fitness and trainer.best.exists() else None
        for path in (best, trainer.last):  # in this order, since the last is the newest
            if path is not None:
                self._watch.saved(CheckpointNote(os.path.abspath(path), self._step, time.time()))  # noqa: PTH100

    def read(self) -> dict[str, Any]:
        """Return heartbeat fields, and what was measured since the last call."""
        trainer, step = self._trainer, self._step
        of_epoch = len(trainer.train_loader)
        epoch = min(getattr(trainer, "epoch", trainer.start_epoch), trainer.epochs - 1)
        done = step - epoch * of_epoch
        known = 0 <= done <= of_epoch
        waiting, self._waiting = self._waiting, deque(maxlen=_MOST_POINTS)
        loss = _number(self._loss)
        newest = [(step, {"loss": loss})] if loss is not None and step != self._told else []
        self._told = step
        return {
            "step": step,
            "counts_behind": True,
            "steps": trainer.epochs * of_epoch,
            "epoch": epoch + 1,
            "epochs": trainer.epochs,
            "epoch_step": done if known else None,
            "epoch_steps": of_epoch if known else None,
            "loss": loss,
            "metrics": dict(self._newest),
            "points": [*waiting, *newest],
        }


def _number(value: Any) -> float | None:
    """Return a number as it is, or the sum of a tensor's numbers (this waits for the device)."""
    try:
        return None if value is None else float(value.detach().sum() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError):
        return None

"""Reads fastai's Learner, whose optimizers are not torch's. Tried with fastai 2.8."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from ..wire.heartbeat import CheckpointNote

if TYPE_CHECKING:
    from .watch import Watch

_NO_METRICS = ("epoch", "time", "train_loss")


class Fastai:
    """Watches the events of all learners of this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._learner: Any = None
        self._count = self._fitted = self._told = 0
        self._trains = False
        """Whether an epoch of the newest training was trained, not skipped."""
        self._planned = 0
        """Epochs of a whole ``fine_tune``; 0: the newest training is not part of one."""
        self._fits: list[int] = []
        """Epochs of each of its trainings, up to the newest."""
        self._ended: list[tuple[int, dict[str, float]]] = []
        """Metrics of earlier trainings that have not been reported yet."""

    def before_fine_tune(self, learner: Any, epochs: int, *args: Any, **kwargs: Any) -> None:
        """Before ``Learner.fine_tune``, which trains twice: first with most of the model frozen, then all of it."""
        frozen = kwargs.get("freeze_epochs", args[1] if len(args) > 1 else 1)
        self._planned, self._fits = epochs + frozen, []

    def before_event(self, learner: Any, event: Any, *args: Any, **kwargs: Any) -> None:
        """Before ``Learner.__call__``."""
        if event == "before_fit" and hasattr(learner, "lr_finder"):
            self._watch.trainer = None
        elif event == "before_fit":
            self._ended += self._fresh() if self._learner is not None else []
            if sum(self._fits) + learner.n_epoch > self._planned:
                self._planned, self._fits = 0, []
            self._fits.append(learner.n_epoch)
            self._learner, self._fitted, self._told, self._trains = learner, self._count, 0, False
            self._watch.trainer = self.read
        elif event == "before_train" and self._watch.trainer is not None and not self._trains:
            # Epochs before ``start_epoch`` were trained by an earlier attempt.
            self._trains, self._count = True, self._count + learner.epoch * (self._epoch_steps() or 0)
            self._told = len(self._rows())
        elif event == "after_step" and self._watch.trainer is not None:
            self._count += 1
        elif event == "before_validate" and self._watch.trainer is not None:
            self._watch.evaluates()

    def after_save(self, path: Any, learner: Any, *args: Any, **kwargs: Any) -> None:
        """After ``Learner.save``."""
        if path is not None:
            self._watch.saved(CheckpointNote(os.path.abspath(path), self._count, time.time()))  # noqa: PTH100

    def read(self) -> dict[str, Any]:
        """Return heartbeat fields, and the metrics of each finished epoch."""
        learner, of_epoch, rows = self._learner, self._epoch_steps(), self._rows()
        before, epoch = sum(self._fits[:-1]), min(getattr(self._learner, "epoch", 0) + 1, self._learner.n_epoch)
        epochs = self._planned or learner.n_epoch
        done = self._count - self._fitted - (epoch - 1) * (of_epoch or 0)
        known = of_epoch is not None and 0 <= done <= of_epoch
        points, self._ended = [*self._ended, *self._fresh()], []
        opt = getattr(learner, "opt", None)
        return {
            "step": self._count,
            "counts_behind": True,
            "steps": self._fitted + (epochs - before) * of_epoch if of_epoch else None,
            "epoch": before + epoch,
            "epochs": epochs,
            "epoch_step": done if known else None,
            "epoch_steps": of_epoch if known else None,
            "lr": None if opt is None else float(opt.hypers[-1]["lr"]),
            "metrics": rows[-1] if rows else {},
            "points": points,
        }

    def _epoch_steps(self) -> int | None:
        """Return the steps per epoch; None if gradients are accumulated."""
        return None if hasattr(self._learner, "gradient_accumulation") else len(self._learner.dls.train)

    def _fresh(self) -> list[tuple[int, dict[str, float]]]:
        """Return the rows that were not reported yet, with their steps."""
        of_epoch, rows = self._epoch_steps(), self._rows()
        ends = [self._fitted + (at + 1) * of_epoch if of_epoch else self._count for at in range(len(rows))]
        fresh, self._told = list(zip(ends, rows))[self._told :], len(rows)  # noqa: B905
        return fresh

    def _rows(self) -> list[dict[str, float]]:
        """Return one row for each finished epoch, as in fastai's Recorder."""
        recorder = getattr(self._learner, "recorder", None)
        names = list(getattr(recorder, "metric_names", ()))[1:]
        found = []
        for values in getattr(recorder, "values", ()):
            row = {name: value for name, value in zip(names, values) if name not in _NO_METRICS}  # noqa: B905
            found.append({name: float(value) for name, value in row.items() if value is not None})
        return found

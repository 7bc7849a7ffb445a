"""fastai's Learner, asked for what it knows: its optimizers are not torch's. Tried with fastai 2.8."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from ..wire.heartbeat import CheckpointNote

if TYPE_CHECKING:
    from .watch import Watch

_NO_METRICS = ("epoch", "time", "train_loss")


class Fastai:
    """Looks at the events of all learners of this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._learner: Any = None
        self._count = self._fitted = self._told = 0

    def before_event(self, learner: Any, event: Any, *args: Any, **kwargs: Any) -> None:
        """Before ``Learner.__call__``."""
        if event == "before_fit":
            self._learner, self._fitted, self._told = learner, self._count, 0
            self._watch.trainer = None if hasattr(learner, "lr_finder") else self.read
        elif event == "after_step" and self._watch.trainer is not None:
            self._count += 1
        elif event == "before_validate" and self._watch.trainer is not None:
            self._watch.evaluates()

    def after_save(self, path: Any, learner: Any, *args: Any, **kwargs: Any) -> None:
        """Behind ``Learner.save``."""
        if path is not None:
            self._watch.saved(CheckpointNote(os.path.abspath(path), self._count, time.time()))  # noqa: PTH100

    def read(self) -> dict[str, Any]:
        """Fields of a heartbeat, and the metrics of each epoch that is over."""
        learner, rows = self._learner, self._rows()
        of_epoch = None if hasattr(learner, "gradient_accumulation") else len(learner.dls.train)
        epoch = min(getattr(learner, "epoch", 0) + 1, learner.n_epoch)
        done = self._count - self._fitted - (epoch - 1) * (of_epoch or 0)
        known = of_epoch is not None and 0 <= done <= of_epoch
        ends = [self._fitted + (at + 1) * of_epoch if of_epoch else self._count for at in range(len(rows))]
        fresh, self._told = list(zip(ends, rows))[self._told :], len(rows)  # noqa: B905
        opt = getattr(learner, "opt", None)
        return {
            "step": self._count,
            "steps": self._fitted + learner.n_epoch * of_epoch if of_epoch else None,
            "epoch": epoch,
            "epochs": learner.n_epoch,
            "epoch_step": done if known else None,
            "epoch_steps": of_epoch if known else None,
            "lr": None if opt is None else float(opt.hypers[-1]["lr"]),
            "metrics": rows[-1] if rows else {},
            "points": fresh,
        }

    def _rows(self) -> list[dict[str, float]]:
        """Of each epoch that is over, as Recorder has them."""
        recorder = getattr(self._learner, "recorder", None)
        names = list(getattr(recorder, "metric_names", ()))[1:]
        found = []
        for values in getattr(recorder, "values", ()):
            row = {name: value for name, value in zip(names, values) if name not in _NO_METRICS}  # noqa: B905
            found.append({name: float(value) for name, value in row.items() if value is not None})
        return found

"""Keras 3, on torch and on its other backends: ``model.fit(..., callbacks=[MpstuiCallback()])``; tried with 3.15."""

from __future__ import annotations

import os
import time
from typing import Any

import keras

from ..reporting import report
from .requests import clear_cache_if_asked, harmless, number

EVALUATION_SECONDS, SAVING_SECONDS = 3600.0, 600.0


@harmless
class MpstuiCallback(keras.callbacks.Callback):
    """Reports a training, and saves, clears the cache or stops when somebody asks the run to.

    Whatever saves the model during the training is reported as a checkpoint: ModelCheckpoint, or this on request.
    """

    def __init__(self, save_to: str = "asked.keras") -> None:
        """``save_to``: where the model is saved on request; ``keras.models.load_model`` reads it."""
        super().__init__()
        self._save_to = os.path.abspath(save_to)
        self._steps: int | None = None
        self._trains = False
        self._samples = 0
        """Since it began to train, or went on behind an evaluation."""
        self._began = 0.0

    def on_train_begin(self, logs: Any = None) -> None:
        optimizer = getattr(self.model, "optimizer", None)
        report.config({"optimizer": optimizer.get_config()} if optimizer is not None else {})
        self._tell_of_checkpoints()
        self._count_samples()
        report.takes("save", "clear_cache", "stop")
        self._trains = True
        self._go_on()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        epochs, of_epoch = self.params.get("epochs"), self.params.get("steps")
        if self._steps is None and epochs and of_epoch:
            self._steps = self._step() + (epochs - epoch) * of_epoch
        report(epoch=epoch + 1, epochs=epochs, steps=self._steps, epoch_steps=of_epoch, epoch_step=0)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        seconds = time.monotonic() - self._began
        speed = {"samples_per_second": self._samples / seconds} if self._samples and seconds > 1 else {}
        report(logs or {}, step=self._step(), epoch_step=batch + 1, lr=self._lr(), **speed)
        clear_cache_if_asked()
        stops = report.requested("stop")
        if report.requested("save") or stops:
            self.model.save(self._save_to)
        if stops:
            self.model.stop_training = True

    def on_test_begin(self, logs: Any = None) -> None:
        report.phase("evaluating", expect_seconds=EVALUATION_SECONDS)

    def on_test_end(self, logs: Any = None) -> None:
        if self._trains:
            self._go_on()
        else:
            report.phase("saving", expect_seconds=SAVING_SECONDS)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        found = {name: value for name, value in (logs or {}).items() if name.startswith("val_")}
        report(found, step=self._step())

    def on_train_end(self, logs: Any = None) -> None:
        self._trains = False
        self.model.__dict__.pop("save", None)
        if hasattr(self.model.train_function, "counted"):
            self.model.train_function = self.model.train_function.counted
        report.phase("saving", expect_seconds=SAVING_SECONDS)

    def _go_on(self) -> None:
        self._samples, self._began = 0, time.monotonic()
        report.phase("training")

    def _count_samples(self) -> None:
        """On torch Keras hands each batch to a function of the model; no callback is told how large it is."""
        run = getattr(self.model, "train_function", None)
        if keras.backend.backend() != "torch" or run is None or hasattr(run, "counted"):
            return

        def counting(batches: Any) -> Any:
            self._samples += sum(map(_samples_in, batches)) if isinstance(batches, list) else 0
            return run(batches)

        counting.counted = run  # type: ignore[attr-defined]
        self.model.train_function = counting

    def _step(self) -> int:
        return int(number(self.model.optimizer.iterations) or 0)

    def _lr(self) -> float | None:
        return number(getattr(self.model.optimizer, "learning_rate", None))

    def _tell_of_checkpoints(self) -> None:
        save = self.model.save
        if hasattr(save, "tells"):
            return

        def saved(filepath: Any, *args: Any, **kwargs: Any) -> Any:
            with report.phase("saving", expect_seconds=SAVING_SECONDS):
                result = save(filepath, *args, **kwargs)
            report.checkpoint(str(filepath), step=self._step())
            return result

        saved.tells = True  # type: ignore[attr-defined]
        self.model.save = saved


def _samples_in(batch: Any) -> int:
    """How long the first array of a batch is; 0 where that cannot be told."""
    while isinstance(batch, (dict, list, tuple)) and batch:
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    shape = getattr(batch, "shape", None)
    return int(shape[0]) if shape else 0

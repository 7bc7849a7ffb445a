"""Keras 3, on torch and on its other backends: ``model.fit(..., callbacks=[MpstuiCallback()])``; tried with 3.15."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
from keras.src.backend.common.global_state import get_global_attribute

from ..reporting import report
from .phases import EVALUATION_SECONDS, SAVING_SECONDS, leave_saves, tell_of_saves
from .requests import break_off_if_stopped, clear_cache_if_asked, evaluate_if_asked, harmless, number

_LARGEST_STATE = 1 << 20
"""A larger variable is a frozen weight, which no evaluation changes."""
_NO_DATA = (
    "Keras has not said yet what it validates on: ask again after one, or give MpstuiCallback validation_data too"
)
_READ_ONCE = "it validates on a generator, which is read once: give MpstuiCallback validation_data of its own"


@harmless
class MpstuiCallback(keras.callbacks.Callback):
    """Reports a training, and saves, evaluates, clears the cache or stops on request.

    Whatever saves the model during the training is reported as a checkpoint: ModelCheckpoint, or we on request.
    """

    def __init__(
        self, save_to: str = "asked.keras", *, validation_data: Any = None, validation_steps: int | None = None
    ) -> None:
        """Set what requests need.

        Args:
            save_to: where to save the model, for ``keras.models.load_model``.
            validation_data: as for ``fit``; by default that of ``fit``, once it has validated.
            validation_steps: as for ``fit``.
        """
        super().__init__()
        self._data, self._data_steps = validation_data, validation_steps
        self._save_to = os.path.abspath(save_to)
        self._steps: int | None = None
        self._trains = False
        self._samples = 0
        """Samples since training began, or continued after an evaluation."""
        self._began = 0.0

    def on_train_begin(self, logs: Any = None) -> None:
        optimizer = getattr(self.model, "optimizer", None)
        report.config({"optimizer": optimizer.get_config()} if optimizer is not None else {})
        tell_of_saves(self.model, "save", self._saved)
        self._count_samples()
        report.takes("save", "clear_cache", "stop")
        self._tell_whether_it_evaluates()
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
        if evaluate_if_asked(self._evaluated, self._step()):
            self._go_on()
        stops = report.requested("stop")
        if report.requested("save") or stops:
            self.model.save(self._save_to)
        if stops:
            self.model.stop_training = True

    def on_test_begin(self, logs: Any = None) -> None:
        report.phase("evaluating", expect_seconds=EVALUATION_SECONDS)

    def on_test_end(self, logs: Any = None) -> None:
        if self._trains:
            self._tell_whether_it_evaluates()
            self._go_on()
        else:
            report.phase("saving", expect_seconds=SAVING_SECONDS)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        found = {name: value for name, value in (logs or {}).items() if name.startswith("val_")}
        report(found, step=self._step())

    def on_train_end(self, logs: Any = None) -> None:
        self._trains = False
        leave_saves(self.model, "save")
        if hasattr(self.model.train_function, "counted"):
            self.model.train_function = self.model.train_function.counted
        report.phase("saving", expect_seconds=SAVING_SECONDS)

    def _go_on(self) -> None:
        self._samples, self._began = 0, time.monotonic()
        report.phase("training")

    def _tell_whether_it_evaluates(self) -> None:
        found = getattr(getattr(self.model, "_eval_epoch_iterator", None), "data_adapter", None)
        if self._data is None and found is None:
            report.refuses("evaluate", _NO_DATA)
        elif self._data is None and hasattr(found, "generator"):
            report.refuses("evaluate", _READ_ONCE)
        else:
            report.takes("evaluate")

    def _evaluated(self) -> dict[str, Any]:
        """Return what ``evaluate`` measures, restoring what it changes: metrics, and the layers' training mode."""
        ends = keras.callbacks.LambdaCallback(on_test_batch_end=break_off_if_stopped)
        how: dict[str, Any] = {"verbose": 0, "return_dict": True, "callbacks": [ends]}
        data = self._data if self._data is not None else self.model._eval_epoch_iterator.data_adapter
        with _as_before(self.model), _unheard(getattr(data, "py_dataset", data)):
            if self._data is None:
                found = self.model.evaluate(**how, _use_cached_eval_dataset=True)
            else:
                x, y, weights = keras.utils.unpack_x_y_sample_weight(self._data)
                found = self.model.evaluate(x, y, sample_weight=weights, steps=self._data_steps, **how)
        return {f"val_{name}": value for name, value in found.items()}

    def _count_samples(self) -> None:
        """Count samples (torch backend) by wrapping the model's train function: no callback sees the batch size."""
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

    def _saved(self, result: Any, filepath: Any, *args: Any, **kwargs: Any) -> None:
        report.checkpoint(str(filepath), step=self._step())


@contextmanager
def _as_before(model: Any) -> Iterator[None]:
    """Restore metrics, seeds and each layer's training mode afterwards."""
    states = [*model.metrics_variables, *model.non_trainable_variables]
    states += [one.state for one in [get_global_attribute("global_seed_generator")] if one is not None]
    small = [one for one in states if math.prod(one.shape) <= _LARGEST_STATE]
    values = [keras.ops.convert_to_numpy(one).copy() for one in small]
    modes = [(one, one.training) for one in model.modules()] if keras.backend.backend() == "torch" else []
    try:
        yield
    finally:
        for state, value in zip(small, values, strict=True):
            state.assign(value)
        for layer, mode in modes:
            layer.training = mode


@contextmanager
def _unheard(data: Any) -> Iterator[None]:
    """Keep epoch hooks from a PyDataset meanwhile: it may shuffle itself after each epoch."""
    is_told = isinstance(data, keras.utils.PyDataset)
    names = [name for name in ("on_epoch_begin", "on_epoch_end") if is_told and name not in vars(data)]
    for name in names:
        setattr(data, name, lambda: None)
    try:
        yield
    finally:
        for name in names:
            delattr(data, name)


def _samples_in(batch: Any) -> int:
    """Return the length of the first array in a batch; 0 if unknown."""
    while isinstance(batch, (dict, list, tuple)) and batch:
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    shape = getattr(batch, "shape", None)
    return int(shape[0]) if shape else 0

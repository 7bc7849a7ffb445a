"""Ultralytics: ``attach(model)`` before ``model.train(...)``. Tried with ultralytics 8.4."""

from __future__ import annotations

import copy
import logging
import shutil
import time
from typing import Any

from ultralytics.utils import LOGGER

from ..reporting import report
from .phases import EVALUATION_SECONDS
from .requests import break_off_if_stopped, clear_cache_if_asked, evaluate_if_asked, harmless


def attach(model: Any) -> None:
    """Report the trainings of a YOLO model, and save, evaluate, clear the cache or stop on request.

    It saves at the end of an epoch. When stopped, it validates and leaves ``weights/asked.pt``, from which
    ``YOLO(path).train(resume=True)`` begins the interrupted epoch again.
    """
    callbacks = _Callbacks()
    for event in ("on_train_start", "on_train_batch_end", "on_train_epoch_end", "on_model_save", "on_fit_epoch_end"):
        model.add_callback(event, getattr(callbacks, event))


@harmless
class _Callbacks:
    def __init__(self) -> None:
        self._step = self._batches = 0
        self._began = 0.0
        self._stopped = False
        self._trained = False

    def on_train_start(self, trainer: Any) -> None:
        report.config(vars(trainer.args))
        report.takes("save", "evaluate", "clear_cache", "stop")
        self._batches = len(trainer.train_loader)
        self._step = trainer.start_epoch * self._batches
        self._began = time.monotonic()
        self._place(trainer)
        report(device=trainer.device)

    def on_train_batch_end(self, trainer: Any) -> None:
        self._step += 1
        seconds = time.monotonic() - self._began
        done = self._step - trainer.start_epoch * self._batches
        speed = {"samples_per_second": trainer.batch_size * done / seconds} if seconds > 1 else {}
        loss = trainer.loss.detach() if getattr(trainer, "loss", None) is not None else None
        loss = loss if loss is None or not loss.ndim else loss.sum()
        report(step=self._step, epoch_step=self._step - trainer.epoch * self._batches, loss=loss, **speed)
        clear_cache_if_asked()
        evaluate_if_asked(lambda: _validated(trainer), self._step)
        report.requested("save")  # it saves at the end of the epoch anyway
        if report.requested("stop"):
            trainer.stop = self._stopped = True

    def on_train_epoch_end(self, trainer: Any) -> None:
        report(
            {**trainer.label_loss_items(trainer.tloss), "lr": next(iter(trainer.lr.values()), None)}, step=self._step
        )
        report.phase("evaluating", expect_seconds=EVALUATION_SECONDS)
        self._trained = True
        if self._stopped and self._step % self._batches and trainer.epoch > 0:
            trainer.epoch -= 1  # so that the saved state resumes with the interrupted epoch

    def on_model_save(self, trainer: Any) -> None:
        path = trainer.last
        if self._stopped:  # at its end, a training strips the last checkpoint of what resuming needs
            path = trainer.last.with_name("asked.pt")
            shutil.copy(trainer.last, path)
            report.has_saved(str(trainer.last), is_told=True)
        if trainer.best.exists() and trainer.best_fitness == trainer.fitness:
            report.checkpoint(trainer.best, step=self._step, best=True)
        goes_on_from = (trainer.epoch + 1) * self._batches  # an interrupted epoch's steps are made again
        report.checkpoint(path, step=min(self._step, goes_on_from))  # reported last, as the newest

    def on_fit_epoch_end(self, trainer: Any) -> None:
        if not self._trained:
            return  # the final validation of the best weights
        self._trained = False
        report({**(trainer.metrics or {}), "fitness": trainer.fitness}, step=self._step)
        if trainer.epoch + 1 < trainer.epochs and not trainer.stop:
            report.phase("training")
            self._place(trainer, after=1)
        else:
            report.phase("evaluating", expect_seconds=EVALUATION_SECONDS)

    def _place(self, trainer: Any, after: int = 0) -> None:
        epoch, of_epoch = getattr(trainer, "epoch", trainer.start_epoch) + 1 + after, self._batches
        totals = {"steps": trainer.epochs * of_epoch, "epochs": trainer.epochs}
        report(step=self._step, epoch=epoch, epoch_step=0, epoch_steps=of_epoch, **totals)


def _validated(trainer: Any) -> dict[str, Any]:
    """Return what the regular validation would measure now; ``trainer.validate`` would print and record it."""
    stand_in, ema = copy.copy(trainer), copy.copy(trainer.ema)
    stand_in.ema, ema.ema = ema, copy.deepcopy(trainer.ema.ema)
    validator, level = trainer.get_validator(), LOGGER.level
    validator.args.plots = validator.args.save_txt = False
    validator.callbacks = {"on_val_batch_start": [break_off_if_stopped]}
    LOGGER.setLevel(logging.WARNING)
    try:
        return validator(stand_in) or {}
    finally:
        LOGGER.setLevel(level)

"""Lightning: ``Trainer(callbacks=[MpstuiCallback()])``, with or without ``logger=MpstuiLogger()``.

Tried with lightning 2.6, also as pytorch_lightning: a program that has imported that one, or has no other, gets its
kind of callback. The callback reports everything the module logs; the logger is for those who prefer one.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from ..reporting import report
from ..wire.lightning_steps import LightningSteps
from .phases import EVALUATION_SECONDS, SAVING_SECONDS, tell_of_saves
from .requests import clear_cache_if_asked, harmless, number

NAMES = ("lightning", "pytorch_lightning")
if (NAMES[1] in sys.modules and "lightning.pytorch" not in sys.modules) or find_spec(NAMES[0]) is None:
    from pytorch_lightning.callbacks import Callback
    from pytorch_lightning.loggers.logger import Logger
else:
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.loggers.logger import Logger

_LOSSES = ("train_loss_step", "train_loss", "loss_step", "loss", "train/loss_step", "train/loss", "training_loss")
_NO_METRICS = frozenset(("epoch", "step"))


class MpstuiLogger(Logger):
    """Reports what the module logs and its settings; if there is also a callback, that reports what is logged."""

    is_told = False
    """True if :class:`MpstuiCallback`, which knows more, reports instead."""

    @property
    def name(self) -> str:
        return "mpstui"

    @property
    def version(self) -> str:
        """The run's id: ModelCheckpoint puts its folder below this, so each run has its own."""
        return os.path.basename(os.environ.get("MPSTUI_RUN_DIR", "")) or "none"

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        if not self.is_told:
            report(_named(metrics), step=step)

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        report.config(dict(params) if isinstance(params, Mapping) else vars(params))


@harmless
class MpstuiCallback(Callback):
    """Reports a training, and saves, evaluates, clears the cache or stops on request.

    It saves with ``Trainer.save_checkpoint``, beside the checkpoints of ModelCheckpoint.
    """

    def __init__(self) -> None:
        self._step = -1
        self._began = 0.0
        self._batches = 0
        """Batches since training began or continued; one may make several optimizer steps, or a part of one."""
        self._steps = LightningSteps()
        self._batch = 0
        self._has_loss = self._breaks_off = False
        """``_breaks_off``: the newest stop came within an epoch."""
        self._best: float | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.loggers and not any(isinstance(one, MpstuiLogger) for one in trainer.loggers):
            report.config(dict(getattr(pl_module, "hparams", None) or {}))
        self._batch, self._step, self._breaks_off = _batch_size(trainer), trainer.global_step, False
        tell_of_saves(trainer, "save_checkpoint", partial(self._saved, trainer))
        self._tell_of_metrics(trainer)
        if report.is_on and type(signal.getsignal(signal.SIGTERM)).__module__.startswith(NAMES):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Lightning's handler raises; it is restored after the fit
        report.takes("save", "clear_cache", "stop")
        if trainer.enable_validation:
            report.takes("evaluate")
        else:
            report.refuses("evaluate", "there is nothing to evaluate: no validation_step, or no data for it")
        report(**self._place(trainer), device=trainer.strategy.root_device.type)
        self._begin(trainer)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._steps.before_batch(trainer)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._batches += 1
        if trainer.global_step == self._step:
            return  # gradients are being accumulated
        self._step = trainer.global_step
        report(**self._place(trainer), **self._numbers(trainer, outputs), **self._speed())
        clear_cache_if_asked()
        if report.requested("save"):
            trainer.save_checkpoint(_own_path(trainer))
        if trainer.enable_validation and report.requested("evaluate"):
            _validate_once(trainer)
        if report.requested("stop"):
            trainer.save_checkpoint(_own_path(trainer))
            self._breaks_off = not trainer.is_last_batch
            trainer.fit_loop.min_epochs = trainer.fit_loop.epoch_loop.min_steps = None
            trainer.should_stop = True

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        phase = "setup" if trainer.sanity_checking else "evaluating"
        report.phase(phase, expect_seconds=EVALUATION_SECONDS)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.state.fn == "fit":
            self._begin(trainer)
        else:
            report.phase("saving", expect_seconds=SAVING_SECONDS)

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        report.phase("testing", expect_seconds=EVALUATION_SECONDS)

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        report.phase("saving", expect_seconds=SAVING_SECONDS)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        report.phase("saving", expect_seconds=SAVING_SECONDS)

    def _begin(self, trainer: Any) -> None:
        self._began, self._batches = time.monotonic(), 0
        report.phase("training")

    def _numbers(self, trainer: Any, outputs: Any) -> dict[str, Any]:
        """Return the loss and learning rate of every step: the module may log them only now and then."""
        found = {}
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if loss is not None:
            self._has_loss, found["loss"] = True, loss.detach() * trainer.accumulate_grad_batches
        if trainer.optimizers:
            found["lr"] = number(trainer.optimizers[0].param_groups[0].get("lr"))
        return found

    def _tell_of_metrics(self, trainer: Any) -> None:
        """Report what the module logs, with or without a logger, by wrapping Lightning's ``log_metrics``."""
        connector = trainer._logger_connector
        log: Callable[..., Any] = connector.log_metrics
        for logger in trainer.loggers:
            if isinstance(logger, MpstuiLogger):
                logger.is_told = True
        if hasattr(log, "tells"):
            return

        def logged(metrics: Any, step: int | None = None) -> Any:
            if step is None:  # otherwise it is an evaluation's count
                named = {name: value for name, value in metrics.items() if name not in _NO_METRICS}
                if connector._first_loop_iter is not None and self._has_loss:  # this step's loss was reported
                    named = {name: value for name, value in named.items() if name not in _LOSSES}
                elif not self._has_loss:
                    named = _named(named)
                report(named, step=trainer.global_step)
            return log(metrics, step)

        logged.tells = True  # type: ignore[attr-defined]
        connector.log_metrics = logged

    def _place(self, trainer: Any) -> dict[str, Any]:
        epochs, epoch, (steps, of_epoch) = trainer.max_epochs, trainer.current_epoch + 1, self._steps.totals(trainer)
        found = {"step": trainer.global_step, "epoch": epoch, **({"steps": steps} if steps else {})}
        if epochs is not None and epochs > 0:
            found |= {"epochs": epochs, "epoch": min(epoch, epochs)}
        done = trainer.global_step - (found["epoch"] - 1) * (of_epoch or 0)
        return {**found, "epoch_steps": of_epoch, "epoch_step": done} if of_epoch and 0 <= done <= of_epoch else found

    def _speed(self) -> dict[str, float]:
        seconds = time.monotonic() - self._began
        return {"samples_per_second": self._batch * self._batches / seconds} if self._batch and seconds > 1 else {}

    def _saved(self, trainer: Any, result: Any, filepath: Any, *args: Any, **kwargs: Any) -> None:
        if not trainer.is_global_zero or "://" in str(filepath):
            return
        if self._breaks_off:  # ModelCheckpoint's last one counts the interrupted epoch as done
            report.has_saved(os.path.abspath(filepath), is_told=True)
            return
        keeper = trainer.checkpoint_callback
        judged = getattr(keeper, "monitor", None) is not None  # without a metric it calls the newest the best
        best = judged and keeper.best_model_path == str(filepath)
        report.checkpoint(filepath, step=trainer.global_step, best=best)
        score = number(getattr(keeper, "best_model_score", None))
        if score is not None and score != self._best:
            self._best = score
            report(best_metric=score)


def _named(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return metrics as they are reported: a step's loss, whatever its name, is ``loss``."""
    of_step = next((name for name in _LOSSES if name in metrics), None)
    known = {name: value for name, value in metrics.items() if name not in _NO_METRICS}
    return {"loss" if name == of_step else name: value for name, value in known.items()}


def _batch_size(trainer: Any) -> int:
    size = getattr(trainer.train_dataloader, "batch_size", None) or 0
    return int(size * trainer.world_size)


def _own_path(trainer: Any) -> str:
    folder = getattr(trainer.checkpoint_callback, "dirpath", None) or os.path.join(trainer.default_root_dir, "saved")
    return os.path.join(folder, f"epoch={trainer.current_epoch}-step={trainer.global_step}-asked.ckpt")


def _validate_once(trainer: Any) -> None:
    """Have the loop validate after this batch, by making its own check say yes once."""
    loop = trainer.fit_loop.epoch_loop

    def asked(*args: Any) -> bool:
        del loop._should_check_val_fx
        return True

    loop._should_check_val_fx = asked

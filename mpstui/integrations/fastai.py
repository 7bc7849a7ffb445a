"""fastai: ``Learner(..., cbs=MpstuiCallback())``. Tried with fastai 2.8."""

from __future__ import annotations

import copy
import functools
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastai.callback import schedule
from fastai.callback.core import Callback, CancelFitException
from fastai.callback.rnn import ModelResetter
from fastai.learner import AvgLoss

from ..reporting import report
from .phases import EVALUATION_SECONDS, SAVING_SECONDS, leave_saves, tell_of_saves
from .requests import break_off_if_stopped, clear_cache_if_asked, evaluate_if_asked, harmless, number

_NO_METRICS = frozenset(("epoch", "time", "train_loss"))


@harmless
class MpstuiCallback(Callback):
    """Reports a Learner's training, and saves, evaluates, clears the cache or stops on request.

    Whatever ``learn.save`` writes is a checkpoint, be it by SaveModelCallback, by the program, or by us on request.
    """

    order = 61  # after Recorder, whose numbers these are

    def __init__(self, save_as: str = "asked") -> None:
        """``save_as``: the name to save under, for ``learn.load``."""
        super().__init__()
        self._save_as = save_as
        self._count = self._fitted = self._began_at = 0
        self._trains = False
        """An epoch of this training was trained, not skipped."""
        self._planned = 0
        """Epochs of a whole ``fine_tune``; 0 if the newest training is not part of one."""
        self._fits: list[int] = []
        """Epochs of each of its trainings, up to the newest."""
        self._began = 0.0

    def plans(self, epochs: int) -> None:
        """Set how many epochs the next trainings have together."""
        self._planned, self._fits = epochs, []

    def before_fit(self) -> None:
        self.run = not hasattr(self.learn, "lr_finder") and not hasattr(self, "gather_preds")
        if not self.run:
            return
        report.takes("save", "clear_cache", "stop")
        if len(self.dls.loaders) > 1 and len(self.dls.valid):
            report.takes("evaluate")
        else:
            report.refuses("evaluate", "there is nothing to evaluate on: its DataLoaders have no validation set")
        tell_of_saves(self.learn, "save", self._saved)
        self._fitted, self._trains = self._count, False
        if sum(self._fits) + self.n_epoch > self._planned:
            self._planned, self._fits = 0, []
        self._fits.append(self.n_epoch)
        self._totals()
        report(device=str(getattr(self.dls, "device", None) or "cpu"))
        self._go_on()

    def before_epoch(self) -> None:
        self._totals()

    def before_train(self) -> None:
        if not self._trains:  # those before ``start_epoch`` were trained by an earlier attempt
            self._trains, self._count = True, self._count + self.epoch * len(self.dls.train)
            report(step=self._count)
            self._go_on()

    def after_batch(self) -> None:
        if not self.training:
            return
        self._count += 1
        seconds, done = time.monotonic() - self._began, self._count - self._began_at
        batch = getattr(self.dls.train, "bs", None) or getattr(self.dls.train, "batch_size", None) or 0
        speed = {"samples_per_second": batch * done / seconds} if seconds > 1 and batch else {}
        lr = number(self.opt.hypers[-1].get("lr"))
        report(step=self._count, epoch_step=self.iter + 1, loss=self.loss.detach(), lr=lr, **speed)
        clear_cache_if_asked()
        if evaluate_if_asked(lambda: _evaluated(self.learn), self._count):
            self._go_on()
        stops = report.requested("stop")
        if report.requested("save") or stops:
            self.learn.save(self._save_as)
        if stops:
            raise CancelFitException

    def before_validate(self) -> None:
        report.phase("evaluating", expect_seconds=EVALUATION_SECONDS)

    def after_validate(self) -> None:
        self._go_on()

    def after_epoch(self) -> None:
        if not self._trains:
            return
        found = zip(self.recorder.metric_names, self.recorder.log, strict=False)
        report({name: number(value) for name, value in found if name not in _NO_METRICS}, step=self._count)

    def after_fit(self) -> None:
        leave_saves(self.learn, "save")
        report.phase("saving", expect_seconds=SAVING_SECONDS)

    def _go_on(self) -> None:
        self._began, self._began_at = time.monotonic(), self._count
        report.phase("training")

    def _totals(self) -> None:
        of_epoch, epochs, before = len(self.dls.train), self._planned or self.n_epoch, sum(self._fits[:-1])
        epoch, steps = before + min(self.epoch + 1, self.n_epoch), self._fitted + (epochs - before) * of_epoch
        report(epoch=epoch, epochs=epochs, steps=steps, epoch_steps=of_epoch, epoch_step=0)

    def _saved(self, path: Any, *args: Any, **kwargs: Any) -> None:
        if path is not None and self._trains:
            report.checkpoint(path, step=self._count)
        elif path is not None:  # the epoch was skipped, and SaveModelCallback saves after it all the same
            report.has_saved(os.path.abspath(path), is_told=True)


def _evaluated(learner: Any) -> dict[str, Any]:
    """Return what the regular validation would measure now; ``learner.validate`` would run all callbacks' hooks."""
    stand_in = copy.copy(learner)
    stand_in.training, stand_in.dl = False, learner.dls.valid
    stand_in.cbs = [copy.copy(one) for one in learner.cbs.sorted("order") if one.run and one.run_valid]
    for one in stand_in.cbs:
        one.learn = stand_in  # so that they change the stand-in's batches and predictions
    prefix = "valid_" if getattr(getattr(learner, "recorder", None), "train_metrics", False) else ""
    metrics = copy.deepcopy(list(learner.metrics), {id(learner): stand_in})
    measured = {"valid_loss": AvgLoss(), **{prefix + one.name: one for one in metrics}}
    torch: Any = sys.modules["torch"]  # imported by fastai, and nowhere by the monitor
    with torch.no_grad(), _as_before(learner.model), _not_begun(learner.dls.valid):
        learner.model.eval()
        if any(isinstance(one, ModelResetter) for one in learner.cbs):
            learner.model.reset()
        for one in measured.values():
            one.reset()
        for place, batch in enumerate(learner.dls.valid):
            break_off_if_stopped()
            _pass_through(stand_in, place, batch)
            for one in measured.values():
                one.accumulate(stand_in)
        return {name: one.value for name, one in measured.items()}


def _pass_through(stand_in: Any, place: int, batch: Any) -> None:
    """Compute predictions and loss of a batch."""
    stand_in.iter = place
    stand_in._split(stand_in._set_device(batch))
    _tell(stand_in, "before_batch")
    stand_in.pred = stand_in.model(*stand_in.xb)
    _tell(stand_in, "after_pred")
    stand_in.loss_grad = stand_in.loss = stand_in.loss_func(stand_in.pred, *stand_in.yb)
    _tell(stand_in, "after_loss")


def _tell(stand_in: Any, event: str) -> None:
    for one in stand_in.cbs:
        getattr(one, event, lambda: None)()


@contextmanager
def _as_before(model: Any) -> Iterator[None]:
    """Restore each module's mode and state afterwards: a recurrent one keeps its hidden state as an attribute."""
    modules = list(model.modules())
    kept = [{name: value for name, value in vars(one).items() if not name.startswith("_")} for one in modules]
    buffers = [(one, one.clone()) for one in model.buffers()]
    try:
        yield
    finally:
        for one, before in zip(modules, kept, strict=True):
            for name in [name for name in vars(one) if not name.startswith("_") and name not in before]:
                del vars(one)[name]
            vars(one).update(before)
        for one, value in buffers:
            if not one.equal(value):
                one.copy_(value)


@contextmanager
def _not_begun(loader: Any) -> Iterator[None]:
    """Restore a fastai loader's own random generator afterwards, so that it draws what it would have drawn."""
    before = getattr(loader, "rng", None)
    state = before.getstate() if before is not None else None
    try:
        yield
    finally:
        if before is not None:
            before.setstate(state)
            loader.rng = before


def _planned(fine_tune: Any) -> Any:
    """Wrap ``fine_tune`` to tell the callback first how many epochs its two trainings, frozen and full, have in all."""

    @functools.wraps(fine_tune)
    def planned(learner: Any, epochs: int, *args: Any, **kwargs: Any) -> Any:
        frozen = kwargs.get("freeze_epochs", args[1] if len(args) > 1 else 1)
        for one in learner.cbs:
            if isinstance(one, MpstuiCallback):
                one.plans(epochs + frozen)
        return fine_tune(learner, epochs, *args, **kwargs)

    return planned


schedule.Learner.fine_tune = _planned(schedule.Learner.fine_tune)

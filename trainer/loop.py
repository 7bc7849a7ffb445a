"""The training loop that every task shares: steps, reports, validation, checkpoints, requests, a clean end."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path

import torch

from mpstui.wire.records import Request

from .device import is_out_of_memory
from .errors import TrainingError
from .job import Job
from .optimizers import set_learning_rate
from .saving import Writing, begin, save
from .startup import Startup

_LONGEST_SAVE_SECONDS = 300.0
_EVALUATION_SILENCE_SECONDS = 120.0


class Loop:
    """Run a job from its current progress to the end, or until asked to stop."""

    def __init__(self, job: Job, startup: Startup | None = None) -> None:
        self._job = job
        self._startup = startup
        self._progress = job.progress
        self._reports = job.reports
        self._options = job.options
        self._lr = 0.0
        self._saved_step = -1
        self._writing: Writing | None = None
        self._best_before: tuple[float | None, int | None] | None = None  # to restore if the write fails
        self._failure: str | None = None
        self._save_requests: list[Request] = []

    def run(self) -> None:
        """Train.

        Raises:
            TrainingError: the loss became non-finite, or the last checkpoint could not be written.
        """
        self._reports.restart_clock()
        try:
            while self._progress.epoch <= self._options.epochs:
                if not self._train_epoch() or not self._end_epoch():
                    self._end_early()
                    return
        finally:
            self._finish_writing()
        self._reports.phase("done", self._progress, expect_next_in=0.0)
        self._reports.say(f"done: {self._progress.step} steps")

    def _train_epoch(self) -> bool:
        """Train the rest of the current epoch; return False if asked to stop before its end."""
        progress = self._progress
        if self._should_stop():
            return False
        self._job.model.train()
        for batch, total in self._job.feed.epoch(progress.epoch, progress.epoch_step):
            self._lr = set_learning_rate(self._job.optimizer, self._job.schedule.factor(progress.step))
            self._job.stepper.step(batch, total, progress.step + 1)
            self._after_step()
            if self._should_stop():
                return False
        return True

    def _after_step(self) -> None:
        job, progress, options = self._job, self._progress, self._options
        progress.step += 1
        progress.epoch_step += 1
        if job.average:
            job.average.update()
        self._reports.step_done(progress)
        if self._report_due():
            self._report()
        if self._startup:  # after the report, which waits for the device
            self._reports.notify("first_step", self._startup.told(), seconds=self._startup.seconds)
            self._startup = None
        if self._writing and self._writing.is_done:
            self._finish_writing()
        for request in self._reports.reporter.requests():
            self._answer(request)
        if options.empty_cache_every and progress.step % options.empty_cache_every == 0:
            job.device.empty_cache()
        if options.save_steps and progress.step % options.save_steps == 0:
            self._save(goes_on=True)

    def _report_due(self) -> bool:
        every = self._options.report_every
        if every:
            return self._progress.step % every == 0
        return self._progress.step == 1 or self._reports.due()

    def _report(self) -> None:
        """Read the results back from the device and report them; ranks need not do so at the same step."""
        reading = self._job.stepper.read()
        if not reading.samples:
            return
        if reading.first_bad_step >= 0:
            self._failure = self._non_finite(reading.first_bad_step)
        else:
            self._progress.add(reading)
        self._reports.report(self._progress, reading, self._lr)

    def _settle(self) -> None:
        """Report, and end a training that has gone wrong. All ranks call this at the same step, so they end together.

        Raises:
            TrainingError: a step since the last report was not finite; the weights were kept from it.
        """
        self._report()
        if self._job.group.any(self._failure is not None):
            sentence = self._failure or self._non_finite(self._progress.step)
            self._reports.reporter.event("crash", sentence)
            raise TrainingError(sentence)

    def _non_finite(self, step: int) -> str:
        kept = self._job.folder.newest_first()
        last = f"the last good checkpoint is {kept[0]}" if kept else "there is no checkpoint yet"
        return (
            f"the loss or its gradient became non-finite (NaN or infinity) at step {step}, the weights were kept from"
            f" it; {last}; resume with a lower --lr, with --clip 1, or with --precision fp32;"
            " --check-data tells whether it came from the data"
        )

    def _should_stop(self) -> bool:
        """True if all ranks stop here. Also saves a requested checkpoint, since that takes all ranks."""
        limit = self._options.stop_after
        if limit and self._progress.step >= limit:
            return True
        stop = self._job.control.stop_requested or self._failure is not None
        stopping, saving = self._job.group.any_lately(stop, bool(self._save_requests))
        if saving:
            self._save()
        return stopping

    def _end_early(self) -> None:
        """Report what is outstanding and save a checkpoint."""
        self._settle()
        reason = self._job.control.signal_name or "--stop-after"
        self._reports.notify("note", f"stopping at step {self._progress.step} ({reason})")
        if not self._save():
            raise TrainingError("stopped, but the checkpoint could not be written; the one before it is intact")
        self._reports.say("stopped: the checkpoint is saved, --resume latest continues from here")

    def _end_epoch(self) -> bool:
        """Validate and save if due; return False if asked to stop during validation.

        Raises:
            TrainingError: it was the last epoch, and its checkpoint could not be written.
        """
        self._settle()
        self._finish_writing()
        epoch, options = self._progress.epoch, self._options
        last = epoch == options.epochs
        best, kept = False, (self._progress.best, self._progress.best_step)
        if last or epoch % options.eval_every == 0:
            metrics = self._evaluate()
            if metrics is None:
                return False
            best = self._job.group.any(self._is_best(metrics))
        self._progress.next_epoch()
        if best or last or (options.save_every and epoch % options.save_every == 0):
            saved = self._save(best=best, goes_on=not last)
            if best and not saved:
                self._progress.forget_best(*kept)
            elif best and self._writing:
                self._best_before = kept
            if last and not saved:
                raise TrainingError("trained to the end, but the last checkpoint could not be written")
        self._reports.restart_clock()
        return True

    def _evaluate(self) -> dict[str, float] | None:
        """Return validation metrics, empty on all but the leading rank, or None if asked to stop before the end."""
        job, started = self._job, time.monotonic()
        self._reports.phase("eval", self._progress, expect_next_in=_EVALUATION_SILENCE_SECONDS)
        metrics = self._validated_if_it_fits() if job.layout.validates else {}
        if job.group.any(metrics is None) or metrics is None:
            return None
        if not job.group.ranks.leads:
            return {}
        self._reports.validated(self._progress, metrics, time.monotonic() - started)
        return metrics

    def _validated_if_it_fits(self) -> dict[str, float] | None:
        """Return validation metrics, empty if the device ran out of memory: only the metrics are lost."""
        try:
            return self._validation_metrics()
        except (RuntimeError, MemoryError) as error:
            if self._job.layout.divided or not is_out_of_memory(error):
                raise  # with a divided model, the other ranks are waiting for this one in its next layer
        self._job.device.empty_cache()
        self._job.model.train()
        self._reports.notify("note", "validation ran out of memory and is left out; the training goes on")
        return {}

    def _validation_metrics(self) -> dict[str, float] | None:
        job = self._job
        job.model.eval()
        found: dict[str, float] | None = None
        weights = job.average.swapped_in() if job.average else torch.no_grad()
        with weights, torch.no_grad(), job.precision.autocast(), job.device.rarely():
            for found in job.task.evaluate(job.model, job.device):
                self._reports.reporter.beat(expect_next_in=_EVALUATION_SILENCE_SECONDS)
                if job.layout.any_validating(job.control.stop_requested) and found is None:
                    break
        job.model.train()
        return found

    def _is_best(self, metrics: dict[str, float]) -> bool:
        (name, direction) = next(iter(self._job.task.DEFAULTS.better.items()))
        return name in metrics and self._progress.improves(metrics[name], higher_is_better=direction == "max")

    def _save(self, *, best: bool = False, goes_on: bool = False) -> bool:
        """Save a checkpoint, all ranks together. A failure is reported, not raised; return False then.

        Args:
            goes_on: the training continues afterwards, so write in the background if possible.
        """
        step = self._progress.step
        self._settle()
        self._finish_writing()
        if self._saved_step != step or best:
            self._saved_step = step
            self._writing = begin(self._job, best=best) if goes_on and not self._save_requests else None
            if self._writing is None:
                self._reports.phase("save", self._progress, expect_next_in=_LONGEST_SAVE_SECONDS)
                written = self._written(lambda: save(self._job, best=best), step)
                self._saved_step = -1 if self._job.group.any(not written) else step
            self._reports.restart_clock()
        ok = self._saved_step == step
        for request in self._save_requests:
            where = "".join(f": {path}" for path in self._job.folder.newest_first()[:1])
            text = f"saved at step {step}{where}" if ok else "the checkpoint could not be written"
            self._reports.reporter.answer(request, ok=ok, text=text)
        self._save_requests.clear()
        return ok

    def _finish_writing(self) -> None:
        """Wait for the checkpoint that is being written in the background, and report it."""
        writing, best_before = self._writing, self._best_before
        self._writing = self._best_before = None
        if writing is None:
            return
        if not writing.is_done:
            self._reports.phase("save", self._progress, expect_next_in=_LONGEST_SAVE_SECONDS)
        if not self._written(writing.path, writing.step):
            self._saved_step = -1
            if best_before is not None:
                self._progress.forget_best(*best_before)

    def _written(self, write: Callable[[], Path | None], step: int) -> bool:
        """Write a checkpoint and report it; return False if that failed."""
        try:
            path = write()
        except OSError as error:
            self._reports.notify("note", f"the checkpoint could not be written ({error}); the training goes on")
            return False
        if path is not None:
            self._reports.saved(str(path), step)
        return True

    def _answer(self, request: Request) -> None:
        if request.action == "save":
            self._save_requests.append(request)
            return
        if request.action == "evaluate":
            self._reports.reporter.answer(request, ok=False, text="this trainer evaluates at the end of each epoch")
            return
        before, after = self._clear_cache()
        freed = max(0, before - after) if before is not None and after is not None else 0
        text = f"freed {freed / 2**20:,.0f} MiB" if before is not None else "nothing to free"
        self._reports.reporter.answer(request, ok=True, text=text, before=before, after=after, freed=freed)

    def _clear_cache(self) -> tuple[int | None, int | None]:
        """Release the device's cached memory; return driver memory before and after, in bytes."""
        device = self._job.device
        before = device.memory().driver
        gc.collect()
        device.empty_cache()
        return before, device.memory().driver

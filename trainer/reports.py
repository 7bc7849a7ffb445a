"""A training's output: lines for people, points and heartbeats for the monitor, all on the training thread."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from mpstui.agent.reporter import Reporter
from mpstui.wire.heartbeat import CheckpointNote

from .progress import Progress
from .step import Reading

REPORT_SECONDS = 1.0
LINE_SECONDS = 5.0
_PATIENCE_STEPS = 20
_SHORTEST_SPEED_SECONDS = 0.5
"""A speed over less time means little: an epoch's last step is smaller, and a whole epoch may be shorter than this."""
_LEAST_PATIENCE_SECONDS = 15.0


class Reports:
    """Everything that the loop reports; only the leading rank prints."""

    def __init__(
        self,
        reporter: Reporter,
        *,
        epochs: int,
        steps_per_epoch: int,
        leads: bool = True,
        ranks: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reporter = reporter
        self._epochs = epochs
        self._steps_per_epoch = steps_per_epoch
        self._leads = leads
        self._ranks = ranks
        self._clock = clock
        self._last_report = self._last_line = float("-inf")
        self._speed_since = clock()
        self._speed_seconds = 0.0
        self._speed_steps = self._speed_samples = 0
        self._step_seconds = 1.0
        self._metrics: dict[str, float] = {}

    def say(self, text: str) -> None:
        """Print one line on standard output."""
        if not self._leads:
            return
        try:
            print(text, flush=True)
        except OSError:
            _forget_unwritten_output()

    def notify(self, name: str, text: str, **details: Any) -> None:
        """Report an event, and print the same sentence as a line."""
        self.say(f"{name}: {text}")
        self.reporter.event(name, text, **details)

    def restart_clock(self) -> None:
        """Exclude the time since the last report from speeds: it went into something other than steps."""
        self._speed_since = self._clock()

    def step_done(self, progress: Progress) -> None:
        """Count a step, and write a heartbeat if one is due."""
        self._speed_steps += 1
        patience = max(_LEAST_PATIENCE_SECONDS, _PATIENCE_STEPS * self._step_seconds)
        self.reporter.beat("train", expect_next_in=patience, doing=None, **self._position(progress))

    def due(self) -> bool:
        """Whether a second has passed since the last report."""
        return self._clock() - self._last_report >= REPORT_SECONDS

    def report(self, progress: Progress, reading: Reading, lr: float) -> None:
        """Report a training point: means since the previous one."""
        self._last_report = now = self._clock()
        speeds = self._speeds(now, reading.samples)
        means = dict(reading.means)
        self.reporter.point(progress.step, progress.epoch, **means, lr=lr, **speeds)
        loss = means.pop("loss", None)
        known = self._metrics | means
        self.reporter.beat(loss=loss, lr=lr, metrics=known, **speeds, **self._position(progress))
        self._metrics = known
        if now - self._last_line >= LINE_SECONDS and loss is not None:
            self._last_line = now
            self.say(self._line(progress, loss, lr, speeds.get("steps_per_second")))

    def phase(self, name: str, progress: Progress, *, expect_next_in: float, **facts: Any) -> None:
        """Announce a phase before it starts; it may stay silent for ``expect_next_in`` seconds."""
        self.reporter.beat(name, expect_next_in=expect_next_in, **facts, **self._position(progress))

    def validated(self, progress: Progress, metrics: dict[str, float], seconds: float) -> None:
        """Report the end of an epoch: training means and validation metrics as one point."""
        means = {f"epoch_{name}": value for name, value in progress.epoch_means().items() if name != "grad_norm"}
        self.reporter.point(progress.step, progress.epoch, **means, **metrics)
        self._metrics = self._metrics | metrics
        self.reporter.beat(metrics=self._metrics)
        loss = progress.epoch_means().get("loss")
        shown = " ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        trained = "" if loss is None else f"train_loss {loss:.4f} "
        self.say(f"epoch {progress.epoch}/{self._epochs} done: {trained}{shown} (evaluated in {seconds:.1f} s)")

    def saved(self, path: str, step: int) -> None:
        """Report that a checkpoint is on disk."""
        note = CheckpointNote(path, step, time.time())
        self.reporter.beat(checkpoint=note)
        self.reporter.event("checkpoint", f"saved {path}", path=path, step=step)

    def _position(self, progress: Progress) -> dict[str, Any]:
        return {
            "epoch": min(progress.epoch, self._epochs),
            "epochs": self._epochs,
            "step": progress.step,
            "steps": self._epochs * self._steps_per_epoch,
            "epoch_step": progress.epoch_step,
            "epoch_steps": self._steps_per_epoch,
        }

    def _speeds(self, now: float, samples: int) -> dict[str, float]:
        self._speed_samples += samples
        self._speed_seconds += now - self._speed_since
        self._speed_since = now
        elapsed, steps = self._speed_seconds, self._speed_steps
        if elapsed < _SHORTEST_SPEED_SECONDS or not steps:
            return {}
        samples = self._speed_samples * self._ranks  # the ranks' shares of a step differ by at most one sample
        self._speed_seconds, self._speed_steps, self._speed_samples = 0.0, 0, 0
        self._step_seconds = elapsed / steps
        return {"steps_per_second": steps / elapsed, "samples_per_second": samples / elapsed}

    def _line(self, progress: Progress, loss: float, lr: float, speed: float | None) -> str:
        total = self._epochs * self._steps_per_epoch
        head = f"epoch {progress.epoch}/{self._epochs} step {progress.step}/{total} loss {loss:.4f} lr {lr:.3g}"
        return head if speed is None else f"{head} {speed:.3g} steps/s"


def _forget_unwritten_output() -> None:
    """Replace standard output after a failed write (disk full, reader gone) by a fresh stream on the same descriptor.

    The old one would retry its buffer with the next line, and make a successful training exit with code 120.
    """
    with contextlib.suppress(OSError, ValueError):
        sys.stdout = os.fdopen(sys.stdout.fileno(), "w", closefd=False)

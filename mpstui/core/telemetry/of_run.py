"""Logbook and pace of one run, fed with pictures of it."""

from __future__ import annotations

import math

from ...wire.rundir import RunDir
from ..model.snapshot import Health, RunSnapshot, SeriesView, State
from .history import TrainerFacts
from .logbook import Logbook, Outlook
from .model import SystemSample, TreeSample
from .throughput import (
    SAMPLE_SECONDS,
    Pace,
    Stretch,
    ThroughputWatch,
    pace,
    present_pace,
    slow_stretches,
    speeds,
)


class RunLogbook:
    """Notes what is sampled while the run's processes live; afterwards it only recalls."""

    def __init__(self, snapshot: RunSnapshot) -> None:
        # What mpstui did not start may lie in a folder of somebody else's: nothing is written there.
        watched = snapshot.state is State.WATCHED
        self._book = Logbook(None if watched else RunDir(snapshot.dir))

    def look(self, snapshot: RunSnapshot, system: SystemSample, tree: TreeSample | None) -> Outlook:
        """What is known of the run with this sample."""
        trainer = trainer_facts(snapshot)
        if snapshot.state.active and (snapshot.pid is not None or snapshot.state is State.WATCHED):
            return self._book.note(system, tree, trainer)
        return self._book.recall(trainer)

    def close(self) -> None:
        """Leave the file to another screen."""
        self._book.close()


def trainer_facts(snapshot: RunSnapshot) -> TrainerFacts:
    """What of a picture telemetry keeps."""
    memory = snapshot.numbers.memory
    return TrainerFacts(
        attempt=snapshot.attempt,
        started=snapshot.started,
        device=snapshot.numbers.device.type,
        step=snapshot.numbers.step,
        epoch=snapshot.numbers.epoch,
        allocated=memory.allocated,
        driver=memory.driver,
        limit=memory.limit,
        footprint=memory.footprint,
    )


class RunPace:
    """Whether a run trains slower than it did, from its curve and from what is seen while somebody looks."""

    def __init__(self) -> None:
        self._watch = ThroughputWatch()
        self._curve: SeriesView | None = None
        self._read_at = -math.inf
        self._past: Pace | None = None
        self.slow: tuple[Stretch, ...] = ()
        """Steps in which it was slower, from the newest picture's curve."""

    def look(self, snapshot: RunSnapshot) -> Pace | None:
        """The pace now; None while it is not training, and before there is enough to compare."""
        if snapshot.train_loss is not self._curve and abs(snapshot.seen - self._read_at) >= SAMPLE_SECONDS:
            self._read_at = snapshot.seen
            self._read_curve(snapshot.train_loss)
        training = snapshot.state is State.RUNNING and snapshot.health is Health.TRAINING
        moment = snapshot.numbers.beat.time if snapshot.numbers.beat else snapshot.seen
        live = self._watch.look(snapshot.attempt, moment, snapshot.numbers.steps_per_second if training else None)
        return present_pace(live, self._past) if training else None

    def _read_curve(self, curve: SeriesView | None) -> None:
        self._curve = curve
        told = curve is not None and curve.axis == "step" and curve.complete
        pieces = speeds(curve.x, curve.times) if told and curve is not None else []
        self.slow = slow_stretches(pieces)
        # What a resumed attempt is compared with may have run on another device.
        since = max(curve.attempt_marks, default=-math.inf) if curve is not None else 0.0
        self._past = pace([(time, speed) for step, time, speed in pieces if step > since])

"""Follow the numbers of any run through its files and attempts: heartbeats, our own records, other programs' logs.

Subclasses decide which files these are and what state the run is in: ``reader.RunReader`` for our own run directories,
``foreign_reader.ForeignReader`` and its subclasses for runs that mpstui did not start.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..follow import Budget
from ..model.snapshot import Numbers, RunSnapshot, SeriesView
from ..series.metric_words import NOT_METRICS
from ..series.pyramid import CAPACITY
from .external import ExternalMetrics
from .files import PointReader
from .local_machine import LocalMachine
from .numbers import (
    REPORT,
    NumberWitnesses,
    Witness,
    counts_samples,
    in_epochs,
    reported_metrics,
    said,
    with_agent_told_apart,
    with_facts,
)
from .signs import Condition, Heartbeats, assess
from .step_rate import ProgressPace, timed

if TYPE_CHECKING:
    from .joined_curves import JoinedCurves

LIST_SERIES, LIST_COLUMNS = ("loss",), 120
"""The curves that a list shows of each run, and the maximum number of columns in each."""
_NO_NUMBERS = frozenset(("checkpoint", "device", "step", "steps", "epoch", "epochs", "epoch_step", "epoch_steps"))
"""Fields that the training code may report without reporting any metric."""
_PLACES = ("step", "epoch", "epoch_step", "loss")
"""Any of these proves that a program is training; a learning rate alone may be a setting."""
_OF_BATCHES = 0.75
"""Printed steps count batches if they exceed this share of the batches consumed so far. It is below 1 because the
newest printed line lags behind."""
_COUNTED = NOT_METRICS - {"device"}
FULL_COLUMNS = 1024
"""How many columns of a curve a screen needs."""
PAUSES = 30
"""How many of the latest pauses in the output determine the usual pause."""


class RunFollower:
    """Follows the numbers of one run through its files and attempts."""

    def __init__(self, machine: LocalMachine, columns: int | None = None) -> None:
        """``columns``: the maximum number of points per curve in a full snapshot; None: as many as a screen needs."""
        self.machine = machine
        self.columns = columns or FULL_COLUMNS
        self.capacity = max(CAPACITY, self.columns)
        self.snapshot: RunSnapshot | None = None
        self.pace, self.program_pace = ProgressPace(), ProgressPace()
        """The pace by our own or the agent's step count, and the pace by the program's step count."""
        self.heartbeats = Heartbeats(machine, self.pace, self.program_pace)
        self.points: PointReader | None = None
        """Reads ``metrics.jsonl``, if mpstui started the run."""
        self.external: ExternalMetrics | None = None
        self._earlier: list[ExternalMetrics] = []
        """The outputs of earlier attempts, whose curves the current one continues."""
        self._joined: JoinedCurves | None = None
        self._asked: Mapping[str, float] | None = None
        """The totals given in its arguments (epochs, steps); None until they are needed."""
        self._resumed = False
        self._launched = 0.0
        self._output_changed: float | None = None
        self._moved: float | None = None
        self._pauses: list[float] = []
        self._full = False
        self._failed = False
        """Whether the last refresh ended with an error."""
        self._outdated = False
        self._pending = False
        """Whether the numbers for the list are still unread."""

    def refresh(self, *, full: bool, budget: Budget) -> RunSnapshot:
        """Return a snapshot of the run as it is now; if it has settled and nothing changed, the very same object.

        Never raises, whatever the files hold: the snapshot of a run that cannot be read says why, and other runs still
        show.

        Args:
            full: include all curves, events and checkpoints.
        """
        try:
            self.snapshot, self._failed = self._refreshed(full, budget), False
        except Exception as error:  # noqa: BLE001 - a bug in a reader, or unforeseen content
            why = f"reading it failed: {type(error).__name__}: {error}"
            self._failed, self._full = True, full
            self.snapshot = self._unreadable(why)
        return self.snapshot

    def look(self, seconds: float) -> RunSnapshot:
        """Return a snapshot without full curves, for a caller that looks only now and then.

        Args:
            seconds: limit on the processor time; granted a second time if the first was not enough to read any numbers.
        """
        seen = self.refresh(full=False, budget=Budget(seconds, time.thread_time))
        return self.refresh(full=False, budget=Budget(seconds, time.thread_time)) if seen.unread else seen

    def _refreshed(self, full: bool, budget: Budget) -> RunSnapshot:
        raise NotImplementedError

    def _unreadable(self, why: str) -> RunSnapshot:
        """Return a snapshot that says why the run cannot be read, with everything known apart from its numbers."""
        raise NotImplementedError

    def read_on(self, budget: Budget) -> None:
        """Read more of the history and do nothing else, after a full :meth:`refresh` has begun it."""
        if self._shows_history:
            self._outdated = True
            if self.points is not None:
                self.points.read_history(budget)
            self._read_external(budget, anyway=True)

    @property
    def pending_bytes(self) -> int:
        """How many bytes of the history shown in a full snapshot are still unread."""
        return sum(file.pending_bytes for file in self._files()) if self._shows_history else 0

    @property
    def _shows_history(self) -> bool:
        """True if its whole curves are shown; for a foreign run also in the list, since nobody else keeps them."""
        return self._full or self.points is None

    @property
    def lacks_best(self) -> bool:
        """True if its best values are unknown because its history is too long to be read for a list."""
        return False

    def read_best(self, budget: Budget) -> None:
        """Continue reading for the best values; the next :meth:`refresh` shows what was found."""

    @property
    def settled(self) -> bool:
        """True if the run has ended for good, unless somebody restarts it."""
        return False

    @property
    def caught_up(self) -> bool:
        unread = self._pending or self._outdated or (self.external is not None and not self.external.complete)
        return self._failed or not unread

    @property
    def unread(self) -> bool:
        """True if nothing of the run has been read yet, not even the newest numbers."""
        external = self.external
        return self._pending or (external is not None and not external.newest and external.behind)

    @property
    def list_pending_bytes(self) -> int:
        """How many bytes are still to be read for its row in the list."""
        return self.external.pending_bytes if self.external is not None else 0

    @property
    def complete(self) -> bool:
        """True if the curves hold every point."""
        return all(file.complete for file in self._files())

    def _files(self) -> list[PointReader | ExternalMetrics]:
        return [*self._earlier, *(file for file in (self.points, self.external) if file is not None)]

    def allot(self, buckets: int | None) -> None:
        """Limit the total number of buckets for the curves of our own records; None: as many as a single run gets."""
        if self.points is not None:
            self.points.allot(buckets)

    def rest(self) -> None:
        """Free the memory of the whole history, when the run is no longer viewed in full."""
        if self.points is not None:
            self.points.drop_history()
        self._full = False

    def _read_external(self, budget: Budget, *, anyway: bool = False) -> None:
        """Read more of other programs' files; outputs of earlier attempts first, so that one curve covers all attempts.

        Args:
            anyway: read one slice even if the budget is already spent.
        """
        if (external := self.external) is None:
            return
        grown = [one.poll() for one in (external, *self._earlier)]  # an earlier one may be unread while this is empty
        if (budget.spent and not anyway) or not any(grown):
            return
        external.preview()
        for one in self._earlier:
            one.read(budget)
            if not one.complete:
                return
        found = external.read(budget)
        program = self.heartbeats.program
        self.program_pace.feed(found, counts=program is None or program.step is None)

    def _numbers(self, attempt: int = 0, *, moving: bool) -> Numbers:
        """Return the numbers, joined from all witnesses; a run that is not ``moving`` has neither speed nor ETA."""
        witnesses, beats = self._witnesses(attempt), self.heartbeats
        numbers = witnesses.joined()
        by_program = numbers.told_by.get("step") != witnesses.own.name
        numbers = with_agent_told_apart(numbers, beats.own)
        numbers = with_facts(numbers, beats.own, beats.program, witnesses.printed.says)
        if self._has_ended_epoch(numbers):
            numbers = replace(numbers, epoch_done=True)
        return timed(
            numbers,
            witnesses.beat or beats.program,
            self.pace,
            self.program_pace,
            by_program=by_program,
            alike=witnesses.counts_alike,
            one_of_many=witnesses.is_one_of_many,
            moving=moving and not self._waits,
        )

    def _witnesses(self, attempt: int) -> NumberWitnesses:
        """Return what each witness says about this attempt."""
        beats, asked, printed = self.heartbeats, self._asked or {}, self._printed
        if self._waits:  # a progress bar before the first step does not count training steps
            printed = {name: value for name, value in printed.items() if name not in _COUNTED}
        elif self._says_all:
            printed = {name: value for name, value in printed.items() if name in NOT_METRICS}
        points = self.points.newest if self.points is not None else {}
        points = points if points.get("attempt", attempt) in (attempt, 0) else {}
        beat = in_epochs(beats.own, printed, asked)
        if beat is not beats.own:
            points = {name: value for name, value in points.items() if name != "epoch"}
        if beat is not None and beat.loss_seen == "backward" and printed.get("acts"):
            beat = beat._replace(step_from=beat.step_from or "updates")  # it acts in an environment of its own
        return NumberWitnesses(
            Witness(self.own_name, said(beat, points)),
            Witness(beats.program_name, said(beats.program, {})),
            Witness(self._printed_name, printed),
            Witness("arguments", asked),
            beat,
            self._resumed,
        )

    def _has_ended_epoch(self, numbers: Numbers) -> bool:
        """True if the epoch shown is over: its witness reports each epoch once, at its end, and no steps within it."""
        paces = {self.own_name: self.pace, self.heartbeats.program_name: self.program_pace}
        pace = paces.get(numbers.told_by.get("epoch", ""))
        if pace is None or numbers.epoch is None or (numbers.step, numbers.epoch_step) != (None, None):
            return False
        return numbers.epoch == pace.ended_epoch

    @property
    def _printed(self) -> Mapping[str, Any]:
        """The newest values that the program printed or wrote to a metric file."""
        return self.external.newest if self.external is not None else {}

    @property
    def _printed_name(self) -> str:
        return self.external.path.name if self.external is not None else ""

    @property
    def _waits(self) -> bool:
        """True if the only sign of progress is an unlabelled progress bar, and the agent has not seen a step yet."""
        printed = self._printed
        return printed.get("undescribed") is True and "loss" not in printed and self.heartbeats.agent_waits

    @property
    def own_name(self) -> str:
        """Who writes our own records: ``agent``, ``report`` or ``heartbeat``; with only points, their file's name."""
        own = self.heartbeats.own
        if own is None:
            return self.points.path.name if self.points is not None and self.points.newest else "heartbeat"
        return REPORT if own.reported else "agent" if own.step_from or own.loss_seen else "heartbeat"

    @property
    def reports_all(self) -> bool:
        """True if the numbers that it prints are in our own records too."""
        told = self.heartbeats.own is not None or (self.points is not None and bool(self.points.newest))
        return self._says_all or (told and self._is_told_by_trainer)

    @property
    def _is_told_by_trainer(self) -> bool:
        """True if our records come from a trainer that puts all its numbers there, not from agent or ``report()``."""
        return self.own_name not in ("agent", REPORT)

    @property
    def _says_all(self) -> bool:
        """True if the training code reports its own numbers; what it prints then only repeats them."""
        own = self.heartbeats.own
        return own is not None and bool(set(own.reported) - _NO_NUMBERS)

    def _curves(self, full: bool, told_by: Mapping[str, str]) -> Mapping[str, SeriesView]:
        """Return the curves of all witnesses; ``told_by`` says whose loss and whose step are shown."""
        names, most = (None, self.columns) if full else (LIST_SERIES, LIST_COLUMNS)
        if self.external is not None and counts_samples(self.heartbeats.own, self._printed):
            self.external.store.counted = "sample"
        own = self.points.views(names, most=most) if self.points is not None else {}
        printed = self.external.views(names, most=most) if self.external and not self._says_all else {}
        own_beat = self.heartbeats.own
        if own_beat is not None and own_beat.loss_seen == "trainer":  # it prints the same values that it reported
            printed = {name: view for name, view in printed.items() if name != "loss" and name not in own}
        read = self.heartbeats.readings.views(names, most=most)
        told = [(self.own_name, own), (self._printed_name, printed), (self.heartbeats.program_name, read)]
        known = [views for _, views in told if views]
        if len(known) < 2 and self.own_name != "agent":
            return dict(known[0]) if known else {}
        from .joined_curves import JoinedCurves  # most runs have a single witness and never need it

        self._joined = self._joined or JoinedCurves()
        counts = told_by.get("step") == self.own_name and self._prints_batches(printed)
        counts = counts or bool(self._printed.get("acts"))  # the agent counts updates
        return self._joined.of(told, told_by.get("loss"), told_by.get("step") if counts else None)

    def _without_joined(self, numbers: Numbers) -> Numbers:
        """Return the numbers without the newest value of metrics that are shown as part of another curve."""
        joined = self._joined.elsewhere if self._joined is not None else frozenset[str]()
        if joined.isdisjoint(numbers.metrics):
            return numbers
        return replace(numbers, metrics={name: now for name, now in numbers.metrics.items() if name not in joined})

    def _prints_batches(self, printed: Mapping[str, SeriesView]) -> bool:
        """True if the program prints a step for each batch while the agent counts one for several batches."""
        own = self.heartbeats.own
        if own is None or own.step is None or (own.accumulate or 1) < 2:
            return False
        last = max((view.x[-1] for view in printed.values() if view.axis == "step" and len(view.x)), default=0.0)
        return last > _OF_BATCHES * (own.accumulate or 1) * own.step

    def _written(self) -> list[float]:
        """Return when each of its files was last written, in Unix seconds."""
        files = (self.points.tail if self.points is not None else None, self.external.file if self.external else None)
        moments = [self._output_changed, *(file.changed_at for file in files if file is not None)]
        return [moment for moment in moments if moment is not None]

    def _updated(self) -> float | None:
        """Return the time of the run's last sign of life, in Unix seconds."""
        beat = self.heartbeats.beat
        return max((*self._written(), *((beat.time,) if beat else ())), default=None)

    def _main_source(self) -> str | None:
        """Return the name of the file that most of the numbers come from."""
        file = self.heartbeats.file
        if file is not None:
            return "heartbeat" if file.ours else file.path.name
        if self.points is not None and self.points.newest:
            return self.points.path.name
        return self.external.source if self.external and self.external.newest else None

    def _condition(self, *, paused: bool = False, process_state: str | None = None) -> Condition:
        """Return how the run is doing, judged by its current signs of life."""
        now = self.machine.clock()
        heard = self.heartbeats.signs(now)
        moved = max((moment for moment in self._written() if moment >= self._launched), default=None)
        if moved is not None and moved != self._moved:
            if self._moved is not None and moved > self._moved:
                self._pauses = [*self._pauses[1 - PAUSES :], moved - self._moved]
            self._moved = moved

        def age(moment: float | None) -> float | None:
            return None if moment is None else max(0.0, now - moment - heard.slept_seconds)

        steps = self.pace.steps if self.pace.steps.step is not None else self.program_pace.steps
        printed = self._printed
        counted = steps.step is not None or bool(reported_metrics(printed))
        counted = counted or any(printed.get(name) is not None for name in _PLACES)
        signs = replace(
            heard,
            steps_done=(counted and not self._waits) or heard.steps_done,
            step_age=age(steps.advanced_at),
            usual_step_seconds=steps.seconds_per_step,
            output_age=age(self._moved),
            usual_output_seconds=self._usual_pause(),
            up_seconds=age(self._launched) if self._launched else None,
            paused=paused,
            process_state=process_state,
        )
        return assess(signs)

    def _usual_pause(self) -> float | None:
        """Return the median seconds between changes of its output; after only a few, the average per printed point."""
        if len(self._pauses) > 2:
            from statistics import median

            return median(self._pauses)
        counted = self.external.store.count if self.external is not None else 0
        if counted < 2 or self._moved is None:
            return None
        return (self._moved - self._launched) / counted if self._launched else max(self._pauses, default=0.0)

"""External metrics: numbers from the output or the metric file of a program that knows nothing of mpstui."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..follow import Budget, FollowedFile, hundredths
from ..model.snapshot import SeriesView
from ..series.metric_words import NOT_METRICS
from ..series.series import SeriesStore
from .sources import PREVIEW_BYTES, ConsoleSource, MetricSource, open_source

if TYPE_CHECKING:
    from ..formats.files import MetricFile
    from ..formats.points import MetricPoint, Number, Point, Standing
    from ..model.kept import Kept

PREVIEW_POINTS = 200
RUNNING_BEHIND_BYTES = 1 << 18
"""A file being written is always slightly ahead of its reader: with at most this much unread, curves count as complete.
"""
MANY_SERIES, DRAWING_SHARE = 500, 10
"""While a file with more metrics than this is being read, its curves are built again only after reading has gone on for
10 times as long as building them took."""
RUNS_PER_ATTEMPT = 1000
"""One output may contain several runs in a row. Attempt numbers are multiplied by this to leave room for them."""


class ExternalMetrics:
    """Follows one log or metric file with the readers in ``formats``.

    ``newest`` has the keys of a metrics record, plus the plan and the position in it (``epochs``, ``steps``,
    ``epoch_step`` ...).
    """

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float],
        pattern: str | None = None,
        *,
        attempt: int = 0,
        store: SeriesStore | None = None,
        file: FollowedFile | None = None,
        opened: Callable[[FollowedFile], MetricSource | None] | None = None,
        earlier: Sequence[ExternalMetrics] = (),
        steps_before: int = 0,
    ) -> None:
        """Follow ``path``.

        Args:
            store: continues the curves of ``earlier`` attempts, all of whose files must have been read into it.
            file: detects changes; by default, changes of the single file at ``path``.
            opened: returns the reader; by default one is chosen by the file's content.
            steps_before: how many steps were done before the first one that the file counts.
        """
        self.path = path
        self.file = FollowedFile(path) if file is None else file
        self._opened = opened
        self._earlier, self.steps_before = earlier, steps_before
        self.newest: dict[str, Any] = {}
        self.unreadable = False
        """Whether opening it has failed."""
        self._clock = clock
        self.pattern = pattern
        self._restarts = 0
        self._reader: ConsoleSource | MetricSource | None = None
        self._previewed = False
        self._finished_at = 0
        """The offset up to which :meth:`finish` has read."""
        self.store = store if store is not None else SeriesStore()
        self._first_run = attempt * RUNS_PER_ATTEMPT
        self._held: tuple[float, object, dict[str, SeriesView]] = (0.0, None, {})
        """Expiry, request and result of the curves that are reused while a file with many metrics is being read."""
        self.starts_anew = False
        """Whether its counters have started over, as with folds or trials, the total of which is unknown."""

    @property
    def pending_bytes(self) -> int:
        """How many bytes of the file are still unread."""
        return self.file.unread_bytes if self.file.changed_at is not None else 0

    @property
    def complete(self) -> bool:
        """True if everything that can be read of the file at present has been read."""
        return not self.pending_bytes or (self.unreadable and self.file.unreadable)

    @property
    def behind(self) -> bool:
        """True if its curves are far from complete: much is unread, or nothing has been read."""
        untouched = self.pending_bytes > 0 and not self.file.offset
        return not self.unreadable and (untouched or self.pending_bytes > RUNNING_BEHIND_BYTES)

    @property
    def source(self) -> str:
        """The file's name and, if it was read only in part, why."""
        in_part = self._reader.in_part if self._reader else None
        if self.store.is_full:
            in_part = f"{in_part + ', ' if in_part else ''}the first {len(self.store):,} metrics"
        return f"{self.path.name} (in part: {in_part})" if in_part else self.path.name

    @property
    def epoch_length(self) -> Number | None:
        """Steps per epoch, as far as seen, if each epoch restarts the count and no line gives the total."""
        return self._reader.epoch_length if isinstance(self._reader, ConsoleSource) else None

    @property
    def metric_file(self) -> MetricFile | None:
        """The reader of the file, once opened; None for a log."""
        return self._reader.metrics if isinstance(self._reader, MetricSource) else None

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The images and texts found so far."""
        return self._reader.kept if isinstance(self._reader, MetricSource) else ()

    @property
    def settings(self) -> Mapping[str, str]:
        """The arguments that the file contains."""
        return self._reader.settings if isinstance(self._reader, MetricSource) else {}

    def poll(self) -> bool:
        """Check the file for changes; return True if there is something to read."""
        self.file.poll()
        self._forget_another()
        return not self.complete

    def show(self, newest: Mapping[str, Any]) -> None:
        """Show numbers that another reader found in the same file, until this one reaches the end."""
        self.newest.update(newest)
        self._previewed = bool(newest)

    def recall(self, note: Mapping[str, Any]) -> None:
        """Begin with what an earlier process read, for a list, which shows no curves.

        If the log has grown since then, a short one is read again from the start, and only the end of a long one.
        """
        self.show(note["newest"])
        self.file.offset = note["read_bytes"]
        self.file.poll()
        if self.pending_bytes and self.file.size <= PREVIEW_BYTES:
            self.file.offset = 0
        elif self.pending_bytes:
            self.preview()
            self.file.offset = self.file.size

    def note(self) -> dict[str, Any] | None:
        """Return what the next process can :meth:`recall`; None if it must start over, as with a metric file."""
        if isinstance(self._reader, MetricSource) or (self._reader and self._reader.in_part) or not self.file.offset:
            return None
        return {"read_bytes": self.file.offset, "newest": self.newest}

    def preview(self) -> None:
        """Open the reader if there is none yet, and show what the end of a long file says."""
        if self._reader is not None:
            return
        if not self.file.unreadable:
            self._reader = self._opened(self.file) if self._opened else open_source(self.file, self.pattern)
        self.unreadable = self._reader is None
        self.glance()

    def glance(self) -> None:
        """Show what the end of a long file says, without reading the rest."""
        points = self._reader.preview() if self._reader is not None else ()
        self._previewed = self._previewed or bool(points)
        for point in points[-PREVIEW_POINTS:]:
            self.newest.update(_known(point.newest, leads=not point.newest.part), begun_epoch=None)
            self._note_time(point.newest.time)
        if self._reader is not None and self._previewed:
            self._take_standing(self._reader.standing)

    def read(self, budget: Budget) -> list[Mapping[str, Any]]:
        """Read on; return the records newly added at the end, not those from catching up with a long file."""
        self.preview()
        if isinstance(self._reader, ConsoleSource):
            from_zero = any(one.newest.get("first_epoch") == 0 for one in self._earlier)
            lengths = [length for one in self._earlier if (length := one.epoch_length) is not None]
            self._reader.count_on(from_zero=from_zero, epoch_length=lengths[-1] if lengths else None)
            self.steps_before = 0 if lengths else self.steps_before  # the epoch on each line already counts these steps
        fresh: list[Mapping[str, Any]] = []
        while self._reader is not None and not self.complete:
            before = self.file.offset
            points = self._reader.read()
            if self._forget_another():
                break
            records = self._add(points, timed=before > 0 and self.complete)
            if not self._previewed or self.complete:
                self._learn(records)
                self._take_standing(self._reader.standing)
                fresh.extend(records)
            if budget.spent or self.file.offset == before:
                break
        return fresh

    def finish(self) -> None:
        """Take text after the last line break as a complete line: nobody writes to the file any more."""
        if isinstance(self._reader, ConsoleSource) and self.complete and self._finished_at != self.file.offset:
            self._finished_at = self.file.offset
            self._learn(self._add(self._reader.finish(), timed=False))

    def _learn(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Take the values of these records as the newest ones."""
        for record in records:
            # For loss and steps, None counts too: a later point may make them unknown again.
            known = {k: v for k, v in record.items() if v is not None or k in ("loss", "steps")}
            if "time" in known and "time" in self.newest:  # machine readings may follow metrics that were logged later
                known["time"] = max(known["time"], self.newest["time"])
            if "epoch" in known and known["epoch"] != self.newest.get("epoch"):
                self.newest.pop("epoch_step", None)  # it belongs to another epoch
            self.newest.update({"begun_epoch": known.get("epoch"), **self.newest, **known})

    def _note_time(self, told: float | None) -> None:
        """Keep the latest time: machine readings may follow metrics that were logged later."""
        if told is not None and math.isfinite(told):
            self.newest["time"] = max(told, self.newest.get("time") or -math.inf)

    def views(self, names: Sequence[str] | None = None, **options: Any) -> dict[str, SeriesView]:
        """Return the curves by name; the main one is called ``loss``."""
        complete, begun = self.pending_bytes <= RUNNING_BEHIND_BYTES, self._clock()
        share = 1.0 if complete else hundredths(self.file.offset, self.file.size)
        options["runs_per_attempt"] = RUNS_PER_ATTEMPT
        if complete or len(self.store) <= MANY_SERIES:
            return self.store.views(names, complete=complete, read_share=share, **options)
        until, asked, held = self._held
        if begun >= until or asked != (names, options):
            held = self.store.views(names, complete=False, read_share=share, **options)
            self._held = begun + DRAWING_SHARE * (self._clock() - begun), (names, options), held
        return dict(held)

    def _take_standing(self, standing: Standing) -> None:
        """Take what the file says about the run as a whole; a device printed before the part that was read is kept."""
        self.newest.update(done=standing.done, device=standing.device or self.newest.get("device"))
        self.newest["planned_steps"] = standing.planned_steps or self.newest.get("planned_steps")
        if self.newest.get("of_samples"):
            self.newest["step"], self.store.counted = None, "sample"  # how many samples make a step is unknown
        if standing.done and isinstance(self.newest.get("epoch"), int):
            self.newest["epoch_done"] = True

    def _forget_another(self) -> bool:
        """Start over if the file has been replaced by another one; return True in that case."""
        if self.file.restarts == self._restarts:
            return False
        self._restarts = self.file.restarts
        self._reader, self.store, self._previewed, self.file.offset = None, self.store.emptied(), False, 0
        self.newest.clear()
        return True

    def _add(self, points: Sequence[Point], *, timed: bool) -> list[Mapping[str, Any]]:
        """Add new points to the curves and return their records; of points that come as columns, only the newest.

        Args:
            timed: the points arrived while we were watching, so those without a time get the present one.
        """
        from ..formats.points import PointColumns

        moment = self._clock() if timed else None
        primary = self._reader.primary if self._reader else None
        records: list[Mapping[str, Any]] = []
        waiting: list[Mapping[str, Any]] = []
        for point in points:
            newest = point.newest
            leads = (primary is None or newest.series == primary) and not newest.part
            self.starts_anew = self.starts_anew or newest.run > 0
            told = newest.time if newest.time is not None and math.isfinite(newest.time) else moment
            record = {"time": told, "attempt": self._first_run + newest.run, **_record(newest, primary, leads=leads)}
            if record["step"] is not None:
                record["step"] += self.steps_before
            records.append({**record, **_known(newest, leads=leads)})
            if isinstance(point, PointColumns):
                self.store.add(waiting)
                waiting = []
                columns = {"loss": point.losses} if leads and newest.loss is not None else {}
                columns |= {} if point.rates is None else {"lr": point.rates}
                columns |= {
                    shown: one
                    for name, one in point.values.items()
                    if (shown := _shown_as(name, newest, leads=leads)) and shown not in columns
                }
                self.store.add_columns(
                    record["attempt"],
                    columns,
                    steps=None if point.steps is None else [step + self.steps_before for step in point.steps],
                    epochs=point.epochs,
                    times=point.times or [math.nan if moment is None else moment] * len(point.epochs),
                )
            else:
                waiting.append(record)
        self.store.add(waiting)
        return records


def _record(point: MetricPoint, primary: str | None, *, leads: bool) -> dict[str, Any]:
    """Return a record for the curves. Non-finite values are passed on as they are: the curve shows them as gaps.

    The loss of a whole epoch gets a curve of its own if the leading one is, say, printed every hundred steps.
    """
    record: dict[str, Any] = {"epoch": point.counters.epoch, "step": point.run_step}
    if point.loss is not None and leads:
        record["loss"] = point.loss
    elif point.loss is not None and primary and not point.part and not point.series.startswith("bar "):
        (name, _, counted), (main, _, along) = point.series.rpartition("@"), primary.rpartition("@")
        if name != main or set(along) - set(counted) - {"e"}:
            record["loss (epoch)" if name in (main, "loss") else name] = point.loss
    if point.learning_rate is not None:
        record["lr"] = point.learning_rate
    values = {**point.metrics, **point.eval_metrics}
    shown = {_shown_as(name, point, leads=leads): value for name, value in values.items()}
    return {name: value for name, value in shown.items() if name} | record


def _shown_as(name: str, point: MetricPoint, *, leads: bool) -> str:
    """Return the name of a value's curve; empty for a field of every record and for an alias of ``lr`` or of the line's
    own loss. On a line that does not lead the chart, a loss with a special name keeps it.

    Two losses on one line are two quantities, however similar their names: ``train loss: 0.5, loss: 0.75``.
    """
    from ..formats.measures import quantity

    if point.verbatim:
        return name
    own = point.series.rpartition("@")[0].removeprefix("bar ")
    told = quantity(name)
    if name in NOT_METRICS or told == ("", "lr") or (own == name.lower() and (leads or told == ("", "loss"))):
        return ""
    if told != ("", "loss"):
        return name
    if name in point.eval_metrics:
        return "eval loss"  # its heading says that it is an evaluation; the curve ``loss`` is the training loss
    is_second = own in map(str.lower, point.metrics) and name in point.metrics
    return ("loss (2)" if name.lower() == "loss" else name) if is_second else ""


def _known(point: MetricPoint, *, leads: bool) -> dict[str, Any]:
    """Return what a point says about the state of the run; what it does not say is left out."""
    counters = point.counters
    values = {"loss": point.loss if leads else None, "lr": point.learning_rate}
    found = {**counters._asdict(), **values, "printed_step": counters.step, "of_samples": point.of_samples or None}
    known: dict[str, Any] = {name: value for name, value in found.items() if value is not None}
    if point.loss is not None and leads:  # is it one of several in an epoch, or the loss of a whole epoch?
        whole_epoch = counters.epoch is not None and counters.epoch % 1 == 0
        alone = point.series.endswith("@e") or counters.shown_step is None
        known["along_steps"] = not (whole_epoch and alone)
    if counters.positioned:
        known["undescribed"] = point.undescribed
    in_epoch = counters.epoch is not None or counters.epoch_steps is not None
    if counters.step is None and counters.epoch_step is not None and in_epoch:
        known["steps"] = None  # what was taken for the run's total is that of an epoch
    known |= {"of_trainings": True} if point.of_trainings else {}
    known |= {"acts": True} if point.acts else {}
    known |= {"starts_anew": True} if point.run else {}
    return {**known, "epoch_done": point.epoch_done, "first_epoch": point.first_epoch}

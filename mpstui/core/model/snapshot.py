"""Frozen snapshots of runs, as the screen and the commands receive them. None means unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from ...wire.heartbeat import CheckpointNote, DeviceReading, Heartbeat, MemoryReading
from ...wire.jobs import CANCEL
from ...wire.records import Branch
from .exits import ExitSummary
from .jobs import JobPhase, JobView
from .kept import Kept
from .moment import UNIX as UNIX
from .moment import Moment as Moment
from .moves import Moving
from .queue_place import QueuePlace


class State(StrEnum):
    """The state of a run; derived from its witnesses, never stored."""

    QUEUED = "queued"
    BACKING_OFF = "backing_off"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    MOVING = "moving"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    KILLED = "killed"
    LOST = "lost"
    UNSUPERVISED = "unsupervised"
    STOP_FAILED = "stop_failed"
    DEPENDENCY_FAILED = "dependency_failed"
    UNREADABLE = "unreadable"
    WATCHED = "watched"

    @property
    def active(self) -> bool:
        """True if something is running, or will run without further request."""
        return self in _ACTIVE


_ACTIVE = frozenset(
    {
        State.QUEUED,
        State.BACKING_OFF,
        State.STARTING,
        State.RUNNING,
        State.STOPPING,
        State.MOVING,
        State.UNSUPERVISED,
        State.STOP_FAILED,
        State.WATCHED,
    }
)


class Health(StrEnum):
    """What an active run is doing."""

    WARMING = "warming"
    TRAINING = "training"
    EVALUATING = "evaluating"
    SAVING = "saving"
    STALLED = "stalled"
    HUNG = "hung"
    PAUSED = "paused"
    SLEPT = "slept"


@dataclass(frozen=True, eq=False, repr=False)
class Piece:
    """A stretch of a curve that a later attempt, resumed from an earlier step, measured again."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    mean: Sequence[float]


@dataclass(frozen=True, eq=False, repr=False)
class SeriesView:
    """One metric's history, downsampled to columns of (x, minimum, maximum, mean), with NaN gaps and attempt marks.

    ``x`` is the global step unless ``axis`` says otherwise. A non-finite point is a gap: its mean is NaN. In a column
    of many points the mean is NaN if most of them are not finite; ``gaps`` lists every column that holds one.
    Compared by identity: a store returns the same object until a point is added.
    """

    name: str
    axis: str
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    mean: Sequence[float]
    smooth: Sequence[float]
    """Debiased exponential moving average of ``mean``; NaN where there is a gap."""
    count: int
    """Number of points before downsampling."""
    first: float | None = None
    """The first finite value that no later attempt has measured again."""
    last: float | None = None
    """The newest value; None if it is NaN or infinite."""
    minimum: float | None = None
    """The lowest and highest value among those that no later attempt has measured again."""
    maximum: float | None = None
    minimum_at: float | None = None
    """The x at which minimum and maximum were first measured; None: unknown."""
    maximum_at: float | None = None
    attempt_marks: Sequence[float] = ()
    """x positions where a new attempt took over."""
    mark_attempts: Sequence[int] = ()
    """The number of the attempt at each mark; 0: its source does not count attempts."""
    evaluation: bool = False
    """True if measured on validation data."""
    gaps: Sequence[float] = ()
    """x positions of the columns that hold a non-finite point."""
    superseded: Sequence[Piece] = ()
    """What earlier attempts measured beyond the step from which a later one resumed; not part of the curve."""
    complete: bool = True
    """False while a long history is still being read and the curve is only a sample of it."""
    read_share: float = 1.0
    """The share of a long history that has been read, 0 to 1, in steps of 0.01."""
    times: Sequence[Moment] = ()
    """When each column's last point was measured, Unix seconds; NaN where unknown."""
    epochs: Sequence[float] = ()
    """The epoch in which each column's last point was measured; NaN where unknown."""
    values: Sequence[float] = ()
    """The value of each column's last point, the one at its ``x``; may be NaN or infinite."""
    points: Sequence[float] = ()
    """The number of finite points in each column."""
    smoothing: float = 0.0
    """The weight of the past in ``smooth``, per column; 0: ``smooth`` equals ``mean``."""
    told_by: str = ""
    """The witness, if several report the same quantity: ``agent``, ``output.log``."""
    begin: float = math.nan
    """The x of the very first point; each later column spans from just after the previous column's ``x`` to its own."""

    @property
    def standing(self) -> int:
        """Number of points before downsampling, without those that a later attempt has measured again."""
        return int(sum(self.points)) if self.superseded else self.count

    def begins(self, place: int) -> float:
        """Return the lowest x that a column's first point can have: just after the column before it."""
        before = self.x[place - 1] + (self.axis == "step") if place else self.begin
        return before if before <= self.x[place] else self.x[place]

    def broken(self) -> tuple[float, float] | None:
        """Return the range of x in which the values stopped being finite for good; None if the newest is finite.

        Both ends are equal if the x is known exactly.
        """
        if self.last is not None or not len(self.x):
            return None
        ends = next((place for place in range(len(self.x) - 1, -1, -1) if self.low[place] == self.low[place]), -1)
        since = ends if ends >= 0 and self.x[ends] in self.gaps else ends + 1
        if since >= len(self.x):
            return None
        single = max(self.points, default=1.0) <= 1
        return self.x[since] if single else self.begins(since), self.x[since]


class Checkpoint(NamedTuple):
    """One checkpoint file."""

    path: Path
    size_bytes: int
    time: Moment
    step: int | None = None
    best: bool = False
    complete: bool = True
    owner: str | None = None
    """The run that it names as its owner, or that is known to have written it; None: presumably this one."""
    finite: bool = True
    """False: its tensors hold NaN. Only checked if the run gives reason to."""
    rival: str | None = None
    """Another run that was saving to the same folder at the time and may have written it."""


class RunEvent(NamedTuple):
    """One line of events.jsonl."""

    time: Moment
    attempt: int
    event: str
    text: str
    details: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The newest numbers that a run reports, and the pace derived from them. None: never reported."""

    beat: Heartbeat | None = field(default=None, compare=False)
    """The newest attempt's last heartbeat as written; another program's heartbeat, as far as it was understood."""
    device: DeviceReading = field(default_factory=DeviceReading)
    """The device that the trainer reports; ``type`` falls back to the requested device unless that is ``auto``."""
    data: str | None = None
    epoch: float | None = None
    epochs: float | None = None
    step: int | None = None
    steps: int | None = None
    epoch_step: int | None = None
    epoch_steps: int | None = None
    first_epoch: int = 1
    """The number that the program gives to its first epoch."""
    epoch_done: bool = False
    """True if ``epoch`` is known to be over although the next has not begun."""
    done: bool = False
    """True if training is over according to its output: a line says so, or all planned steps or epochs are done."""
    loss: float | None = None
    loss_is_finite: bool = True
    """False if the newest reported loss was NaN or infinite; ``loss`` is then None."""
    lr: float | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    told_by: Mapping[str, str] = field(default_factory=dict)
    """Field or metric name to the witness it comes from: the heartbeat, the agent, a file, the arguments."""
    of_attempt: int = 0
    """The earlier attempt that step and loss come from, if the newest has reported nothing yet; 0: the newest."""
    samples_per_second: float | None = None
    steps_per_second: float | None = None
    eta_seconds: float | None = None
    epoch_eta_seconds: float | None = None
    memory: MemoryReading = field(default_factory=MemoryReading)
    checkpoint: CheckpointNote | None = None


class Availability(NamedTuple):
    """Whether an action is possible for a run now, and if not, a sentence that says why."""

    ok: bool
    why: str = ""


@dataclass(frozen=True)
class RunSnapshot:
    """One run, as known at ``seen``. Two that compare equal look the same on screen, whenever they were made."""

    run: str
    name: str
    dir: Path
    state: State
    seen: Moment = field(compare=False)
    reason: str = ""
    """One sentence: which witness the state rests on, or what is wrong."""
    tags: tuple[str, ...] = ()
    """The user's tags, in the order in which they were added."""
    note: str = ""
    """The user's note."""
    health: Health | None = None
    health_note: str = ""
    """A few words to go with the health: ``slept 6 h``, ``no beat for 90 s``."""
    profile: str | None = None
    recipe: str | None = None
    device_asked: str | None = None
    numbers: Numbers = field(default_factory=Numbers)
    attempt: int = 0
    attempts: int = 0
    pid: int | None = None
    started: Moment | None = None
    """When the first attempt started."""
    attempt_started: Moment | None = None
    """When the newest attempt started."""
    idle: float = 0.0
    """Seconds between attempts, while none was running."""
    ended: Moment | None = None
    updated: Moment | None = field(default=None, compare=False)
    """When the run last showed a sign of life (heartbeat or output)."""
    exit: ExitSummary | None = None
    checkpoints: tuple[Checkpoint, ...] = ()
    events: tuple[RunEvent, ...] = ()
    images: int = 0
    """The number of the newest image that the training has logged; 0: none."""
    kept: tuple[Kept, ...] = ()
    """Images and texts found in files of other programs."""
    series: Mapping[str, SeriesView] = field(default_factory=dict)
    argv: tuple[str, ...] = ()
    """The command that was started, with secrets masked."""
    begun_from: str | None = None
    """The checkpoint that mpstui started it from, as written in ``argv``; None: from scratch, or unknown."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The environment recorded at launch, including inherited variables, with secret values masked."""
    paused: bool = False
    held_for: str | None = None
    """Why mpstui itself paused it (``disk``); None: not paused, or paused by the user."""
    job: JobView | None = None
    """What its scheduler says about it; None: it does not run under a scheduler."""
    queue: QueuePlace | None = None
    """Its place in the queue; None unless it is queued."""
    output: Path | None = None
    """The newest attempt's output file; None if there is none."""
    outputs: tuple[Path | None, ...] = ()
    """The output file of each attempt, for a foreign run that was started several times."""
    survivors: tuple[int, ...] = ()
    readers: str | None = None
    """The source of the numbers: heartbeat, output.log, or a metric file."""
    loading: bool = False
    """True while a long history is still being read and the curves are only samples of it."""
    brief: bool = False
    """True if made for a list: without events, checkpoints or curves, except for a short loss curve."""
    extremes: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """The lowest and highest value of each metric, without points that a later attempt has measured again; empty until
    the whole history has been read."""
    log_exception: str | None = None
    """The exception at the end of a watched log, verbatim; the program may continue all the same."""
    available: Mapping[str, Availability] = field(default_factory=dict)
    """Availability by action; filled in by the monitor for the runs in focus."""
    gone: bool = False
    """True if the watched file or folder existed and no longer does."""
    silent: bool = False
    """For a foreign run: it has written nothing for unusually long, and may have ended."""
    unread: bool = False
    """True if there is a source for its numbers that has not been read yet."""

    moving: Moving | None = None
    """Set while it is being moved to another machine; it keeps training while its code is being sent."""
    moved_to: str | None = None
    """The machine where it continues; it can no longer be started here."""
    branch: Branch | None = None
    """The run it branched from, if it started from another run's checkpoint."""

    host: str | None = None
    """The remote machine it is on; None: this one."""
    heard: Moment | None = None
    """When its machine last answered, if it does not answer now: everything else dates from then."""

    store: str | None = None
    """The experiment tracker whose files it was found in (``W&B``); None: it is ours, or a watched file."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Its configuration, as recorded by its store."""

    ranks: tuple[Heartbeat, ...] = ()
    """The newest heartbeat of each rank, in order of rank, in a distributed training."""

    @property
    def is_ours(self) -> bool:
        """True if mpstui started it: only then is its folder a run directory."""
        return self.state is not State.WATCHED and self.store is None

    @property
    def is_live(self) -> bool:
        """True if it is running now; for a watched run, if there is any sign of that."""
        if self.state is State.WATCHED:
            return self.health is not None
        return self.state.active and self.state is not State.QUEUED

    @property
    def is_over(self) -> bool:
        """True if nothing more will come on its own: it has ended, or all processes that wrote a watched run have."""
        return not self.state.active or (self.state is State.WATCHED and self.ended is not None)

    @property
    def is_elsewhere(self) -> bool:
        """True if it is a run directory opened by path: one of another home, or a copy of one of ours."""
        return self.is_ours and "/" in self.run

    @property
    def is_frozen(self) -> bool:
        """True if it stands still: paused by mpstui, stopped by someone else's signal, or its job held."""
        held = self.job is not None and self.job.phase is JobPhase.HELD and self.state is State.QUEUED
        return self.paused or self.health is Health.PAUSED or held

    @property
    def was_cancelled(self) -> bool:
        """True if its job was cancelled through the scheduler rather than through mpstui."""
        action = self.exit.action if self.exit is not None else None
        by_job = self.job is not None and self.job.phase is JobPhase.CANCELLED and action != "kill"
        return self.state is State.KILLED and (action == CANCEL or by_job)

    @property
    def end_word(self) -> str:
        """Its state in a word or two, as commands print it."""
        return "cancelled" if self.was_cancelled else str(self.state).replace("_", " ")

    @property
    def waits(self) -> str:
        """What it is waiting for, in a few words, while it is queued; otherwise empty."""
        if self.job is not None:
            return self.job.sentence() + self.job.silence() if self.state is State.QUEUED else ""
        return self.queue.sentence() if self.queue else ""

    def lasted(self, end: float | None) -> float | None:
        """Return the seconds from its first start to ``end`` during which an attempt was running; None: unknown."""
        return None if self.started is None or end is None else max(0.0, end - self.started - self.idle)

    @property
    def train_loss(self) -> SeriesView | None:
        """The training loss curve."""
        return self.series.get("loss")

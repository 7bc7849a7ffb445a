"""What the screen and the commands receive: frozen snapshots of runs and of the machine. None means unknown."""

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
    """Where a run is, derived from its witnesses (never stored)."""

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
        """Whether something is running, or will run without being asked."""
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
    """What a running run is doing."""

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
    """A stretch of a curve that a later attempt, resumed from an older step, measured again."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    mean: Sequence[float]


@dataclass(frozen=True, eq=False, repr=False)
class SeriesView:
    """One metric's history, already thinned: columns of (x, minimum, maximum, mean), plus NaN gaps and attempt marks.

    ``x`` is the global step unless ``axis`` says otherwise. A non-finite point is a gap: its mean is NaN. In a column
    of many points the mean is NaN when most of them are not finite; ``gaps`` names every column that holds one.
    Compared by identity: a store gives the very same view until a point is added.
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
    """Points seen, before thinning."""
    first: float | None = None
    """The first finite value, unless a later attempt has measured it again."""
    last: float | None = None
    """The newest value; None: it is NaN or infinite."""
    minimum: float | None = None
    """The lowest and highest value, of those that no later attempt has measured again."""
    maximum: float | None = None
    minimum_at: float | None = None
    """The x at which they were first measured; None: unknown."""
    maximum_at: float | None = None
    attempt_marks: Sequence[float] = ()
    """x positions where a new attempt took over."""
    mark_attempts: Sequence[int] = ()
    """The number of the attempt at each of them; 0: its source does not count attempts."""
    evaluation: bool = False
    """Measured on validation data."""
    gaps: Sequence[float] = ()
    """x positions of the columns that hold a non-finite point."""
    superseded: Sequence[Piece] = ()
    """What earlier attempts measured after the step from which a later one resumed; not part of the curve."""
    complete: bool = True
    """False while a long history is still being read: the curve is a sample of it."""
    read_share: float = 1.0
    """How much of a long history has been read, 0 to 1, in hundredths."""
    times: Sequence[Moment] = ()
    """When each column's last point was measured, Unix seconds; NaN where that is unknown."""
    epochs: Sequence[float] = ()
    """The epoch in which it was measured; NaN if unknown."""
    values: Sequence[float] = ()
    """The value of each column's last point, the one at its ``x``; NaN or infinite if it was."""
    points: Sequence[float] = ()
    """How many finite points each column holds."""
    smoothing: float = 0.0
    """The weight of the past in ``smooth``, per column; 0: it is ``mean``."""
    told_by: str = ""
    """The witness, where others tell the same quantity: ``agent``, ``output.log``."""
    begin: float = math.nan
    """The x of the very first point; each column reaches from just after the previous column's ``x`` to its own."""

    @property
    def standing(self) -> int:
        """Points before thinning, without those that a later attempt has measured again."""
        return int(sum(self.points)) if self.superseded else self.count

    def begins(self, place: int) -> float:
        """Where the first point of a column of several may lie: after the column before it."""
        before = self.x[place - 1] + (self.axis == "step") if place else self.begin
        return before if before <= self.x[place] else self.x[place]

    def broken(self) -> tuple[float, float] | None:
        """The x between which the values stopped being finite for good, equal if exact; None: the newest is finite."""
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
    """The run that it says it belongs to, or that is known to have written it; None: as far as is known, this one."""
    finite: bool = True
    """False: its tensors hold NaN. That is looked into only where the run gives reason to."""
    rival: str | None = None
    """Another run that saved into the same folder at the time, and may have written it instead."""


class RunEvent(NamedTuple):
    """One line of events.jsonl."""

    time: Moment
    attempt: int
    event: str
    text: str
    details: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What a run says about itself now, and what follows for its pace. None: it never said."""

    beat: Heartbeat | None = field(default=None, compare=False)
    """The newest attempt's last heartbeat as it was written (another program's: as far as it was understood)."""
    device: DeviceReading = field(default_factory=DeviceReading)
    """The device the trainer reports; its ``type`` falls back to what was asked for only when that is not ``auto``."""
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
    """Whether ``epoch`` is known to be over although no other has begun."""
    done: bool = False
    """Whether the training is over according to its output: a line says so, or everything planned is done."""
    loss: float | None = None
    loss_is_finite: bool = True
    """False: the newest reported loss was NaN or infinite (then ``loss`` is None)."""
    lr: float | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    told_by: Mapping[str, str] = field(default_factory=dict)
    """Which witness a number comes from, by its name here: the heartbeat, the agent, a file, the arguments."""
    of_attempt: int = 0
    """The earlier attempt that told the position and the loss, as the newest one has told nothing; 0: the newest."""
    samples_per_second: float | None = None
    steps_per_second: float | None = None
    eta_seconds: float | None = None
    epoch_eta_seconds: float | None = None
    memory: MemoryReading = field(default_factory=MemoryReading)
    checkpoint: CheckpointNote | None = None


class Availability(NamedTuple):
    """Whether a key can work for a run now, and a sentence that says why not."""

    ok: bool
    why: str = ""


@dataclass(frozen=True)
class RunSnapshot:
    """One run, as known at ``seen``. Two that compare equal show the same, whenever they were made."""

    run: str
    name: str
    dir: Path
    state: State
    seen: Moment = field(compare=False)
    reason: str = ""
    """One sentence: which witness says so, or what is wrong."""
    tags: tuple[str, ...] = ()
    """Words that people gave it, in the order in which they were given."""
    note: str = ""
    """What somebody wrote down about it."""
    health: Health | None = None
    health_note: str = ""
    """A few words beside the health: ``slept 6 h``, ``no beat for 90 s``."""
    profile: str | None = None
    recipe: str | None = None
    device_asked: str | None = None
    numbers: Numbers = field(default_factory=Numbers)
    attempt: int = 0
    attempts: int = 0
    pid: int | None = None
    started: Moment | None = None
    """When the first attempt was started."""
    attempt_started: Moment | None = None
    """When the newest attempt was started."""
    idle: float = 0.0
    """Seconds between its attempts, in which none lived."""
    ended: Moment | None = None
    updated: Moment | None = field(default=None, compare=False)
    """When the run last showed a sign of life (heartbeat, output)."""
    exit: ExitSummary | None = None
    checkpoints: tuple[Checkpoint, ...] = ()
    events: tuple[RunEvent, ...] = ()
    images: int = 0
    """The number of the newest image that its code has logged; 0: none."""
    kept: tuple[Kept, ...] = ()
    """The images and texts in files that are not ours."""
    series: Mapping[str, SeriesView] = field(default_factory=dict)
    argv: tuple[str, ...] = ()
    """What was started, secret words masked."""
    begun_from: str | None = None
    """The checkpoint that mpstui started it from, as it stands in ``argv``; None: from the start, or unknown."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The environment recorded at its launch, inherited variables included; secret values masked."""
    paused: bool = False
    held_for: str | None = None
    """Why mpstui itself paused it (``disk``); None: it did not, or the user did."""
    job: JobView | None = None
    """What its scheduler says about it; None: no scheduler starts it."""
    queue: QueuePlace | None = None
    """Its place in the queue; None unless it is queued."""
    output: Path | None = None
    """The newest attempt's output file, when it exists."""
    outputs: tuple[Path | None, ...] = ()
    """The output of each attempt, for a run that is not ours and was started several times."""
    survivors: tuple[int, ...] = ()
    readers: str | None = None
    """Where the numbers come from: heartbeat, output.log, or a metric file."""
    loading: bool = False
    """A long history is still being read: curves are samples of it."""
    brief: bool = False
    """Made for a list: without events, checkpoints and curves, except a short one of the loss."""
    extremes: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """The lowest and the highest value of each metric, of those that no later attempt has measured again; empty until
    the whole history has been read."""
    log_exception: str | None = None
    """The exception at the end of a watched log, as it stands there; the program may continue anyway."""
    available: Mapping[str, Availability] = field(default_factory=dict)
    """What can be done with it now, by action; filled by the monitor for the runs in focus."""
    gone: bool = False
    """What is watched existed, and no longer does."""
    silent: bool = False
    """Of a run that mpstui did not start: nothing was written for longer than before; it may have ended."""
    unread: bool = False
    """There is something to read its numbers from, and none of it has been read."""

    moving: Moving | None = None
    """It is being moved to another machine; while its code is being sent it keeps training."""
    moved_to: str | None = None
    """The machine on which it continues; it can no longer be started here."""
    branch: Branch | None = None
    """The run it branched off, if it began from another run's checkpoint."""

    host: str | None = None
    """The other machine that it is on; None: this one."""
    heard: Moment | None = None
    """When its machine last answered, if it does not answer now: everything else is as it was then."""

    store: str | None = None
    """The experiment tracker in whose files it was found (``W&B``); None: it is ours, or a watched file."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Its configuration, as its store keeps it."""

    ranks: tuple[Heartbeat, ...] = ()
    """The newest heartbeat of each rank, by rank, in a training with several processes."""

    @property
    def is_ours(self) -> bool:
        """Whether mpstui started it: only then is its folder a run directory."""
        return self.state is not State.WATCHED and self.store is None

    @property
    def is_live(self) -> bool:
        """Whether something of it runs now; of a run that mpstui did not start, whether anything shows that."""
        if self.state is State.WATCHED:
            return self.health is not None
        return self.state.active and self.state is not State.QUEUED

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of itself: it has ended, or every process that wrote a foreign run has."""
        return not self.state.active or (self.state is State.WATCHED and self.ended is not None)

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is a run directory that was opened by its path: of another home, or a copy of one of this."""
        return self.is_ours and "/" in self.run

    @property
    def is_frozen(self) -> bool:
        """Whether it stands still: paused by mpstui, stopped by somebody else's signal, or its job held."""
        held = self.job is not None and self.job.phase is JobPhase.HELD and self.state is State.QUEUED
        return self.paused or self.health is Health.PAUSED or held

    @property
    def was_cancelled(self) -> bool:
        """Whether somebody cancelled its job through the scheduler, not through mpstui."""
        action = self.exit.action if self.exit is not None else None
        by_job = self.job is not None and self.job.phase is JobPhase.CANCELLED and action != "kill"
        return self.state is State.KILLED and (action == CANCEL or by_job)

    @property
    def end_word(self) -> str:
        """Its state in a word, as commands print it."""
        return "cancelled" if self.was_cancelled else str(self.state).replace("_", " ")

    @property
    def waits(self) -> str:
        """What it waits for, in a few words, while it is queued; otherwise empty."""
        if self.job is not None:
            return self.job.sentence() + self.job.silence() if self.state is State.QUEUED else ""
        return self.queue.sentence() if self.queue else ""

    def lasted(self, end: float | None) -> float | None:
        """Seconds from its first start to ``end`` in which an attempt of it lived; None: unknown."""
        return None if self.started is None or end is None else max(0.0, end - self.started - self.idle)

    @property
    def train_loss(self) -> SeriesView | None:
        """The training loss curve."""
        return self.series.get("loss")

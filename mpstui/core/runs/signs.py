"""A run's signs of life (heartbeats, output, process), and the health derived from them.

No single sign raises an alarm. The first is the trainer's own promise (``expect_next_in`` of its heartbeat); before a
run is called hung, the growth of its output, the time since its last step and the state of its process are checked too.
Time during which the machine slept does not count as silence: it is the wall time that the monotonic clock missed,
since that clock stops during sleep on both Linux and macOS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...wire import heartbeat
from ...wire.heartbeat import Heartbeat
from ...wire.rundir import AttemptDir
from ...wire.storage import UnreadableRecord
from ..follow import RecordFile
from ..model.snapshot import Health
from ..present import span
from ..series.series import SeriesStore
from .foreign import external_heartbeat
from .local_machine import LocalMachine
from .step_rate import ProgressPace

SLEPT_SECONDS = 60.0
"""If wall and monotonic clock drift apart by less than this, a clock was adjusted; by more, the machine slept."""
SLEEP_NOTE_SECONDS = 600.0
"""How long a sleep is still mentioned after it is over."""
MOST_RANKS = 64
RANKS_SECONDS = 2.0
"""How often to look for heartbeat files of further ranks."""
DEFAULT_PROMISE_SECONDS = 60.0
"""The promise assumed for a heartbeat that makes none."""
HUNG_TIMES, HUNG_MARGIN_SECONDS = 3.0, 60.0
QUIET_LOG_SECONDS = 300.0
"""Without heartbeats, an output silent for this long and for ``QUIET_TIMES`` its usual pause counts as stalled."""
QUIET_TIMES = 10.0
QUIET_BEAT_SECONDS, QUIET_STEPS = 10.0, 5.0
"""A training counts as silent after this long, and the time of this many steps, without a sign of life."""
QUIET_LINE_SECONDS, QUIET_LINES = 60.0, 5.0
"""The same for a training that only prints: after this long, and this many usual pauses, without a line."""
STUCK_SECONDS, STUCK_STEPS = 60.0, 20.0
STOPPED = "T"
"""The kernel's letter for a process stopped by a signal."""


class Silence(NamedTuple):
    """The age of a heartbeat, split into seconds that the machine was awake and seconds that it slept."""

    awake: float
    slept: float


class BeatFile:
    """Follows one heartbeat file: ours (schema 1), or another program's, read through the table of aliases."""

    def __init__(self, path: Path, machine: LocalMachine) -> None:
        self.path = path
        self.beat: Heartbeat | None = None
        """The newest beat that could be read."""
        self.ours = False
        """True if the file follows our schema, so that its phase, promise and clock can be relied on."""
        self.slept_seconds = 0.0
        """How long the machine last slept between two beats; see :meth:`slept_before`."""
        self._woke = 0.0
        self._machine = machine
        self._file = RecordFile[Mapping[str, Any]](path, dict)

    def read(self) -> float | None:
        """Read a new beat. Return the seconds slept since the previous one, or None if there is no new beat."""
        if not self._file.read():
            return None
        if self._file.value is None:  # a program that does not write by renaming may be halfway through
            of_agent = self.beat is not None and self.beat.loss_seen is not None
            if of_agent and self._file.modified_ns is None and self.path.parent.exists():
                self.beat = None  # an agent that gives up removes its file
            return None
        try:
            beat: Heartbeat | None = heartbeat.from_json(self._file.value)
            self.ours = True
        except UnreadableRecord:
            beat = external_heartbeat(self._file.value, self._file.modified_ns or 0)
            self.ours = self.ours and beat is None
        if beat is None:
            return None
        before, self.beat = self.beat, beat
        if before is None or before.monotonic is None or beat.monotonic is None or before.boot_id != beat.boot_id:
            return 0.0
        slept = (beat.time - before.time) - (beat.monotonic - before.monotonic)
        if slept < SLEPT_SECONDS:
            return 0.0
        self.slept_seconds, self._woke = slept, beat.time
        return slept

    def silence(self) -> Silence | None:
        """Return the age of the newest beat; None if there was none."""
        beat = self.beat
        if beat is None:
            return None
        wall = max(0.0, self._machine.clock() - beat.time)
        if beat.monotonic is None or not beat.boot_id or beat.boot_id != self._machine.boot_id:
            return Silence(wall, 0.0)
        awake = self._machine.monotonic() - beat.monotonic
        return Silence(awake, max(0.0, wall - awake)) if awake >= 0 else Silence(wall, 0.0)

    def slept_before(self, now: float) -> float:
        """Return how many seconds the machine slept if it woke within the last ``SLEEP_NOTE_SECONDS``; else 0."""
        return self.slept_seconds if now - self._woke < SLEEP_NOTE_SECONDS else 0.0


class LateRank(NamedTuple):
    """A rank above 0 whose heartbeat is overdue: it holds up all others, even if rank 0 still beats."""

    rank: int
    silent_seconds: float
    promised_seconds: float


class Heartbeats:
    """The heartbeats of one run: the newest attempt's, and those in the program's own file."""

    def __init__(self, machine: LocalMachine, own: ProgressPace, program: ProgressPace) -> None:
        """``own`` receives the steps of our own heartbeat, ``program`` those of the program's."""
        self._machine = machine
        self._paces = own, program
        self.readings = SeriesStore()
        """Curves of the program's own heartbeats, which are kept nowhere else."""
        self._own: BeatFile | None = None
        self._external: BeatFile | None = None
        self._launched = 0.0
        self._folder: AttemptDir | None = None
        self._ranks: dict[int, BeatFile] = {}
        self._ranks_at = 0.0

    def begin_attempt(self, folder: AttemptDir) -> None:
        """Start to follow the heartbeat of a new attempt."""
        self._own = BeatFile(folder.heartbeat(), self._machine)
        self._folder, self._ranks, self._ranks_at = folder, {}, -RANKS_SECONDS

    def follow(self, path: Path | None, launched: float = 0.0) -> None:
        """Also read the program's own heartbeat file; beats older than ``launched`` belong to an earlier run."""
        self._launched = launched
        if path is not None and (self._external is None or self._external.path != path):
            self._external = BeatFile(path, self._machine)
        slept = self._external.read() if self._external is not None else None
        if slept is None or (beat := self.program) is None:
            return
        attempt = self._folder.number if self._folder is not None else 0
        counted = {name: getattr(beat, name) for name in ("epoch", "step", "epoch_step", "epoch_steps", "lr")}
        loss = {"loss": beat.loss} if beat.loss is not None or "loss" in beat.nonfinite else {}
        record = {**beat.metrics, **counted, **loss, "time": beat.time, "attempt": attempt}
        self.readings.add([{name: value for name, value in record.items() if value is not None or name == "loss"}])
        self._paces[1].feed([record])

    def read(self) -> None:
        """Read the attempt's heartbeat."""
        slept = self._own.read() if self._own is not None else None
        if slept is not None and (beat := self.own) is not None and beat.step is not None:
            self._paces[0].note_beat(beat.time, float(beat.step), slept)

    @property
    def phase(self) -> str | None:
        """The phase in the attempt's newest heartbeat if it follows our schema, else None."""
        beat = self._own.beat if self._own and self._own.ours else None
        return beat.phase if beat else None

    @property
    def own(self) -> Heartbeat | None:
        """The newest heartbeat in the attempt's own file."""
        return self._own.beat if self._own else None

    @property
    def agent_waits(self) -> bool:
        """True if the agent is in a process that has loaded torch, but has not seen it train yet."""
        return self.own is None and self._folder is not None and self._folder.stack_signal.exists()

    @property
    def program(self) -> Heartbeat | None:
        """The newest heartbeat in the program's own file, if it is from this attempt."""
        beat = self._external.beat if self._external else None
        return beat if beat and beat.time >= self._launched else None

    @property
    def followed(self) -> Path | None:
        """The program's own heartbeat file."""
        return self._external.path if self._external else None

    @property
    def program_name(self) -> str:
        """The name of that file; empty if there is none."""
        return self._external.path.name if self._external else ""

    @property
    def file(self) -> BeatFile | None:
        """The file whose silence counts; None until a beat of this attempt was read."""
        return self._own if self.own else self._external if self.program else None

    @property
    def beat(self) -> Heartbeat | None:
        """This attempt's newest heartbeat."""
        return self.own or self.program

    @property
    def is_overdue(self) -> bool:
        """True if the next beat has not come within the promised time."""
        silence, beat = self.file.silence() if self.file is not None else None, self.beat
        return silence is not None and beat is not None and silence.awake > _promised(beat.expect_next_in)

    def signs(self, now: float) -> Signs:
        """Return the signs of life known from the heartbeats alone."""
        file = self.file
        beat, silence = (file.beat, file.silence()) if file else (None, None)
        if file is None or beat is None or silence is None:
            return Signs()
        return Signs(
            phase=beat.phase,
            doing=beat.doing or "",
            beat_age=silence.awake,
            promise=beat.expect_next_in,
            steps_done=not file.ours or bool(beat.step) or beat.loss is not None or _reports_again(beat),
            late_rank=self.late_rank(),
            slept_seconds=silence.slept,
            slept_before_seconds=file.slept_before(now),
        )

    def ranks(self) -> tuple[Heartbeat, ...]:
        """Return the newest heartbeat of each rank, in order of rank; empty for a single-process training."""
        beat, now = self.beat, self._machine.monotonic()
        if self._folder is None or beat is None or beat.world_size is None or beat.world_size < 2:
            return ()
        if now - self._ranks_at >= RANKS_SECONDS:
            self._ranks_at = now
            for rank, path in sorted(self._folder.rank_heartbeats().items())[:MOST_RANKS]:
                self._ranks.setdefault(rank, BeatFile(path, self._machine))
        for file in self._ranks.values():
            file.read()
        return (beat, *(file.beat for _, file in sorted(self._ranks.items()) if file.beat is not None))

    def late_rank(self) -> LateRank | None:
        """Return the rank above 0 that has been silent longest, among those overdue; None if none is."""
        late: list[LateRank] = []
        for rank, file in self._ranks.items() if self.ranks() else ():
            silence, last = file.silence(), file.beat
            if silence is not None and last is not None and last.phase != "done":
                promise = last.expect_next_in or DEFAULT_PROMISE_SECONDS
                late += [LateRank(rank, silence.awake, promise)] if silence.awake > promise else []
        return max(late, key=lambda one: one.silent_seconds, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """The signs of life of one attempt. Ages are seconds of awake time, None if there was no such sign yet."""

    phase: str | None = None
    doing: str = ""
    """What the training says it is doing."""
    beat_age: float | None = None
    promise: float | None = None
    """``expect_next_in`` of the newest heartbeat."""
    steps_done: bool = False
    """True once a first step, epoch or loss of this attempt was seen."""
    step_age: float | None = None
    """Time since the step last advanced."""
    usual_step_seconds: float | None = None
    """Median time between two steps."""
    output_age: float | None = None
    usual_output_seconds: float | None = None
    """Usual pause between two writes to the output; None if there were too few to tell."""
    up_seconds: float | None = None
    """Time since the start of the attempt; None if unknown."""
    paused: bool = False
    """True if the supervisor was asked to pause it."""
    process_state: str | None = None
    """The kernel's letter for the state of the trainer process: R, S, D or U, T, Z."""
    late_rank: LateRank | None = None
    """A rank above 0 whose heartbeat is overdue."""
    slept_seconds: float = 0.0
    """How long the machine has slept since the newest heartbeat."""
    slept_before_seconds: float = 0.0
    """How long the machine slept recently, before the training reported again."""


class Condition(NamedTuple):
    """How a run is doing, and a few words about it."""

    health: Health | None
    """None if the training is done, or unknown."""
    note: str = ""
    silent: bool = False
    """True if nothing was heard for longer than usual, though nothing is overdue yet."""

    @property
    def moves(self) -> bool:
        """True if the run makes progress, so that its speed and remaining time are still valid."""
        return not (self.silent or self.health in (None, Health.STALLED, Health.HUNG, Health.PAUSED))


def assess(signs: Signs) -> Condition:
    """Return the health of a run in progress. A pure function."""
    if signs.paused:
        return Condition(Health.PAUSED)
    if signs.process_state == STOPPED:
        return Condition(Health.PAUSED, "stopped by a signal that mpstui did not send")
    if signs.beat_age is None:
        return _by_output(signs)
    promise = _promised(signs.promise)
    is_done = signs.phase == "done"  # no further beat will come
    if signs.beat_age > promise and not is_done:
        return _silent(signs, signs.beat_age, promise)
    if signs.slept_seconds > SLEPT_SECONDS and not is_done:
        return Condition(Health.SLEPT, f"slept {span(signs.slept_seconds)}")
    if (late := signs.late_rank) is not None:
        silent, promised = span(late.silent_seconds), span(late.promised_seconds)
        return Condition(Health.STALLED, f"rank {late.rank}: no beat for {silent}, promised within {promised}")
    if is_done:
        lives_long = signs.beat_age > STUCK_SECONDS
        since = f"done {span(signs.beat_age)} ago, its process still lives"
        return Condition(None, since if lives_long else "done, its process is ending")
    doing = _PHASES.get(signs.phase or "", Health.TRAINING if signs.steps_done else Health.WARMING)
    if signs.phase == "compile":
        return Condition(doing, "compiling")
    return _training(signs) if doing is Health.TRAINING else Condition(doing, signs.doing or _woken(signs))


def _promised(seconds: float | None) -> float:
    return seconds if seconds is not None and seconds > 0 else DEFAULT_PROMISE_SECONDS


def _training(signs: Signs) -> Condition:
    if not signs.steps_done:
        return Condition(Health.WARMING, "before its first step" + _so_far(signs))
    usual, age = signs.usual_step_seconds, signs.step_age
    stuck_after = max(STUCK_SECONDS, STUCK_STEPS * (usual or 0.0))
    if usual is not None and age is not None and age > stuck_after:
        hung = age > HUNG_TIMES * stuck_after and not _output_moves(signs, STUCK_SECONDS)
        return Condition(Health.HUNG if hung else Health.STALLED, f"no step for {span(age)}, it still beats")
    heard = min(signs.beat_age or 0.0, math.inf if signs.output_age is None else signs.output_age)
    if heard > max(QUIET_BEAT_SECONDS, QUIET_STEPS * (usual or 0.0)):
        return Condition(Health.TRAINING, f"nothing heard for {span(heard)}", silent=True)
    return Condition(Health.TRAINING, _woken(signs))


def _silent(signs: Signs, age: float, promise: float) -> Condition:
    note = f"no beat for {span(age)}, promised within {span(promise)}"
    if _output_moves(signs, promise):
        return Condition(Health.STALLED, f"{note}; its output still grows")
    if age <= max(HUNG_TIMES * promise, promise + HUNG_MARGIN_SECONDS):
        return Condition(Health.STALLED, note)
    if signs.process_state in ("D", "U"):
        note += "; the process waits inside the kernel"
    return Condition(Health.HUNG, note)


def _by_output(signs: Signs) -> Condition:
    """Return the health of a program without heartbeats: silence alone never proves that it hangs."""
    age, usual = signs.output_age, signs.usual_output_seconds
    if age is None:
        return Condition(Health.WARMING, "nothing printed yet" + _so_far(signs))
    if age > max(QUIET_LOG_SECONDS, QUIET_TIMES * (usual or 0.0)):
        if not signs.steps_done:
            return Condition(Health.WARMING, f"nothing printed for {span(age)}")
        # With no pause measured yet, this may be the usual one.
        return Condition(Health.TRAINING if usual is None else Health.STALLED, f"no output for {span(age)}")
    if signs.steps_done:
        silent = usual is not None and age > max(QUIET_LINE_SECONDS, QUIET_LINES * usual)
        return Condition(Health.TRAINING, f"no output for {span(age)}" if silent else "", silent)
    so_far = _so_far(signs)
    return Condition(Health.WARMING, f"no step seen{so_far}" if so_far else "")


def _so_far(signs: Signs) -> str:
    """Return words to append that say how long a slow start has taken: data, downloads and compiling take time."""
    up = signs.up_seconds or 0.0
    return f" for {span(up)}" if up > STUCK_SECONDS else ""


def _output_moves(signs: Signs, within: float) -> bool:
    return signs.output_age is not None and signs.output_age <= within


def _reports_again(beat: Heartbeat) -> bool:
    """True if a training without counts or phases has reported metrics more than once: one may be from its setup."""
    return beat.phase is None and bool(beat.metrics) and beat.seq > 1


def _woken(signs: Signs) -> str:
    return f"slept {span(signs.slept_before_seconds)}" if signs.slept_before_seconds > SLEPT_SECONDS else ""


_PHASES = {
    "setup": Health.WARMING,
    "compile": Health.WARMING,
    "train": Health.TRAINING,
    "eval": Health.EVALUATING,
    "save": Health.SAVING,
}

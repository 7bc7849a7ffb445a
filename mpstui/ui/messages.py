"""Every message from the workers to the app and its screens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from ..core.diagnosis.model import EvidenceLine, Finding
    from ..core.model.snapshot import RunSnapshot
    from ..core.runs.queueing import Moved
    from ..core.runs.removal import Removable, Removed
    from ..core.settings import EnergySettings
    from ..core.telemetry.model import SystemSample, TreeSample
    from ..core.telemetry.run_telemetry import RunTelemetry
    from ..wire.queues import Queue
    from ..wire.records import Ack, Request


@dataclass
class SnapshotsReady(Message):
    """All runs, newest first, something about them being new. A whole state: a newer one may replace it."""

    snapshots: tuple[RunSnapshot, ...]
    paused_queues: tuple[str, ...] = ()
    """Queues that start nothing."""

    def can_replace(self, message: Message) -> bool:
        """Only the newest matters."""
        return isinstance(message, SnapshotsReady)


@dataclass
class SystemReady(Message):
    """The machine, and the processes of the run in focus where it has any."""

    system: SystemSample | None
    tree: TreeSample | None
    run: str | None
    telemetry: RunTelemetry | None = None
    """What telemetry knows of the run over time."""
    prices: EnergySettings | None = None
    """What electricity costs, where the settings say it."""

    def can_replace(self, message: Message) -> bool:
        """Only the newest sample matters."""
        return isinstance(message, SystemReady)


@dataclass
class LogGrew(Message):
    """The output of the run in focus has changed on disk."""

    run: str

    def can_replace(self, message: Message) -> bool:
        """The panel reads whatever is there."""
        return isinstance(message, LogGrew)


@dataclass
class WorkerFailed(Message):
    """A worker could not do its work; it keeps trying."""

    what: str
    sentence: str


@dataclass
class DiagnosisReady(Message):
    """Why an attempt ended, the most probable first; empty when nothing is known."""

    run: str
    attempt: int
    findings: Sequence[Finding]
    exception: EvidenceLine | None = None
    """The last one of the log, where nothing is known."""


@dataclass
class TerminalNotified(Message):
    """Control sequences that tell the terminal of a crash, a stall or a finish."""

    sequences: str


@dataclass
class QueueChanged(Message):
    """A run was moved in its queue, or a queue was paused or resumed."""

    run: str | None
    """None: a queue that none of the runs in view waits in."""
    change: Moved | Queue


@dataclass
class RemovalExamined(Message):
    """What removing a run would delete: to be asked about."""

    snapshot: RunSnapshot
    found: Removable


@dataclass
class RunRemoved(Message):
    """A run is gone."""

    name: str
    done: Removed


@dataclass
class SettingsMistaken(Message):
    """The settings cannot be used; the sentence names every mistake, each on a line."""

    sentence: str


@dataclass
class RequestSent(Message):
    """A request was written for the supervisor or the trainer."""

    run: str
    action: str
    request: Request


@dataclass
class RequestAnswered(Message):
    """The answer to a request; ``ack`` is None when nobody answered in time."""

    run: str
    action: str
    request: Request
    ack: Ack | None


@dataclass
class JobFailed(Message):
    """Something the user asked for could not be done."""

    what: str
    sentence: str
    hint: str = ""


@dataclass
class Launched(Message):
    """A new run exists; of several the first one is named."""

    run: str
    runs: int = 1


@dataclass
class ProfileSaved(Message):
    """A launch was saved as a profile of the user's own."""

    path: str

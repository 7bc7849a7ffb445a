"""Every message from the workers to the app and its screens.

They have no methods for comparison or printing: nobody needs them, and compiling them would add 5 ms to each start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from textual.message import Message

if TYPE_CHECKING:
    from ..core.actions import Action
    from ..core.diagnosis.model import EvidenceLine, Finding
    from ..core.hosts.moving import MovePlan, Mover
    from ..core.launching.cure import Cure
    from ..core.launching.rehearsal import Rehearsed
    from ..core.model.snapshot import RunSnapshot, SeriesView
    from ..core.runs.details import Section
    from ..core.runs.ghost import Ghost
    from ..core.runs.logged import Seen, Wanted
    from ..core.runs.removal import Removable
    from ..core.runs.window import Window
    from ..core.settings import EnergySettings
    from ..core.telemetry.model import SystemSample, TreeSample
    from ..core.telemetry.run_telemetry import RunTelemetry
    from ..wire.records import Ack, Request
    from .graphics import Graphics

Severity = Literal["information", "warning", "error"]


class _State(Message):
    """A message about the current state: of several in the queue, only the newest matters."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, type(self))


@dataclass(eq=False, repr=False)
class SnapshotsReady(_State):
    """All runs, newest first, after a change."""

    snapshots: tuple[RunSnapshot, ...]
    paused_queues: tuple[str, ...] = ()
    """Queues that are not starting anything."""
    troubles: tuple[str, ...] = ()
    """Problems with the connections to other machines."""


@dataclass(eq=False, repr=False)
class SystemReady(_State):
    """The machine, and the processes of the run in focus, if any."""

    system: SystemSample | None
    tree: TreeSample | None
    run: str | None
    telemetry: RunTelemetry | None = None
    """The run's telemetry over time."""
    prices: EnergySettings | None = None
    """The price of electricity, if set."""
    past: tuple[SystemSample, ...] = ()
    """The machine during the last minute, including the newest sample."""


@dataclass(eq=False, repr=False)
class GhostReady(_State):
    """The best earlier run like the live one, and how the two compare; None: there is none, or no longer."""

    run: str
    ghost: Ghost | None


@dataclass(eq=False, repr=False)
class LogGrew(_State):
    """The output file of the run in focus has changed."""

    run: str


@dataclass(eq=False, repr=False)
class WindowRead(_State):
    """Part of a run's curves, read again point by point."""

    window: Window
    curves: Mapping[str, SeriesView]
    """The curves of the metrics whose points are still in the files."""


@dataclass(eq=False, repr=False)
class ImageRead(_State):
    """An image of a run, or the reason why there is none."""

    wanted: Wanted
    seen: Seen
    trouble: str = ""
    """Why it could not be requested, as a sentence; trying again may help."""


@dataclass(eq=False, repr=False)
class DiagnosisReady(Message):
    """Why an attempt ended, the most probable cause first; empty if unknown."""

    run: str
    attempts: int
    """How many attempts there were at that time, rehearsals included."""
    findings: Sequence[Finding]
    exception: EvidenceLine | None = None
    """The last exception in the log, if no cause is known."""
    cure: Cure | None = None
    """What the remedy would change; None if there is none to apply."""
    rehearsed: Rehearsed | None = None
    """The result of rehearsing a changed launch."""


@dataclass(eq=False, repr=False)
class TerminalNotified(Message):
    """Control sequences that notify the terminal of a crash, a stall or a finish."""

    sequences: str


@dataclass(eq=False, repr=False)
class RemovalExamined(Message):
    """What removing runs would delete: the question to ask."""

    snapshots: Sequence[RunSnapshot]
    found: Sequence[Removable]
    refused: Sequence[str]
    """Why other marked runs cannot be removed."""


@dataclass(eq=False, repr=False)
class MoveExamined(Message):
    """What moving a run to another machine would involve: the question to ask."""

    mover: Mover
    planned: MovePlan
    to: str


@dataclass(eq=False, repr=False)
class RunsLookedInto(Message):
    """What an action on all marked runs would cost: the question to ask."""

    action: Action
    runs: Sequence[RunSnapshot]
    ask: bool


@dataclass(eq=False, repr=False)
class DetailsRead(Message):
    """What is known about a run besides its numbers, for its info page."""

    name: str
    sections: tuple[Section, ...]


@dataclass(eq=False, repr=False)
class SettingsMistaken(Message):
    """The settings cannot be used because of these mistakes."""

    mistakes: tuple[str, ...]


@dataclass(eq=False, repr=False)
class GraphicsKnown(Message):
    """The terminal has answered whether, and how, it can show pixels."""

    graphics: Graphics | None


@dataclass(eq=False, repr=False)
class RequestAnswered(Message):
    """The answer to a request; ``ack`` is None if none came in time."""

    run: str
    action: str
    request: Request
    ack: Ack | None
    alone: bool = True
    """False: one of several requests made at once, whose success shows in the list."""


@dataclass(eq=False, repr=False)
class Launched(Message):
    """A new run exists; if there are several, the first is named."""

    run: str
    runs: int = 1


@dataclass(eq=False, repr=False)
class Toast(Message):
    """Something to tell the user in passing."""

    text: str
    severity: Severity = "information"
    run: str | None = None
    """The run it concerns."""

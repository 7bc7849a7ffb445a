"""Every message from the workers to the app and its screens.

Nobody compares or prints one: methods for that would be compiled at each start, and take 5 ms of it.
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
    """Says how things are now: of several that wait, only the newest matters."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, type(self))


@dataclass(eq=False, repr=False)
class SnapshotsReady(_State):
    """All runs, newest first, something about them being new."""

    snapshots: tuple[RunSnapshot, ...]
    paused_queues: tuple[str, ...] = ()
    """Queues that start nothing."""
    troubles: tuple[str, ...] = ()
    """What is wrong with the ways to other machines."""


@dataclass(eq=False, repr=False)
class SystemReady(_State):
    """The machine, and the processes of the run in focus where it has any."""

    system: SystemSample | None
    tree: TreeSample | None
    run: str | None
    telemetry: RunTelemetry | None = None
    """What telemetry knows of the run over time."""
    prices: EnergySettings | None = None
    """What electricity costs, where the settings say it."""
    past: tuple[SystemSample, ...] = ()
    """The machine in the last minute, the newest sample included."""


@dataclass(eq=False, repr=False)
class GhostReady(_State):
    """The best earlier run like a live one, and how the two stand; None: there is none, or not any more."""

    run: str
    ghost: Ghost | None


@dataclass(eq=False, repr=False)
class LogGrew(_State):
    """The output of the run in focus has changed on disk."""

    run: str


@dataclass(eq=False, repr=False)
class WindowRead(_State):
    """A part of a run's curves was read again, point for point."""

    window: Window
    curves: Mapping[str, SeriesView]
    """Those of its metrics that the files still tell."""


@dataclass(eq=False, repr=False)
class ImageRead(_State):
    """An image of a run, or why there is none."""

    wanted: Wanted
    seen: Seen
    trouble: str = ""
    """Why nobody could be asked, in a sentence; it may work in a moment."""


@dataclass(eq=False, repr=False)
class DiagnosisReady(Message):
    """Why an attempt ended, the most probable first; empty when nothing is known."""

    run: str
    attempts: int
    """How many it had then, rehearsals included."""
    findings: Sequence[Finding]
    exception: EvidenceLine | None = None
    """The last one of the log, where nothing is known."""
    cure: Cure | None = None
    """What a remedy would change; None where there is none to apply."""
    rehearsed: Rehearsed | None = None
    """What trying a changed launch of it has shown."""


@dataclass(eq=False, repr=False)
class TerminalNotified(Message):
    """Control sequences that tell the terminal of a crash, a stall or a finish."""

    sequences: str


@dataclass(eq=False, repr=False)
class RemovalExamined(Message):
    """What removing a run would delete: to be asked about."""

    snapshots: Sequence[RunSnapshot]
    found: Sequence[Removable]
    refused: Sequence[str]
    """Why others that are marked must stay."""


@dataclass(eq=False, repr=False)
class MoveExamined(Message):
    """What carrying a run to another machine would come to: to be asked about."""

    mover: Mover
    planned: MovePlan
    to: str


@dataclass(eq=False, repr=False)
class RunsLookedInto(Message):
    """What an action on all marked runs would come to: to be asked about."""

    action: Action
    runs: Sequence[RunSnapshot]
    ask: bool


@dataclass(eq=False, repr=False)
class DetailsRead(Message):
    """What is known of a run beside its numbers: to be shown on a page."""

    name: str
    sections: tuple[Section, ...]


@dataclass(eq=False, repr=False)
class SettingsMistaken(Message):
    """The settings cannot be used, for these mistakes."""

    mistakes: tuple[str, ...]


@dataclass(eq=False, repr=False)
class GraphicsKnown(Message):
    """What the terminal said of the pixels that it can show."""

    graphics: Graphics | None


@dataclass(eq=False, repr=False)
class RequestAnswered(Message):
    """The answer to a request; ``ack`` is None when nobody answered in time."""

    run: str
    action: str
    request: Request
    ack: Ack | None
    alone: bool = True
    """False: one of several that were asked at once; that it was done shows in the list."""


@dataclass(eq=False, repr=False)
class Launched(Message):
    """A new run exists; of several the first one is named."""

    run: str
    runs: int = 1


@dataclass(eq=False, repr=False)
class Toast(Message):
    """Something to tell the user in passing."""

    text: str
    severity: Severity = "information"
    run: str | None = None
    """The run it concerns."""

"""What the screen needs from the core, as protocols: the real parts fit them, and so do the fakes of the tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..core.diagnosis.model import Remedy
    from ..core.model.snapshot import RunSnapshot
    from ..core.runs.queueing import Moved
    from ..core.runs.removal import Removable, Removed
    from ..core.telemetry.model import SystemSample, TreeSample
    from ..core.telemetry.run_telemetry import RunTelemetry
    from ..wire.queues import Queue
    from ..wire.records import Ack, Request
    from .form import Field, Preview


class MonitorPort(Protocol):
    """Where the snapshots come from."""

    def refresh(self, focus: str | None = None) -> tuple[RunSnapshot, ...]:
        """All runs, newest first; the one in focus in full."""
        ...

    def hint(self, runs: Iterable[str]) -> None:
        """Something happened to these runs: look at them with the next refresh."""
        ...

    def read_on(self, focus: str, seconds: float) -> int:
        """Go on with the history of the run in focus, without a picture; the bytes that are still to be read."""
        ...


class ActionsPort(Protocol):
    """What can be asked of a run. Every method writes a request and returns it; the answer comes later."""

    def send(self, snapshot: RunSnapshot, action: str) -> Request:
        """Ask for an action of the table."""
        ...

    def restart(
        self, snapshot: RunSnapshot, device: str | None = None, source: str = "latest", choice: Any = None
    ) -> Request:
        """A new attempt."""
        ...

    def answer(self, run_dir: Path, request_id: str) -> Ack | None:
        """The answer to a request, None while there is none."""
        ...


class QueuePort(Protocol):
    """The order of what waits. Changes are made at once, under the group's own lock."""

    def move(self, snapshot: RunSnapshot, direction: str) -> Moved:
        """``up`` or ``down`` by one place."""
        ...

    def paused(self) -> tuple[str, ...]:
        """The groups that are paused, also those that nobody waits in."""
        ...

    def set_paused(self, group: str, paused: bool) -> Queue:
        """Let nothing of a group start any more, or let it go on."""
        ...


class RemoverPort(Protocol):
    """Deletes runs that have ended."""

    def examine(self, snapshot: RunSnapshot) -> Removable:
        """What that would delete.

        Raises:
            OperationError: it must stay.
        """
        ...

    def remove(self, snapshot: RunSnapshot, keep_checkpoints: bool) -> Removed:
        """Delete it.

        Raises:
            OperationError: it must stay after all.
        """
        ...


class SamplePort(Protocol):
    """The machine and the watched trainers at one moment."""

    @property
    def system(self) -> SystemSample: ...
    @property
    def trees(self) -> Mapping[str, TreeSample]: ...


class SamplerPort(Protocol):
    """The machine, read on demand; may block for a while."""

    def sample(self, trees: Mapping[str, Sequence[int]] | None = None) -> SamplePort:
        """The machine, and each trainer given by its root processes."""
        ...

    def close(self) -> None:
        """End what it started."""
        ...


class RecorderPort(Protocol):
    """The telemetry of one run over time."""

    def poll(self, snapshot: RunSnapshot, system: SystemSample, tree: TreeSample | None) -> RunTelemetry:
        """Note a sample of the run; what is known of it now."""
        ...

    def close(self) -> None:
        """Leave its file to another screen."""
        ...


class StyleSpanPort(Protocol):
    """Characters that SGR parameters colour."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def codes(self) -> str: ...


class LogLinePort(Protocol):
    """One line of output as a person sees it."""

    @property
    def number(self) -> int | None: ...
    @property
    def offset(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def spans(self) -> Sequence[StyleSpanPort]: ...
    @property
    def level(self) -> str | None: ...


class LogPort(Protocol):
    """A log file by lines; the file is the store."""

    @property
    def line_count(self) -> int | None:
        """Lines, None until that is known."""
        ...

    def refresh(self) -> bool:
        """Look at the file again; True when something changed."""
        ...

    def tail(self, rows: int) -> Sequence[LogLinePort]:
        """The newest lines."""
        ...

    def window(self, first_offset: int, rows: int) -> Sequence[LogLinePort]:
        """Lines from an offset on."""
        ...

    def before(self, offset: int, rows: int) -> Sequence[LogLinePort]:
        """The lines that end where ``offset`` begins, in the order of the file."""
        ...

    def at_line(self, number: int, rows: int) -> Sequence[LogLinePort]:
        """Lines from a number on; none while the file was not counted that far."""
        ...

    @property
    def size_bytes(self) -> int:
        """Of the file."""
        ...

    @property
    def search_stopped_at(self) -> int | None:
        """Where the last search ran out of time, None when it got to the end."""
        ...

    def search(
        self, pattern: str, start_offset: int, backwards: bool = False, seconds: float = 3.0
    ) -> LogLinePort | None:
        """The next line that holds ``pattern``."""
        ...

    def next_error(self, offset: int, backwards: bool = False, seconds: float = 3.0) -> LogLinePort | None:
        """The next line that is an error."""
        ...


class ProfileEntryPort(Protocol):
    """One profile in the list."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def path(self) -> Path: ...
    @property
    def origin(self) -> str: ...
    @property
    def error(self) -> str | None: ...
    @property
    def description(self) -> str: ...


class DraftPort(Protocol):
    """A launch that is being filled in."""

    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def fields(self) -> tuple[Field, ...]: ...

    def preview(self, values: Mapping[str, str]) -> Preview:
        """What these values would start.

        Raises:
            UsageError: one of them is wrong.
        """
        ...

    def launch(self, values: Mapping[str, str]) -> str:
        """Start it; the id of the new run, of several the first one's."""
        ...

    def restart(self, snapshot: RunSnapshot, values: Mapping[str, str]) -> Request:
        """Ask for a new attempt of ``snapshot`` with these values."""
        ...

    def save(self, values: Mapping[str, str], name: str) -> Path:
        """Keep the values as a profile of one's own."""
        ...


class LauncherPort(Protocol):
    """Saved profiles and the forms made of them."""

    def entries(self) -> Sequence[ProfileEntryPort]:
        """Every profile that can be found."""
        ...

    def draft(self, name: str) -> DraftPort:
        """A form for a profile."""
        ...

    def draft_of(self, snapshot: RunSnapshot, remedy: Remedy | None = None) -> DraftPort:
        """A form filled in with what a run was started with, changed by a remedy where one is given."""
        ...

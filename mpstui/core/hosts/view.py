"""What the two sides send each other: what is looked at here, and what is known about it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...wire.records import Ack
from ..launching.command import EnvLine
from ..launching.form_fields import Field
from ..model.snapshot import Moment, RunSnapshot
from ..runs.ghost import Ghost
from ..settings import EnergySettings
from ..telemetry.model import SystemSample, TreeSample
from ..telemetry.run_telemetry import RunTelemetry
from .codec import NAMED

NAMED["EnvLine"] = EnvLine
COLUMNS = 240
"""The most points per curve: no chart shows more, and a line is slower than a disk."""


class RunRef(NamedTuple):
    """A run over there, as it was when somebody pressed a key."""

    run: str
    attempt: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What somebody looks at; sent whole when it changes, and on each new line."""

    focus: str | None = None
    """The run that is read in full."""
    selected: tuple[str, ...] = ()
    """Runs that keys may act on."""
    compared: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    """Paths of logs whose ends are followed."""
    sampled: str | None = None
    """The run whose processes are sampled along with the machine; empty: only the machine; None: nobody looks."""
    raced: str | None = None
    """The live run for which the best comparable earlier run is searched."""
    asked: tuple[tuple[str, str], ...] = ()
    """Requests whose answers are awaited: runs and ids."""


@dataclass(frozen=True, slots=True)
class Listing:
    """All runs of a machine, newest first."""

    runs: Mapping[str, RunSnapshot] = field(default_factory=dict)
    paused: tuple[str, ...] = ()
    """Paused queues."""


@dataclass(frozen=True, slots=True)
class MachineReading:
    """Readings of a machine, and of a run's processes if one is looked at."""

    run: str | None = None
    """The run that was looked at; empty if it was only the machine."""
    system: SystemSample | None = None
    tree: TreeSample | None = None
    telemetry: RunTelemetry | None = None
    prices: EnergySettings | None = None


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a log, and its place in the file."""

    there: bool = False
    size: int = 0
    restarts: int = 0
    """How often another file has replaced it."""
    lines: int | None = None
    start: int = 0
    """Offset in the file at which the pieces begin."""
    pieces: tuple[bytes, ...] = ()
    """Its last bytes, cut after each newline."""
    encoding: str | None = None
    """The encoding, if it is UTF-16."""
    began: Moment | None = None
    ended: Moment | None = None
    """When the attempt whose output it is began and ended."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to requests, by id."""

    acks: Mapping[str, Ack] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Raced:
    """The best earlier run comparable to a live one; None if there is none, or the search goes on."""

    ghost: Ghost | None = None


class Piece(NamedTuple):
    """Some bytes of a log."""

    restarts: int
    start: int
    data: bytes
    lines_before: int | None
    """Number of newlines before them; None if not counted yet."""


class Found(NamedTuple):
    """How far a search has got."""

    offset: int | None
    """Offset of the line that was found."""
    stopped_at: int | None
    """Offset at which its time ran out; None if it has finished."""
    around: Piece | None = None


class Counted(NamedTuple):
    """How many lines match so far."""

    lines: int
    complete: bool


class FormRecipe(NamedTuple):
    """How to make a launch form; each question about the form carries it."""

    profile: str | None = None
    run: RunRef | None = None
    cured: bool = False
    branch_step: float | None = None
    values: Mapping[str, str] | None = None
    """The values with which the program was asked for its arguments."""


class FormFace(NamedTuple):
    """The parts of a form that are drawn."""

    title: str
    description: str
    fields: tuple[Field, ...]


class Greeting(NamedTuple):
    """The first message of the far side."""

    version: str
    host: str
    home: str
    time: Moment
    pid: int


KINDS: dict[str, Any] = {
    "list": Listing,
    "run": RunSnapshot,
    "log": LogEnd,
    "machine": MachineReading,
    "race": Raced,
    "answers": Answers,
}
"""The type of each channel, by the part of its name before the colon."""

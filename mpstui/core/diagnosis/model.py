"""What goes into a diagnosis and what comes out of it: frozen values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from .remedy import Remedy


class Kind(Enum):
    """What a rule's finding says about a crash. A symptom never outranks a cause or an ending."""

    CAUSE = "cause"  # why it ended
    ENDING = "ending"  # how it ended: a signal; the reason lies further back
    SYMPTOM = "symptom"  # seen beside a crash, or harmless by itself


@dataclass(frozen=True, slots=True)
class LogLine:
    """One screen line of a log, free of control characters.

    ``number`` counts newlines from 1; the redraws of a progress bar, split at carriage returns, share one number.
    """

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatEvidence:
    """What the newest heartbeat, and the telemetry up to it, say about the end. ``None`` is unknown.

    ``memory_ratio`` is memory in use over its limit, ``memory_slope_bytes_per_second`` its growth at the end.
    """

    phase: str | None = None
    step: int | None = None
    device: str | None = None
    precision: str | None = None
    nonfinite: tuple[str, ...] = ()
    memory_ratio: float | None = None
    memory_slope_bytes_per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything known about the end of one attempt; what is unknown stays at its default.

    ``signal`` and ``exit_code`` are those of the training itself; a code above 128 or below 0 is read as a signal.
    ``requested_by`` names who asked for the end: then a signal explains nothing. ``environment`` is what the launcher
    set, ``memory_events`` the system's own words about memory kills (memorystatus log lines, JetsamEvent reports).
    """

    lines: tuple[LogLine, ...] = ()
    signal: int | None = None
    exit_code: int | None = None
    requested_by: str | None = None
    heartbeat: HeartbeatEvidence | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """What a finding rests on: a log line, or with ``line`` ``None`` a fact from outside the log."""

    line: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One class of crash: how to recognise it, why it happens, what helps.

    ``patterns`` are regular expressions searched without regard to case in text whose whitespace is collapsed; a space
    also matches a line break, ``.`` does not. One of them found gives ``confidence``, one of ``weak_patterns`` only
    0.6 of it. ``fires_on`` maps a clue (see ``clues``) to the confidence it gives without any text;
    ``clues`` maps a clue to what it adds to, or takes from, a confidence that the text gave.

    ``signals`` and ``codes`` are the ways a process ends when this is the cause: another ending speaks against it.
    ``outranks`` names rules whose text this cause drags along. ``survivable`` marks text after which a broken training
    may well go on printing, so that later progress does not acquit it. ``in_warnings``: text on the line of a warning
    counts too; for a cause it does not otherwise, since a warning by itself ends nothing.
    """

    id: str
    title: str
    cause: str
    remedy: Remedy
    restart_on_cpu_helps: bool
    sources: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    weak_patterns: tuple[str, ...] = ()
    confidence: float = 0.9
    kind: Kind = Kind.CAUSE
    fires_on: Mapping[str, float] = field(default_factory=dict)
    clues: Mapping[str, float] = field(default_factory=dict)
    signals: tuple[int, ...] = ()
    codes: tuple[int, ...] = (1,)
    outranks: tuple[str, ...] = ()
    survivable: bool = False
    in_warnings: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One possible explanation; ``confidence`` lies between 0 and 1 and is an ordering, not a measured frequency."""

    id: str
    title: str
    kind: Kind
    confidence: float
    evidence: tuple[EvidenceLine, ...]
    cause: str
    remedy: Remedy
    restart_on_cpu_helps: bool

    @property
    def can_be_cured(self) -> bool:
        """Whether a launcher can do something about it; a symptom's remedy cures nothing."""
        return self.kind is not Kind.SYMPTOM and self.remedy.can_be_applied

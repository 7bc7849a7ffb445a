"""What a telemetry source is. Adding one is a file in ``sources/``, a test, a line in ``apple.py`` or ``linux.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mpstui.core.telemetry.model import GpuSample, HostFacts, ProcessFacts


class SourceError(Exception):
    """A source cannot be read; the message is the reason shown to the user."""


class NotYet(SourceError):
    """A source has no value yet but will have one soon."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted of one reading: the processes of each watched tree, keyed as the caller named the tree."""

    trees: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def pids(self) -> tuple[int, ...]:
        """Every wanted process once."""
        return tuple(dict.fromkeys(pid for members in self.trees.values() for pid in members))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One reading of one source: what it knows, and the reason for each field it should know and does not.

    ``processes`` has an entry for each process that could be asked; one whose value is None was refused, one that is
    absent has ended or is none of the source's business.
    """

    host: HostFacts = field(default_factory=HostFacts)
    gpus: tuple[GpuSample, ...] = ()
    processes: Mapping[int, ProcessFacts] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


class Source(Protocol):
    """Something that can be read now and then.

    ``read`` runs in a thread of its own, may block up to ``timeout_seconds`` and may raise anything. It is never
    called again before it has returned. ``verified`` is False where no recording of the real thing has been parsed.
    ``per_process`` sources are read only while trees are watched. ``gives`` names the fields of SystemSample and
    TreeSample that it is there for (``"gpus"`` for all of a card), so that its silence explains them.
    """

    @property
    def name(self) -> str: ...
    @property
    def period_seconds(self) -> float: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def verified(self) -> bool: ...
    @property
    def per_process(self) -> bool: ...
    @property
    def gives(self) -> tuple[str, ...]: ...

    def read(self, request: Request) -> Facts: ...
    def close(self) -> None: ...


class PlainSource:
    """Defaults that most sources share."""

    name = "unnamed"
    period_seconds = 2.0
    timeout_seconds = 3.0
    verified = True
    per_process = False
    gives: tuple[str, ...] = ()

    def close(self) -> None:
        """Nothing is held open."""

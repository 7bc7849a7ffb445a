"""Reads one source at its own pace, with a deadline and growing pauses after failures; refuses senseless values."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeVar

from .model import GpuSample, HostFacts, Limits, ProcessFacts, TreeSample
from .source import Facts, NotYet, Source, SourceError, SourceRequest

Record = TypeVar("Record", GpuSample, HostFacts, ProcessFacts, TreeSample)

# Ratios computed in single precision (macmon) and tick counters read at slightly different moments end a hair above 1.
ROUNDING_PERCENT = 0.5
MAX_BACKOFF_SECONDS = 60.0


class Clock(Protocol):
    """What gives the time, such as the module :mod:`time`."""

    def time(self) -> float: ...
    def monotonic(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """What a source said at ``monotonic`` seconds when asked ``request``."""

    monotonic: float
    request: SourceRequest
    facts: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """How a source is doing, for a person. ``reason`` is empty while it answers, ``seconds`` is how long it took."""

    name: str
    verified: bool
    period_seconds: float
    seconds: float | None
    reason: str
    waits: bool = False
    """Whether it has no value yet, but will have one soon."""
    gives: tuple[str, ...] = ()


class Reader:
    """Keeps the last two readings of one source; rates need both."""

    def __init__(self, source: Source, clock: Clock) -> None:
        self.source = source
        self.latest: Reading | None = None
        self.previous: Reading | None = None
        self.reason = ""
        self._clock = clock
        self._call: _Call | None = None
        self._failures = 0
        self._waits = False
        self._next_at = float("-inf")
        self._seconds: float | None = None

    def start(self, request: SourceRequest) -> None:
        """Begin a reading if one is due and none still hangs."""
        if self._call is not None or not self._due(request):
            return
        try:
            self._call = _Call(self.source, request, self._clock.monotonic())
        except RuntimeError as error:  # the system gives us no more threads
            self._fail(error)

    def finish(self) -> None:
        """Take the reading that was started, waiting for it no longer than the source's timeout."""
        call = self._call
        if call is None:
            return
        waited = self._clock.monotonic() - call.started
        if call.ended.wait(max(0.0, self.source.timeout_seconds - waited)):
            self._call = None
            self._take(call)
        else:
            call.late = True
            self._fail(SourceError(f"no answer for {self.source.timeout_seconds:g} s"))

    def report(self) -> SourceReport:
        """Return what is shown of this source elsewhere: its period, how long it takes, why it is silent."""
        source = self.source
        return SourceReport(
            name=source.name,
            verified=source.verified,
            period_seconds=source.period_seconds,
            seconds=self._seconds,
            reason=self.reason,
            waits=self._waits,
            gives=source.gives,
        )

    def _due(self, request: SourceRequest) -> bool:
        if self.source.per_process:
            if not request.trees:
                return False
            known = self.latest.request.trees if self.latest else {}
            if self._failures == 0 and not request.trees.keys() <= known.keys():
                return True
        return self._clock.monotonic() >= self._next_at

    def _take(self, call: _Call) -> None:
        self._seconds = self._clock.monotonic() - call.started
        if call.late and call.error is None:
            call.error = SourceError(f"the answer came after {self._seconds:.1f} s, too late to be shown as current")
        if call.error is not None:
            self._fail(call.error)
            return
        self._failures, self.reason, self._waits = 0, "", False
        self._next_at = call.started + self.source.period_seconds
        self.previous, self.latest = self.latest, Reading(call.started, call.request, call.facts)

    def _fail(self, error: Exception) -> None:
        self._waits = isinstance(error, NotYet)
        self._failures = 0 if self._waits else self._failures + 1
        self.reason = str(error) if isinstance(error, SourceError) else f"{type(error).__name__}: {error}"
        self.previous = self.latest = None
        pause = self.source.period_seconds * 2 ** min(self._failures, 10)
        longest = max(MAX_BACKOFF_SECONDS, self.source.period_seconds)
        self._next_at = self._clock.monotonic() + (self.source.period_seconds if self._waits else min(pause, longest))


class _Call:
    """One call of a source in a thread of its own, which may outlive its deadline but never blocks the exit."""

    def __init__(self, source: Source, request: SourceRequest, started: float) -> None:
        self.request = request
        self.started = started
        self.facts = Facts()
        self.error: Exception | None = SourceError("the reading was given up")
        self.late = False
        self.ended = threading.Event()
        threading.Thread(target=self._run, args=(source,), name=f"telemetry {source.name}", daemon=True).start()

    def _run(self, source: Source) -> None:
        try:
            self.facts, self.error = checked(source.read(self.request)), None
        except Exception as error:  # noqa: BLE001 - a source may raise anything; it becomes the reason shown to the user
            self.error = error
        finally:
            self.ended.set()


def checked(facts: Facts) -> Facts:
    """Return ``facts`` without the values that cannot be, and with the reason for each of these."""
    host, reasons = sensible(facts.host)
    gpus: list[GpuSample] = []
    for gpu in facts.gpus:
        kept, refused = sensible(gpu)
        gpus.append(kept)
        reasons |= {f"gpu{gpu.index}.{name}": reason for name, reason in refused.items()}
    processes: dict[int, ProcessFacts] = {}
    for pid, process in facts.processes.items():
        processes[pid], refused = sensible(process)
        reasons |= refused
    return replace(facts, host=host, gpus=tuple(gpus), processes=processes, reasons={**facts.reasons, **reasons})


def sensible(record: Record) -> tuple[Record, dict[str, str]]:
    """Return ``record`` without its senseless values, and the reason for each of these: a busy share over 100 %, more
    memory used than there is, anything negative or NaN.

    A refused value becomes None; none is ever clamped, but for a rounding error at 100 %.
    """
    values: dict[str, Any] = {spec.name: getattr(record, spec.name) for spec in fields(record) if spec.metadata}
    refused: dict[str, str] = {}
    for spec in fields(record):
        value = values.get(spec.name)
        if value is None:
            continue
        limits: Limits = spec.metadata["limits"]
        total = values.get(spec.metadata.get("within", ""))
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            refused[spec.name] = f"refused: {value!r} is not a number"
        elif not math.isfinite(value):
            refused[spec.name] = f"refused: {value} is not a finite number"
        elif limits.unit == "%" and limits.high < value <= limits.high + ROUNDING_PERCENT:
            values[spec.name] = limits.high
        elif not limits.low <= value <= limits.high:
            refused[spec.name] = f"refused: {value} {limits.unit} is outside {limits.low:g} to {limits.high:g}"
        elif isinstance(total, (int, float)) and value > total:
            refused[spec.name] = f"refused: {value} bytes is more than the total of {total}"
    return replace(record, **values | dict.fromkeys(refused)), refused

"""Sources, clocks and children that behave as told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]

from mpstui.core.telemetry.sampler import Sampler
from mpstui.core.telemetry.source import Facts, Source, SourceRequest


@dataclass
class FakeClock:
    """A clock that moves when told."""

    now: float = 1000.0

    def time(self) -> float:
        return self.now + 1_700_000_000.0

    def monotonic(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class ScriptedSource(Source):
    """Answers with what each call of ``script`` returns or raises."""

    def __init__(
        self,
        script: Callable[[SourceRequest], Facts],
        name: str = "scripted",
        gives: tuple[str, ...] = ("cpu_percent",),
        per_process: bool = False,
        timeout_seconds: float = 60.0,
    ) -> None:
        self._script = script
        self.name = name
        self.gives = gives
        self.per_process = per_process
        self.timeout_seconds = timeout_seconds
        self.calls = 0
        self.closed = False

    def read(self, request: SourceRequest) -> Facts:
        self.calls += 1
        return self._script(request)

    def close(self) -> None:
        self.closed = True


def silent(sampler: Sampler) -> dict[str, str]:
    """Why each source that does not answer is silent, by its name; empty when all is well."""
    return {report.name: report.reason for report in sampler.reports() if report.reason}


def answers(*outputs: str) -> Callable[[Sequence[str], float], str]:
    """A RunCommand that gives ``outputs`` one after the other, the last one for ever."""
    waiting = list(outputs)

    def run(argv: Sequence[str], timeout_seconds: float) -> str:
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return run


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return once ``condition`` holds; fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        pause.wait(0.01)


def children() -> set[int]:
    """Process ids of our own children; other tests of the suite may have some of theirs."""
    return {child.pid for child in psutil.Process().children()}

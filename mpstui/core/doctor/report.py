"""The results of examining the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """The severity of a result."""

    OK = "ok"
    NOTE = "note"
    """It could be better, but nothing fails because of it."""
    WARNING = "warning"
    """Something will fail under certain loads or with certain programs."""
    PROBLEM = "problem"
    """Something does not work now."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check in one sentence, and what to do about it."""

    id: str
    status: Status
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All results, and the facts behind them."""

    results: tuple[CheckResult, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """By section: ``os python versions torch devices memory disk limits home telemetry clusters linger sleep openmp``;
    unknown values are None."""

    @property
    def ok(self) -> bool:
        """True if there is no problem."""
        return not any(result.status is Status.PROBLEM for result in self.results)

    def as_json(self) -> dict[str, Any]:
        """``{"ok", facts ..., "checks": [{"id", "status", "text", "advice"}]}``."""
        return {"ok": self.ok, **self.facts, "checks": [asdict(result) for result in self.results]}

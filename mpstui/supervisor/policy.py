"""Whether a crashed attempt is started again without being asked: off by default, and never in a loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..wire.records import ExitRecord, RestartRule

HOUR_SECONDS = 3600.0


class Crash(NamedTuple):
    """What the policy looks at."""

    exit: ExitRecord
    step: int | None
    """The global step that was reached; None: never heard of."""
    saved: bool = False
    """A checkpoint was written during this attempt: progress, where no steps are reported."""


class Decision(NamedTuple):
    """What happens next and the sentence that says why."""

    again: bool
    reason: str
    delay_seconds: float = 0.0


def decide(rule: RestartRule, crash: Crash, history: Sequence[Mapping[str, Any]], now: float) -> Decision | None:
    """Apply the rule; None when there is nothing to decide (it did not fail, or no restart was ever wanted).

    Args:
        history: ``Status.restarts``.
        now: Unix seconds. Restarts dated in the future (the clock was set back) count as recent.
    """
    record = crash.exit
    if record.code == 0 or record.requested_by is not None or not rule.on:
        return None
    refusal = _refusal(rule, crash, history, now)
    if refusal:
        return Decision(False, f"not restarted: {refusal}")
    recent = _recent(history, now)
    delays = rule.delays_seconds or [0.0]
    delay = float(delays[min(len(recent), len(delays) - 1)])
    return Decision(True, f"{record.cause}: attempt {record.attempt + 1} starts in {delay:g} s", delay)


def _refusal(rule: RestartRule, crash: Crash, history: Sequence[Mapping[str, Any]], now: float) -> str | None:
    record = crash.exit
    if record.spawn_error:
        return "the program could not be started"
    if record.unknown:
        return "nobody saw how it ended"
    if record.cause not in rule.on:
        return f"{record.cause or 'no known cause'} is not in the profile's list ({', '.join(rule.on)})"
    if not crash.step and not crash.saved:
        return "it ended before its first step"
    if len(_recent(history, now)) >= rule.most_per_hour:
        return f"{rule.most_per_hour} restarts in the last hour are enough"
    return _same_place(crash, history)


def _same_place(crash: Crash, history: Sequence[Mapping[str, Any]]) -> str | None:
    """The progress gate: a crash that came no further than the one before will come again."""
    steps = [entry["step"] for entry in history if isinstance(entry.get("step"), int)]
    if crash.step is None or not steps or crash.step > steps[-1]:
        return None
    if crash.step == steps[-1]:
        return f"it crashed at the same step twice ({crash.step})"
    return f"it crashed at step {crash.step}, before it reached the step of the last crash ({steps[-1]})"


def _recent(history: Sequence[Mapping[str, Any]], now: float) -> list[Mapping[str, Any]]:
    return [entry for entry in history if now - float(entry.get("time") or 0.0) < HOUR_SECONDS]

"""A run's events as a person reads them: each thing once, and the run's own files by their short names."""

from __future__ import annotations

from collections.abc import Iterable

from ..runs.snapshot import RunEvent

_ECHO_SECONDS = 5.0


def told_once(events: Iterable[RunEvent]) -> list[RunEvent]:
    """The events without echoes: a request's answer often says in the same words what has just been written down."""
    told: list[RunEvent] = []
    for one in events:
        if not any(_echoes(one, before) for before in told[-2:]):
            told.append(one)
    return told


def _echoes(one: RunEvent, before: RunEvent) -> bool:
    answered = "ack" in (one.event, before.event)
    return answered and one.text == before.text != "" and abs(one.time - before.time) <= _ECHO_SECONDS


def short_paths(text: str, folder: object) -> str:
    """``text`` with the files below ``folder`` named from there."""
    return text.replace(f"{folder}/", "")

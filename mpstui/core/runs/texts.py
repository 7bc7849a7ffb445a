"""Texts logged by a training (``report.text`` with a name), such as samples from a model, by name and step."""

from __future__ import annotations

from typing import NamedTuple

from ...wire import heartbeat
from ...wire.rundir import RunDir
from ..follow import last_lines
from ..model.moment import Moment
from .files import parse_lines
from .images import each_once

MOST_READ = 8 << 20
"""How many bytes are read from the end of a run's events; earlier texts are left out."""
LONGEST_TEXT = 10_000
_MARK = b'"event": "text"'


class LoggedText(NamedTuple):
    """One logged text."""

    name: str
    step: int | None
    attempt: int
    time: Moment
    text: str


def texts_of(run: RunDir) -> dict[str, list[LoggedText]]:
    """Return the newest texts by name."""
    found: list[LoggedText] = []
    for line in last_lines(run.events, MOST_READ).splitlines(keepends=True):
        for record in parse_lines(line) if _MARK in line else ():
            name, text = heartbeat.text(record.get("name")), heartbeat.text(record.get("text"))
            if name and text is not None and record.get("event") == "text":
                attempt, time = heartbeat.integer(record.get("attempt")), heartbeat.number(record.get("time"))
                step = heartbeat.integer(record.get("step"))
                found.append(LoggedText(name, step, attempt or 0, time or 0.0, text[:LONGEST_TEXT]))
    return each_once(found)

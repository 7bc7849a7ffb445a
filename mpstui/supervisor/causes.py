"""The cause of a failure as far as the supervisor can name it: the spec's rules, applied to the last output."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..wire.records import CauseRule
from .exits import Ending

TAIL_BYTES = 256 * 1024
LONGEST_LINE = 4096
"""Characters of a line that are searched: a pattern must not spend minutes on a progress bar of a megabyte."""


def read_tail(path: Path, limit: int = TAIL_BYTES) -> str:
    """The last ``limit`` bytes of a file as text; empty when it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit))
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def find_cause(rules: Sequence[CauseRule], ending: Ending, output: str) -> tuple[str, str] | None:
    """``(rule id, evidence)`` of the first rule that fits, or None.

    What the program itself wrote says more than how it ended: patterns are tried first, then signals, then codes.
    """
    lines = [line[-LONGEST_LINE:] for line in re.split(r"[\r\n]+", output) if line]
    for rule in rules:
        line = _last_match(rule.patterns, lines)
        if line is not None:
            return rule.id, line.strip()
    for rule in rules:
        if ending.signal is not None and ending.signal in rule.signals:
            return rule.id, f"signal {ending.signal}"
    for rule in rules:
        if ending.code and ending.code in rule.codes:
            return rule.id, f"exit code {ending.code}"
    return None


def _last_match(patterns: Iterable[str], lines: Sequence[str]) -> str | None:
    compiled = [pattern for pattern in map(_compile, patterns) if pattern]
    if not compiled:
        return None
    return next((line for line in reversed(lines) if any(pattern.search(line) for pattern in compiled)), None)


def _compile(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error:
        return None  # a rule that cannot be read names no cause; it must not cost the exit record

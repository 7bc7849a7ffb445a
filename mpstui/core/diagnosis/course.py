"""The course of a log: where training went on, where the last failure begins, and its last exception."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .model import EvidenceLine, LogLine
from .text import EVIDENCE_WIDTH

SURVIVED_AFTER = 5  # lines of training after a message that show it was not the end
CHAIN_REACH = 400  # lines that a chain of tracebacks may span

_PROGRESS = re.compile(
    r"\d%\|"
    r"|\d ?(?:it/s|s/it)\b"
    r"|loss[a-z_'\"\])]{0,12}[\s:=]{1,4}[('\"]{0,2}-?\d"
    r"|\b(?:epoch|step|iter|iteration|episode)s?[\s:=#\[]{0,4}\d",
    re.IGNORECASE,
)
RANK_PREFIX = r"\[[\w/:., -]{1,60}\]:? ?"
"""What torchrun writes in front of a line of one rank."""
_EXCEPTION = re.compile(
    rf"^(?:{RANK_PREFIX})?[A-Za-z_][\w.]{{0,120}}(?:Error|Exception|Interrupt|Exit|NotFound)\b ?(?::|$)"
)
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_SUMMARIES = ("wandb:", "swanlab:")  # these print the last metrics once more after a crash


@dataclass(frozen=True, slots=True)
class Course:
    """``progress`` holds the indices of lines that report training; ``failure_start`` is the index of the first
    exception of the last chain of exceptions, ``None`` when there is no exception."""

    progress: tuple[int, ...]
    failure_start: int | None

    def went_on_after(self, index: int) -> bool:
        """Whether training visibly continued after line ``index``."""
        return len(self.progress) >= SURVIVED_AFTER and self.progress[-SURVIVED_AFTER] > index


def course_of(lines: tuple[LogLine, ...]) -> Course:
    """Read the course of a log from its lines."""
    progress = tuple(
        index
        for index, line in enumerate(lines)
        if _PROGRESS.search(line.text, 0, 2000) and not line.text.startswith(_SUMMARIES)
    )
    return Course(progress, _failure_start(lines))


def last_exception(lines: tuple[LogLine, ...]) -> EvidenceLine | None:
    """Return the last exception that a log names, unless training visibly went on after it; it explains nothing by
    itself, and is all there is to say where no rule fits."""
    index = max((index for index, line in enumerate(lines) if _EXCEPTION.match(line.text)), default=None)
    if index is None or course_of(lines).went_on_after(index):
        return None
    return EvidenceLine(lines[index].number, lines[index].text[:EVIDENCE_WIDTH])


def ending_exception(lines: tuple[LogLine, ...]) -> EvidenceLine | None:
    """Return the last exception that a log names, where not one line of training follows it."""
    found = last_exception(lines)
    if found is None or any(lines[index].number > (found.line or 0) for index in course_of(lines).progress):
        return None
    return found


def _failure_start(lines: tuple[LogLine, ...]) -> int | None:
    exceptions = [index for index, line in enumerate(lines) if _EXCEPTION.match(line.text)]
    if not exceptions:
        return None
    start = exceptions[-1]
    for position in range(start, max(0, start - CHAIN_REACH), -1):
        if any(mark in lines[position].text for mark in _CHAIN):
            start = max((index for index in exceptions if index < position), default=start)
    return start

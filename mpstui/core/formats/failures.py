"""Tracebacks, exceptions, warnings: prose about numbers, and lines of source. What stands in them was not measured."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .points import NOWHERE, Reading

_WORDS = """
    rror xception arning WARN rrupt memory OOM oom- ERR CRIT FATAL fatal panic abort Abort terminating illed RESOURCE_
    PYTORCH_ TORCH_ CUDA_ OMP_ MKL_ KMP_ NCCL_ XLA_ TF_ HF_ sh: .py: .cpp: .cc: .cu: .h: .mm:
"""
_HINTS = (*_WORDS.split(), "argument", "sage: ", "exitcode  :", "rank      :", "time      :", "host      :")
"""One of these is in every such line: a substring is found ten times as fast as an expression."""
_NO_VALUE = r"(?!\s{0,4}(?:[-+]?\.?\d|nan\b|inf\b))"
"""A number right behind the name is the value of a metric: ``TestError: 0.12``."""
_PYTHONS_OWN = (
    r"(?:Assertion|Attribute|EOF|FileNotFound|Import|Index|Key|Memory|ModuleNotFound|Name|NotImplemented|OS|Overflow|"
    r"Permission|Recursion|Runtime|StopIteration|Syntax|Timeout|Type|Unicode(?:Decode|Encode)?|Value|ZeroDivision|IO|"
    r"(?:torch\.)?(?:cuda\.)?OutOfMemory)Error"
)
_EXCEPTION = re.compile(
    rf"(?:^|[\s:(|])(?:[\w.]{{0,80}}\b{_PYTHONS_OWN}:(?=\s|$)"
    rf"|[A-Za-z_][\w.]{{0,100}}(?:Error|Exception|Warning|Interrupt):(?=\s){_NO_VALUE})"
    rf"|^\W{{0,8}}(?:Error|ERROR|Exception):(?=\s){_NO_VALUE}"
)
_GLOG = re.compile(
    r"^\s{0,4}(?:\[rank\d{1,4}\]:\s?)?\[?[EF](?:\d{3,4})?\s[^\]\n]{0,120}\w\.(?:py|cpp|cc|cu|h|mm):\d{1,6}\]"
)
_REPORT = re.compile(
    r"^ {2}(?:exitcode {2}|rank {6}|time {6}|host {6}): |^(?:zsh|bash|-bash|sh|/bin/(?:ba|z)?sh): |^Killed\b"
)
"""torchrun's summary of what failed, and what a shell says of the end of a program."""
_LEVEL = re.compile(rf"(?:^|[\s\[|(:\x2d])(?:ERROR|CRITICAL|FATAL)\b[\s\]|):;\x2d]{{1,12}}{_NO_VALUE}")
_WORD = re.compile(
    rf"\b(?:error|fatal|warning|panic|abort(?:ed|ing)?|terminating)\b\s?:(?=\s){_NO_VALUE}|oom-kill"
    r"|\bout of memory\b|\bOOMs?\b|RESOURCE_EXHAUSTED"
    r"|\b(?:[Uu]se|[Tt]ry|[Ss]et|[Ss]etting|passing|export) [A-Z][A-Z0-9]{1,20}(?:_[A-Z0-9]{1,20}){1,8}=|^Abort trap\b"
)
_USAGE = re.compile(
    r"\bargument -{1,2}[A-Za-z][\w/\x2d]{0,100}: |: argument [A-Za-z][\w\x2d]{0,60}: (?!\s{0,4}[-+]?\.?\d)"
    r"|\bunrecognized arguments: |\barguments are required: |^\s{0,8}[Uu]sage: [^\d\s][^\n]{0,160}\s\[?-{1,2}[A-Za-z]"
)
"""What ``argparse`` says of a command line: the numbers in it were typed."""
_REACH = 200
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_FILE = re.compile(r'(?<=  )File "[^"\n]{1,400}", line \d{1,9}(?:, in |\s{0,4}$)')
_LONGEST_STATEMENT = 12
_WARNED = re.compile(r"\S{1,400}:\d{1,9}: [\w.]{1,80}Warning: ")
_WARNING_LEVEL = re.compile(r"(?:^|[\s\[|(:\x2d])(?:WARNING|WARN)\b[\s\]|):;\x2d]")


def is_failure(text: str) -> bool:
    """Whether a line is an exception, an error or a warning of Python or of a library."""
    if not any(map(text.__contains__, _HINTS)):
        return False
    if _EXCEPTION.search(text, 0, 2 * _REACH) or _WORD.search(text, 0, _REACH):
        return True
    if _GLOG.search(text) or _REPORT.search(text) or _USAGE.search(text, 0, _REACH):
        return True
    level = _LEVEL.search(text, 0, _REACH)
    return level is not None and "=" not in text[: level.start()]


def is_warning(text: str, line: str, readings: Sequence[Reading]) -> bool:
    """Whether a logger warns of what was read: some programs log their metrics as warnings, so words decide.

    Args:
        text: with the level in front.
        line: without it.
    """
    if "WARN" not in text[:_REACH] or _WARNING_LEVEL.search(text, 0, _REACH) is None:
        return False
    if any(reading.counters != NOWHERE for reading in readings):
        return False
    if not any(reading.loss is not None for reading in readings):
        return True
    names = [name for reading in readings for name in (*reading.metrics, *reading.eval_metrics)]
    return len(_LETTERS.findall(line)) > sum(len(_LETTERS.findall(name)) for name in names)


class SourceLines:
    """Knows the lines of source below ``File "train.py", line 3`` and below a warning.

    Whatever a launcher puts in front of each line: source is further to the right than the word above it.
    """

    def __init__(self) -> None:
        self.column = 0
        """Where source is expected to begin; 0: nowhere."""
        self.left = 0
        """How many lines of it at most."""

    def covers(self, text: str) -> bool:
        """Whether a line is source, or says which comes next."""
        file = _FILE.search(text, 0, _REACH * 2) if 'File "' in text else None
        if file is not None:
            self.column, self.left = file.start() + 2, _LONGEST_STATEMENT
            return True
        if self.left and text[max(0, self.column - 4) : self.column].isspace():
            self.left -= 1
            return True
        warned = "arning: " in text and _WARNED.match(text) is not None
        self.column, self.left = (2, 1) if warned else (0, 0)
        return False

"""Log text made searchable (no control characters, redraws split, whitespace collapsed, line numbers kept), and what a
log shows by itself: where training continued, where the last failure begins, its last exception."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import NamedTuple

from ...wire.jobs import CANCEL
from ..formats.console import strip_controls
from .model import Evidence, EvidenceLine, Finding, Kind, LogLine

EVIDENCE_WIDTH = 300  # characters of a line that are shown
_WARNING = re.compile(
    r"\b(?:[A-Z]\w{0,40}Warning|[Ww]arning): |\bWARN(?:ING)?\b"
    r"|^(?:\[rank\d{1,9}\]: ?)?(?:W\d{4} \d\d:\d\d:\d\d|\[W(?:\d{4})? )"
    r"|\b(?:PASSED|SKIPPED|XFAIL)\b",  # a test that expects the error it names
    re.MULTILINE,
)
_HANDLED = re.compile(
    r"[,;:.)] {1,2}(?:(?:re)?trying|skipp(?:ing|ed)|continuing|casting|falling back"
    r"|using (?:the )?(?:cpu|mps|fp32|float32)|(?:training|running) .{1,30} instead)\b"
    r"|(?-i:\b(?:PASSED|SKIPPED|XFAIL)\b)",
    re.IGNORECASE,
)
"""Matches what follows a message if the program dealt with it and continued: ``; retrying``."""
_SETTING = re.compile(
    r"""(?:^|[{(\[,] ?)['"]?(?P<key>[A-Za-z_][\w.-]{0,60})['"]? ?[:=] ?\[?(?:(['"])[^'"]{0,200}\2, ?){0,20}"""
    r"""(?P<quote>['"])(?:(?!(?P=quote)).){0,200}$"""
)
"""Matches the text before a message that is the quoted value of a key, as in a dump of settings."""
_OF_ERRORS = re.compile(
    r"(?-i:\w{0,80}(?:Error|Exception|Warning))|(?:last_|the_)?(?:err\w{0,20}|exc\w{0,20}|fail\w{0,20}|warn\w{0,20}|messages?|msg"
    r"|reason|cause|details?|text|status|event|log|line|output|std(?:err|out)|traceback|what|description)",
    re.IGNORECASE,
)
"""Keys whose values report what happened."""
_LOSS = re.compile(
    r"(?<!best )(?<!min )\b(?P<name>(?!\w{0,40}(?:best|min))\w{0,40}loss\w{0,40})\b(?! scal)\W{0,4}(?:[=:]\W{0,3})?"
    r"(?:tensor\()?[-+]?(?P<value>nan|inf|\d(?!\d{0,12}: {0,4}(?:nan|inf)))",
    re.IGNORECASE,
)
_FRAME = "│┃|╭╰╮╯─━ "  # what rich draws around a traceback
SURVIVED_AFTER = 5  # this many progress lines after a message show that it was not fatal
CHAIN_REACH = 400  # lines that a chain of tracebacks may span

_PROGRESS = re.compile(
    r"\d%\|"
    r"|\d ?(?:it/s|s/it)\b"
    r"|loss[a-z_'\"\])]{0,12}[\s:=]{1,4}[('\"]{0,2}-?\d"
    r"|\b(?:epoch|step|iter|iteration|episode)s?[\s:=#\[]{0,4}\d"
    r"|\b(?:train\w{0,5}|test|val\w{0,7}|eval\w{0,7}|batch)[\s:=]{0,3}[\[(] ?\d{1,9} ?/ ?\d",
    re.IGNORECASE,
)
RANK_PREFIX = r"\[[\w/:., -]{1,60}\]:? ?"
"""What torchrun prints before each line of a rank."""
_EXCEPTION = re.compile(
    rf"^(?:{RANK_PREFIX})?[A-Za-z_][\w.]{{0,120}}(?:Error|Exception|Interrupt|Exit|NotFound)\b ?(?::|$)"
)
_NAMED_BY_PATH = re.compile(rf"^(?:{RANK_PREFIX})?[a-z_]\w{{0,60}}(?:\.\w{{1,60}}){{0,9}}\.[A-Z]\w{{1,60}}(?::|$)")
"""Other exceptions (``http.client.IncompleteRead``, ``pyarrow.lib.ArrowInvalid``): they count if one of the three
lines above is a stack frame (in between come its code and the underlining)."""
_OF_LAUNCHERS = re.compile(r"\b(?:CalledProcessError|ChildFailedError|ProcessRaisedException|ProcessExitedException)\b")
"""What accelerate, torchrun and ``subprocess.run(check=True)`` raise when the script they started has failed."""
_STACK_FRAME = re.compile(
    rf"(?:{RANK_PREFIX})?(?:File \"(?P<file>[^\"]+)\", line (?P<line>\d+)(?:,? in (?P<function>\S+)|$)"
    r"|(?P<boxed>\S+\.py):(?P<at>\d+) in (?P<method>\S+))"
)
"""The function is missing from the frame of a ``SyntaxError``: that file never ran."""
_NATIVE = re.compile(rf"^(?:{RANK_PREFIX})?Fatal Python error: ")
"""Printed by ``faulthandler`` before the stacks, whose innermost frame comes first."""
_OF_LIBRARIES = re.compile(r"[/\\](?:site|dist)-packages[/\\]|/lib(?:64)?/python\d|/mpstui/agent/|^<|\.framework/")
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_SUMMARIES = ("wandb:", "swanlab:")  # these repeat the last metrics after a crash


def clean(text: str) -> str:
    """Return one line without escape sequences, control characters, box drawing and repeated whitespace."""
    return " ".join(strip_controls(text).split()).strip(_FRAME)


def screen_lines(raw_lines: Iterable[str], first_number: int = 1) -> Iterator[LogLine]:
    """Yield the non-empty screen lines of raw lines; each redraw of a progress bar counts as one."""
    for number, raw in enumerate(raw_lines, first_number):
        for piece in raw.split("\r"):
            text = clean(piece)
            if text:
                yield LogLine(number, text)


class SearchText:
    """All lines as one string, so that wrapped messages are found, with a mapping from offsets back to lines."""

    def __init__(self, lines: tuple[LogLine, ...]) -> None:
        self.lines = lines
        self.text = "\n".join(line.text for line in lines)
        self.lowered = self.text.lower()
        self._starts = [0, *accumulate(len(line.text) + 1 for line in lines)]
        self._ignored = ignored_lines(lines)

    def line_index(self, offset: int) -> int:
        """Return the index in ``lines`` of the line that holds ``offset``."""
        return min(bisect_right(self._starts, offset) - 1, len(self.lines) - 1)

    def in_warning(self, offset: int) -> bool:
        """True if ``offset`` is in a mere warning: after a word that marks its line as one (by Python, a logger or a
        compiler), before words that say what was done about it, or in an exception that Python ignored."""
        index = self.line_index(offset)
        if index in self._ignored or _WARNING.search(self.text, self._starts[index], offset) is not None:
            return True
        return _HANDLED.search(self.text, offset, self._starts[index] + len(self.lines[index].text)) is not None

    def in_setting(self, offset: int) -> bool:
        """True if ``offset`` is in the quoted value of a setting, such as a message that a program should look for."""
        start = self._starts[self.line_index(offset)]
        found = _SETTING.search(self.text[max(start, offset - 400) : offset])
        return found is not None and _OF_ERRORS.fullmatch(found["key"]) is None

    def excerpt(self, index: int, end: int) -> str:
        """Return the line at ``index``, or if it is very long the part around ``end``, where the match ends.

        Not around its start: the match may begin with a long path, and what is wrong comes after it.
        """
        text = self.lines[index].text
        if len(text) <= EVIDENCE_WIDTH:
            return text
        room = EVIDENCE_WIDTH - 2
        start = max(0, min(end - self._starts[index] - room // 3, len(text) - room))
        return "…" * (start > 0) + text[start : start + room] + "…" * (start + room < len(text))


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a rule's pattern, ignoring case; a space also matches a line break."""
    return re.compile(portable(pattern), re.IGNORECASE)


def portable(pattern: str) -> str:
    """Return ``pattern`` in plain ``re`` syntax, with each space also matching a line break."""
    return pattern.replace(" ", r"[ \n]")


# An escape (group 1: the character, if it is a literal one) or a character class.
_ESCAPE_OR_CLASS = re.compile(r"\\([^A-Za-z0-9])|\\[A-Za-z0-9]|\[\]?(?:\\.|[^\]\\])*\]")
_PRIVATE_USE = 0xE000  # escaped characters are moved here meanwhile, lest they be read as syntax


@lru_cache(maxsize=1024)
def literal_hints(pattern: str) -> tuple[str, ...]:
    """Return lower-case strings that every match of ``pattern`` contains; empty if none is certain.

    ``hint in text`` is about a hundred times faster than a search, and hardly any pattern occurs in a given log.
    """
    text = _ESCAPE_OR_CLASS.sub(lambda item: chr(_PRIVATE_USE + ord(item[1])) if item[1] else "\0", pattern)
    while "(" in text:
        text = re.sub(r"\([^()]*\)", "\0", text)
    if "|" in text:
        return ()
    text = re.sub(r".(?:[?*]|\{[^}]*\})|[+.^$ ]", "\0", text)
    text = "".join(chr(ord(one) - _PRIVATE_USE) if ord(one) >= _PRIVATE_USE else one for one in text)
    return tuple(run.lower() for run in text.split("\0") if len(run) > 1)


@dataclass(frozen=True, slots=True)
class LogTimeline:
    """``progress`` holds the indices of lines that report training; ``failure_start`` is the index of the first
    exception in the last chain of exceptions, None if there is none."""

    progress: tuple[int, ...]
    failure_start: int | None

    def went_on_after(self, index: int) -> bool:
        """True if training visibly continued after line ``index``."""
        return len(self.progress) >= SURVIVED_AFTER and self.progress[-SURVIVED_AFTER] > index


def timeline_of(lines: tuple[LogLine, ...]) -> LogTimeline:
    """Return which lines of a log report training, and where its last failure begins."""
    progress = tuple(
        index
        for index, line in enumerate(lines)
        if _PROGRESS.search(line.text, 0, 2000) and not line.text.startswith(_SUMMARIES)
    )
    exceptions = _exceptions(lines)
    if not exceptions:
        return LogTimeline(progress, None)
    start = exceptions[-1]
    for position in range(start, max(0, start - CHAIN_REACH), -1):
        if any(mark in lines[position].text for mark in _CHAIN):
            start = max((index for index in exceptions if index < position), default=start)
    return LogTimeline(progress, start)


def is_a_number_again(lines: tuple[LogLine, ...], index: int) -> bool:
    """True if the loss that is NaN or infinite in line ``index`` is finite again later: the loss named there, or any
    loss if none is named."""
    lost = {found["name"].lower() for found in _LOSS.finditer(lines[index].text) if not found["value"].isdigit()}
    return any(
        found["value"].isdigit() and (not lost or found["name"].lower() in lost)
        for line in lines[index + 1 :]
        if not line.text.startswith(_SUMMARIES)
        for found in _LOSS.finditer(line.text, 0, 2000)
    )


def _exceptions(lines: tuple[LogLine, ...]) -> list[int]:
    """Return the indices of exceptions; a launcher's own, about its failed script, counts only if there is no other."""
    ignored = ignored_lines(lines)
    found: list[int] = []
    for index, line in enumerate(lines):
        if index in ignored:
            continue
        above = lines[max(index - 3, found[-1] + 1 if found else 0) : index]
        by_path = _NAMED_BY_PATH.match(line.text) and any(_STACK_FRAME.match(frame.text) for frame in above)
        if by_path or _EXCEPTION.match(line.text):
            found.append(index)
    return [index for index in found if not _OF_LAUNCHERS.search(lines[index].text)] or found


def ignored_lines(lines: tuple[LogLine, ...]) -> frozenset[int]:
    """Return the indices of lines about exceptions that Python ignored, such as those in destructors at exit."""
    found: set[int] = set()
    for start, line in enumerate(lines):
        if not line.text.startswith("Exception ignored in"):
            continue
        reach = range(start + 1, min(len(lines), start + CHAIN_REACH))
        told = start + 1 < len(lines) and lines[start + 1].text.startswith("Traceback (most recent call last)")
        end = next((index for index in reach if _EXCEPTION.match(lines[index].text)), start) if told else start
        found.update(range(start, end + 1))
    return frozenset(found)


def last_exception(lines: tuple[LogLine, ...]) -> EvidenceLine | None:
    """Return the last exception that a log names, unless training visibly continued after it.

    It explains nothing by itself, but it is all there is to show if no rule applies. If a launcher reports that its
    script failed, the script's own exception is returned. The line of code that raised it is appended to an exception
    without a message (a bare ``AssertionError``).
    """
    found = _exceptions(lines)
    if not found or timeline_of(lines).went_on_after(found[-1]):
        return None
    index = found[-1]
    text, frame = lines[index].text, _raised_at(lines, index)
    if frame is not None and frame.code and not text.partition(":")[2].strip():
        text = f"{text.rstrip(': ')}: {frame.code}"
    return _evidence(lines[index].number, text, frame)


def _direct_cause(lines: tuple[LogLine, ...]) -> EvidenceLine | None:
    """Return the exception that the last one was raised from (``raise ... from error``), which often says more."""
    found = _exceptions(lines)
    for index in range(found[-1], max(-1, found[-1] - CHAIN_REACH), -1):
        if _CHAIN[1] in lines[index].text:
            before = [one for one in found if one < index]
            return _evidence(lines[before[-1]].number, lines[before[-1]].text, None) if before else None
        if _CHAIN[0] in lines[index].text:
            return None
    return None


def evidence_at(lines: tuple[LogLine, ...], index: int, text: str) -> EvidenceLine:
    """Return a line of the log; if it names an exception or native crash, with the place in the code that raised it."""
    tells = _EXCEPTION.match(lines[index].text) or _NATIVE.match(lines[index].text)
    return _evidence(lines[index].number, text, _raised_at(lines, index) if tells else None)


def _evidence(number: int, text: str, frame: _Frame | None) -> EvidenceLine:
    place = (frame.where, frame.file, frame.line) if frame is not None else ()
    return EvidenceLine(number, text[:EVIDENCE_WIDTH], *place)


class _Frame(NamedTuple):
    file: str
    line: int
    where: str
    code: str

    @property
    def is_users(self) -> bool:
        return _OF_LIBRARIES.search(self.file) is None


def _raised_at(lines: tuple[LogLine, ...], index: int) -> _Frame | None:
    """Return the innermost frame in the user's code, else the innermost; a native crash's frames follow its line."""
    if _NATIVE.match(lines[index].text):
        ahead = range(index + 1, min(len(lines), index + CHAIN_REACH))
        stack = (place + 1 for place in ahead if lines[place].text.startswith("Current thread "))
        first = next(stack, len(lines))
        places = takewhile(lambda place: _STACK_FRAME.match(lines[place].text), range(first, len(lines)))
    else:
        before = range(index - 1, max(-1, index - CHAIN_REACH), -1)
        places = takewhile(lambda place: "Traceback (most recent call last)" not in lines[place].text, before)
    frames = [_frame(match, lines, at, index) for at in places if (match := _STACK_FRAME.match(lines[at].text))]
    return next((frame for frame in frames if frame.is_users), frames[0] if frames else None)


def _frame(match: re.Match[str], lines: tuple[LogLine, ...], place: int, index: int) -> _Frame:
    code = lines[place + 1].text if place + 1 < index else ""
    file, number = match["file"] or match["boxed"], match["line"] or match["at"]
    function = match["function"] or match["method"] or "<module>"
    name = re.split(r"[/\\]", file)[-1]
    where = f"{name}:{number}" + ("" if function == "<module>" else f" in {function}")
    return _Frame(file, int(number), where, "" if _STACK_FRAME.match(code) else code)


def unexplained(findings: Sequence[Finding], evidence: Evidence) -> str | None:
    """Return a sentence for an end that no rule explains; None if a cause or an ending was found.

    It quotes the log's last exception, or else its last line: not the cause, but the first thing to read.
    """
    if any(finding.kind is not Kind.SYMPTOM for finding in findings):
        return None
    if evidence.action == CANCEL:
        return f"Its job was cancelled through {evidence.requested_by}: there is no crash to explain."
    if evidence.requested_by is not None:
        asked = f"asked for a {evidence.action}" if evidence.action else "asked for its end"
        return f"{evidence.requested_by} {asked}: there is no crash to explain."
    exception = last_exception(evidence.lines)
    if exception is not None:
        place = f" ({exception.where})" if exception.where else ""
        reason = _direct_cause(evidence.lines)
        because = f"; its cause, on log line {reason.line}: {reason.text}" if reason is not None else ""
        told = f"The last exception, on log line {exception.line}: {exception.text}{place}{because}"
        return f"No known cause was found. {told}"
    if evidence.exit_code == 0:
        return "It ended with exit code 0: there is no crash to explain."
    ending = next((line.text for line in reversed(evidence.lines) if line.text.strip()), None)
    if ending is None:
        return "No known cause was found, and there is no output."
    return f"No known cause was found. The output ends with: {ending.strip()[:EVIDENCE_WIDTH]}"

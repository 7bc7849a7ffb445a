"""What happened to a run that failed: how it ended, why, the line that shows it, what helps, and the keys for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core import present as shown
from ...core.actions import has_checkpoint
from ...core.model.snapshot import RunSnapshot
from ...core.present import badge
from ..rows import Row, Span, clean, clip, row, wrap
from .lines import LinePanel

if TYPE_CHECKING:
    from ...core.diagnosis.model import EvidenceLine, Finding
    from ...core.launching.cure import Cure
    from ...core.launching.rehearsal import Rehearsed

_RAISES = re.compile(r"\s*(?:\[\S+\]:?\s*)?raise\b")
"""Also behind the mark that torchrun puts before each line of a rank."""


@dataclass(frozen=True, eq=False, slots=True)
class Failure:
    """What the card tells; ``findings`` is None while they are being looked for."""

    snapshot: RunSnapshot
    findings: Sequence[Finding] | None = None
    on_cpu: bool = True
    """Whether this program can be restarted on the CPU: a key that cannot work is not offered here."""
    exception: EvidenceLine | None = None
    """The last one of the log, shown where no cause is known."""
    cure: Cure | None = None
    """What the remedy would change here; None: there is none to apply, or it is not known yet."""
    fixable: bool = True
    """Whether the run can be restarted at all."""
    tried: Rehearsed | None = None
    """What trying a changed launch has shown."""


class FailureCard(LinePanel):
    failure: Failure | None = None

    def show(self, failure: Failure) -> None:
        self.failure = failure
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        return card(self.failure, width, height) if self.failure else []


def evidence_line(finding: Finding) -> int | None:
    """Number of the line of the log that shows the cause best; None when it was told by something else."""
    in_log = [line for line in finding.evidence if line.line is not None]
    return _telling(in_log).line if in_log else None


def _telling(evidence: Sequence[EvidenceLine]) -> EvidenceLine:
    """The first that is not the program's own ``raise`` line, which a traceback prints before the error itself."""
    return next((line for line in evidence if not _RAISES.match(line.text)), evidence[0])


def card(failure: Failure, width: int, height: int, *, log_in_reach: bool = True) -> list[Row]:
    """The card in at most ``height`` lines; where it is tight, causes go before evidence goes before remedies."""
    snapshot, finding = failure.snapshot, failure.findings[0] if failure.findings else None
    look = badge(snapshot)
    ending = [Span(f" {look.glyph} {look.word}", "bad strong")]
    if snapshot.exit is not None:
        ending += [Span(" · ", "faint"), Span(clean(snapshot.exit.sentence(), 200))]
        if snapshot.exit.ended is not None:
            ending += [Span(" · ", "faint"), Span(shown.moment_of_day(snapshot.exit.ended, snapshot.seen), "dim")]
    body = _explained(failure, finding, width, height - 2) if finding else _unexplained(failure, width)
    lines = [
        row(*clip(tuple(ending), width - 1)),
        *body[: height - 2],
        _keys(failure, finding, width - 1, log_in_reach=log_in_reach),
    ]
    return [row(("▌", "bad"), *line.spans, base="raised") for line in lines]


def _explained(failure: Failure, finding: Finding, width: int, lines: int) -> list[Row]:
    """Each part has its first line before any has a second; then the remedy is told to its end, then the cause."""
    helps = finding.remedy.text
    if finding.remedy.from_checkpoint and has_checkpoint(failure.snapshot):
        helps = f"{finding.remedy.from_checkpoint} {helps}"
    title = finding.title + (f" · {finding.numbers}" if finding.numbers else "")
    cure = failure.cure
    told = "" if cure is None else ", ".join(map(str, cure.changes)) or cure.sentence
    does = "f does" if cure and cure.works else "no fix"
    parts = {
        "title": _text(clean(title), "strong", width, lines),
        "cause": _text(clean(finding.cause), "", width, lines),
        "seen": _quoted(_telling(finding.evidence), width, 2) if finding.evidence else [],
        "helps": _block("helps", clean(helps), width, lines, "good"),
        "tried": _tried(failure, width),
        "change": _block(does, clean(told), width, lines, "dim") if told else [],
    }
    room = dict.fromkeys(parts, 0)
    for most in (1, lines):
        for name in ("title", "helps", "tried", "change", "cause", "seen"):
            room[name] += max(0, min(most, len(parts[name]), room[name] + lines - sum(room.values())) - room[name])
    cut = {name: parts[name] if room[name] == len(parts[name]) else _cut(parts[name][: room[name]]) for name in parts}
    return [line for found in cut.values() for line in found]


def _tried(failure: Failure, width: int) -> list[Row]:
    tried = failure.tried
    return _block("tried", clean(tried.sentence), width, 2, "good" if tried.proven else "bad") if tried else []


def _cut(lines: list[Row]) -> list[Row]:
    """Lines of which more would follow."""
    return [*lines[:-1], row(*lines[-1].spans, ("…", "faint"))] if lines else []


def _unexplained(failure: Failure, width: int) -> list[Row]:
    ended = failure.snapshot.exit
    reason = clean(failure.snapshot.reason, 400)
    lines = _tried(failure, width)
    if ended is not None and ended.unbegun:
        return _text(reason.removeprefix(f"{ended.sentence()}: "), "", width, 3)
    lines += [] if ended is not None and reason == clean(ended.sentence(), 400) else _text(reason, "", width, 2)
    for text in ended.evidence.values() if ended is not None else ():
        lines += _text(clean(str(text)), "dim", width, 1)
    if failure.findings is None:
        return [*lines, row((" still diagnosing …", "dim"))]
    if failure.exception is None:
        return [*lines, row((" no known cause; the log has the last words (e: last error)", "dim"))]
    unknown = row((" no known cause; the last exception of the log:", "dim"))
    where = _block("at", clean(failure.exception.where), width, 1, "strong") if failure.exception.where else []
    return [*lines, unknown, *_quoted(failure.exception, width, 2), *where]


def _text(text: str, tone: str, width: int, most: int) -> list[Row]:
    return [row((f" {line}", tone)) for line in wrap(text, width - 3, most)]


def _quoted(line: EvidenceLine, width: int, most: int) -> list[Row]:
    return _block(f"log line {line.line}" if line.line is not None else "seen", clean(line.text), width, most, "dim")


def _block(label: str, text: str, width: int, most: int, tone: str) -> list[Row]:
    indent = max(7, len(label) + 2)
    return [
        row(((" " * indent if place else f" {label}".ljust(indent)), "faint"), (line, tone))
        for place, line in enumerate(wrap(text, width - indent - 2, most))
    ]


def _keys(failure: Failure, finding: Finding | None, width: int, *, log_in_reach: bool) -> Row:
    """The keys in whole words: shorter ones where it is tight, then fewer, the last one first."""
    offers = [("r", "restart", "restart", "dim"), ("R", "edit", "edit", "dim")]
    if log_in_reach and finding is not None and evidence_line(finding) is not None:
        offers.insert(0, ("l", "log there", "log there", "dim"))
    if failure.fixable and failure.tried is not None and failure.tried.proven:
        offers.insert(0, ("f", "go on with what was tried", "go on", "strong"))
    elif failure.fixable and failure.cure is not None and failure.cure.works:
        offers.insert(0, ("f", "apply the remedy", "remedy", "strong"))
    if failure.on_cpu and finding is not None and finding.restart_on_cpu_helps:
        offers.insert(0, ("c", "restart on CPU", "on CPU", "strong"))
    whole = [(key, text, tone) for key, text, _, tone in offers]
    short = [(key, text, tone) for key, _, text, tone in offers]
    for choice in (whole, *(short[:count] for count in range(len(short), 0, -1))):
        parts = [part for key, text, tone in choice for part in ((f" {key}", "key"), (f" {text}", tone), " ")]
        found = row(*parts[:-1])
        if found.width <= width:
            return found
    return row()

"""What happened to a run that failed: how it ended, why, the line that shows it, what helps, and the keys for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ...core.model.snapshot import RunSnapshot
from ...core.present import format as shown
from ...core.present.states import badge
from ..rows import Row, Span, clean, clip, row, wrap
from .lines import LinePanel

if TYPE_CHECKING:
    from ...core.diagnosis.model import EvidenceLine, Finding


_RAISES = re.compile(r"\s*(?:\[\S+\]:?\s*)?raise\b")
"""Also behind the mark that torchrun puts before each line of a rank."""


class _Offer(NamedTuple):
    """A key of the card."""

    key: str
    text: str
    short: str
    tone: str = "dim"


@dataclass(frozen=True, eq=False, slots=True)
class Failure:
    """What the card tells; ``findings`` is None while they are being looked for."""

    snapshot: RunSnapshot
    findings: Sequence[Finding] | None = None
    on_cpu: bool = True
    """Whether this program can be restarted on the CPU: a key that cannot work is not offered here."""
    exception: EvidenceLine | None = None
    """The last one of the log, shown where no cause is known."""


def evidence_line(finding: Finding) -> int | None:
    """Number of the line of the log that shows the cause best; None when it was told by something else."""
    in_log = [line for line in finding.evidence if line.line is not None]
    return _telling(in_log).line if in_log else None


def _telling(evidence: Sequence[EvidenceLine]) -> EvidenceLine:
    """The first that is not the program's own ``raise`` line, which a traceback prints before the error itself."""
    return next((line for line in evidence if not _RAISES.match(line.text)), evidence[0])


def card(failure: Failure, width: int, height: int, *, log_in_reach: bool = True) -> list[Row]:
    """The card in at most ``height`` lines; where it is tight, causes go before evidence goes before remedies."""
    finding = failure.findings[0] if failure.findings else None
    lines = [_ending(failure, width)]
    body = _explained(finding, width, height - 2) if finding else _unexplained(failure, width)
    keys = _keys(finding, width - 1, log_in_reach=log_in_reach, on_cpu=failure.on_cpu)
    return [_edged(line) for line in [*lines, *body[: height - 2], keys]]


def _edged(line: Row) -> Row:
    return row(("▌", "bad"), *line.spans, base="raised")


def _ending(failure: Failure, width: int) -> Row:
    snapshot = failure.snapshot
    look = badge(snapshot)
    parts = [Span(f" {look.glyph} {look.word}", "bad strong")]
    if snapshot.exit is not None:
        parts += [Span(" · ", "faint"), Span(clean(snapshot.exit.sentence(), 200))]
        if snapshot.exit.ended is not None:
            parts += [Span(" · ", "faint"), Span(shown.moment_of_day(snapshot.exit.ended, snapshot.seen), "dim")]
    return row(*clip(tuple(parts), width - 1))


def _explained(finding: Finding, width: int, room: int) -> list[Row]:
    inner = width - 3
    title = [row((f" {line}", "strong")) for line in wrap(clean(finding.title), inner, 1)]
    remedy = _block("helps", clean(finding.remedy.text), width, max(1, min(2, room - 2)), "good")
    evidence = _evidence(finding, width)
    cause_room = room - len(title) - len(remedy) - len(evidence)
    cause = [row((f" {line}", "")) for line in wrap(clean(finding.cause), inner, min(2, cause_room))]
    return [*title, *cause, *evidence, *remedy][:room] if room >= 3 else [*title, *remedy][:room]


def _evidence(finding: Finding, width: int) -> list[Row]:
    if not finding.evidence:
        return []
    return _quoted(_telling(finding.evidence), width, 1)


def _quoted(line: EvidenceLine, width: int, most: int) -> list[Row]:
    where = f"line {line.line}" if line.line is not None else "seen"
    return _block(where, clean(line.text), width, most, "dim")


def _block(label: str, text: str, width: int, most: int, tone: str) -> list[Row]:
    indent = max(7, len(label) + 2)
    lines = wrap(text, width - indent - 2, most)
    return [
        row((f" {label}".ljust(indent) if place == 0 else " " * indent, "faint"), (line, tone))
        for place, line in enumerate(lines)
    ]


def _unexplained(failure: Failure, width: int) -> list[Row]:
    reason = clean(failure.snapshot.reason, 400)
    if failure.snapshot.exit is not None and failure.snapshot.exit.unbegun:
        why = reason.removeprefix(f"{failure.snapshot.exit.sentence()}: ")
        return [row((f" {line}", "")) for line in wrap(why, width - 3, 3)]
    evidence = failure.snapshot.exit.evidence.values() if failure.snapshot.exit else ()
    ended = failure.snapshot.exit.sentence() if failure.snapshot.exit else ""
    lines = [row((f" {line}", "")) for line in wrap(reason, width - 3, 2)] if reason != clean(ended, 400) else []
    lines += [row((f" {line}", "dim")) for text in evidence for line in wrap(clean(str(text)), width - 3, 1)]
    if failure.findings is None:
        return [*lines, row((" looking for the cause…", "dim"))]
    if failure.exception is None:
        return [*lines, row((" no known cause; the log has the last words (e: last error)", "dim"))]
    unknown = row((" no known cause; the last exception of the log:", "dim"))
    return [*lines, unknown, *_quoted(failure.exception, width, 2)]


def _keys(finding: Finding | None, width: int, *, log_in_reach: bool, on_cpu: bool) -> Row:
    """The keys in whole words: shorter ones where it is tight, then fewer, the last one first."""
    offers = _offers(finding, log_in_reach=log_in_reach, on_cpu=on_cpu)
    short = [offer._replace(text=offer.short) for offer in offers]
    choices = (offers, *(short[:count] for count in range(len(short), 0, -1)))
    found = (row(*_spelt(choice)) for choice in choices)
    return next((shown for shown in found if shown.width <= width), row())


def _spelt(offers: Sequence[_Offer]) -> list[Span]:
    """Keys and words, a space around each, none behind the last."""
    spans = [span for offer in offers for span in (Span(f" {offer.key}", "key"), Span(f" {offer.text} ", offer.tone))]
    return [*spans[:-1], *(last._replace(text=last.text.rstrip()) for last in spans[-1:])]


def _offers(finding: Finding | None, *, log_in_reach: bool, on_cpu: bool) -> list[_Offer]:
    found = [_Offer("r", "restart", "restart"), _Offer("R", "edit", "edit")]
    if log_in_reach and finding is not None and evidence_line(finding) is not None:
        found.insert(0, _Offer("l", "log there", "log there"))
    if finding and finding.can_be_cured:
        found.insert(0, _Offer("f", "apply the remedy", "remedy", "strong"))
    if on_cpu:
        tone = "strong" if finding and finding.restart_on_cpu_helps else "dim"
        found.insert(0, _Offer("c", "restart on CPU", "on CPU", tone))
    return found


class FailureCard(LinePanel):
    """The card as a panel."""

    failure: Failure | None = None

    def show(self, failure: Failure) -> None:
        """A new picture."""
        self.failure = failure
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        """See :func:`card`."""
        return card(self.failure, width, height) if self.failure else []

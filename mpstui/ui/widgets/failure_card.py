"""What happened to a failed run: how it ended, why, the line that shows it, what helps, and the keys for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.events import Click

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot
from ...core.present import badge
from ...core.stakes import has_checkpoint
from ..rows import Row, Span, clean, clip, row, width_of, wrap
from .lines import LinePanel

if TYPE_CHECKING:
    from ...core.diagnosis.model import EvidenceLine, Finding
    from ...core.launching.cure import Cure
    from ...core.launching.rehearsal import Rehearsed


@dataclass(frozen=True, eq=False, slots=True)
class Failure:
    """What the card shows; ``findings`` is None while the failure is being diagnosed."""

    snapshot: RunSnapshot
    findings: Sequence[Finding] | None = None
    on_cpu: bool = True
    """True if this program can be restarted on the CPU; otherwise that key is not offered."""
    exception: EvidenceLine | None = None
    """The last exception in the log, shown if no cause is known."""
    cure: Cure | None = None
    """What the remedy would change here; None: there is none to apply, or it is not known yet."""
    fixable: bool = True
    """True if the run can be restarted at all."""
    tried: Rehearsed | None = None
    """The result of rehearsing a changed launch."""


class FailureCard(LinePanel):
    """The card of a run that failed or is stuck."""

    failure: Failure | None = None

    def show(self, failure: Failure) -> None:
        self.failure = failure
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        return card(self.failure, width, height) if self.failure else []

    def on_click(self, event: Click) -> None:
        """Press the clicked key."""
        shown, pressed, x = self.rows(*self.size), "", 0
        for span in shown[event.y].spans if 0 < event.y == len(shown) - 1 else ():
            pressed = span.text.strip() if span.role == "key" else pressed
            x += width_of(span.text)
            if pressed and x > event.x:
                self.app.simulate_key(pressed.replace("^", "ctrl+"))
                return


def card_lines(failure: Failure, width: int, usual: int, most: int) -> int:
    """Return the card's height: all it needs, up to ``usual``; up to ``most`` if the remedy would otherwise be cut."""
    finding = failure.findings[0] if failure.findings else None
    least = _least(failure, finding, width) + 2 if finding is not None else 0
    return len(card(failure, width, max(usual, min(least, most))))


def _least(failure: Failure, finding: Finding, width: int) -> int:
    """Return the lines needed for the whole remedy, how the run ended, and the keys."""
    parts = _parts(failure, finding, width, _MOST_LINES)
    return 2 + sum(len(parts[name]) for name in _WHOLE)


def card(failure: Failure, width: int, height: int, *, log_in_reach: bool = True) -> list[Row]:
    """Return the card in at most ``height`` lines. In little room, causes are dropped first, then evidence, and
    remedies last."""
    snapshot, finding = failure.snapshot, failure.findings[0] if failure.findings else None
    look = badge(snapshot)
    ending = [Span(f" {look.glyph} {look.word}", "bad strong")]
    if snapshot.exit is not None:
        ending += [Span(" · ", "faint"), Span(clean(snapshot.exit.sentence(), 200))]
        if snapshot.exit.ended is not None:
            ending += [Span(" · ", "faint"), Span(shown.moment_of_day(snapshot.exit.ended, snapshot.seen), "dim")]
    # What is above the card also tells how the run ended, so that is dropped before the remedy is cut.
    tight = finding is not None and _least(failure, finding, width) > height
    room = height - (1 if tight else 2)
    body = _explained(failure, finding, width, room) if finding else _unexplained(failure, width)
    lines = [
        *([] if tight else [row(*clip(tuple(ending), width - 1))]),
        *body[:room],
        _keys(failure, width - 1, log_in_reach=log_in_reach),
    ]
    return [row(("▌", "bad"), *line.spans, base="raised") for line in lines]


_MOST_LINES = 99
_WHOLE = ("title", "helps", "tried", "change")
"""Parts that are never cut while there is room for them."""


def _parts(failure: Failure, finding: Finding, width: int, lines: int) -> dict[str, list[Row]]:
    helps = finding.remedy.text
    if finding.remedy.from_checkpoint and has_checkpoint(failure.snapshot):
        helps = f"{finding.remedy.from_checkpoint} {helps}"
    seen, cure = finding.shown_by, failure.cure
    title = " · ".join(filter(None, (finding.title, finding.numbers, seen.where if seen is not None else "")))
    told = "" if cure is None else ", ".join(map(str, cure.changes)) or cure.sentence
    does = "f does" if cure and cure.works else "no fix"
    return {
        "title": _text(clean(title), "strong", width, lines),
        "cause": _text(clean(finding.cause), "", width, lines),
        "seen": _quoted(seen, width, 2) if seen is not None else [],
        "helps": _block("helps", clean(helps), width, lines, "good"),
        "tried": _tried(failure, width),
        "change": _block(does, clean(told), width, lines, "dim") if told else [],
    }


def _explained(failure: Failure, finding: Finding, width: int, lines: int) -> list[Row]:
    """Lay out the whole remedy, with what was tried; then one line each of cause and evidence, then the rest."""
    parts = _parts(failure, finding, width, lines)
    room = dict.fromkeys(parts, 0)
    turns = (
        ("title", 1),
        *((name, lines) for name in _WHOLE),
        ("cause", 1),
        ("seen", 1),
        ("cause", lines),
        ("seen", 2),
    )
    for name, most in turns:
        room[name] += max(0, min(most, len(parts[name]), room[name] + lines - sum(room.values())) - room[name])
    cut = {name: parts[name] if room[name] == len(parts[name]) else _cut(parts[name][: room[name]]) for name in parts}
    return [line for found in cut.values() for line in found]


def _tried(failure: Failure, width: int) -> list[Row]:
    tried = failure.tried
    return _block("tried", clean(tried.sentence), width, 2, "good" if tried.proven else "bad") if tried else []


def _cut(lines: list[Row]) -> list[Row]:
    """Mark the last of these lines as cut."""
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
        return [*lines, row((" reading the log …", "dim"))]
    if failure.exception is None:
        return [*lines, row((" no known cause; the log has the last words (e: last error)", "dim"))]
    where = f"at {failure.exception.where} · " if failure.exception.where else ""
    place = _text(clean(f"{where}log line {failure.exception.line} · no known kind of failure"), "dim", width, 1)
    return [*_text(clean(failure.exception.text), "strong", width, 3), *place, *lines]


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


def offers(failure: Failure, *, log_in_reach: bool) -> list[tuple[str, str, str, str]]:
    """Return the keys that would change something, best first: key, what it does, the same in short, role."""
    finding = failure.findings[0] if failure.findings else None
    found = [("r", "restart", "restart", "dim"), ("R", "edit", "edit", "dim")] if failure.fixable else []
    if log_in_reach:
        seen = finding.shown_by if finding is not None else failure.exception
        if seen is not None and seen.file_line is not None and failure.snapshot.host is None:
            found.insert(0, ("^e", "code there", "code", "dim"))
        if seen is not None and seen.line is not None:
            found.insert(0, ("l", "log there", "log there", "dim"))
    if failure.fixable and failure.tried is not None and failure.tried.proven:
        found.insert(0, ("f", "go on with what was tried", "go on", "strong"))
    elif failure.fixable and failure.cure is not None and failure.cure.works:
        found.insert(0, ("f", "apply the remedy", "remedy", "strong"))
    if failure.on_cpu and finding is not None and finding.restart_on_cpu_helps:
        found.insert(0, ("c", "restart on CPU", "on CPU", "strong"))
    return found


def _keys(failure: Failure, width: int, *, log_in_reach: bool) -> Row:
    """The keys with full labels; in little room with shorter ones, then without the last keys."""
    offered = offers(failure, log_in_reach=log_in_reach)
    whole = [(key, text, tone) for key, text, _, tone in offered]
    short = [(key, text, tone) for key, _, text, tone in offered]
    for choice in (whole, *(short[:count] for count in range(len(short), 0, -1))):
        parts = [part for key, text, tone in choice for part in ((f" {key}", "key"), (f" {text}", tone), " ")]
        found = row(*parts[:-1])
        if found.width <= width:
            return found
    return row()

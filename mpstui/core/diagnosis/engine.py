"""Weighing the rules against the evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from .clues import clues_of, ending
from .course import Course, course_of
from .model import Evidence, EvidenceLine, Finding, Kind, Rule
from .rules import all_rules
from .text import SearchText, compiled, literal_hints

THRESHOLD = 0.3  # below it, silence is more honest
MOST_EVIDENCE_LINES = 4

WEAK = 0.6  # what a weak pattern is worth of its rule's confidence
AGREES = 0.05  # the process ended the way this cause ends processes
OTHER_SIGNAL = 0.6  # it ended by a signal that this cause does not send
OTHER_CODE = 0.85  # it ended with a code that is unusual for this cause
ANOTHER_PATTERN = 0.02  # each further pattern of the same rule
LAST_FAILURE = 0.03  # the text belongs to the last chain of exceptions, or to what was printed after it
BEFORE_FAILURE = 0.85  # it was printed before the last failure, which came of something else
WENT_ON = 0.25  # training continued: whatever this was, it ended nothing
EXITED_WELL = 0.25  # exit code 0
CLEAR_ENOUGH = 0.8  # a rule must be about as sure as the one it outranks
LEFT = 0.7  # of the winner's confidence, for what it outranks

_RANK = re.compile(r"^\[rank\d+\]: ?")  # torchrun's, in front of what every rank prints


@dataclass(frozen=True, slots=True)
class _Hit:
    """One pattern found: where first and last (line index, offset in the text), and whether it was a weak one."""

    first: tuple[int, int]
    last: tuple[int, int]
    weak: bool


@dataclass(frozen=True, slots=True)
class _Case:
    """The evidence, prepared once for all rules."""

    text: SearchText
    course: Course
    clues: Mapping[str, str]
    signal: int | None
    code: int | None


def diagnose(evidence: Evidence) -> tuple[Finding, ...]:
    """Return what may have ended the run, the most probable first; empty when nothing explains it.

    Causes and endings are ordered by confidence, symptoms come after them whatever theirs is. A rule that another
    found rule outranks stays listed, below it.
    """
    signal, code = ending(evidence)
    case = _Case(SearchText(evidence.lines), course_of(evidence.lines), clues_of(evidence), signal, code)
    found = {rule.id: finding for rule in all_rules() if (finding := _weigh(rule, case))}
    _demote_outranked(found)
    kept = [finding for finding in found.values() if finding.confidence >= THRESHOLD]
    return tuple(sorted(kept, key=lambda finding: (finding.kind is Kind.SYMPTOM, -finding.confidence)))


def _weigh(rule: Rule, case: _Case) -> Finding | None:
    hits = _search(rule, case.text)
    from_text = _confidence_from_text(rule, hits, case) if hits else 0.0
    fired = {clue: worth for clue, worth in rule.fires_on.items() if clue in case.clues}
    if "requested" in case.clues:
        fired = {}
    confidence = max(from_text, *fired.values()) if fired else from_text
    speaking = [clue for clue in rule.clues if clue in case.clues]
    confidence += sum(rule.clues[clue] for clue in speaking) if confidence else 0.0
    if confidence < THRESHOLD:
        return None
    raising = [clue for clue in speaking if rule.clues[clue] > 0]
    return _finding(rule, min(confidence, 0.99), hits, (*fired, *raising), case)


def _finding(rule: Rule, confidence: float, hits: list[_Hit], clues: tuple[str, ...], case: _Case) -> Finding:
    return Finding(
        id=rule.id,
        title=rule.title,
        kind=rule.kind,
        confidence=round(confidence, 3),
        evidence=(
            *_evidence_lines(hits, case.text),
            *(EvidenceLine(None, case.clues[clue]) for clue in dict.fromkeys(clues)),
        ),
        cause=rule.cause,
        remedy=rule.remedy,
        restart_on_cpu_helps=rule.restart_on_cpu_helps,
    )


def _search(rule: Rule, text: SearchText) -> list[_Hit]:
    hits = [_hit(pattern, text, rule, weak=False) for pattern in rule.patterns]
    hits += [_hit(pattern, text, rule, weak=True) for pattern in rule.weak_patterns]
    return [hit for hit in hits if hit]


def _hit(pattern: str, text: SearchText, rule: Rule, *, weak: bool) -> _Hit | None:
    if not all(hint in text.lowered for hint in literal_hints(pattern)):
        return None
    warnings_count = rule.in_warnings or rule.survivable or rule.kind is not Kind.CAUSE
    offsets: list[int] = []
    for match in compiled(pattern).finditer(text.text):
        if warnings_count or not text.in_warning(match.start()):
            offsets = [*offsets[:1], match.start()]
    if not offsets:
        return None
    first, last = ((text.line_index(offset), offset) for offset in (offsets[0], offsets[-1]))
    return _Hit(first, last, weak)


def _confidence_from_text(rule: Rule, hits: list[_Hit], case: _Case) -> float:
    strong = [hit for hit in hits if not hit.weak]
    confidence = rule.confidence if strong else rule.confidence * WEAK
    confidence += min(len(hits) - 1, 3) * ANOTHER_PATTERN
    if rule.kind is not Kind.SYMPTOM:
        confidence = _agreeing(confidence, rule, case)
        confidence = _placed(confidence, max(hit.last[0] for hit in hits), case.course)
    return confidence * _survival(rule, hits, case)


def _agreeing(confidence: float, rule: Rule, case: _Case) -> float:
    """Weigh how well the ending fits: a Python exception exits with 1, an assertion in Metal with SIGABRT."""
    if case.signal is not None and "requested" not in case.clues:
        return confidence + AGREES if case.signal in rule.signals else confidence * OTHER_SIGNAL
    if case.code is not None and case.code != 0:
        return confidence + AGREES if case.code in rule.codes else confidence * OTHER_CODE
    return confidence


def _placed(confidence: float, last_index: int, course: Course) -> float:
    if course.failure_start is None:
        return confidence
    return confidence + LAST_FAILURE if last_index >= course.failure_start else confidence * BEFORE_FAILURE


def _survival(rule: Rule, hits: list[_Hit], case: _Case) -> float:
    if rule.survivable:
        return 1.0
    went_on = case.course.went_on_after(max(hit.last[0] for hit in hits))
    exited_well = case.code == 0 and rule.kind is not Kind.SYMPTOM and 0 not in rule.codes
    return (WENT_ON if went_on else 1.0) * (EXITED_WELL if exited_well else 1.0)


def _evidence_lines(hits: list[_Hit], text: SearchText) -> tuple[EvidenceLine, ...]:
    """The first and the last place of each pattern, strong ones first, in the order of the log; what is said twice (by
    two ranks, or by the launcher once more) is shown where it was said first."""
    places: dict[int, int] = {}
    for hit in sorted(hits, key=lambda hit: hit.weak):
        for index, offset in (hit.first, hit.last):
            places.setdefault(index, offset)
    said: dict[str, EvidenceLine] = {}
    for index, offset in sorted(list(places.items())[:MOST_EVIDENCE_LINES]):
        shown = text.excerpt(index, offset)
        said.setdefault(_RANK.sub("", shown), EvidenceLine(text.lines[index].number, shown))
    return tuple(said.values())


def _demote_outranked(found: dict[str, Finding]) -> None:
    """Put every finding that another one drags along below that one."""
    for rule in all_rules():
        winner = found.get(rule.id)
        if winner is None:
            continue
        for loser_id in rule.outranks:
            loser = found.get(loser_id)
            if loser and winner.confidence >= loser.confidence * CLEAR_ENOUGH:
                found[loser_id] = replace(loser, confidence=round(min(loser.confidence, winner.confidence * LEFT), 3))

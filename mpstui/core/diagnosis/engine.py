"""Weighing the rules against the evidence: ``diagnose``, ``diagnose_run`` (which also looks at earlier attempts), and
the few rules that a supervisor applies on its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...wire.records import RESTART_CAUSES
from ...wire.rundir import RunDir
from ..model.snapshot import RunSnapshot
from ..present import size
from .evidence import clues_of, ending, evidence_from_run_dir, evidence_of, failed_attempt
from .log_text import (
    LogTimeline,
    SearchText,
    compiled,
    evidence_at,
    is_a_number_again,
    literal_hints,
    portable,
    timeline_of,
)
from .model import Evidence, EvidenceLine, Finding, Kind, Remedy, Rule
from .rules import all_rules, rule

THRESHOLD = 0.3  # below this confidence, saying nothing is more honest
MOST_EVIDENCE_LINES = 4

WEAK = 0.6  # share of the rule's confidence that a weak pattern gives
AGREES = 0.05  # the process ended in the way that this cause ends processes
OTHER_SIGNAL = 0.6  # it ended by a signal that this cause does not send
OTHER_CODE = 0.85  # it ended with a code that is unusual for this cause
ANOTHER_PATTERN = 0.02  # each further pattern of the same rule
LAST_FAILURE = 0.03  # the text is in the last chain of exceptions, or after it
BEFORE_FAILURE = 0.85  # it was printed before the last failure, which had another cause
WENT_ON = 0.25  # training continued: whatever this was, it was not fatal
EXITED_WELL = 0.25  # exit code 0
CLEAR_ENOUGH = 0.8  # to outrank another rule, a rule must be about as confident
LEFT = 0.7  # share of the winner's confidence that an outranked rule may keep

_RANK = re.compile(r"^\[rank\d+\]: ?")  # torchrun's prefix for the output of each rank

MOST_ATTEMPTS = 5
"""How many earlier attempts are diagnosed as well: each means reading its log."""
STEP_TOLERANCE = 0.01
"""Heartbeats come at most once a second, so the last one lags a few steps behind the end."""
LEAST_TOLERANCE_STEPS = 3

_CERTAIN = 0.6  # from this confidence on, a signal alone names an ending; SIGABRT alone says nothing


@dataclass(frozen=True, slots=True)
class _Hit:
    """A pattern that was found: its first and last match, each as (index of the line, end of the match in the text),
    and whether the pattern is weak."""

    first: tuple[int, int]
    last: tuple[int, int]
    weak: bool


@dataclass(frozen=True, slots=True)
class _Case:
    """The evidence, prepared once for all rules."""

    text: SearchText
    timeline: LogTimeline
    clues: Mapping[str, str]
    signal: int | None
    code: int | None
    environment: Mapping[str, str]
    project: str


def diagnose(evidence: Evidence) -> tuple[Finding, ...]:
    """Return what may have ended the run, most probable first; empty if no rule explains it.

    Causes and endings are sorted by confidence; symptoms follow, whatever theirs is. A rule that another finding
    outranks stays listed, below that finding.
    """
    signal, code = ending(evidence)
    case = _Case(
        SearchText(evidence.lines),
        timeline_of(evidence.lines),
        clues_of(evidence),
        signal,
        code,
        evidence.environment,
        evidence.project[1] if evidence.project else "",
    )
    found = {rule.id: finding for rule in all_rules() if (finding := _weigh(rule, case))}
    for outranking in all_rules():
        winner = found.get(outranking.id)
        for loser_id in outranking.outranks if winner else ():
            loser = found.get(loser_id)
            if winner and loser and winner.confidence >= loser.confidence * CLEAR_ENOUGH:
                found[loser_id] = replace(loser, confidence=round(min(loser.confidence, winner.confidence * LEFT), 3))
    kept = [finding for finding in found.values() if finding.confidence >= THRESHOLD]
    return tuple(sorted(kept, key=lambda finding: (finding.kind is Kind.SYMPTOM, -finding.confidence)))


def _weigh(rule: Rule, case: _Case) -> Finding | None:
    found = [
        hit
        for patterns, weak in ((rule.patterns, False), (rule.weak_patterns, True))
        for pattern, hint in _hinted(patterns)
        if hint in case.text.lowered and (hit := _hit(pattern, case.text, rule, weak=weak))
    ]
    if not found and not rule.fires_on:
        return None
    confidence = _confidence_from_text(rule, found, case) if found else 0.0
    fired = {clue: worth for clue, worth in rule.fires_on.items() if clue in case.clues}
    if "requested" in case.clues:
        fired = {}
    confidence = max(confidence, *fired.values()) if fired else confidence
    speaking = [clue for clue in rule.clues if clue in case.clues]
    confidence += sum(rule.clues[clue] for clue in speaking) if confidence else 0.0
    if confidence < THRESHOLD:
        return None
    clues = dict.fromkeys((*fired, *(clue for clue in speaking if rule.clues[clue] > 0)))
    shown = (*_evidence_lines(found, case.text), *(EvidenceLine(None, case.clues[clue]) for clue in clues))
    remedy = rule.remedy.in_project(case.project).left_in(case.environment, shown)
    return Finding(
        id=rule.id,
        title=rule.title,
        kind=rule.kind,
        confidence=round(min(confidence, 0.99), 3),
        evidence=shown,
        cause=rule.cause,
        remedy=remedy,
        restart_on_cpu_helps=_cpu_helps(rule, remedy, case.clues),
        numbers=_numbers(rule, case.text),
    )


def _numbers(rule: Rule, text: SearchText) -> str:
    """Return the numbers of the last failure of this kind; a group named ``bytes`` is a plain count of bytes."""
    for pattern, words in rule.numbers:
        *_, last = (None, *compiled(pattern).finditer(text.text))
        if last is not None:
            counted = last.re.groupindex.get("bytes")
            told = enumerate(last.groups(), 1)
            return words.format(*(size(float(group)) if place == counted else group for place, group in told))
    return ""


def _cpu_helps(rule: Rule, remedy: Remedy, clues: Mapping[str, str]) -> bool:
    """True if running on the CPU avoids the crash: not if it ran there already or if the rule's move to the CPU does
    not help here, and for some rules only if the program offers a CPU option."""
    if rule.remedy.device == "cpu" and remedy.device != "cpu":
        return False
    told = remedy.device == "cpu" and "cpu_offered" in clues
    return (rule.restart_on_cpu_helps or told) and "device:cpu" not in clues


@lru_cache(maxsize=1024)
def _hinted(patterns: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Pair each pattern with the longest literal in every match of it, to skip most patterns without a search."""
    return tuple((pattern, max(literal_hints(pattern), key=len, default="")) for pattern in patterns)


def _hit(pattern: str, text: SearchText, rule: Rule, *, weak: bool) -> _Hit | None:
    for hint in literal_hints(pattern):
        if hint not in text.lowered:
            return None
    warnings_count = rule.in_warnings or rule.survivable or rule.kind is not Kind.CAUSE
    spans = (match.span() for match in compiled(pattern).finditer(text.text))
    found = [
        (start, end)
        for start, end in spans
        if not text.in_setting(start) and (warnings_count or not text.in_warning(start))
    ]
    if not found:
        return None
    first, last = ((text.line_index(start), end) for start, end in (found[0], found[-1]))
    return _Hit(first, last, weak)


def _confidence_from_text(rule: Rule, hits: list[_Hit], case: _Case) -> float:
    confidence = rule.confidence if any(not hit.weak for hit in hits) else rule.confidence * WEAK
    confidence += min(len(hits) - 1, 3) * ANOTHER_PATTERN
    last_index = max(hit.last[0] for hit in hits)
    if rule.kind is not Kind.SYMPTOM:
        # How well the ending fits: a Python exception exits with 1, a Metal assertion with SIGABRT.
        if case.signal is not None and "requested" not in case.clues:
            confidence = confidence + AGREES if case.signal in rule.signals else confidence * OTHER_SIGNAL
        elif case.code is not None and case.code != 0:
            confidence = confidence + AGREES if case.code in rule.codes else confidence * OTHER_CODE
        if case.timeline.failure_start is not None:
            in_failure = last_index >= case.timeline.failure_start
            confidence = confidence + LAST_FAILURE if in_failure else confidence * BEFORE_FAILURE
    if rule.survivable:
        return confidence
    passed = rule.passes and "nonfinite_loss" not in case.clues and is_a_number_again(case.text.lines, last_index)
    if passed or case.timeline.went_on_after(last_index):
        confidence *= WENT_ON
    exited_well = case.code == 0 and rule.kind is not Kind.SYMPTOM and 0 not in rule.codes
    return confidence * (EXITED_WELL if exited_well else 1.0)


def _evidence_lines(hits: list[_Hit], text: SearchText) -> tuple[EvidenceLine, ...]:
    """Return the first and last match of each pattern in log order, preferring strong patterns if there are too many.

    A line printed twice (by two ranks, or again by the launcher) is shown only where it first appears.
    """
    places: dict[int, int] = {}
    for hit in sorted(hits, key=lambda hit: hit.weak):
        for index, end in (hit.first, hit.last):
            places.setdefault(index, end)
    said: dict[str, EvidenceLine] = {}
    for index, end in sorted(list(places.items())[:MOST_EVIDENCE_LINES]):
        shown = text.excerpt(index, end)
        line = evidence_at(text.lines, index, shown)
        said.setdefault(_RANK.sub("", shown), line)
    return tuple(said.values())


def diagnose_run(directory: Path) -> tuple[Finding, ...]:
    """Explain how the newest attempt of a run ended, and mention earlier attempts that ended alike."""
    return with_recurrence(diagnose(evidence_from_run_dir(directory)), directory)


def diagnosis_of(snapshot: RunSnapshot) -> tuple[Finding, ...]:
    """Do the same for any run, even a foreign one."""
    return diagnose_run(snapshot.dir) if snapshot.is_ours else diagnose(evidence_of(snapshot))


def with_recurrence(findings: tuple[Finding, ...], directory: Path) -> tuple[Finding, ...]:
    """Return the findings, with the cause of the first preceded by the earlier attempts that it also ended at about the
    same step.

    Steps are those of the last heartbeats; attempts whose step is unknown are not compared.
    """
    run = RunDir(directory)
    newest = failed_attempt(run) if findings else None
    step = _last_step(evidence_from_run_dir(directory, attempt=newest)) if newest else None
    if step is None or newest is None:
        return findings
    alike = []
    for number in [number for number in run.attempt_numbers() if number < newest][-MOST_ATTEMPTS:]:
        evidence = evidence_from_run_dir(directory, attempt=number)
        before = _last_step(evidence)
        if before is None or evidence.requested_by is not None:
            continue
        causes = [finding.id for finding in diagnose(evidence)][:1]
        tolerance = max(LEAST_TOLERANCE_STEPS, STEP_TOLERANCE * max(before, step))
        if causes == [findings[0].id] and abs(before - step) <= tolerance:
            alike.append(f"attempt {number} (step {before:,})")
    if not alike:
        return findings
    sentence = f"Not for the first time: {' and '.join(alike)} ended by the same cause; this one at step {step:,}."
    return replace(findings[0], cause=f"{sentence} {findings[0].cause}"), *findings[1:]


def _last_step(evidence: Evidence) -> int | None:
    return evidence.heartbeat.step if evidence.heartbeat else None


def supervisor_rules() -> list[dict[str, Any]]:
    """Return ``id``, ``patterns``, ``signals``, ``codes`` and ``unless`` of each restart cause, in the order to try.

    A rule applies if ``re.search`` finds one of its patterns in the end of the attempt's output (64 KiB is plenty;
    carriage returns turned into newlines, runs of blanks into one space), or if the attempt ended with one of
    ``signals`` or ``codes``. It does not apply if one of ``unless`` is found anywhere: these are the patterns of rules
    that outrank it and are no restart cause, so that a crash has the same name here as in the full diagnosis. The
    patterns are plain ``re`` syntax of Python 3.10, without unbounded repetition across lines. Do not apply the rules
    to a stop that was requested.
    """
    return [
        {
            "id": rule_id,
            "patterns": ["(?i)" + portable(pattern) for pattern in rule(rule_id).patterns],
            "signals": [
                int(clue.removeprefix("signal:"))
                for clue, worth in rule(rule_id).fires_on.items()
                if clue.startswith("signal:") and worth >= _CERTAIN
            ],
            "codes": [],
            "unless": [
                "(?i)" + portable(pattern)
                for one in all_rules()
                if rule_id in one.outranks and one.id not in RESTART_CAUSES
                for pattern in one.patterns
            ],
        }
        for rule_id in RESTART_CAUSES
    ]

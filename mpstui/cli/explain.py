"""`mpstui diagnose` and `mpstui parse`: why a run or a log ended, and what can be read in a log."""

from __future__ import annotations

import argparse
import math
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.formats.console import strip_controls
from ..core.model.errors import OperationError, UsageError
from .session import Session, meant_run, print_json, say_lines, terminal_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.diagnosis.model import Evidence, Finding, Remedy
    from ..core.formats.points import ParsedLog
    from ..core.launching.cure import Cure

CARD_WIDTH = 100
_LEAST_WIDTH = 40
_SHOWN_METRICS = 12
_NO_OUTPUT = {
    **dict.fromkeys((".py", ".sh"), "a program"),
    **dict.fromkeys((".pt", ".pth", ".ckpt", ".safetensors"), "a checkpoint"),
}
"""Files that hold no program's output, whatever words are in them: what they are, by suffix."""


def configure_diagnose(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
Lists the most probable causes first, with the lines that show them and what helps;
`mpstui restart RUN --fix` applies it. What is less probable takes a line. Examples:
  mpstui diagnose RUN
  mpstui diagnose slurm-4711.out --exit-code 137"""
    parser.add_argument("target", metavar="RUN|FILE", help="a log file, a folder of a run, or a run's id or name")
    parser.add_argument("--signal", type=int, metavar="N", help="the signal that ended it, if known")
    parser.add_argument("--exit-code", type=int, metavar="N", help="its exit code, if known (137 is read as signal 9)")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run_diagnose(args: argparse.Namespace) -> int:
    from ..core.diagnosis.engine import diagnose, with_recurrence
    from ..core.diagnosis.evidence import evidence_from_log, evidence_from_run_dir
    from ..core.diagnosis.log_text import unexplained
    from ..core.diagnosis.model import findings_as_json
    from ..core.launching.cure import cure_of
    from ..wire.rundir import RunDir

    path = _target(args.target)
    try:
        if not path.is_dir():
            evidence = evidence_from_log(path)
        elif (path / "spec.json").exists() or (path / "attempts").is_dir():
            evidence = evidence_from_run_dir(path)
        else:
            evidence = _evidence_of_others(path)
    except OSError as error:
        raise OperationError(f"{path} cannot be read: {error.strerror or error}") from error
    if args.signal is not None:
        evidence = replace(evidence, signal=args.signal)
    if args.exit_code is not None:
        evidence = replace(evidence, exit_code=args.exit_code)
    findings = diagnose(evidence)
    if path.is_dir():
        findings = with_recurrence(findings, path)
    if args.json:
        print_json({"findings": findings_as_json(findings)})
        return 0
    cure = None
    if path.is_dir() and (path / "spec.json").exists():
        session = Session()
        cure = cure_of(RunDir(path), findings, session.environ, session.home.arguments)
    unknown = unexplained(findings, evidence)
    unknown = (_not_ended(path) or unknown) if unknown else None
    cards = [textwrap.fill(unknown, width=_width(), break_on_hyphens=False)] if unknown else []
    say_lines("\n\n".join([*cards, *_cards(findings, cure)]))
    return 0


def _target(word: str) -> Path:
    """Return the log or folder that a word means: a path, or a run of ours.

    Raises:
        UsageError: there is none, or it is a file that holds no output.
    """
    from ..core.runs.find import NoSuchRun

    path = Path(word).expanduser().absolute()
    if not path.exists():
        try:
            path = meant_run(Session().home, word).path
        except NoSuchRun as error:
            hint = error.hint if error.near else "name a log, a run directory, or a run's id or name"
            raise UsageError(f"there is neither a file nor a run {word!r}", hint) from error
    if path.is_file() and (kind := _NO_OUTPUT.get(path.suffix.lower())):
        keeps = "`mpstui run -- COMMAND` starts a program and keeps its output"
        raise UsageError(f"{word} is {kind}, not what one printed", f"name a log, or a run: {keeps}")
    return path


def _not_ended(path: Path) -> str | None:
    """Return the sentence for a run of ours that has not ended; None for anything else."""
    from ..core.runs.monitor import Monitor

    home = Session().home
    state = Monitor(home).snapshot(path.name).state if path.parent == home.runs else None
    if state is None or not state.active:
        return None
    return f"It has not ended: it is {state.replace('_', ' ')}, and its output names no known failure."


def _evidence_of_others(folder: Path) -> Evidence:
    """Return the evidence in a folder that is not ours: a run in a tracker's store with its output, or a log."""
    from ..core.diagnosis.evidence import evidence_of
    from ..core.runs.local_machine import machine_here
    from ..core.runs.stored_once import ended_run

    found = ended_run(folder, machine_here(Session().home.state))
    return evidence_of(found)


def _cards(findings: Sequence[Finding], cure: Cure | None) -> list[str]:
    """Return causes about as probable as the first in full; the others, most often part of the same crash, in a line
    each."""
    from ..core.diagnosis.model import Kind
    from ..core.launching.cure import AS_SURE

    full = [
        finding
        for finding in findings
        if finding is findings[0]
        or (finding.kind is not Kind.SYMPTOM and finding.confidence >= AS_SURE * findings[0].confidence)
    ]
    rest = ["Less probable, or a part of the same:"]
    for finding in findings:
        if finding not in full:
            shown = finding.shown_by
            place = "" if shown is None else f", log line {shown.line}" if shown.line is not None else f", {shown.text}"
            told = f"{finding.title}  [{finding.id}, confidence {finding.confidence:.2f}]{place}"
            rest.append(textwrap.fill(told, _width(), initial_indent=" " * 3, subsequent_indent=" " * 6))
    cards = [_card(number, finding, cure) for number, finding in enumerate(full, 1)]
    return [*cards, "\n".join(rest)] if rest[1:] else cards


def _width() -> int:
    return max(_LEAST_WIDTH, min(CARD_WIDTH, terminal_columns() or CARD_WIDTH))


def _card(number: int, finding: Finding, cure: Cure | None) -> str:
    """Return a finding as text. ``cure`` is what `--fix` would do to this run; None if only a log is known."""
    lines = [f"{number}. {finding.title}  [{finding.id}, confidence {finding.confidence:.2f}]"]
    lines += [_wrapped("details", finding.numbers)] if finding.numbers else []
    shown = finding.shown_by
    lines += [_wrapped("at", shown.where)] if shown is not None and shown.where else []
    for line in finding.told:
        place = f"log line {line.line}: " if line.line is not None else ""
        lines.append(_wrapped("seen", place + line.text))
    lines.append(_wrapped("cause", finding.cause))
    lines.append(_wrapped("remedy", finding.remedy.text))
    fix = cure if cure is not None and cure.finding == finding else None
    if fix is not None:
        lines.append(_wrapped("fix", fix.sentence))
    if risk := finding.remedy.risk if fix is None else fix.risk:
        lines.append(_wrapped("risk", risk))
    if cure is None and _applicable(finding.remedy):
        lines.append(_wrapped("apply", _applicable(finding.remedy)))
    lines += [_wrapped("on CPU", "helps")] if finding.restart_on_cpu_helps else []
    return "\n".join(lines)


def _applicable(remedy: Remedy) -> str:
    """Return what `mpstui restart --fix` would change; empty for nothing.

    A log does not tell which variables were set: beside other changes, none is unset.
    """
    named = {name: value for name, value in remedy.env.items() if value is not None or not remedy.args}
    changed = [f"{name}={value}" if value is not None else f"unset {name}" for name, value in named.items()]
    for change in remedy.args:
        role = change.role.replace("_", " ")
        if change.operation == "remove":
            changed.append(f"no {role}")
        else:
            changed.append(f"{role} {'× ' if change.operation == 'scale' else ''}{change.value}")
    return ", ".join([*changed, *([f"device {remedy.device}"] if remedy.device else [])])


def _wrapped(label: str, text: str) -> str:
    return textwrap.fill(
        text,
        width=_width(),
        initial_indent=f"   {label + ':':<8} ",
        subsequent_indent=" " * 12,
        break_on_hyphens=False,
    )


def configure_parse(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
In a folder, the best file is read. Example:
  mpstui parse train.log"""
    parser.add_argument("file", type=Path, metavar="FILE", help="a log, a metric file, or a folder that holds some")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run_parse(args: argparse.Namespace) -> int:
    from ..core.formats.files import read_log

    found = read_log(args.file)
    if args.json:
        print_json(as_json(found), indent=None)
    else:
        say_lines(as_table(found))
    return 0


def as_json(found: ParsedLog) -> dict[str, object]:
    """Return the summary for scripts: unknown values are null, non-finite numbers are strings."""
    numbers = {name: _number(getattr(found, name)) for name in ("epoch", "epochs", "step", "steps", "learning_rate")}
    loss = found.train_loss
    ends = loss and {"first": _number(loss.first), "last": _number(loss.last), "count": loss.count}
    standing = {name: getattr(found.standing, name) for name in ("device", "done", "failure")}
    return {
        "format": found.format,
        **numbers,
        "train_loss": ends,
        "metrics": list(found.metrics),
        **standing,
        "read_in_part": found.read_in_part,
    }


def as_table(found: ParsedLog) -> str:
    """Return what was read as a table for people."""
    from ..core.formats.points import ParsedLog

    if found == ParsedLog():
        return "nothing in it reads like training; a line such as `step 10 loss 2.31` always does"
    loss = found.train_loss
    more = len(found.metrics) - _SHOWN_METRICS
    readings = "" if loss is None else f"{loss.count:,} reading{'' if loss.count == 1 else 's'}"
    rows = [
        ("format", found.format or "n/a"),
        ("epoch", _position(found.epoch, found.epochs)),
        ("step", _position(found.step, found.steps) + (" samples" if found.of_samples else "")),
        ("training loss", "n/a" if loss is None else f"{loss.first:g} -> {loss.last:g} ({readings})"),
        ("learning rate", "n/a" if found.learning_rate is None else f"{found.learning_rate:g}"),
        ("metrics", ", ".join(found.metrics[:_SHOWN_METRICS]) + (f" and {more} more" if more > 0 else "") or "n/a"),
    ]
    standing = found.standing
    rows += [("device", standing.device)] if standing.device else []
    if standing.done or standing.failure:
        rows.append(("end", f"failed: {standing.failure}" if standing.failure else "the training is done"))
    if found.read_in_part:
        rows.append(("read in part", found.read_in_part))
    if found.runs > 1:
        rows.append(("runs", f"{found.runs} in this file; the last is shown"))
    return strip_controls("\n".join(f"{name:<14} {value}" for name, value in rows))


def _number(value: int | float | None) -> int | float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _position(now: int | float | None, planned: int | float | None) -> str:
    if now is None:
        return "n/a" if planned is None else f"n/a of {planned:g}"
    return f"{now}" if planned is None else f"{now} of {planned}"

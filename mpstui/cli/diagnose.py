"""`mpstui diagnose`: why a run or a log ended, on what evidence, and what to do."""

from __future__ import annotations

import argparse
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.model.errors import OperationError, UsageError

if TYPE_CHECKING:
    from ..core.diagnosis.model import ArgumentChange, Evidence, Finding, Remedy

HELP = "Explain a crash: the most probable causes with the lines that show them, and what helps."
CARD_WIDTH = 100


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="RUN|FILE", help="a log file, a run directory, or a run's id or name")
    parser.add_argument("--signal", type=int, metavar="N", help="the signal that ended it, if you know")
    parser.add_argument(
        "--exit-code", type=int, metavar="N", help="its exit code, if you know (137 is read as signal 9)"
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(args: argparse.Namespace) -> int:
    from ..core.diagnosis.engine import diagnose, with_recurrence
    from ..core.diagnosis.log_text import unexplained
    from ..core.diagnosis.model import findings_as_json
    from .session import print_json

    path = _target(args.target)
    evidence = _evidence(args, path)
    findings = diagnose(evidence)
    if path.is_dir():
        findings = with_recurrence(findings, path)
    if args.json:
        print_json({"findings": findings_as_json(findings)})
    else:
        print(_card(findings, unexplained(findings, evidence)))
    return 0


def _target(name: str) -> Path:
    path = Path(name).expanduser()
    return path if path.exists() else _directory_of_run(name)


def _evidence(args: argparse.Namespace, path: Path) -> Evidence:
    try:
        found = _evidence_at(path)
    except OSError as error:
        raise OperationError(f"{path} cannot be read: {error.strerror or error}") from error
    known = {"signal": args.signal, "exit_code": args.exit_code}
    return replace(found, **{name: value for name, value in known.items() if value is not None})


def _evidence_at(path: Path) -> Evidence:
    from ..core.diagnosis.evidence import evidence_from_log, evidence_from_run_dir

    return evidence_from_run_dir(path) if path.is_dir() else evidence_from_log(path)


def _directory_of_run(name: str) -> Path:
    """Return the directory of the run that ``name`` means; raises ``UsageError`` when none or several do."""
    from ..core.runs.find import NoSuchRun, find_run
    from .session import Session

    try:
        return find_run(Session().home, name).path
    except NoSuchRun as error:
        hint = error.hint if error.near else "name a log, a run directory, or a run's id or name"
        raise UsageError(f"there is neither a file nor a run {name!r}", hint) from error


def _card(findings: tuple[Finding, ...], unexplained: str | None) -> str:
    honest = [textwrap.fill(unexplained, width=CARD_WIDTH, break_on_hyphens=False)] if unexplained else []
    return "\n\n".join([*honest, *(_one(number, finding) for number, finding in enumerate(findings, 1))])


def _one(number: int, finding: Finding) -> str:
    lines = [f"{number}. {finding.title}  [{finding.id}, confidence {finding.confidence:.2f}]"]
    for line in finding.evidence:
        place = f"line {line.line}: " if line.line is not None else ""
        lines.append(_wrapped("seen", place + line.text))
    lines.append(_wrapped("cause", finding.cause))
    lines.append(_wrapped("remedy", finding.remedy.text))
    if finding.remedy.risk:
        lines.append(_wrapped("risk", finding.remedy.risk))
    lines += [_wrapped("apply", sentence) for sentence in _applicable(finding.remedy)]
    lines.append(_wrapped("on CPU", "helps" if finding.restart_on_cpu_helps else "does not help"))
    return "\n".join(lines)


def _applicable(remedy: Remedy) -> list[str]:
    env = [f"{name}={value}" if value is not None else f"unset {name}" for name, value in remedy.env.items()]
    args = [_change(change) for change in remedy.args]
    device = [f"device {remedy.device}"] if remedy.device else []
    return [", ".join([*env, *args, *device])] if env or args or device else []


def _change(change: ArgumentChange) -> str:
    role = change.role.replace("_", " ")
    if change.operation == "remove":
        return f"no {role}"
    return f"{role} × {change.value}" if change.operation == "scale" else f"{role} {change.value}"


def _wrapped(label: str, text: str) -> str:
    return textwrap.fill(
        text,
        width=CARD_WIDTH,
        initial_indent=f"   {label + ':':<8} ",
        subsequent_indent=" " * 12,
        break_on_hyphens=False,
    )

"""`mpstui restart`: a new attempt of the same run, on another device or with other arguments if you like."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from ..core.launching.actions import Actions
from ..core.launching.choice import LaunchChoice, effective_arguments, parse_sets
from ..core.launching.editing import edit_choice
from ..core.machine import DEVICES
from ..core.model.errors import OperationError, UsageError
from ..core.model.snapshot import RunSnapshot
from ..wire.records import Request
from .acting import act, configure_action
from .launch import parse_environment
from .session import Session, add_repeatable, warn


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
A run that is active is stopped first. It continues from its newest checkpoint. Examples:
  mpstui restart RUN --device cpu
  mpstui restart RUN --from best --set lr=1e-4
  mpstui restart RUN --fix"""
    configure_action(parser)
    parser.add_argument("--device", metavar="auto|mps|cuda|cpu", help="device of the new attempt")
    parser.add_argument(
        "--from",
        dest="source",
        default="latest",
        metavar="latest|best|scratch|PATH",
        help="checkpoint to continue from (default: latest)",
    )
    add_repeatable(parser, "--set", "KEY=VALUE", "change an argument")
    add_repeatable(parser, "--env", "NAME=VALUE", "change a variable")
    parser.add_argument("--fix", action="store_true", help="apply the remedy that `mpstui diagnose` names")
    parser.add_argument("--accept-risk", action="store_true", help="with --fix: even if the remedy can do harm")


def run(args: argparse.Namespace) -> int:
    if args.device is not None and args.device not in DEVICES:
        raise UsageError(f"there is no device {args.device!r}", f"one of {', '.join(DEVICES)}", field="device")
    sets, env = parse_sets(args.set), parse_environment(args.env)

    def ask(actions: Actions, snapshot: RunSnapshot) -> Request:
        edited = _fixed(snapshot, accept_risk=args.accept_risk) if args.fix else None
        if sets or env:
            edited = _edited(edited or edit_choice(snapshot, Session().home), sets, env)
            for note in effective_arguments(edited.profile, sets)[1]:
                warn(note)
        return actions.restart(snapshot, device=args.device, source=args.source, choice=edited)

    return act(args, ask)


def _edited(before: LaunchChoice, sets: dict[str, str], env: dict[str, str]) -> LaunchChoice:
    """A launch with some of it changed; earlier changes are kept."""
    return replace(before, sets={**before.sets, **sets}, env={**before.env, **env})


def _fixed(snapshot: RunSnapshot, *, accept_risk: bool) -> LaunchChoice:
    """The run's launch with the remedy of its diagnosis; says on stderr what is changed.

    Raises:
        OperationError: no remedy is known that a launcher can apply, or it can do harm and nobody accepted that.
    """
    from ..core.diagnosis.engine import diagnose
    from ..core.diagnosis.evidence import evidence_from_run_dir
    from ..core.launching.editing import finding_to_apply, remedied

    session = Session()
    finding = finding_to_apply(diagnose(evidence_from_run_dir(snapshot.dir)))
    if finding is None:
        raise OperationError(f"no remedy is known for {snapshot.name} that could be applied", "see `mpstui diagnose`")
    fixed = remedied(edit_choice(snapshot, session.home), finding.remedy, session.environ)
    if not fixed.applied:
        raise OperationError(f"{finding.title}: {fixed.sentence}", "name the arguments in [roles] of the profile")
    if fixed.risk and not accept_risk:
        raise OperationError(f"{finding.title}: {fixed.risk}", "say --accept-risk if you accept that")
    print(f"{finding.title}: {fixed.sentence}", file=sys.stderr)
    return fixed.choice

"""`mpstui branch`: start a new run from a checkpoint of another one, with other arguments."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from ..core.engines.engine import LOCAL
from ..core.launching.branching import branch_at, branch_choice
from ..core.launching.choice import parse_environment, parse_sets
from ..core.launching.launch import launch_all
from ..core.launching.planning import plan
from ..core.machine import this_machine
from ..core.model.errors import UsageError
from ..core.present import whole
from ..core.runs.monitor import Monitor
from .launch import where
from .resuming import known
from .session import RUN_HELP, Session, add_repeatable, meant_run, print_json, say, say_lines, warn


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
The run itself is left alone, and keeps training if it does. Its checkpoint is read, never written. Examples:
  mpstui branch RUN --set lr=1e-4                 # from its newest checkpoint
  mpstui branch RUN --at 12000 --set lr=1e-4      # from the newest one at or before step 12,000
  mpstui branch gpu1:RUN                          # here, from a checkpoint of another machine
  mpstui branch RUN --on gpu1                     # and on another machine, from one of here"""
    parser.add_argument("run", metavar="[HOST:]RUN", help=f"{RUN_HELP}; gpu1:RUN for one on another machine")
    add_repeatable(
        parser, "--on", "HOST|slurm|local", "start it on another machine, as a job of Slurm, or here (default)"
    )
    parser.add_argument("--at", type=int, metavar="STEP", help="the step to branch at (default: its newest checkpoint)")
    add_repeatable(parser, "--set", "KEY=VALUE", "change an argument")
    add_repeatable(parser, "--env", "NAME=VALUE", "change a variable")
    parser.add_argument("--device", metavar="auto|mps|cuda|cpu", help="where to train")
    parser.add_argument("--name", metavar="NAME", help="name of the new run")
    parser.add_argument("--dry-run", action="store_true", help="print what would be started, and from which checkpoint")
    parser.add_argument("--yes", action="store_true", help="do not ask before something is sent")
    parser.add_argument("--json", action="store_true", help='print {"run": ID, "branch": {...}}')


def run(args: argparse.Namespace) -> int:
    if args.at is not None and args.at < 0:
        raise UsageError(f"--at {args.at} is no step", "a step is 0 or more", field="at")
    session = Session()
    source, _, name = args.run.rpartition(":")
    host, engine = where(args.on)
    if source not in ("", LOCAL) or host is not None:
        from .elsewhere import branch_on

        return branch_on(session, args, source or LOCAL, name, host or LOCAL, engine)
    snapshot = Monitor(session.home).snapshot(meant_run(session.home, name).run)
    branch = branch_at(snapshot, args.at if args.at is not None else float("inf"))
    choice = branch_choice(snapshot, branch, parse_sets(args.set), parse_environment(args.env))
    choice = replace(choice, name=args.name or choice.name, device=args.device or choice.device)
    choice = replace(choice, on=engine or choice.on)
    planned = plan(choice, environ=session.environ, machine=this_machine(), check=not args.dry_run)
    for warning in planned.warnings:
        warn(warning)
    told = {"branch": branch._asdict()}
    if args.dry_run:
        from_step = f"from step {whole(branch.step)} of {branch.run}: {branch.checkpoint}"
        print_json(told) if args.json else say_lines(f"{from_step}\n{planned.shell()}")
        return 0
    (started,) = launch_all([planned], session.home, session.environ, time.time, known("call") or "")
    print_json({"run": started, **told}) if args.json else say(started)
    return 0

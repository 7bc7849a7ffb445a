"""`mpstui move RUN --to HOST`: continue a run on another machine, from its newest checkpoint."""

from __future__ import annotations

import argparse
import sys

from ..core.hosts.moving import MovePlan, mover
from ..core.hosts.ssh import LOCAL
from ..core.launching.choice import job_options
from ..core.model.errors import UsageError
from ..core.settings import load_settings
from .carrying import carried
from .session import Session, add_repeatable, agreed, print_json, say, say_lines, warn


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
The training saves and ends; its code, records and newest checkpoint are sent over ssh; its next attempt starts there.
If anything fails, or you press ctrl+c, it continues, or can be continued, where it was. Examples:
  mpstui move RUN --to gpu1                  # from this machine
  mpstui move gpu1:RUN --to local            # and back
  mpstui move RUN --to gpu1 --device cpu"""
    parser.add_argument("run", metavar="[HOST:]RUN", help="the run, and the machine it is on (default: this one)")
    parser.add_argument("--to", metavar="HOST", required=True, help="the machine to move it to; local is this one")
    parser.add_argument("--device", metavar="auto|mps|cuda|cpu", help="where to train there (default: its best)")
    parser.add_argument("--on", metavar="slurm|local", help="have the scheduler there start it, or not")
    add_repeatable(parser, "--job", "OPTION[=VALUE]", "set an option of the scheduler, such as partition=gpu")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="say what would travel, and move nothing")
    parser.add_argument("--json", action="store_true", help='print {"run": ID, "host": HOST, "attempt": N, "step": N}')


def run(args: argparse.Namespace) -> int:
    session = Session()
    head, colon, name = args.run.rpartition(":")
    source = head if colon else LOCAL
    carrier = mover(source, args.to, load_settings(session.home).hosts, session.environ)
    try:
        planned = carrier.plan(name, args.device, args.on, job_options(args.job))
        if isinstance(planned, MovePlan):
            for line in planned.sentences(args.to):
                say_lines(line, beside=True)
            if args.dry_run:
                return 0
            asks = not args.yes and sys.stdin.isatty() and sys.stderr.isatty()
            if asks and not agreed(f"move {planned.name} to {args.to}?"):
                raise UsageError("nothing was moved", "--yes does not ask")
            for warning in planned.warnings:
                warn(warning)
            with carried(carrier.cancel) as tell:
                answer = carrier.carry_out(planned, tell)
        else:
            answer = planned
            done = "had already been moved" if answer["begun"] else "was already being moved, and now has been"
            say_lines(f"{name} {done}: it continues on {args.to}", beside=True)
    finally:
        carrier.close()
    told = {"run": answer["run"], "host": args.to, "attempt": answer["attempt"], "step": answer.get("step")}
    print_json(told) if args.json else say(str(answer["run"]))
    return 0

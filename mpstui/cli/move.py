"""`mpstui move RUN --to HOST`: carry a run on, on another machine, from its newest checkpoint."""

from __future__ import annotations

import argparse
import platform
import sys
from functools import partial

from ..core.hosts.moving import MovePlan, Mover
from ..core.hosts.ssh import LOCAL, connect, is_local
from ..core.hosts.talk import Place
from ..core.model.errors import UsageError
from ..core.present import size, whole
from ..core.settings import HostSettings, HostsSettings, load_settings
from .session import Session, agreed, print_json, say, say_lines, warn


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
The training saves and ends; its code, records and newest checkpoint are sent over ssh; its next attempt starts there.
If anything fails it goes on, or can go on, where it was. Examples:
  mpstui move RUN --to gpu1                  # from this machine
  mpstui move gpu1:RUN --to local            # and back
  mpstui move RUN --to gpu1 --device cpu"""
    parser.add_argument("run", metavar="[HOST:]RUN", help="the run, and the machine it is on (default: this one)")
    parser.add_argument("--to", metavar="HOST", required=True, help="where it goes on; local is this machine")
    parser.add_argument("--device", metavar="auto|mps|cuda|cpu", help="where to train there (default: its best)")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="say what would travel, and move nothing")
    parser.add_argument("--json", action="store_true", help='print {"run": ID, "host": HOST, "attempt": N, "step": N}')


def run(args: argparse.Namespace) -> int:
    session = Session()
    head, colon, name = args.run.rpartition(":")
    source = head if colon else LOCAL
    if source == args.to:
        raise UsageError(f"{name} is on {args.to} already", "name another machine behind --to", field="to")
    hosts = load_settings(session.home).hosts
    opened = [partial(_place, one, hosts, session) for one in (source, args.to)]
    mover = Mover(*opened, names=(_called(source), _called(args.to)), paths=_paths(source, args.to, hosts))
    try:
        planned = mover.plan(name, args.device)
        if isinstance(planned, MovePlan):
            for line in _told(planned, args.to):
                say_lines(line, beside=True)
            if args.dry_run:
                return 0
            asks = not args.yes and sys.stdin.isatty() and sys.stderr.isatty()
            if asks and not agreed(f"move {planned.name} to {args.to}?"):
                raise UsageError("nothing was moved", "--yes does not ask")
            for warning in planned.warnings:
                warn(warning)
            answer = mover.carry_out(planned)
        else:
            answer = planned
            say_lines(f"the move of {name} was interrupted and is finished now", beside=True)
    finally:
        mover.close()
    told = {"run": answer["run"], "host": args.to, "attempt": answer["attempt"], "step": answer.get("step")}
    print_json(told) if args.json else say(str(answer["run"]))
    return 0


def _place(name: str, hosts: HostsSettings, session: Session) -> Place:
    return Place(connect(name, hosts, ("transfer",), environ=session.environ))


def _called(name: str) -> str:
    """A name that means this machine on the other one too."""
    return platform.node() if name == LOCAL else name


def _paths(source: str, target: str, hosts: HostsSettings) -> list[tuple[str, str]]:
    """Where folders of the one machine lie on the other: by what settings say of each beside this machine."""
    here_there = hosts.named.get(target, HostSettings()).paths
    if is_local(source):
        return list(here_there.items())
    there_here = hosts.named.get(source, HostSettings()).paths
    return [(there, here_there.get(here, here)) for here, there in there_here.items()]


def _told(planned: MovePlan, to: str) -> list[str]:
    step = f", at step {whole(planned.step)}" if planned.step is not None else ""
    code = f"{planned.code_files} files of code ({size(planned.code_bytes)}) and " if planned.code_files else ""
    lines = [
        f"{planned.name}{step}: {code}its records and checkpoints ({size(planned.run_bytes)}) go to {to}, "
        f"where it is trained on {planned.device}"
    ]
    return lines + ([f"{planned.costs} done again there"] if planned.costs else [])

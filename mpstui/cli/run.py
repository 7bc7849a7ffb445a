"""`mpstui run`: start any command, no profile needed."""

from __future__ import annotations

import argparse

from ..core.errors import UsageError
from ..core.launching import LaunchChoice
from ..core.launching.torchrun import is_python
from ..core.profiles import profile_of_command
from ..wire.records import QueueRule
from .launch import add_launch_options, launch_all, parse_environment, queue_conditions
from .session import Session

HELP = "Start any command in the background, such as: mpstui run -- python train.py --device mps. Prints the run's id."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mpstui run [options] -- COMMAND ..."
    add_launch_options(parser)
    parser.add_argument(
        "--no-agent",
        action="store_true",
        help="do not put the agent into a Python program: no heartbeat of its own, no cache clearing, no CPU override",
    )
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...", help="the program, as you type it"
    )


def run(args: argparse.Namespace) -> int:
    session = Session()
    command = tuple(args.command[1:] if args.command[:1] == ["--"] else args.command)
    if not command:
        raise UsageError("there is no command to run", "such as: mpstui run -- python train.py")
    choice = LaunchChoice(
        profile=profile_of_command(command, cwd=session.cwd, name=args.name, agent=_is_python(command, args)),
        device=args.device,
        recipe=args.recipe,
        name=args.name,
        env=parse_environment(args.env),
        queue=QueueRule(args.queue, queue_conditions(session, args.after)),
    )
    return launch_all(session, [choice], as_json=args.json)


def _is_python(command: tuple[str, ...], args: argparse.Namespace) -> bool:
    return is_python(command[0]) and not args.no_agent

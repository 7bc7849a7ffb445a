"""`mpstui run`: start any command, no profile needed."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from ..core.launching.choice import ACCELERATOR_QUEUE, LaunchChoice
from ..core.launching.command import is_python
from ..core.model.errors import UsageError
from ..core.profiles.library import names_profile
from ..core.profiles.model import profile_of_command
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
    command = _command_of(args)
    _refuse_profile(session, command)
    choice = LaunchChoice(
        profile=profile_of_command(command, cwd=session.cwd, name=args.name, agent=_is_python(command, args)),
        device=args.device,
        recipe=args.recipe,
        name=args.name,
        env=parse_environment(args.env),
        queue=QueueRule(args.queue, queue_conditions(session, args.after)),
    )
    return launch_all(session, [choice], as_json=args.json)


def _command_of(args: argparse.Namespace) -> tuple[str, ...]:
    """The program and its arguments.

    Raises:
        UsageError: none, or ``--queue`` stood before it without ``--`` between them and took its first word.
    """
    separated = args.command[:1] == ["--"]
    command = tuple(args.command[1:] if separated else args.command)
    group = args.queue
    if not separated and group not in (None, ACCELERATOR_QUEUE) and _is_program(group):
        typed = shlex.join([group, *command])
        raise UsageError(
            f"mpstui run: --queue took {group!r}, a program, for the queue's name",
            f"put -- before the command: `mpstui run --queue -- {typed}`, or `mpstui run --queue NAME -- {typed}`",
        )
    if not command:
        raise UsageError("there is no command to run", "such as: mpstui run -- python train.py")
    return command


def _refuse_profile(session: Session, command: tuple[str, ...]) -> None:
    """A profile's name in place of a program is told what starts it.

    Raises:
        UsageError: no program is called as the command's first word, and a profile is.
    """
    from shutil import which

    name = command[0]
    if which(name) is None and names_profile(name, session.home, session.cwd):
        changed = " (`--set KEY=VALUE` changes an argument of it)" if command[1:] else ""
        raise UsageError(f"{name!r} is a profile, not a program", f"start it with `mpstui launch {name}`{changed}")


def _is_program(word: str) -> bool:
    from shutil import which

    return which(word) is not None or Path(word).is_file()


def _is_python(command: tuple[str, ...], args: argparse.Namespace) -> bool:
    return is_python(command[0]) and not args.no_agent

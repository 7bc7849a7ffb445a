"""`mpstui launch` and `mpstui run`: start a profile, or any command, in the background."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterable
from pathlib import Path

from ..core.launching.choice import ACCELERATOR_QUEUE, LaunchChoice, combinations, parse_sets
from ..core.launching.launches import launch
from ..core.launching.planning import plan
from ..core.machine import is_python, this_machine
from ..core.model.errors import UsageError
from ..core.profiles.library import load_profile, names_profile
from ..core.profiles.model import profile_of_command
from ..wire.records import QueueRule
from .session import Session, print_json, warn


def configure_launch(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
The run goes on when this terminal closes; several runs are queued. Examples:
  mpstui launch quickstart --set epochs=3
  mpstui launch cifar10 --sweep lr=0.1,0.01 --sweep seed=1,2,3
  mpstui launch ./mine.toml --device cpu --after RUN"""
    parser.usage = "mpstui launch PROFILE [options]"
    # Not required of argparse, which cannot say where a profile went that followed an option with an optional value.
    parser.add_argument("profile", nargs="?", metavar="PROFILE", help="a profile's name, or the path of its file")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="sets",
        help="override an argument of the profile; may be repeated",
    )
    parser.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="KEY=V1,V2",
        help="queue a run for each value, combined with every other --sweep and the profile's [sweep]",
    )
    _add_launch_options(parser)


def _add_launch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", metavar="auto|mps|cuda|cpu", help="where to train (auto: CUDA, else MPS, else CPU)")
    parser.add_argument("--recipe", metavar="safe|classic|fast", help="set of environment variables")
    parser.add_argument("--name", metavar="NAME", help="name of the run")
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="set an environment variable; may be repeated"
    )
    parser.add_argument(
        "--after",
        action="append",
        default=[],
        metavar="RUN[:ok|any|fail]",
        help="wait until that run has finished (ok, the default), ended in any way, or failed",
    )
    parser.add_argument(
        "--queue",
        nargs="?",
        const=ACCELERATOR_QUEUE,
        metavar="NAME",
        help="wait for a slot in that queue (default: that of the accelerator; on CUDA, for a GPU of its own)",
    )
    parser.add_argument("--json", action="store_true", help='print {"run": ID}')


def run_launch(args: argparse.Namespace) -> int:
    session = Session()
    choice = LaunchChoice(
        profile=load_profile(_profile_of(args), session.home, session.cwd),
        device=args.device,
        sets=parse_sets(args.sets),
        sweep={key: tuple(values.split(",")) for key, values in parse_sets(args.sweep, "--sweep").items()},
        recipe=args.recipe,
        name=args.name,
        env=parse_environment(args.env),
        queue=QueueRule(args.queue, _queue_conditions(session, args.after)),
    )
    return _launch_all(session, combinations(choice), as_json=args.json)


def _profile_of(args: argparse.Namespace) -> str:
    """The profile asked for.

    Raises:
        UsageError: none, or ``--queue`` stood before it and took it.
    """
    profile, group = args.profile, args.queue
    if profile is not None:
        return str(profile)
    if group not in (None, ACCELERATOR_QUEUE):
        raise UsageError(
            f"mpstui launch: --queue took {group!r} for the queue's name, so that no profile is left",
            f"`mpstui launch {group} --queue`, or `mpstui launch PROFILE --queue {group}`",
        )
    raise UsageError("mpstui launch: PROFILE is required", "`mpstui profiles` lists them; see `mpstui launch --help`")


def _launch_all(session: Session, choices: Iterable[LaunchChoice], *, as_json: bool) -> int:
    """Plan all, then launch all: a mistake in the last one starts none. Prints the ids."""
    machine = this_machine()
    plans = [plan(choice, environ=session.environ, machine=machine) for choice in choices]
    for warning in dict.fromkeys(warning for made in plans for warning in made.warnings):
        warn(warning)
    runs = [launch(made, session.home, session.environ, time.time()) for made in plans]
    if as_json:
        print_json({"run": runs[0]} if len(runs) == 1 else {"runs": runs})
    else:
        print("\n".join(runs))
    return 0


def parse_environment(items: Iterable[str]) -> dict[str, str]:
    """Read ``NAME=VALUE`` texts.

    Raises:
        UsageError: one has no ``=``, or a name that is none.
    """
    from ..core.model.checks import environment_name

    found = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or environment_name(name) or "\0" in value:
            raise UsageError(f"--env {item!r} is not NAME=VALUE", "write it as `--env OMP_NUM_THREADS=4`")
        found[name] = value
    return found


def _queue_conditions(session: Session, items: Iterable[str]) -> list[dict[str, str]]:
    """Read ``RUN[:ok|any|fail]`` texts.

    Raises:
        UsageError: no such run, or another word after the colon.
    """
    from ..core.runs.find import find_run

    found = []
    for item in items:
        name, colon, when = item.rpartition(":")
        if not colon:
            name, when = item, "ok"
        if when not in ("ok", "any", "fail"):
            raise UsageError(f"--after {item!r}: {when!r} is not ok, any or fail", "such as `--after RUN:any`")
        found.append({"run": find_run(session.home, name).run, "when": when})
    return found


def configure_run(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
No profile is needed. Options of mpstui stand before `--`, those of the command behind it. Examples:
  mpstui run -- python train.py --lr 3e-4
  mpstui run --device cpu --name baseline -- python train.py"""
    parser.usage = "mpstui run [options] -- COMMAND ..."
    _add_launch_options(parser)
    parser.add_argument(
        "--no-agent",
        action="store_true",
        help="do not load the agent into a Python program: no heartbeat, no cache clearing, no CPU override",
    )
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...", help="the program, as you type it"
    )


def run_run(args: argparse.Namespace) -> int:
    session = Session()
    command = _command_of(args)
    _refuse_profile(session, command)
    choice = LaunchChoice(
        profile=profile_of_command(command, cwd=session.cwd, name=args.name, agent=_is_python(command, args)),
        device=args.device,
        recipe=args.recipe,
        name=args.name,
        env=parse_environment(args.env),
        queue=QueueRule(args.queue, _queue_conditions(session, args.after)),
    )
    return _launch_all(session, [choice], as_json=args.json)


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

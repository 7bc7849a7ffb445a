"""`mpstui launch` and `mpstui run`: start a profile, or any command, in the background."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import which

from ..core.engines.engine import CLUSTER, ENGINES, LOCAL
from ..core.launching.choice import (
    ACCELERATOR_QUEUE,
    LaunchChoice,
    combinations,
    job_options,
    parse_condition,
    parse_environment,
    parse_sets,
)
from ..core.launching.launch import launch_all
from ..core.launching.planning import LaunchPlan, plan
from ..core.launching.telling import script_of, told
from ..core.machine import this_machine
from ..core.model.errors import UsageError
from ..core.profiles.library import load_profile, names_profile
from ..core.profiles.model import Profile, profile_of_command
from ..wire.records import QueueRule
from .resuming import known
from .session import Session, add_repeatable, agreed, print_json, say_lines, warn

AGENT_HELP = "load the agent into every Python of the program: heartbeat, cache clearing, CPU override (default: yes)"


def configure_launch(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
The run keeps going when this terminal closes; several runs are queued. Examples:
  mpstui launch quickstart --set epochs=3
  mpstui launch cifar10 --sweep lr=0.1,0.01 --sweep seed=1,2,3
  mpstui launch ./mine.toml --device cpu --after RUN"""
    parser.usage = "mpstui launch PROFILE [options]"
    # Optional for argparse, which cannot explain that an option with an optional value has swallowed the profile.
    parser.add_argument("profile", nargs="?", metavar="PROFILE", help="a profile's name, or the path of its file")
    add_repeatable(parser, "--set", "KEY=VALUE", "override an argument of the profile")
    add_repeatable(parser, "--sweep", "KEY=V1,V2", "queue a run for each value, and for each combination")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="[HOST:]RUN",
        help="start from a checkpoint of a run, also on another machine",
    )
    parser.add_argument("--at", type=int, metavar="STEP", help="with --from: the newest one at or before that step")
    _add_launch_options(parser)


def _add_launch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", metavar="auto|mps|cuda|cpu", help="where to train (auto: CUDA, else MPS, else CPU)")
    parser.add_argument("--recipe", metavar="safe|classic|fast", help="set of environment variables")
    add_repeatable(
        parser, "--on", "HOST|slurm|local", "train on another machine, as a job of Slurm (there, with both), or here"
    )
    parser.add_argument("--name", metavar="NAME", help="name of the run")
    add_repeatable(parser, "--env", "NAME=VALUE", "set an environment variable")
    add_repeatable(parser, "--after", "RUN[:ok|any|fail]", "wait until RUN has finished (ok), ended or failed")
    parser.add_argument(
        "--queue",
        nargs="?",
        const=ACCELERATOR_QUEUE,
        metavar="NAME",
        help="wait for a slot in that queue (default: that of the accelerator; on CUDA, for a GPU of its own)",
    )
    add_repeatable(parser, "--job", "OPTION[=VALUE]", "set an option of the scheduler, such as partition=gpu")
    parser.add_argument("--agent", action=argparse.BooleanOptionalAction, help=AGENT_HELP)
    parser.add_argument("--yes", action="store_true", help="do not ask before several runs are started")
    parser.add_argument("--dry-run", action="store_true", help="print what would be sent and started; do neither")
    parser.add_argument("--json", action="store_true", help='print {"run": ID}')


def run_launch(args: argparse.Namespace) -> int:
    if args.profile is None and args.queue not in (None, ACCELERATOR_QUEUE):
        raise UsageError(
            f"--queue took {args.queue!r} for the queue's name, so that no profile is left",
            f"`mpstui launch {args.queue} --queue`, or `mpstui launch PROFILE --queue {args.queue}`",
        )
    if args.profile is None:
        raise UsageError("launch needs PROFILE", "`mpstui profiles` lists them; see `mpstui launch --help`")
    session = Session()
    profile = load_profile(args.profile, session.home, session.cwd)
    if not args.dry_run:
        introduce(profile, session, args.profile)
    sweep = {key: tuple(values.split(",")) for key, values in parse_sets(args.sweep, "--sweep").items()}
    choice = LaunchChoice(profile, sets=parse_sets(args.set), sweep=sweep)
    if args.start is None and args.at is None:
        return _launch(session, args, choice)
    from ..core.hosts.holding import let_go
    from .elsewhere import beginning

    branch = beginning(session, args, profile)
    try:
        return _launch(session, args, replace(choice, branch=branch))
    finally:
        if branch is not None:
            let_go(Path(branch.checkpoint).parent)


def introduce(profile: Profile, session: Session, named: str) -> None:
    """Before the first launch of a profile in the current folder, show what it runs; on a terminal, ask.

    Raises:
        UsageError: it is another user's profile, or the answer was no.
    """
    from ..core.profiles.first_run import acquaintance

    asked = "/" in named
    found = acquaintance(profile, session.home, session.cwd, asked=asked)
    for note in found.notes:
        warn(note)
    if not found.shown:
        return
    if asked or not (sys.stdin.isatty() and sys.stderr.isatty()):
        sentence, *rest = (line.strip() for line in found.shown)
        warn(f"{sentence} {'; '.join(rest)}")
        return
    for line in found.shown:
        say_lines(line, beside=True)
    if not agreed("launch it?"):
        raise UsageError("nothing was launched", f"`mpstui launch {shlex.quote(str(profile.path))}` does not ask")


def _launch(session: Session, args: argparse.Namespace, choice: LaunchChoice) -> int:
    """Plan all runs, then launch them and print their ids: if the last one has a mistake, none is started."""
    host, engine = where(args.on)
    choice = replace(
        choice,
        device=args.device,
        recipe=args.recipe,
        name=args.name,
        env=parse_environment(args.env),
        agent=args.agent,
        on=engine,
        job=job_options(args.job),
        queue=QueueRule(args.queue, [parse_condition(session.home, item) for item in args.after]),
    )
    if host is not None:
        from .elsewhere import launch_on

        return launch_on(session, args, host, combinations(choice))
    machine, check = this_machine(), not args.dry_run
    plans = [plan(one, environ=session.environ, machine=machine, check=check) for one in combinations(choice)]
    foreseen = [told(made, session.home.runs) for made in plans]
    for warning in dict.fromkeys(warning for one in foreseen for warning in one["warnings"]):
        warn(warning)
    if args.dry_run:
        print_json({"host": LOCAL, "runs": foreseen, "code": None}) if args.json else say_lines(script_of(foreseen))
        return 0
    if len(plans) > 1 and not args.yes:
        _ask_for_all(session, plans)
    runs = launch_all(plans, session.home, session.environ, time.time, known("call") or "")
    if args.json:
        print_json({"run": runs[0]} if len(runs) == 1 else {"runs": runs})
    else:
        say_lines("\n".join(runs))
        if sys.stdout.isatty() and sys.stderr.isatty():
            opens = f"`mpstui {runs[0]}` opens it" if len(runs) == 1 else "`mpstui` shows them"
            goes_on = "it keeps running" if len(runs) == 1 else "they keep running"
            say_lines(f"{opens}; {goes_on} when this terminal is closed", beside=True)
    return 0


def where(words: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the machine and the scheduler that ``--on`` names; None for this machine, and for the profile's scheduler.

    Raises:
        UsageError: it names two machines or two schedulers.
    """
    engines = [word for word in words if word in (LOCAL, CLUSTER, *ENGINES)]
    hosts = [word for word in words if word not in engines]
    if len(engines) > 1 or len(hosts) > 1:
        two = " and ".join(engines if len(engines) > 1 else hosts)
        raise UsageError(f"--on names {two}: one machine, and one scheduler on it", "such as --on gpu1 --on slurm")
    return next(iter(hosts), None), next(iter(engines), None)


def _ask_for_all(session: Session, plans: Sequence[LaunchPlan]) -> None:
    """On a terminal, ask before starting several runs, and say how long they will take.

    Raises:
        UsageError: the answer was no.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    from ..core.runs.expected import expected, expected_sentence
    from ..core.runs.monitor import Monitor

    profile, epochs = plans[0].choice.profile, plans[0].template.totals.epochs
    known = expected(profile.slug if profile.path else None, epochs, Monitor(session.home).refresh_whole())
    say_lines("\n".join([*(made.name for made in plans), expected_sentence(known, len(plans))]), beside=True)
    if not agreed(f"start {len(plans)} runs, one at a time on each accelerator?"):
        raise UsageError("nothing was launched", "`--yes` does not ask")


def configure_run(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
No profile is needed. Options of mpstui come before `--`, those of the command after it. Examples:
  mpstui run -- python train.py --lr 3e-4
  mpstui run --device cpu --name baseline -- python train.py
  mpstui run --resume='--resume {checkpoint}' --checkpoints 'out/*.pt' -- python train.py"""
    parser.usage = "mpstui run [options] -- COMMAND ..."
    _add_launch_options(parser)
    parser.add_argument("--cwd", metavar="FOLDER", help="where the command runs (default: here)")
    parser.add_argument(
        "--resume",
        metavar="'ARGS'",
        help="what a restart appends so that the program continues; {checkpoint} is the newest of --checkpoints",
    )
    parser.add_argument("--checkpoints", metavar="'PATTERN'", help="its checkpoints, such as 'out/*.pt'")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...", help="as you type it")


def _words(text: str | None) -> tuple[str, ...] | None:
    """Split arguments as a shell would; None if there are none."""
    try:
        return None if text is None else tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--resume {text!r} cannot be split into words: {error}", "close its quotes") from error


def run_run(args: argparse.Namespace) -> int:
    session = Session()
    separated = args.command[:1] == ["--"]
    command = tuple(args.command[1:] if separated else args.command)
    group = args.queue
    if not separated and group not in (None, ACCELERATOR_QUEUE) and (which(group) or Path(group).is_file()):
        typed = shlex.join([group, *command])
        raise UsageError(
            f"--queue took {group!r}, a program, for the queue's name",
            f"put -- before the command: `mpstui run --queue -- {typed}`, or `mpstui run --queue NAME -- {typed}`",
        )
    if not command:
        raise UsageError("there is no command to run", "such as: mpstui run -- python train.py")
    name = command[0]
    if which(name) is None and names_profile(name, session.home, session.cwd):
        changed = " (`--set KEY=VALUE` changes one of its arguments)" if command[1:] else ""
        raise UsageError(f"{name!r} is a profile, not a program", f"start it with `mpstui launch {name}`{changed}")
    profile = profile_of_command(
        command,
        cwd=(session.cwd / Path(args.cwd or "").expanduser()).resolve(),
        name=args.name,
        resume_args=_words(args.resume),
        checkpoints=args.checkpoints,
    )
    return _launch(session, args, LaunchChoice(profile))

"""`mpstui launch`: start a saved profile, detached."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable

from ..core.launching.choice import ACCELERATOR_QUEUE, LaunchChoice, combinations, parse_sets
from ..core.launching.launches import launch
from ..core.launching.planning import LaunchPlan, plan
from ..core.machine import this_machine
from ..core.model.errors import UsageError
from ..core.profiles.library import load_profile
from ..wire.records import QueueRule
from .session import Session, print_json, warn

HELP = "Start a saved profile in the background; the run goes on when this terminal closes. Prints the run's id."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mpstui launch PROFILE [options]"
    # Not required of argparse, which cannot say where a profile went that followed an option with an optional value.
    parser.add_argument("profile", nargs="?", metavar="PROFILE", help="a profile's name, or the path of its file")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="sets",
        help="override one of the profile's arguments; may be given again",
    )
    parser.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="KEY=V1,V2",
        help="one run for each value, and for each combination with other --sweep and the profile's own [sweep]; "
        "they run one at a time on each accelerator",
    )
    add_launch_options(parser)


def add_launch_options(parser: argparse.ArgumentParser) -> None:
    """The options that `launch` and `run` share."""
    parser.add_argument("--device", metavar="auto|mps|cuda|cpu", help="where to train; auto takes what is there")
    parser.add_argument("--recipe", metavar="NAME", help="environment variables: safe, classic or fast")
    parser.add_argument("--name", help="what the run is called")
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="one more environment variable for this run"
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
        help="wait until no other run of that queue is running; without a name: until the accelerator (on CUDA: a GPU, "
        "which the run then has for itself) is free of queued runs",
    )
    parser.add_argument("--json", action="store_true", help='print {"run": ID}')


def run(args: argparse.Namespace) -> int:
    session = Session()
    choice = LaunchChoice(
        profile=load_profile(_profile_of(args), session.home, session.cwd),
        device=args.device,
        sets=parse_sets(args.sets),
        sweep={key: tuple(values.split(",")) for key, values in parse_sets(args.sweep, "--sweep").items()},
        recipe=args.recipe,
        name=args.name,
        env=parse_environment(args.env),
        queue=QueueRule(args.queue, queue_conditions(session, args.after)),
    )
    return launch_all(session, combinations(choice), as_json=args.json)


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


def launch_all(session: Session, choices: Iterable[LaunchChoice], *, as_json: bool) -> int:
    """Plan all, then launch all: a mistake in the last one starts none. Prints the ids."""
    machine = this_machine()
    plans = [plan(choice, environ=session.environ, machine=machine) for choice in choices]
    for warning in dict.fromkeys(warning for made in plans for warning in made.warnings):
        warn(warning)
    runs = [_start(session, made) for made in plans]
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


def queue_conditions(session: Session, items: Iterable[str]) -> list[dict[str, str]]:
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


def _start(session: Session, made: LaunchPlan) -> str:
    return launch(made, session.home, session.environ, time.time())

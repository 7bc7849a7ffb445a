"""`mpstui launch PROFILE --on HOST`: show what will be sent, send it, and launch it there."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from math import inf

from ..core.hosts.offering import FarOffering, Launches, launches_of
from ..core.hosts.progress import Wish
from ..core.hosts.sending import CALLED_OFF, Sender, fetched, sender
from ..core.hosts.ssh import LOCAL, connect
from ..core.hosts.talk import Place
from ..core.launching.branching import branch_at
from ..core.launching.choice import LaunchChoice, parse_environment, parse_sets
from ..core.launching.telling import script_of
from ..core.model.errors import UsageError
from ..core.present import whole
from ..core.profiles.first_run import remember
from ..core.profiles.model import Profile
from ..core.runs.find import find_run
from ..core.runs.monitor import Monitor
from ..core.settings import load_settings
from ..wire.records import Branch
from .carrying import carried
from .session import Session, agreed, print_json, say_lines, warn


def launch_on(session: Session, args: argparse.Namespace, host: str, choices: Sequence[LaunchChoice]) -> int:
    """Send a launch's code to a host and start it there; print the ids."""
    first = choices[0]
    if any(choice.queue.after for choice in choices):
        raise UsageError("--after names runs of this machine, and --on starts none here", "leave one of them out")
    with sender(LOCAL, host, load_settings(session.home).hosts, session.home, session.environ) as sending:
        code = send(sending, host, launches_of(choices, first.on, first.job), args)
    if code == 0 and not args.dry_run:
        with contextlib.suppress(OSError):
            remember(first.profile, session.home)
    return code


def branch_on(session: Session, args: argparse.Namespace, source: str, run: str, host: str, engine: str | None) -> int:
    """Start a new run on one machine from a checkpoint of a run on another one; print its id."""
    if source == host:
        raise UsageError(f"{run} is on {host} itself", f"`mpstui branch {run} --host {host}` starts it there")
    asked = {"run": run, "at": args.at, "name": args.name, "device": args.device}
    asked |= {"sets": parse_sets(args.set), "env": parse_environment(args.env)}
    with sender(source, host, load_settings(session.home).hosts, session.home, session.environ) as sending:
        return send(sending, host, sending.branch(asked)._replace(on=engine), args)


def beginning(session: Session, args: argparse.Namespace, profile: Profile) -> Branch | None:
    """Return the checkpoint that ``--from`` names, fetched if it is on another machine; None without ``--from``.

    Raises:
        UsageError: the profile does not say how its program resumes from one, or there is no such run.
        OperationError: it cannot be fetched.
    """
    if args.start is None:
        if args.at is not None:
            raise UsageError("--at is a step of the run that --from names", "such as --from RUN --at 1200", field="at")
        return None
    if profile.resume_args is None:
        hint = 'give it [resume] args, such as args = ["--resume", "{checkpoint}"]'
        raise UsageError(f"profile {profile.slug} does not say how it resumes from a checkpoint", hint)
    source, _, run = args.start.rpartition(":")
    at = inf if args.at is None else args.at
    if source in ("", LOCAL):
        return branch_at(Monitor(session.home).snapshot(find_run(session.home, run).run), at)
    hosts = load_settings(session.home).hosts
    with Place(connect(source, hosts, ("transfer",), environ=session.environ)) as place:
        asked = {"run": run, "at": args.at, "name": None, "device": None, "sets": {}, "env": {}}
        if not args.dry_run:
            wish = Wish(CALLED_OFF)
            with carried(wish.take_back) as tell:
                return fetched(place, asked, session.home, tell, wish)
        left = Branch(*FarOffering(place).branch(asked).branch or ())
        say_lines(f"from step {whole(left.step)} of {args.start}: {left.checkpoint}", beside=args.json)
        return None


def send(sending: Sender, host: str, launches: Launches, args: argparse.Namespace) -> int:
    """Show what a launch sends and starts on another machine, then do it; print the ids.

    Raises:
        UsageError: the answer was no.
    """
    found = sending.look(launches)
    if args.dry_run and args.json:
        print_json(found.json())
        return 0
    for line in found.sentences:
        say_lines(line, beside=not args.dry_run)
    if args.dry_run:
        say_lines(script_of(found.runs))
        return 0
    count = len(launches.told)
    asks = sys.stdin.isatty() and sys.stderr.isatty() and found.sends and not args.yes
    if asks and not agreed(f"send it, and launch {count} run{'' if count == 1 else 's'} on {host}?"):
        raise UsageError("nothing was sent or launched", "the list above says what would travel")
    with carried(sending.cancel) as tell:
        answer = sending.launch(found, tell)
    for warning in answer["warnings"]:
        warn(str(warning))
    runs = [str(run) for run in answer["runs"]]
    if args.json:
        branch = {"branch": found.branch._asdict()} if found.branch is not None else {}
        print_json({"host": host, **({"run": runs[0]} if len(runs) == 1 else {"runs": runs}), **branch})
    else:
        say_lines("\n".join(runs))
        if sys.stderr.isatty() and host != LOCAL:
            say_lines(f"`mpstui --host {host}` shows {'it' if len(runs) == 1 else 'them'}", beside=True)
    return 0

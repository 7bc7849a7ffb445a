"""`mpstui launch PROFILE --on HOST`: what travels is shown, then sent, then launched there."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from typing import Any

from ..core.hosts.offering import Launches, launches_of
from ..core.hosts.sending import Sender, sender
from ..core.hosts.ssh import LOCAL
from ..core.launching.choice import LaunchChoice
from ..core.launching.telling import script_of
from ..core.model.errors import UsageError
from ..core.profiles.first_run import remember
from ..core.settings import load_settings
from .session import Session, agreed, print_json, say_lines, warn


def launch_on(session: Session, args: argparse.Namespace, host: str, choices: Sequence[LaunchChoice]) -> int:
    """Send the code of a launch to a host and start it there; print the ids."""
    first = choices[0]
    if any(choice.queue.after for choice in choices):
        raise UsageError("--after names runs of this machine, and --on starts none here", "leave one of them out")
    with sender(LOCAL, host, load_settings(session.home).hosts, session.home, session.environ) as sending:
        code = send(sending, host, launches_of(choices, first.on, first.job), args)
    if code == 0 and not args.dry_run:
        with contextlib.suppress(OSError):
            remember(first.profile, session.home)
    return code


def send(sending: Sender, host: str, launches: Launches, args: argparse.Namespace, **told: Any) -> int:
    """Show what a launch sends and starts on another machine, then do it; print the ids.

    Args:
        told: what the JSON has beside that.

    Raises:
        UsageError: the answer was no.
    """
    found = sending.look(launches)
    if args.dry_run and args.json:
        print_json({**told, **found.json()})
        return 0
    for line in found.sentences:
        say_lines(line, beside=not args.dry_run)
    if args.dry_run:
        say_lines(script_of(found.runs))
        return 0
    count = len(launches.told)
    asks = sys.stdin.isatty() and sys.stderr.isatty() and found.lacking
    if asks and not agreed(f"send it, and launch {count} run{'' if count == 1 else 's'} on {host}?"):
        raise UsageError("nothing was sent or launched", "the list above says what would travel")
    answer = sending.launch(found)
    for warning in answer["warnings"]:
        warn(str(warning))
    runs = [str(run) for run in answer["runs"]]
    if args.json:
        print_json({"host": host, **({"run": runs[0]} if len(runs) == 1 else {"runs": runs}), **told})
    else:
        say_lines("\n".join(runs))
        if sys.stderr.isatty():
            say_lines(f"`mpstui --host {host}` shows {'it' if len(runs) == 1 else 'them'}", beside=True)
    return 0

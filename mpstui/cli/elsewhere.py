"""`mpstui launch PROFILE --on HOST`: what travels is shown, then sent, then launched there."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from ..core.hosts.elsewhere import Shipment, launch_there, shipment
from ..core.hosts.ssh import connect
from ..core.hosts.talk import Place
from ..core.launching.choice import LaunchChoice
from ..core.model.errors import UsageError
from ..core.present import size
from ..core.settings import HostSettings, load_settings
from .session import Session, agreed, print_json, say_lines, warn

_REASONS = {
    "secret": "a secret by its name",
    "token": "holds a token or a private key",
    "large": "no code by its size",
    "outside": "a link that leads out of the folder",
    "special": "no regular file",
}
_MOST_NAMED = 8


def launch_on(session: Session, args: argparse.Namespace, choices: Sequence[LaunchChoice]) -> int:
    """Send the code of a launch to a host and start it there; print the ids."""
    if any(choice.queue.after for choice in choices):
        raise UsageError("--after names runs of this machine, and --on starts none here", "leave one of them out")
    hosts = load_settings(session.home).hosts
    choices = [replace(choice, branch=None) for choice in choices]
    with Place(connect(args.on, hosts, ("transfer",), environ=session.environ)) as place:
        found = shipment(choices[0], place, session.home)
        for line in told(found, args.on):
            say_lines(line, beside=True)
        asks = sys.stdin.isatty() and sys.stderr.isatty() and found.lacking
        if asks and not agreed(f"send it, and launch {_counted(len(choices), 'run')} on {args.on}?"):
            raise UsageError("nothing was sent or launched", "the list above says what would travel")
        answer = launch_there(choices, found, place, hosts.named.get(args.on, HostSettings()))
    for warning in answer["warnings"]:
        warn(str(warning))
    runs = [str(run) for run in answer["runs"]]
    if args.json:
        print_json({"host": args.on, **({"run": runs[0]} if len(runs) == 1 else {"runs": runs})})
    else:
        say_lines("\n".join(runs))
        if sys.stderr.isatty():
            say_lines(f"`mpstui --host {args.on}` shows {'it' if len(runs) == 1 else 'them'}", beside=True)
    return 0


def told(found: Shipment, host: str) -> list[str]:
    """What travels and what stays, a line each."""
    tree = found.tree
    if tree is None:
        return []
    source = tree.provenance
    commit = f", commit {source.commit[:8]}" if source.commit else ""
    if commit and source.changed_files:
        commit += f" and {_counted(source.changed_files, 'changed file')}"
    whole = f"{_counted(len(tree.files), 'file')} of {tree.root} ({size(tree.size_bytes)}{commit})"
    if found.lacking:
        sent = f"{_counted(found.files, 'file')}, {size(found.size_bytes)}"
        lines = [f"{host} gets {whole}" + (f"; new there: {sent}" if found.size_bytes < tree.size_bytes else "")]
    else:
        lines = [f"{host} has {whole} already"]
    named = [
        f"{one.name} ({_REASONS[one.why]}{f', line {one.line}' if one.line else ''})"
        for one in tree.staying[:_MOST_NAMED]
    ]
    more = len(tree.staying) - len(named)
    if named:
        lines.append("stays here: " + ", ".join(named) + (f" and {more} more" if more else ""))
    return lines


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"

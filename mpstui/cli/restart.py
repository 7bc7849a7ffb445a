"""`mpstui restart`: a new attempt of the same run, on another device or with other arguments if you like."""

from __future__ import annotations

import argparse
from dataclasses import replace

from ..core.errors import UsageError
from ..core.launching import Actions, LaunchChoice, edit_choice, parse_sets
from ..core.machine import DEVICES
from ..core.runs.snapshot import RunSnapshot
from ..wire.records import Request
from .acting import act, configure_action
from .launch import parse_environment
from .session import Session

HELP = (
    "Start a new attempt of a run, whether it runs (it is stopped first) or has ended; it continues from a checkpoint."
)


def configure(parser: argparse.ArgumentParser) -> None:
    configure_action(parser)
    parser.add_argument("--device", metavar="auto|mps|cuda|cpu", help="the device of the new attempt")
    parser.add_argument(
        "--from",
        dest="source",
        default="latest",
        metavar="latest|best|scratch|PATH",
        help="the checkpoint to continue from (latest)",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="sets", help="change an argument from now on"
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="change a variable from now on"
    )


def run(args: argparse.Namespace) -> int:
    if args.device is not None and args.device not in DEVICES:
        raise UsageError(f"there is no device {args.device!r}", f"one of {', '.join(DEVICES)}")
    sets, env = parse_sets(args.sets), parse_environment(args.env)

    def ask(actions: Actions, snapshot: RunSnapshot) -> Request:
        edited = _edited(snapshot, sets, env) if sets or env else None
        return actions.restart(snapshot, device=args.device, source=args.source, choice=edited)

    return act(args, ask)


def _edited(snapshot: RunSnapshot, sets: dict[str, str], env: dict[str, str]) -> LaunchChoice:
    """The run's own launch with some of it changed; what was changed before stays changed."""
    before = edit_choice(snapshot, Session().home)
    return replace(before, sets={**before.sets, **sets}, env={**before.env, **env})

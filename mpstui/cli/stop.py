"""`mpstui stop`: the stop ladder, ask first and insist later."""

from __future__ import annotations

import argparse

from .acting import act, configure_action

HELP = "Ask a run to save and end; after its grace period, end it and all it started."


def configure(parser: argparse.ArgumentParser) -> None:
    configure_action(parser)
    parser.add_argument("--force", action="store_true", help="do not wait for the grace period")


def run(args: argparse.Namespace) -> int:
    return act(args, lambda actions, snapshot: actions.stop(snapshot, force=args.force))

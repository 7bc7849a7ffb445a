"""`mpstui continue`: let a paused run go on."""

from __future__ import annotations

import argparse

from .acting import act, configure_action

HELP = "Let a paused run go on."


def configure(parser: argparse.ArgumentParser) -> None:
    configure_action(parser)


def run(args: argparse.Namespace) -> int:
    return act(args, lambda actions, snapshot: actions.resume(snapshot))

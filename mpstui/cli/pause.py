"""`mpstui pause`: freeze a run's processes; their memory stays taken."""

from __future__ import annotations

import argparse

from .acting import act, configure_action

HELP = "Freeze a run's processes; their memory stays taken."


def configure(parser: argparse.ArgumentParser) -> None:
    configure_action(parser)


def run(args: argparse.Namespace) -> int:
    return act(args, lambda actions, snapshot: actions.pause(snapshot))

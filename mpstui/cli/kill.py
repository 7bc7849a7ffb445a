"""`mpstui kill`: end a run and all it started, at once."""

from __future__ import annotations

import argparse

from .acting import act, configure_action

HELP = "End a run and all it started, at once."


def configure(parser: argparse.ArgumentParser) -> None:
    configure_action(parser)


def run(args: argparse.Namespace) -> int:
    return act(args, lambda actions, snapshot: actions.kill(snapshot))

"""`mpstui clear-cache`: the trainer returns its device's cached memory and says how much it was."""

from __future__ import annotations

import argparse

from .acting import act, configure_action

HELP = "Have the trainer return its device's cached memory, and wait for its word on how much that freed."
TIMEOUT_SECONDS = 60.0


def configure(parser: argparse.ArgumentParser) -> None:
    configure_action(parser, timeout=TIMEOUT_SECONDS)


def run(args: argparse.Namespace) -> int:
    return act(args, lambda actions, snapshot: actions.clear_cache(snapshot))

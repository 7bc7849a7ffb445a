"""`mpstui watch PATH`: the screen on what mpstui did not start."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ..core.model.errors import UsageError
from ..core.model.home import resolve_home
from .screen import add_screen_options, require_terminal, show_screen

HELP = "Open the screen on a log, a heartbeat, a metric file or a run directory that mpstui did not start."


def configure(parser: argparse.ArgumentParser) -> None:
    """The path, and the options of the screen."""
    parser.add_argument("path", metavar="PATH", help="a log, heartbeat or metric file, or a folder with some of them")
    add_screen_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Open the screen on the path."""
    path = Path(arguments.path).expanduser()
    if not path.exists():
        raise UsageError(f"there is no {path}", "name a log, a heartbeat, a metric file or a folder")
    require_terminal()
    watching = path.absolute()
    return show_screen(resolve_home(os.environ), arguments, opening=str(watching), watching=watching)

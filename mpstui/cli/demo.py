"""`mpstui demo`: launch the quick-start profile and look at it."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from ..core.model.home import resolve_home
from .screen import add_screen_options, require_terminal, show_screen

HELP = "Launch the quick-start profile and open its screen; it goes on when the screen is left."
PROFILE = "quickstart"


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of the screen, and another device."""
    parser.add_argument("--device", choices=("auto", "mps", "cuda", "cpu"), default=None, help="where to train")
    add_screen_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Launch, then open the screen on the new run."""
    require_terminal()
    from ..core.launching.choice import LaunchChoice
    from ..core.launching.launches import launch
    from ..core.launching.planning import plan
    from ..core.machine import this_machine
    from ..core.profiles.library import load_profile

    home = resolve_home(os.environ)
    choice = LaunchChoice(load_profile(PROFILE, home, Path.cwd()), device=arguments.device)
    planned = plan(choice, environ=os.environ, machine=this_machine())
    started = launch(planned, home, os.environ, time.time())
    return show_screen(home, arguments, opening=started)

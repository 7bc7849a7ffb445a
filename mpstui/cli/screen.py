"""`mpstui`: the screen on all runs, or on one of them."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.model.errors import OperationError, UsageError
from ..core.model.home import Home, resolve_home
from ..core.settings import THEMES, load_settings
from ..wire import liveness

if TYPE_CHECKING:
    from ..ui.app import MpstuiApp
    from ..ui.terminal import Terminal

HELP = "the screen"
SWITCH_SECONDS = 0.001
COLOUR_CHOICES = ("auto", "16", "256", "truecolor")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the screen, and the run to open."""
    parser.add_argument(
        "opening", nargs="?", metavar="RUN", help="open this run: an id, its beginning, a name, or a profile's name"
    )
    add_screen_options(parser)
    parser.add_argument("--run", dest="named", metavar="RUN", help="the same, for a run that is called like a command")


def add_screen_options(parser: argparse.ArgumentParser) -> None:
    """The options that every command with a screen has."""
    parser.add_argument(
        "--color", choices=COLOUR_CHOICES, default="auto", help="colours of the terminal (default: what it says it has)"
    )
    parser.add_argument(
        "--theme",
        choices=THEMES,
        help="for a dark or a light terminal (default: [screen] theme in settings.toml, else what the terminal says)",
    )
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")


def run(arguments: argparse.Namespace) -> int:
    """Open the screen."""
    home = resolve_home(os.environ)
    opening = None
    name = arguments.named or arguments.opening
    if name:
        from ..core.runs.find import find_run

        opening = find_run(home, name).run
    require_terminal()
    return show_screen(home, arguments, opening)


def require_terminal() -> None:
    """Refuse where there is nothing to draw on.

    Raises:
        OperationError: input or output is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        raise OperationError("the screen needs a terminal", "`mpstui ps` lists the runs, `mpstui show RUN` prints one")


def show_screen(
    home: Home, arguments: argparse.Namespace, opening: str | None = None, watching: Path | None = None
) -> int:
    """Take the terminal until the person leaves; 128 plus the signal when one ended it.

    Args:
        home: where the runs are.
        arguments: the options of :func:`add_screen_options`.
        opening: the run to open.
        watching: a file or folder that mpstui did not start, shown beside the runs.
    """
    from .prepaint import early_picture

    log = watching if watching is not None and watching.is_file() else None
    with early_picture(watching.name if watching is not None else "mpstui", log):
        app, terminal = _made(home, arguments, opening, watching, log)
    lock = say_open(home)
    app.run(mouse=not arguments.no_mouse)
    if lock is not None:
        liveness.release(lock)
    return terminal.exit_code() or app.return_code or 0


def _made(
    home: Home, arguments: argparse.Namespace, opening: str | None, watching: Path | None, log: Path | None
) -> tuple[MpstuiApp, Terminal]:
    # Colours, keyboard protocol and animations are read by Textual when it is imported.
    from ..core.present.terminal import colour_system, ground, textual_colour_system

    colours = colour_system(os.environ, arguments.color)
    os.environ["TEXTUAL_COLOR_SYSTEM"] = textual_colour_system(colours)
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    from ..core.model.allocator import share_one_heap
    from ..ui.app import MpstuiApp
    from ..ui.services import core_services
    from ..ui.terminal import Terminal
    from ..ui.theme import theme_for

    # A thread that reads a long log gives way to keys and frames this often.
    sys.setswitchinterval(SWITCH_SECONDS)
    share_one_heap()
    terminal = Terminal()
    app = MpstuiApp(
        core_services(home, os.environ, Path.cwd(), time.time, watching),
        opening=opening,
        log=log,
        theme=theme_for(os.environ, colours, ground(os.environ, arguments.theme or _wished_theme(home))),
        terminal=terminal,
        blocks=os.environ.get("TERM") == "linux",
    )
    return app, terminal


def _wished_theme(home: Home) -> str:
    """What the settings say; the screen tells of a mistake in them once it is open, which none keeps it from."""
    try:
        return load_settings(home).screen.theme
    except UsageError:
        return "auto"


def say_open(home: Home) -> int | None:
    """Hold the lock by which alerts know that somebody looks; without it they merely come although a screen is open."""
    try:
        home.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        return liveness.share(home.screen_lock)
    except OSError:
        return None

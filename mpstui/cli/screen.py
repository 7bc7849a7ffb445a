"""`mpstui`, `mpstui watch` and `mpstui demo`: the screen, on all runs, on one, or on what mpstui did not start."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ..core.model.errors import OperationError, UsageError
from ..core.model.home import GRAPHICS, THEMES, Home, resolve_home
from ..wire import liveness, storage

if TYPE_CHECKING:
    from ..ui.app import MpstuiApp
    from ..ui.services import Services
    from ..ui.terminal import Terminal

COLOUR_CHOICES = ("auto", "16", "256", "truecolor")
_END_BYTES = 1 << 14
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "opening", nargs="?", metavar="RUN", help="open this run: an id, its beginning, a name, or a profile's name"
    )
    _add_screen_options(parser)
    parser.add_argument("--run", dest="named", metavar="RUN", help="open this run, even if it is named like a command")


def configure_watch(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
PATH is shown as it grows; nothing in it is changed. Examples:
  mpstui watch train.log
  mpstui watch lightning_logs/version_3
  mpstui watch wandb/                      # the runs of a store: docs/stores.md names those that are read
  mpstui watch slurm:17                    # the output of a job; slurm: is all of yours"""
    parser.add_argument("path", metavar="PATH", help="a log, heartbeat or metric file, a folder with some, slurm:JOB")
    parser.add_argument("--where", action="store_true", help=argparse.SUPPRESS)  # asked of another machine
    _add_screen_options(parser)


def configure_demo(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "It trains a tiny network for about a minute, and keeps training when the screen is closed."
    parser.add_argument("--device", choices=("auto", "mps", "cuda", "cpu"), default=None, help="where to train")
    _add_screen_options(parser)


def _add_screen_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--color", choices=COLOUR_CHOICES, default="auto", help="colours to use (auto: those the terminal announces)"
    )
    parser.add_argument(
        "--theme", choices=THEMES, help="for a dark or light terminal (default: settings.toml, else as announced)"
    )
    parser.add_argument(
        "--graphics", choices=GRAPHICS, help="charts in pixels (default: settings.toml, else where the terminal can)"
    )
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")


def run(arguments: argparse.Namespace) -> int:
    home, hosts = resolve_home(os.environ), arguments.hosts
    opening, name = None, arguments.named or arguments.opening
    if name and not set(hosts) - {"local"}:
        from ..core.runs.find import find_run

        opening = find_run(home, name).run
    elif name:
        if len(hosts) > 1 and ":" not in name:
            raise UsageError(f"which machine is {name} on?", f"`mpstui {name} --host {hosts[0]}`")
        opening = name if ":" in name else f"{hosts[0]}:{name}"
    elif not hosts:
        arguments.hosts = _hosts_to_show(home)
    require_terminal()
    return show_screen(home, arguments, opening)


def run_watch(arguments: argparse.Namespace) -> int:
    home = resolve_home(os.environ)
    opening, watching = _watched(home, arguments.path)
    if arguments.where:
        from .session import say

        say(str(watching))
        say(opening or "")
        return 0
    require_terminal()
    if opening and watching.parent == home.runs.absolute() and (watching / "spec.json").is_file():
        return show_screen(home, arguments, watching.name)  # it is one of the list
    return show_screen(home, arguments, opening, watching)


def _watched(home: Home, word: str) -> tuple[str | None, Path]:
    """Return the key of the run to open, and what to watch; the key is None for all jobs and for a store's runs.

    Raises:
        UsageError: there is nothing of this name.
    """
    from ..core.formats.stores import find_runs, require_path
    from ..core.runs.watched_jobs import job_named, require_job

    if (job := job_named(word)) is not None and not Path(word).exists():
        require_job(word, home.state)
        return (word if job[1] else None), Path(word)
    path = Path(word).expanduser().absolute()
    runs = find_runs(path)
    if not runs:
        require_path(path)
    return (str(path) if not runs else runs[0].key if len(runs) == 1 else None), path


def watch_there(host: str, arguments: argparse.Namespace) -> int:
    """Open the screen on a path on another machine, after making sure that it exists."""
    from .far import ask_all
    from .session import say_lines

    require_terminal()
    (found,) = ask_all([host], ["watch", "--where", "--", arguments.path])
    if isinstance(found, OperationError):
        raise found
    if found.code:
        say_lines(found.errors.decode(errors="replace").rstrip(), beside=True)
        return found.code
    watching, _, opening = found.output.decode().rstrip("\n").partition("\n")
    shown = f"{host}:{opening}" if opening else None
    return show_screen(resolve_home(os.environ), arguments, shown, Path(f"{host}:{watching}"))


def run_demo(arguments: argparse.Namespace) -> int:
    require_terminal()
    from ..core.launching.choice import LaunchChoice
    from ..core.launching.launch import launch
    from ..core.launching.planning import plan
    from ..core.machine import this_machine
    from ..core.profiles.library import FIRST, shipped_profile

    home = resolve_home(os.environ)
    choice = LaunchChoice(shipped_profile(FIRST, Path.cwd()), device=arguments.device)
    planned = plan(choice, environ=os.environ, machine=this_machine())
    started = launch(planned, home, os.environ, time.time())
    return show_screen(home, arguments, opening=started)


def require_terminal() -> None:
    """Require a terminal that can be drawn on.

    Raises:
        OperationError: input or output is not a terminal, or one that only prints lines.
    """
    instead = "`mpstui ps` lists the runs, `mpstui show RUN` prints one"
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        raise OperationError("the screen needs a terminal", instead)
    if os.environ.get("TERM") == "dumb":
        raise OperationError("the screen needs a terminal that it can draw on, and TERM=dumb says it cannot", instead)


def show_screen(
    home: Home, arguments: argparse.Namespace, opening: str | None = None, watching: Path | None = None
) -> int:
    """Run the screen until the user leaves; returns 0, or 128 plus the signal that ended it.

    Args:
        arguments: color, theme, graphics and no_mouse.
        watching: a file or folder of something mpstui did not start, shown with the runs; ``host:path`` if elsewhere.
    """
    log = watching if watching is not None and watching.is_file() else None
    with early_paint(watching.name if watching is not None else "mpstui", log):
        app, terminal = _made(home, arguments, opening, watching, log)
    lock = announce_screen(home)
    try:
        app.run(mouse=not arguments.no_mouse)
    finally:
        app.services.close()
    if lock is not None:
        liveness.release(lock)
    return terminal.exit_code() or app.return_code or 0


def _made(
    home: Home, arguments: argparse.Namespace, opening: str | None, watching: Path | None, log: Path | None
) -> tuple[MpstuiApp, Terminal]:
    # Nearly all objects made at the start stay. The app turns this on again a second later, which saves 12 of 260 ms.
    gc.disable()
    # Textual reads colours, keyboard protocol and animations when it is imported.
    from ..core.terminal import colour_system, ground

    wish = "truecolor" if arguments.color == "auto" and "RGB" in tmux_features(os.environ) else arguments.color
    colours = colour_system(os.environ, wish)
    os.environ["TEXTUAL_COLOR_SYSTEM"] = "standard" if colours == "16" else colours
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    # A frame then waits for the one before it 8 ms at most, not 16: the first key is answered 10 ms sooner.
    os.environ.setdefault("TEXTUAL_FPS", "120")
    _import_textual()
    from ..ui.app import MpstuiApp
    from ..ui.terminal import Terminal
    from ..ui.theme import theme_for

    # This often, a thread that reads a long log gives way to keys and frames.
    sys.setswitchinterval(0.001)
    terminal = Terminal()
    theme, graphics = _settings(home)
    app = MpstuiApp(
        _services(home, arguments.hosts, watching),
        opening=opening,
        log=log,
        theme=theme_for(os.environ, colours, ground(os.environ, arguments.theme or theme)),
        terminal=terminal,
        blocks=os.environ.get("TERM") == "linux",
        graphics=(arguments.graphics or graphics) == "auto",
    )
    return app, terminal


def _hosts_to_show(home: Home) -> list[str]:
    """Return this machine and those that the settings show with it; the screen reports mistakes in the settings."""
    if not home.settings.exists():
        return []
    from ..core.settings import load_settings

    try:
        return ["local", *load_settings(home).hosts.show]
    except UsageError:
        return []


def _settings(home: Home) -> tuple[str, str]:
    """Return theme and graphics from the settings; importing the parser takes 20 ms, and few users have settings."""
    if not home.settings.exists():
        return "auto", "auto"
    from ..core.settings import load_settings

    try:
        screen = load_settings(home).screen
    except UsageError:  # the screen shows the mistake, which must not keep it from opening
        return "auto", "auto"
    return screen.theme, screen.graphics


_NEVER_SHOWN = {
    "textual.command": "CommandListItem CommandPalette DiscoveryHit Hit Hits Provider SimpleProvider",
    "rich.table": "Table",
}
"""Modules that Textual imports, and the names it takes from them."""


def _import_textual() -> None:
    """Import Textual without TLS, as if Python were built without it: a screen opens no connection. Saves 8 ms of CPU.

    Also leave out what is never shown: Textual's own palette, which brings ten more modules of widgets, takes 25 ms,
    tables take 1.
    """
    sys.modules["ssl"] = None  # type: ignore[assignment]
    import asyncio  # noqa: F401

    del sys.modules["ssl"]
    spared = [name for name in _NEVER_SHOWN if name not in sys.modules]
    for name in spared:
        stand_in = sys.modules[name] = ModuleType(name)
        stand_in.__dict__.update(dict.fromkeys(_NEVER_SHOWN[name].split(), object))
    import textual.app  # noqa: F401

    for name in spared:
        del sys.modules[name]


def _services(home: Home, hosts: Sequence[str], watching: Path | None) -> Services:
    """Return the services behind the screen: this machine's, or those of the named machines."""
    from ..ui.services import Services

    if not set(hosts) - {"local"}:
        return Services(home, os.environ, Path.cwd(), time.time, watching)
    from ..core.hosts.joined import connections
    from ..core.settings import load_settings
    from ..ui.services_of_hosts import ServicesOfHosts

    others = [name for name in dict.fromkeys(hosts) if name != "local"]
    there = str(watching).removeprefix(f"{others[0]}:") if watching is not None else None
    ways = connections(others, load_settings(home).hosts, os.environ, there)
    made = ServicesOfHosts(home, os.environ, Path.cwd(), time.time, hosts=ways, local="local" in hosts)
    made.start()
    return made


def tmux_features(environ: Mapping[str, str]) -> str:
    """Return the features of the terminal around tmux (``RGB`` is true colour); empty outside tmux."""
    if not environ.get("TMUX") or environ.get("COLORTERM"):
        return ""
    import subprocess

    asked = ("tmux", "display-message", "-p", "#{client_termfeatures}")
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=0.5, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def announce_screen(home: Home) -> int | None:
    """Hold the lock that tells alerts a screen is open; without it, they are sent although somebody is watching."""
    try:
        storage.make_private_folder(home.state)
        return liveness.share(home.screen_lock)
    except OSError:
        return None


@contextmanager
def early_paint(title: str, log: Path | None) -> Iterator[None]:
    """Draw the title and the end of the log before the screen is imported, which then draws over them.

    On a busy machine (two cores at load 7) the log is readable after 0.4 s instead of 3.4 s. If the import fails, the
    terminal is restored.
    """
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        yield
        return
    width, height = os.get_terminal_size(sys.__stderr__.fileno() if sys.__stderr__ else 2)
    _write(_ENTER + first_frame(title, last_lines(log, height // 2) if log is not None else [], width, height))
    try:
        yield
    except BaseException:
        _write(_LEAVE)
        raise


def first_frame(title: str, lines: list[str], width: int, height: int) -> str:
    """Return the title at the top, and the lines at the bottom, where log and footer will be."""
    shown = [f"\x1b[1;1H\x1b[1m {_fitting(title, width - 1)}\x1b[0m"]
    top = max(2, height - len(lines))
    shown += [f"\x1b[{top + place};1H  {_fitting(line, width - 2)}" for place, line in enumerate(lines[: height - 2])]
    return "".join(shown)


def last_lines(log: Path, count: int) -> list[str]:
    """Return the newest lines, each as last redrawn; none if the file cannot be read or is not text."""
    try:
        with storage.open_file(log) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
            data = file.read(_END_BYTES)
    except OSError:
        return []
    if b"\0" in data:
        return []
    whole = data.rstrip(b"\r\n").split(b"\n")[1 if len(data) == _END_BYTES else 0 :]
    return [line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace") for line in whole[-count:]]


def _fitting(text: str, width: int) -> str:
    """Return as much of a line as is certain to fit, without control characters."""
    start = text[: max(0, width if text.isascii() else width // 2)]
    return start if start.isprintable() else "".join(c if c.isprintable() else " " for c in start)


def _write(text: str) -> None:
    if sys.__stderr__ is not None:
        sys.__stderr__.write(text)
        sys.__stderr__.flush()

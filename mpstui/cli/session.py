"""What commands about runs share: the home, finding runs, waiting, live supervisors, and safe printing."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import select
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.model.errors import OperationError
from ..core.model.home import resolve_home
from ..wire.storage import plain

if TYPE_CHECKING:
    from ..core.model.home import Home
    from ..core.runs.monitor import Monitor
    from ..core.runs.one import OneRun
    from ..core.runs.query import Query
    from ..wire.rundir import RunDir

T = TypeVar("T")
POLL_SECONDS = 0.1
_STEERING = re.compile("[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
RUN_HELP = "an id or a unique part of one, a name, or a profile (then its newest run)"
RUN_OR_PATH_HELP = f"{RUN_HELP}; or a path with a slash, of what mpstui did not start"

FILTER_HELP = "those that match: words, lr>=0.01, val_loss<0.2, optimizer=adam, age<2h, failed, today, -word"


def query_of(text: str | None) -> Query | None:
    """Return the query of ``--filter``; None if it was not given.

    Raises:
        UsageError: a condition is invalid.
    """
    if text is None:
        return None
    from ..core.model.errors import UsageError
    from ..core.runs.query import parse_query

    query = parse_query(text)
    if query.mistake:
        raise UsageError(f"--filter {text!r}: {query.mistake}", "such as --filter 'resnet lr>=0.01 failed'")
    return query


def meant_run(home: Home, name: str, *, living: bool = False) -> RunDir:
    """Return the run that ``name`` means; of several the newest, saying so on standard error.

    Args:
        living: prefer the newest that has not ended, if there is one.

    Raises:
        UsageError: there is none, or the name is only a part of several ids or names.
    """
    from ..core.runs.find import find_runs
    from ..wire.liveness import is_held

    found = find_runs(home, name)
    lives = (run for run in found if is_held(run.supervisor_lock) or is_held(run.run_lock))
    taken = next(lives, found[0]) if living and len(found) > 1 else found[0]
    if len(found) > 1:
        which = "the newest" if taken is found[0] else "the newest that has not ended"
        warn(f"{name!r} means {len(found)} runs: this is {taken.run}, {which}")
    return taken


def keys_of(monitor: Monitor, home: Home, word: str) -> list[str]:
    """Return the monitor's keys for what a word means: one run of ours or, with a slash, the runs at a path.

    Raises:
        UsageError: there is none, or the word is ambiguous.
    """
    from ..core.runs.find import is_path

    return keys_of_path(monitor, word) if is_path(word) else [meant_run(home, word).run]


def keys_of_path(monitor: Monitor, word: str) -> list[str]:
    """Watch a path, and return the monitor's keys for its runs.

    Raises:
        UsageError: there is nothing readable.
    """
    from ..core.formats.stores import find_runs, require_path
    from ..core.model.errors import UsageError

    path = Path(word).expanduser().absolute()
    if not find_runs(path):
        try:
            require_path(path)
        except UsageError as error:
            if "/" in word:
                raise
            raise UsageError(error.sentence, f"`mpstui ps --filter {word}` lists the runs that match") from None
    keys = monitor.watch_all(path)
    if monitor.watched.left_out:
        warn(f"{monitor.watched.left_out:,} older runs of {word} are left out: `mpstui ps {word} --all` lists them")
    return keys


def one_run(monitor: Monitor, home: Home, word: str) -> str:
    """Like :func:`keys_of`, for exactly one run.

    Raises:
        UsageError: there is none, or there are several.
    """
    from ..core.model.errors import UsageError

    keys = keys_of(monitor, home, word)
    if len(keys) > 1:
        from ..core.runs.stored_once import meant

        keys = meant(Path(word), keys)
    if len(keys) > 1:
        raise UsageError(f"{word} holds {len(keys)} runs", f"name one of them, such as {keys[0]}")
    if not keys:
        raise UsageError(f"{word} has no run that can be read now", "if somebody is writing it, try again")
    return keys[0]


class Session:
    """The caller's environment, and where runs and profiles are."""

    def __init__(self) -> None:
        self.environ = dict(os.environ)
        self.home = resolve_home(self.environ)

    @property
    def cwd(self) -> Path:
        return Path.cwd()

    def run(self, name: str, *, living: bool = False) -> OneRun:
        """Like :func:`meant_run`."""
        from ..core.runs.one import OneRun

        return OneRun(meant_run(self.home, name, living=living))


def add_repeatable(parser: argparse.ArgumentParser, option: str, metavar: str, text: str) -> None:
    """Add an option that may be repeated, whose values become a list."""
    parser.add_argument(option, action="append", default=[], metavar=metavar, help=f"{text}; may be repeated")


def wait_for(look: Callable[[], T], seconds: float | None) -> T | None:
    """Call ``look`` until it returns something, and return that; None if ``seconds`` pass first."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while not (found := look()):
        left = POLL_SECONDS if deadline is None else deadline - time.monotonic()
        if left <= 0:
            return None
        time.sleep(min(POLL_SECONDS, left))
    return found


def rest(seconds: float) -> None:
    """Sleep between two polls of something that may not change for hours.

    Raises:
        BrokenPipeError: the reader of our output is gone, which nothing else would show while we write nothing.
    """
    output, happened = select.poll(), list[tuple[int, int]]()
    until = time.monotonic() + seconds
    with contextlib.suppress(ValueError, AttributeError, OSError):  # no descriptor, or a system that cannot poll it
        output.register(sys.stdout.fileno(), 0)
        happened = output.poll(seconds * 1000)
    if any(what & (select.POLLERR | select.POLLHUP) for _, what in happened):
        raise BrokenPipeError
    time.sleep(max(0.0, until - time.monotonic()))  # if poll() returned for another reason, or could not be used


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a JSON document; non-finite numbers are null."""
    print(json_text(value, indent))


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a JSON document that is safe on any terminal."""
    every_character = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(plain(value), ensure_ascii=not every_character, allow_nan=False, indent=indent)
    # JSON leaves these characters alone, but they control terminals, and some count as line ends.
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(text: str) -> None:
    """Print one line for people, safe on any terminal, whatever a run is called."""
    print(one_line(text))


def say_lines(text: str, *, beside: bool = False) -> None:
    """Print several lines, just as safely.

    Args:
        beside: print on standard error, apart from the result.
    """
    from ..core.formats.console import strip_controls

    print(strip_controls(text), file=sys.stderr if beside else sys.stdout)


def say_over(text: str) -> None:
    """Print a line on standard error, a terminal, in place of the last one; empty text clears it."""
    print(f"\r{one_line(text)[: shutil.get_terminal_size().columns - 1]}\x1b[K", end="", file=sys.stderr, flush=True)


def give(text: str) -> None:
    """Print text for a program to read, unchanged; on a terminal, safely like the rest."""
    if sys.stdout.isatty():
        say_lines(text.removesuffix("\n"))
    else:
        print(text, end="")


def terminal_columns() -> int | None:
    """Return the terminal's width; None if the output is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def warn(text: str) -> None:
    """Print one line on standard error, apart from the result."""
    print(f"mpstui: {one_line(text)}", file=sys.stderr)


def agreed(question: str) -> bool:
    """Ask a question on standard error; anything but y or yes means no."""
    print(f"{one_line(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def one_line(text: str) -> str:
    """Return text that can neither leave its line nor control the terminal."""
    from ..core.formats.console import strip_controls

    return " ".join(strip_controls(text).split("\n"))


def respawn_missing_supervisors(session: Session) -> bool:
    """Start a supervisor for each waiting run that has lost its own; True if any was started.

    Every command that lists runs does this.
    """
    from ..core.launching.abandoned import respawn_missing

    try:
        respawned = respawn_missing(session.home, session.environ)
    except OperationError as error:
        warn(error.sentence)
        return False
    for name in respawned:
        warn(f"{name} had lost its supervisor while it waited, and has a new one")
    return bool(respawned)

"""What every command about runs needs: the home, one run that is looked at again and again, and safe printing."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.home import Home, resolve_home

if TYPE_CHECKING:
    from ..core.runs.snapshot import RunSnapshot

POLL_SECONDS = 0.1
_LOOK_SECONDS = 0.08


class OneRun:
    """One run, found by id, unique beginning or name.

    Raises:
        UsageError: there is none, or several are meant.
    """

    def __init__(self, home: Home, name: str) -> None:
        from ..core.runs.find import find_run
        from ..core.runs.run_reader import RunReader
        from ..core.runs.witness import Machine
        from ..wire.processes import boot_id, system_process_table

        self.dir = find_run(home, name)
        self._reader = RunReader(self.dir, Machine(table=system_process_table(), boot_id=boot_id()))

    def look(self) -> RunSnapshot:
        """The run now; what was read before is not read again."""
        from ..core.follow.budget import Budget

        return self._reader.refresh(full=False, budget=Budget(_LOOK_SECONDS))


class Session:
    """The caller's home and environment."""

    @cached_property
    def environ(self) -> dict[str, str]:
        """The caller's environment."""
        return dict(os.environ)

    @cached_property
    def home(self) -> Home:
        """Where runs and profiles are."""
        return resolve_home(self.environ)

    @property
    def cwd(self) -> Path:
        """Where the command was typed."""
        return Path.cwd()

    def run(self, name: str) -> OneRun:
        """See :class:`OneRun`."""
        return OneRun(self.home, name)


def wait_for(look: Callable[[], bool], seconds: float | None) -> bool:
    """Ask until the answer is yes; False when ``seconds`` have gone by first."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while not look():
        left = POLL_SECONDS if deadline is None else deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(POLL_SECONDS, left))
    return True


def print_json(value: Any) -> None:
    """One JSON document on standard output; non-finite numbers are null."""
    from ..wire.jsontext import finite

    print(json.dumps(finite(value), ensure_ascii=False, allow_nan=False, indent=2))


def say(text: str) -> None:
    """One line for people, safe on any terminal whatever a run is called."""
    print(one_line(text))


def warn(text: str) -> None:
    """One line beside the result, on standard error."""
    print(f"mpstui: {one_line(text)}", file=sys.stderr)


def one_line(text: str) -> str:
    """Text that cannot leave its line nor steer the terminal."""
    from ..core.formats.escapes import strip_controls

    return " ".join(strip_controls(text).split("\n"))

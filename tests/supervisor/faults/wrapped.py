"""A supervisor that can be held at a point, broken on purpose, or given a wrong clock.

``python -I -S wrapped.py RUN_DIR [--at POINT] [--sabotage NAME] [--clock-back SECONDS] [--free FILE]``: the product's
own code with one function replaced; nothing of this ships.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))

from mpstui.supervisor import attempt, disk_space, family, launches, loop, machine, main, starting, state, witnesses
from mpstui.supervisor.attempt import Ending
from mpstui.supervisor.journal import Journal
from mpstui.supervisor.machine import Clock
from mpstui.wire import liveness

HOLD_SECONDS = 120.0


def hold(run: Path, point: str) -> None:
    """Say that the point is reached and wait until told to go on."""
    (run / f"at-{point}").touch()
    deadline = time.monotonic() + HOLD_SECONDS
    while not (run / "go").exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def around(module: Any, name: str, before: Callable[[], None] | None, after: Callable[[], None] | None = None) -> None:
    """Call something before or after a function of the product."""
    original = getattr(module, name)

    def wrapped(*arguments: Any, **named: Any) -> Any:
        if before:
            before()
        result = original(*arguments, **named)
        if after:
            after()
        return result

    setattr(module, name, wrapped)


def hold_at(point: str, run: Path) -> None:
    """Arm one point."""

    def stop() -> None:
        hold(run, point)

    if point == "before_spawn":
        around(launches, "start", stop)
    elif point == "in_child":
        around(launches, "_announce", stop)
    elif point == "after_spawn":
        around(launches, "start", None, stop)
    elif point == "between_attempts":
        around(loop, "answer_accepted", stop)
    elif point == "exit_written":
        around(Journal, "exit", None, stop)
    elif point == "exit_write":
        link = os.link

        def held(source: Any, target: Any, **named: Any) -> None:
            if Path(target).name == "exit.json":
                stop()
            link(source, target, **named)

        put(os, link=held)
    else:
        raise SystemExit(f"no such point: {point}")


def sabotage(name: str) -> None:
    """Break one rule."""
    rules[name]()


def put(module: Any, **values: Any) -> None:
    """Replace names in a module or class."""
    for name, value in values.items():
        setattr(module, name, value)


def _pid_is_enough() -> None:
    """A process is whoever has the number."""

    def there(table: liveness.ProcessTable, identity: liveness.ProcessIdentity) -> bool:
        return table.find(identity.pid) is not None

    put(family.SystemSignaller, _is=lambda self, target: True)
    put(family, _is_there=lambda member, snapshot: member.pid in snapshot)
    for module in (liveness, witnesses):
        put(module, is_same=there)


def _no_tree() -> None:
    """Only the process group is killed."""
    put(family, grow=lambda members, *_: members)


def _no_exit_record() -> None:
    """Ends are not written down."""
    put(Journal, exit=lambda self, record: None)


def _unknown_is_success() -> None:
    """An end that nobody saw is taken for code 0."""

    def ending(*values: Any, **named: Any) -> Ending:
        return Ending(*values, **named) if values or named else Ending(code=0)

    for module in (attempt, state, starting):
        put(module, Ending=ending)


def _two_terms() -> None:
    """A supervisor that takes over asks again."""
    stop = attempt.Attempt.stop
    put(attempt.Attempt, stop=lambda self, rule, *, force, asked_seconds_ago=None: stop(self, rule, force=force))


rules: dict[str, Callable[[], None]] = {
    "pid_is_enough": _pid_is_enough,
    "no_tree": _no_tree,
    "no_exit_record": _no_exit_record,
    "unknown_is_success": _unknown_is_success,
    "two_terms": _two_terms,
}


def take_free_space_from(path: Path) -> None:
    """The disk has as much room as the file says."""

    def free(folder: Path) -> int:
        return int(path.read_text())

    put(disk_space, POLL_SECONDS=0.05, free_bytes=free)
    put(disk_space.DiskWatch, __init__=functools.partialmethod(disk_space.DiskWatch.__init__, read=free))


def set_clock_back(seconds: float) -> None:
    """After two seconds of this supervisor the wall clock jumps back."""
    begun, real = time.monotonic(), machine.this_machine

    def wall() -> float:
        return time.time() - (seconds if time.monotonic() - begun > 2.0 else 0.0)

    put(main, this_machine=lambda: real()._replace(clock=Clock(wall=wall)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("--at")
    parser.add_argument("--sabotage")
    parser.add_argument("--clock-back", type=float)
    parser.add_argument("--free", type=Path)
    chosen = parser.parse_args()
    if chosen.at:
        hold_at(chosen.at, Path(chosen.run))
    if chosen.sabotage:
        sabotage(chosen.sabotage)
    if chosen.clock_back:
        set_clock_back(chosen.clock_back)
    if chosen.free:
        take_free_space_from(chosen.free)
    sys.exit(main.main([chosen.run]))

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

from mpstui.supervisor import (
    attempt,
    conclusion,
    disk_space,
    ending,
    family,
    launches,
    loop,
    machine,
    main,
    queue,
    starting,
    state,
    stop_sequence,
    witnesses,
)
from mpstui.supervisor.attempt import Ending
from mpstui.supervisor.journal import Journal
from mpstui.supervisor.machine import Clock
from mpstui.wire import liveness, rundir, storage
from mpstui.wire.records import Request
from tests.supervisor.power_cut import Recorder

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
    elif point == "leaving":
        around(loop.Supervisor, "run", None, stop)
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
        return (found := table.find(identity.pid)) is not None and found.alive

    put(family.SystemSignaller, _is=lambda self, target: True)
    put(family, _is_there=lambda member, snapshot: member.pid in snapshot)
    put(witnesses, is_marked=lambda *_: True)
    for module in (liveness, witnesses):
        put(module, is_same=there)


def _start_not_compared() -> None:
    """A process gets its signal by its number; who belongs to the attempt is still told by the start time as well."""
    put(family.SystemSignaller, _is=lambda self, target: True)


def _group_by_number() -> None:
    """The same of process groups."""

    def send(self: Any, group: int, proof: Any, number: int) -> bool:
        return group > 1 and family._kill(-group, number)

    put(family.SystemSignaller, send_group=send)


def _members_by_number() -> None:
    """Who was remembered as a member is one as long as somebody has the number."""
    put(family, _is_there=lambda member, snapshot: member.pid in snapshot)
    put(witnesses, is_marked=lambda *_: True)
    put(family.SystemSignaller, _is=lambda self, target: True)


def _mark_not_asked() -> None:
    """Number and start time of a record are enough, whatever the process shows."""
    put(witnesses, is_marked=lambda *_: True)


def _killed_once() -> None:
    """SIGKILL is sent once, not until all are gone."""
    put(stop_sequence, KILL_AGAIN_SECONDS=1e9)


def _never_killed() -> None:
    """Who does not leave when asked is asked for ever."""
    kill = stop_sequence._kill

    def patient(sequence: Any, now: float) -> Any:
        moved, _ = kill(sequence, now)
        return moved, ()

    put(stop_sequence, _kill=patient)


def _reserves_kept() -> None:
    """On a full disk the reserves are kept."""
    put(rundir, create_in_reserve=lambda path, record, reserve, **named: storage.create_json(path, record, **named))


def _pause_answered_first() -> None:
    """A pause is answered before it is carried out."""
    pause = loop._ACTIONS["pause"]

    def answered(supervision: Any, request: Request) -> None:
        supervision.journal.answer(request, ok=True, text="paused")
        time.sleep(1.0)
        pause(supervision, request)

    put(loop, _ACTIONS={**loop._ACTIONS, "pause": answered})


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


def _lost_is_ok() -> None:
    """Whoever waits for a run takes a missing exit record for a good end."""
    outcome = queue.outcome

    def found(*values: Any) -> queue.Outcome:
        seen = outcome(*values)
        return queue.Outcome.OK if seen is queue.Outcome.LOST else seen

    put(queue, outcome=found)


def _no_sync() -> None:
    """Records are left to the kernel."""
    put(storage, flush_to_disk=lambda *_, **__: None, sync_folder=lambda folder: None)


def _exit_not_durable() -> None:
    """The exit record alone is."""
    create = storage.create_json

    def created(path: Path, value: Any, *, durable: bool = False) -> bool:
        flush = storage.flush_to_disk
        put(storage, flush_to_disk=(lambda *_, **__: None) if durable else flush)
        try:
            return create(path, value)
        finally:
            put(storage, flush_to_disk=flush)

    put(storage, create_json=created)


def _slot_not_released() -> None:
    """Whoever leaves keeps the slot."""
    put(queue.QueueSlot, close=lambda self: None)


def _slot_not_inherited() -> None:
    """The trainer gets no descriptor of the slot."""
    put(queue.QueueSlot, kept=())


def _place_not_left() -> None:
    """Who has started stays in the line."""
    put(queue, left=lambda found, run: found)


def _reaped_first() -> None:
    """The trainer's number is given back before anybody looks who came from it."""
    watch = ending._end

    def end(supervision: Any, found: Any) -> None:
        found.collect()
        watch(supervision, found)

    put(ending, _end=end)


def _answered_first() -> None:
    """A stop is answered when it is asked for."""
    begin = ending.begin_stop

    def answered(supervision: Any, request: Request, **named: Any) -> None:
        supervision.journal.answer(request, ok=True, text="done")
        begin(supervision, request, **named)

    put(ending, begin_stop=answered)


def _shutdown_cancels() -> None:
    """SIGTERM is a stop, also of a run that waits."""

    def stop(supervision: Any) -> None:
        loop._end(supervision, Request("sigterm-1", "stop", 1, "SIGTERM", 0.0))

    put(loop, stop_from_outside=stop)


def _no_waiting() -> None:
    """A restart by rule begins at once."""
    decide = conclusion.decide
    put(conclusion, decide=lambda *values: (found := decide(*values)) and found._replace(delay_seconds=0.0))


def _waiting_forgotten() -> None:
    """A next supervisor does not wait for the rest of the time."""
    schedule = state.Supervision.schedule

    def scheduled(self: Any, plan: Any, *, phase: str, delay_seconds: float = 0.0, **named: Any) -> None:
        schedule(self, plan, phase=phase, delay_seconds=delay_seconds if named else 0.0, **named)

    put(state.Supervision, schedule=scheduled)


def _progress_gate_open() -> None:
    """Whoever crashes where it crashed before is started again."""
    decide = conclusion.decide
    put(conclusion, decide=lambda rule, crash, history, now: decide(rule, crash, (), now))


def _no_subreaper() -> None:
    """What loses its parent goes to init."""
    put(main, adopt_orphans=lambda: False)


rules: dict[str, Callable[[], None]] = {
    "start_not_compared": _start_not_compared,
    "group_by_number": _group_by_number,
    "members_by_number": _members_by_number,
    "mark_not_asked": _mark_not_asked,
    "killed_once": _killed_once,
    "never_killed": _never_killed,
    "reserves_kept": _reserves_kept,
    "pause_answered_first": _pause_answered_first,
    "no_subreaper": _no_subreaper,
    "lost_is_ok": _lost_is_ok,
    "no_sync": _no_sync,
    "exit_not_durable": _exit_not_durable,
    "slot_not_released": _slot_not_released,
    "slot_not_inherited": _slot_not_inherited,
    "place_not_left": _place_not_left,
    "reaped_first": _reaped_first,
    "answered_first": _answered_first,
    "shutdown_cancels": _shutdown_cancels,
    "no_waiting": _no_waiting,
    "waiting_forgotten": _waiting_forgotten,
    "progress_gate_open": _progress_gate_open,
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


def slow_down(seconds: float) -> None:
    """Each sync takes that long."""
    around(storage, "flush_to_disk", lambda: time.sleep(seconds))


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
    parser.add_argument("--slow-disk", type=float)
    parser.add_argument("--free", type=Path)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--without-subreaper", action="store_true")
    parser.add_argument("--each")
    parser.add_argument("--quiet-tick", type=float)
    chosen = parser.parse_args()
    if chosen.record:
        recorder = Recorder(Path(chosen.run).parents[1], chosen.record)
        recorder.note_what_is_there()
        recording = recorder.recording()  # kept: it would end with its last reference
        recording.__enter__()
    if chosen.quiet_tick:
        put(loop, QUIET_TICK_SECONDS=chosen.quiet_tick)
        put(storage, is_settled=lambda changed, now: now - changed > 0.1)
        put(attempt, TREE_REFRESH_SECONDS=(0.1, 0.1))
    if chosen.without_subreaper:
        put(main, adopt_orphans=lambda: False)
    if chosen.at:
        hold_at(chosen.at, Path(chosen.run))
    if chosen.sabotage:
        sabotage(chosen.sabotage)
    if chosen.clock_back:
        set_clock_back(chosen.clock_back)
    if chosen.slow_disk:
        slow_down(chosen.slow_disk)
    if chosen.free:
        take_free_space_from(chosen.free)
    sys.exit(main.main([rundir.EACH] if chosen.each else [chosen.run]))

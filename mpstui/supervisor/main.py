"""From the command line to the loop: detach, take the lock, say "ready", supervise, leave."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ..wire import liveness, storage
from ..wire.jobs import IN_JOB, id_of_job
from ..wire.moves import Move
from ..wire.records import LaunchTemplate, Spec, Status
from ..wire.rundir import ALREADY_SUPERVISED, EACH, RunDir, open_supervisor_log
from ..wire.storage import UnreadableRecord
from . import job, witnesses
from .family import adopt_orphans, show_run
from .journal import complain, complain_of
from .loop import Supervisor
from .machine import Machine, this_machine

READY, FAILED, WRONG_USE = 0, 1, 2
PATIENCE_SECONDS = 10.0
"""A run directory that does not respond for this long (on a network volume, say) must not keep the others waiting."""

Build = Callable[[RunDir, Spec, "Status | None", Machine], Supervisor]


def main(arguments: Sequence[str], build: Build = Supervisor) -> int:
    """Supervise one run directory from a detached process; the caller gets an exit code as soon as that is settled.

    Returns:
        0 if the run is supervised (or its requests were answered), 100 if somebody else supervises it, 1 if that is
        impossible, 2 for wrong usage. The reason for a failure is on stderr, which core sends to ``supervisor.log``.
    """
    if arguments[:1] == [EACH]:
        return start_each(build)
    if arguments[:1] == [IN_JOB]:
        return stay(arguments[1:], build)
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        complain("usage: python -I -S mpstui/supervisor/__main__.py RUN_DIR (an existing folder)")
        return WRONG_USE
    return _start(Path(arguments[0]), build, None)


def start_each(build: Build) -> int:
    """Start a supervisor for each NUL-terminated run directory on standard input; write each code as one byte.

    They are forked from this process, which has loaded the program once: they share its unchanged pages of memory and
    start in a fraction of the time. Otherwise each is as if started alone: it has its own session, signals, descriptors
    and log, its parent is init once this process ends, and ``ps`` shows its run. They are started one after the other,
    so that they queue up in this order. Linux only: see docs/supervision.md.
    """
    while path := _next_path():
        run = Path(os.fsdecode(path))
        code = _start(run, build, PATIENCE_SECONDS) if run.is_dir() else WRONG_USE
        with contextlib.suppress(OSError):  # the caller is gone; the runs it named are started all the same
            os.write(sys.stdout.fileno(), bytes([code]))
    return READY


def stay(arguments: Sequence[str], build: Build) -> int:
    """Supervise as the first process of a scheduler's job: in this process itself, until the run has ended.

    Args:
        arguments: an environment variable, then run directories; its value selects one, from 0, if there are several.

    Returns:
        The exit code of the training; 0 if it continues later; otherwise as :func:`main`.
    """
    runs = list(map(Path, arguments[1:]))
    place = os.environ.get(arguments[0], "") if len(runs) > 1 else "0"
    if not place.isdecimal() or not int(place) < len(runs) or not runs[int(place)].is_dir():
        complain(f"there is no run directory {place or '(no number)'} among {len(runs)}")
        return WRONG_USE
    run = RunDir(runs[int(place)].resolve())
    log = open_supervisor_log(run)
    os.dup2(log, 2)
    os.close(log)
    deadline = time.monotonic() + PATIENCE_SECONDS
    # A supervisor elsewhere that only answers requests leaves at once.
    while (code := supervise(run, lambda: None, build, in_job=True)) == ALREADY_SUPERVISED:
        if time.monotonic() > deadline:
            complain(f"{run.run} has a supervisor elsewhere: this job leaves it alone")
            return code
        time.sleep(0.5)
    status = storage.read_or_none(Status, run.status)
    return job.exit_code(run, status) if code == READY and status is not None else code


def _next_path() -> bytes:
    """Return the next name on standard input; empty at its end, and if the name is cut off."""
    path = b""
    while byte := os.read(sys.stdin.fileno(), 1):
        if byte == b"\0":
            return path
        path += byte
    return b""


def _start(run: Path, build: Build, patience: float | None) -> int:
    """Fork a run's supervisor; returns its code as soon as that is known.

    Args:
        patience: seconds after which it is taken to be ready, leaving the rest to its records. None if it is started
            alone: then its caller decides how long to wait.
    """
    reader, writer = os.pipe()
    if os.fork() > 0:
        os.close(writer)
        answered = patience is None or select.select([reader], [], [], patience)[0]
        word = os.read(reader, 1) if answered else bytes([READY])
        os.close(reader)
        return word[0] if word else FAILED
    os.close(reader)
    os.setsid()
    caller, code = _Caller(writer), FAILED
    try:
        if patience is not None:
            _stand_alone(run)
        code = supervise(RunDir(run.resolve()), lambda: caller.tell(READY), build)
        caller.tell(code)
    except BaseException as error:  # noqa: BLE001  whatever it is, supervisor.log is the only place left to say it
        complain_of(error)
    os._exit(code)


def _stand_alone(run: Path) -> None:
    """Replace what was inherited from the process that starts many: descriptors, and the command line in ``ps``."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    log = open_supervisor_log(RunDir(run))
    os.dup2(log, 2)
    os.close(log)
    show_run(run, EACH)


def supervise(run: RunDir, ready: Callable[[], None], build: Build = Supervisor, *, in_job: bool = False) -> int:
    """Take the lock and supervise until nothing is left to do; returns a code as :func:`main` does."""
    wakeup = install_signals()
    machine, child = this_machine()._replace(adopts=adopt_orphans(), in_job=in_job), None
    while True:
        if run.supervisor_lock.is_dir():
            keep_aside(run.supervisor_lock, IsADirectoryError("a folder is in the place of the lock"))
        lock = liveness.acquire(run.supervisor_lock)
        if lock is None:
            return ALREADY_SUPERVISED
        try:
            supervisor = _open(run, machine, build)
            if supervisor is None:
                return FAILED
            engine = supervisor.state.spec.engine
            if in_job and engine is not None and (why := job.take(run, id_of_job(engine, os.environ))):
                complain(why)
                return FAILED
            moved = functools.partial(_moved_to, run, lock)
            supervisor.run(ready, lambda seconds: wait_for_signal(wakeup, seconds), moved, child)
            place = moved()
        finally:
            liveness.release(lock)
        if place is not None:
            # Taken over at its new place as from another supervisor, except that the trainer is still our child.
            run, child = place, supervisor.state.attempt.child if supervisor.state.attempt else None
            continue
        # A client that wrote a request and then saw the lock held relies on us, so look once more with the lock free.
        if not supervisor.has_work():
            return READY


def _moved_to(run: RunDir, lock: int) -> RunDir | None:
    """Return where the run's directory has been moved to; None if it was not moved, or was deleted."""
    place = None if run.path.is_dir() else liveness.place_of(lock)
    return RunDir(place.parent) if place is not None else None


def _open(run: RunDir, machine: Machine, build: Build) -> Supervisor | None:
    if run.moved.exists():
        moved = storage.read_or_none(Move, run.moved)
        complain(f"it was moved to {moved.to if moved else 'another machine'} and may only continue there")
        return None
    spec, why = None, f"{run.spec} is missing: there is nothing to run"
    try:
        spec = storage.read(Spec, run.spec)
    except (UnreadableRecord, OSError) as error:
        why = f"{run.spec} cannot be acted upon: {error}"
        if isinstance(error, storage.NewerSchema):
            complain(why)
            return None
    try:
        status = storage.read(Status, run.status)
    except storage.NewerSchema as error:
        complain(f"{run.status} was written by a newer mpstui and is left alone: {error}")
        return None
    except (UnreadableRecord, storage.NotAFile) as error:
        status = None
        keep_aside(run.status, error)
    if spec is None:
        complain(why)
        if not witnesses.gather(run, status, machine.table, machine.boot_id).alive:
            return None
        spec = Spec(run.run, run.run, 0.0, LaunchTemplate("auto", {}, "/"))  # enough to end what lives and record how
    return build(run, spec, status, machine)


def keep_aside(path: Path, error: Exception) -> None:
    """Move an unreadable record out of the way, intact: it is evidence, and nothing may overwrite it."""
    for number in range(1, 1000):
        aside = path.with_name(f"{path.name}.unreadable-{number}")
        if not aside.exists():
            with contextlib.suppress(OSError):
                path.rename(aside)
            complain(f"{path} is unreadable and was kept as {aside.name}: {error}")
            return


def install_signals() -> int:
    """Set signal handlers, undo what a parent ignored, and return the descriptor that wakes the loop.

    SIGHUP and SIGINT get handlers that do nothing, not SIG_IGN: an ignored signal stays ignored after exec, a handled
    one does not, and a trainer that ignores SIGINT cannot be asked to stop.
    """
    reader, writer = os.pipe()
    for descriptor in (reader, writer):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, lambda number, frame: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    return reader


def wait_for_signal(reader: int, seconds: float) -> None:
    """Sleep, but wake at once when a child ends or a signal arrives."""
    select.select([reader], [], [], seconds)
    with contextlib.suppress(BlockingIOError):
        os.read(reader, 512)


class _Caller:
    """The process that started us and waits for the code."""

    def __init__(self, writer: int) -> None:
        self._writer: int | None = writer

    def tell(self, code: int) -> None:
        """Send the code, on the first call only: the caller waits for one."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(OSError):  # the caller is gone
                os.write(writer, bytes([code]))
            os.close(writer)

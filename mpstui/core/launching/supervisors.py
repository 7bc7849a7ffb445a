"""Starts supervisors: for one run, or for many from one process."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from ...wire import storage
from ...wire.rundir import ALREADY_SUPERVISED, EACH, RUN_VARIABLES, RunDir, open_supervisor_log
from ..model.errors import OperationError
from ..model.home import HINT_OWN
from ..runs.waiting import distrust_of_run

READY_SECONDS = 10.0
POLL_SECONDS = 0.003
_LONGEST_ID = 54
PROGRAM = Path(__file__).resolve().parents[2] / "supervisor" / "__main__.py"


def start_supervisor(run: RunDir, environ: Mapping[str, str]) -> None:
    """Start a supervisor and return once it holds the run (some tens of milliseconds).

    Safe at any time and on any run: if there is one already, the second exits at once. The process forks once more, so
    that its parent is init and the child we wait for leaves no zombie.

    Args:
        environ: the caller's. Variables that mark the caller as part of a run are removed: if a training launches
            another one, that must not be taken for one of its own processes, and ended with it.

    Raises:
        OperationError: it could not take over the run; its own message is in ``supervisor.log``.
    """
    require_trust(run)
    command = [sys.executable, "-I", "-S", str(PROGRAM), str(run.path)]
    log = open_supervisor_log(run)
    try:
        child = subprocess.Popen(
            command,
            env=_without_marks(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    except OSError as error:
        raise OperationError(f"the supervisor of {run.run} could not be started: {error.strerror}") from error
    finally:
        os.close(log)
    # ``Popen.wait`` with a timeout polls only every 50 ms, which would be half of a launch.
    deadline = time.monotonic() + READY_SECONDS
    while (code := child.poll()) is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    # None: the machine is very slow, and the run's own record will show what became of it.
    if code not in (0, ALREADY_SUPERVISED, None):
        raise _gave_up(run, code)


class Supervisors:
    """Starts the supervisors of many runs, in the given order, from one process that loads their program once.

    They share its memory and start in a fraction of the time. Only on Linux: elsewhere, and if a run's environment
    differs from the first one's, each is started separately. A context manager: leaving it waits until all are started.

    Raises (on leaving): OperationError: one could not take over its run; the others did.
    """

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._environ: Mapping[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: list[RunDir] = []

    def __enter__(self) -> Supervisors:
        return self

    def start(self, run: RunDir, environ: Mapping[str, str]) -> None:
        """See :func:`start_supervisor`; does not wait for the result."""
        require_trust(run)
        if self._process is None and sys.platform == "linux":
            self._begin(environ)
        if self._process is None or self._process.stdin is None or environ != self._environ:
            start_supervisor(run, environ)
            return
        self._asked.append(run)
        with contextlib.suppress(OSError):  # it has died: on leaving each is started separately
            self._process.stdin.write(os.fsencode(run.path) + b"\0")

    def _begin(self, environ: Mapping[str, str]) -> None:
        # In its command line each supervisor replaces this folder by its own run: leave room for any run's id.
        folder = os.fsencode(self._runs) + b"/" * (_LONGEST_ID - len(f"{EACH} "))
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(PROGRAM), EACH, folder],
                bufsize=0,
                env=_without_marks(environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
            self._environ = environ

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            return
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        answers, failures = self._process.stdout.fileno(), []
        for run in self._asked if error is None else ():
            if not select.select([answers], [], [], READY_SECONDS)[0]:
                break  # the machine is very slow: the runs' own records will show the rest
            code = os.read(answers, 1)
            if not code:
                start_supervisor(run, self._environ)
            elif code[0] not in (0, ALREADY_SUPERVISED):
                failures.append(_gave_up(run, code[0]))
        self._process.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(READY_SECONDS)
        if failures:
            raise failures[0]


def require_trust(run: RunDir) -> None:
    """Refuse to start anything on a run that another user can write to.

    Raises:
        OperationError: another user can.
    """
    if why := distrust_of_run(run):
        raise OperationError(f"{run.run} is not started: {why}", HINT_OWN)


def _without_marks(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name not in RUN_VARIABLES}


def _gave_up(run: RunDir, code: int) -> OperationError:
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = storage.read_text(run.supervisor_log).splitlines()
    why = lines[-1] if lines else f"exit code {code}"
    return OperationError(f"the supervisor of {run.run} gave up: {why}", f"see {run.supervisor_log}")

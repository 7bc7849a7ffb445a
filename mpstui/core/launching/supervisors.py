"""Starting a run's supervisor, and another one for a run that lost its own: there is no daemon that would."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ...wire import liveness, storage
from ...wire.rundir import RUN_VARIABLES, RunDir
from ..model.errors import OperationError
from ..model.home import Home
from ..runs.find import run_dirs
from ..runs.waiting import is_abandoned

ALREADY_SUPERVISED = 100
READY_SECONDS = 10.0
POLL_SECONDS = 0.003
_PROGRAM = Path(__file__).resolve().parents[2] / "supervisor" / "__main__.py"


def start_supervisor(run: RunDir, environ: Mapping[str, str], *, program: Path = _PROGRAM) -> None:
    """Start a supervisor and return once it holds the run (some tens of milliseconds).

    Safe at any time and on any run: where one is there already, the second one leaves at once. The process forks once
    more, so that its parent is init and the one we wait for leaves no zombie.

    Args:
        environ: the caller's. What marks the caller itself as part of a run stays behind: a training may launch
            another one, which must not be found, and ended, as one of its own processes.

    Raises:
        OperationError: it could not take the run; its own words are in ``supervisor.log``.
    """
    command = [sys.executable, "-I", "-S", str(program), str(run.path)]
    log = os.open(run.supervisor_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        child = subprocess.Popen(
            command,
            env={name: value for name, value in environ.items() if name not in RUN_VARIABLES},
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
    code = _exit_code(child)
    if code not in (0, ALREADY_SUPERVISED, None):
        raise OperationError(f"the supervisor of {run.run} gave up: {_last_words(run)}", f"see {run.supervisor_log}")


def _exit_code(child: subprocess.Popen[bytes]) -> int | None:
    """Its exit code; None on a machine so slow that the run's own record must say how it goes on.

    ``Popen.wait`` with a time limit looks only every 50 ms, which would be half of a launch.
    """
    deadline = time.monotonic() + READY_SECONDS
    while (code := child.poll()) is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return code


def _last_words(run: RunDir) -> str:
    try:
        lines = run.supervisor_log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "it left no word"


class SupervisorRecovery:
    """Finds waiting runs whose supervisor has died and starts another; an unchanged run costs one ``stat`` a time.

    Args:
        supervise: starts a supervisor, see :meth:`mpstui.core.launching.actions.Actions.supervise`.
    """

    def __init__(self, home: Home, supervise: Callable[[RunDir], None]) -> None:
        self._home = home
        self._supervise = supervise
        self._settled: dict[Path, tuple[int, int, int]] = {}
        """Stamp of the status of each run that needs nothing until its status is written again."""

    def respawn_missing(self) -> list[str]:
        """Start a supervisor for every waiting run without one; the ids of those runs.

        Raises:
            OperationError: one could not be started; the others were.
        """
        started, failures = [], []
        for run in run_dirs(self._home.runs):
            stamp = storage.stamp(run.status)
            if stamp is None or self._settled.get(run.path) == stamp or liveness.is_held(run.supervisor_lock):
                continue
            try:
                if is_abandoned(run):
                    self._supervise(run)
                    started.append(run.run)
                self._settled[run.path] = stamp
            except OSError as error:
                failures.append(OperationError(f"no supervisor for waiting run {run.run}: {error.strerror}"))
            except OperationError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return started

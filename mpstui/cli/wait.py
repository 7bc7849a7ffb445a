"""`mpstui wait`: until a run has ended; the exit code says whether it finished."""

from __future__ import annotations

import argparse

from ..core.model.errors import OperationError, UsageError
from ..core.model.snapshot import RunSnapshot, State
from ..core.runs.waiting import restart_is_wished
from ..wire import liveness
from .reviving import Watchful
from .session import RUN_HELP, OneRun, Session, say, wait_for

HELP = "Wait until a run has ended. Exits with 0 only if it finished, else with 1."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--timeout", type=float, metavar="S", help="give up after so many seconds (exits with 1)")


def run(args: argparse.Namespace) -> int:
    if args.timeout is not None and not args.timeout >= 0:
        raise UsageError(f"--timeout {args.timeout:g} is no time to wait", "seconds; 0 looks once")
    session = Session()
    one, watchful = session.run(args.run), Watchful(session)

    def is_over() -> bool:
        watchful.revive()  # it may wait for another one that waits
        snapshot = one.look()
        if not has_ended(snapshot) or _starts_again(one):
            return False
        return snapshot.state is State.FINISHED or not watchful.revive(at_once=True)

    if not wait_for(is_over, args.timeout):
        raise OperationError(f"{one.dir.run} has not ended within {args.timeout:g} s: it is {one.look().state}")
    return _report(one)


def has_ended(snapshot: RunSnapshot) -> bool:
    """Whether nothing of it will go on by itself; a run that cannot be stopped may never end and is not waited for."""
    return not snapshot.state.active or snapshot.state is State.STOP_FAILED


def _starts_again(one: OneRun) -> bool:
    """Whether a restart was asked for, and a supervisor is there that has not got round to it."""
    return liveness.is_held(one.dir.supervisor_lock) and restart_is_wished(one.dir)


def _report(one: OneRun) -> int:
    end = one.look()
    how = end.reason if end.exit is None or end.exit.unbegun else end.exit.sentence()
    say(f"{end.run}: {end.state} ({how})")
    return 0 if end.state is State.FINISHED else 1

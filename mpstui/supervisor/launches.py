"""Start an attempt: first its record, then its process, so that no process is without a record."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..wire import liveness, storage
from ..wire.liveness import ProcessIdentity
from ..wire.records import LaunchRecord, Spec
from ..wire.rundir import RunDir
from ..wire.secrets import without_secrets
from .attempt import Attempt, Child
from .command import Command, Plan, environment_of
from .family import Family
from .journal import Journal, complain
from .machine import Machine


class SpawnFailed(NamedTuple):
    """The program could not be started."""

    text: str


def launch(
    run: RunDir,
    spec: Spec,
    plan: Plan,
    command: Command,
    journal: Journal,
    machine: Machine,
    kept: tuple[int, ...] = (),
) -> Attempt | SpawnFailed:
    """Record what is about to be started, then start it.

    The status says "starting" before there is a process, and the process records its own identity before it becomes the
    program: at no moment does a trainer run that no record names.

    Args:
        kept: descriptors of the queue's locks; the trainer holds them even if this supervisor dies.
    """
    _write_launch(run, spec, plan, command, journal, machine)
    try:
        lock = liveness.acquire(run.run_lock, inheritable=True)
    except OSError as error:
        return SpawnFailed(f"{error.strerror}: {run.run_lock}")
    if lock is None:
        return SpawnFailed("processes of an earlier attempt still hold run.lock")
    try:
        output = run.attempt(plan.number).output
        pid = start(command, output, (lock, *kept), lambda: _announce(run, journal, machine))
    except OSError as error:
        named = error.filename or (command.argv[0] if command.argv else "(empty command)")
        return SpawnFailed(f"{error.strerror or error}: {named}")
    finally:
        liveness.release(lock)  # from now on the trainer's copy is the witness
    found = machine.table.find(pid)
    leader = ProcessIdentity(pid, found.start) if found else None
    return Attempt(run, plan.number, Family(leader), machine, child=Child(pid))


def _announce(run: RunDir, journal: Journal, machine: Machine) -> None:
    """Record the new process's identity from inside it, before its program; a failure must not stop it."""
    with contextlib.suppress(Exception):
        me = machine.table.find(os.getpid())
        if me is not None:
            running = journal.status._replace(trainer=me.identity, updated=machine.clock.wall())
            storage.write_json(run.status, running)


def _write_launch(run: RunDir, spec: Spec, plan: Plan, command: Command, journal: Journal, machine: Machine) -> None:
    shown, hidden = without_secrets(command.env)
    record = LaunchRecord(
        attempt=plan.number,
        time=machine.clock.wall(),
        argv=list(command.argv),
        cwd=command.cwd,
        device=command.device,
        env=shown,
        secret_env=sorted({*hidden, *spec.secret_env}),
        checkpoint=command.checkpoint,
        gpus=list(command.gpus),
        reason=plan.reason,
        by=plan.by,
        totals=command.totals,
        rehearsal=plan.rehearsal,
    )
    try:
        storage.make_private_folder(run.attempt(plan.number).path)
        if plan.rehearsal is not None:
            # Heartbeat and output stay where everybody looks for them; metrics and checkpoints go elsewhere.
            storage.make_private_folder(run.attempt(plan.number).rehearsal)
            (run.attempt(plan.number).rehearsal / "attempts").symlink_to(run.path / "attempts")
        storage.write_json(run.attempt(plan.number).launch, record)
    except OSError as error:
        complain(f"launch.json could not be written: {error}")
    missing = [name for name in spec.secret_env if name not in os.environ]
    if missing:
        journal.event("note", f"started without {', '.join(missing)}: set at launch, kept nowhere", attempt=plan.number)


def start(command: Command, output: Path, kept: tuple[int, ...], announce: Callable[[], None]) -> int:
    """Start the trainer in a session of its own, with the descriptors ``kept`` open in it, and return its pid.

    Output goes straight to an append-only file, never through a pipe: nothing that happens to the supervisor can
    disturb the trainer's writes. ``announce`` runs in the new process just before the program, so what it records is
    true even if this supervisor dies at that moment. (``preexec_fn`` is safe: the supervisor has only one thread.)

    Raises:
        OSError: the program or its working folder does not exist or cannot be run.
    """
    log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=environment_of(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=kept,
            preexec_fn=announce,
        )
    finally:
        os.close(log)
    process.returncode = 0  # Popen must neither wait for it nor warn about it: Child does the waiting
    return process.pid

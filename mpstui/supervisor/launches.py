"""From "attempt n is due" to a running trainer: command, records, process."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..wire import liveness, records, storage
from ..wire.liveness import ProcessIdentity
from ..wire.records import AFTER_CHECKPOINT, GPU_VARIABLE, LaunchRecord, LaunchTemplate, Request, Spec, Status
from ..wire.rundir import RunDir
from ..wire.secrets import without_secrets
from ..wire.storage import UnreadableRecord
from . import checkpoints, ownership, spawn
from .attempt import Attempt
from .exits import Child
from .family import Family
from .journal import Journal, complain
from .machine import Machine
from .spawn import CannotCompose, Command


class Plan(NamedTuple):
    """An attempt that is wanted."""

    number: int
    reason: str
    by: str | None = None
    device: str | None = None
    source: str | None = None
    """latest, best, scratch or a path; None: the first start, from whatever the command says."""
    template: Mapping[str, Any] | None = None
    """A launch template that replaces the run's from here on."""
    request: Request | None = None
    automatic: bool = False
    queued: bool = False
    """Nothing of this run ever ran: its dependencies have to be met first."""


def template_of(spec: Spec, status: Status, plan: Plan | None = None) -> LaunchTemplate:
    """The template in force: the plan's, else the one of an earlier restart, else the spec's.

    Raises:
        CannotCompose: the plan's template cannot be read.
    """
    found = (plan.template if plan else None) or status.template
    if found is None:
        return spec.launch
    try:
        return records.from_json(LaunchTemplate, found)
    except (UnreadableRecord, AttributeError, TypeError) as error:
        raise CannotCompose(f"the new launch template cannot be read: {error}") from error


def prepare(
    run: RunDir, spec: Spec, status: Status, plan: Plan, machine: Machine, gpus: Sequence[str] = ()
) -> tuple[Command, str]:
    """The complete command of a plan, and a note when it differs from what was wished.

    Args:
        gpus: the devices that are this run's own.

    Raises:
        CannotCompose: it cannot be built; nothing was changed.
    """
    template = template_of(spec, status, plan)
    device = plan.device or (None if plan.template else _last_device(run, status.attempt))
    checkpoint, note = _pick_checkpoint(run, template, plan, machine)
    handed_over = _handed_over(run, spec, template, machine)
    command = spawn.compose(template, run, plan.number, device=device, checkpoint=checkpoint, handed_over=handed_over)
    return _on_gpus(command, spec, gpus), note


def _on_gpus(command: Command, spec: Spec, gpus: Sequence[str]) -> Command:
    """The command with its GPUs, and no others, to be seen; a variable that a restart edited has the last word."""
    rule, asked = spec.gpus, spec.launch.variants.get(command.device)
    named = command.env.get(GPU_VARIABLE)
    edited = named is not None and (asked is None or asked.env.get(GPU_VARIABLE) != named)
    if rule is None or not gpus or edited or command.device not in ("auto", "cuda"):
        return command
    env = {} if rule.fixed else {**rule.env, GPU_VARIABLE: ",".join(gpus)}
    return command._replace(env={**command.env, **env}, gpus=tuple(gpus))


def _handed_over(run: RunDir, spec: Spec, template: LaunchTemplate, machine: Machine) -> str | None:
    """``{after.checkpoint}``: the newest complete checkpoint of the first run this one waits for; empty without one."""
    words = [word for variant in template.variants.values() for word in (*variant.argv, *variant.env.values())]
    if not any(AFTER_CHECKPOINT in word for word in words):
        return None
    name = next((after["run"] for after in spec.queue.after if after.get("run")), None)
    if name is None:
        return None
    other = RunDir(run.path.parent / name)
    try:
        other_spec, other_status = records.read(Spec, other.spec), records.read(Status, other.status)
    except (OSError, UnreadableRecord) as error:
        raise CannotCompose(f"the record of run {name} cannot be read: {error}") from error
    if other_spec is None or other_status is None:
        raise CannotCompose(f"run {name} left no record")
    found, _ = newest_checkpoint(other, template_of(other_spec, other_status), machine)
    if found is None:
        raise CannotCompose(f"run {name} left no complete checkpoint")
    return found


def stack_signal(run: RunDir, attempt: int) -> int | None:
    """The signal at which the trainer said it dumps its stacks."""
    try:
        number = int(run.attempt(attempt).stack_signal.read_text())
        return signal.Signals(number).value
    except (OSError, ValueError):
        return None


def newest_checkpoint(
    run: RunDir, template: LaunchTemplate, machine: Machine, *, best: bool = False
) -> tuple[str | None, str]:
    """Path of the newest complete checkpoint of a run, and what must be said of other runs' files beside it."""
    found = ownership.sift(run, template)
    chosen = checkpoints.choose(found.own, best=best, sleep=machine.clock.sleep, now=machine.clock.wall())
    return str(chosen.path) if chosen else None, found.remark(chosen, best=best)


def saved_since(run: RunDir, spec: Spec, status: Status, moment: float | None) -> bool:
    """Whether a checkpoint was written after ``moment``."""
    found = ownership.sift(run, template_of(spec, status)).own
    return moment is not None and any(item.time >= moment for item in found)


def _pick_checkpoint(run: RunDir, template: LaunchTemplate, plan: Plan, machine: Machine) -> tuple[str | None, str]:
    source = plan.source
    if source is None or source == "scratch":
        return None, ""
    if source in ("latest", "best"):
        if template.resume_args is None:
            return None, "from scratch: the profile does not say how this program continues ([resume] args)"
        found, remark = newest_checkpoint(run, template, machine, best=source == "best")
        missing = "" if found else "from scratch: there is no complete checkpoint yet"
        return found, "; ".join(part for part in (missing, remark) if part)
    path = Path(template.cwd) / Path(source).expanduser()
    if not path.exists():
        raise CannotCompose(f"there is no checkpoint {path}")
    return str(path), ""


def _last_device(run: RunDir, attempt: int) -> str | None:
    try:
        last = records.read(LaunchRecord, run.attempt(attempt).launch)
    except (OSError, UnreadableRecord):
        return None
    return last.device if last else None


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
    """Write down what is about to be started, then start it.

    Args:
        kept: descriptors of the queue's locks; the trainer keeps them taken even when this supervisor dies.

    The status says "starting" before there is a process, and the process itself writes its identity down before it
    becomes the program: there is no moment in which a trainer runs that no record names.
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
        pid = spawn.start(command, output, (lock, *kept), lambda: _announce(run, journal, machine))
    except OSError as error:
        return SpawnFailed(spawn.describe_failure(error, command))
    finally:
        liveness.release(lock)  # the trainer's copy is the witness from now on
    found = machine.table.find(pid)
    leader = ProcessIdentity(pid, found.start) if found else None
    return Attempt(run, plan.number, Family(leader), machine, child=Child(pid))


def _announce(run: RunDir, journal: Journal, machine: Machine) -> None:
    """Runs in the new process, before its program."""
    me = machine.table.find(os.getpid())
    if me is not None:
        running = {**records.to_json(journal.status), "trainer": [me.pid, me.start], "updated": machine.clock.wall()}
        storage.write_json(run.status, running, sync=False)  # against the death of processes, not of the machine


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
    )
    try:
        storage.make_private_folder(run.attempt(plan.number).path)
        storage.write_json(run.attempt(plan.number).launch, record)
    except OSError as error:
        complain(f"launch.json could not be written: {error}")
    missing = [name for name in spec.secret_env if name not in os.environ]
    if missing:
        journal.event("note", f"started without {', '.join(missing)}: set at launch, kept nowhere", attempt=plan.number)

"""Build the complete command of an attempt, with device, checkpoint and GPUs filled in, or say why it is impossible."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..wire import storage
from ..wire.jobs import RENDEZVOUS
from ..wire.records import (
    AFTER_CHECKPOINT,
    GPU_VARIABLE,
    LaunchRecord,
    LaunchTemplate,
    Rehearsal,
    Request,
    Spec,
    Status,
    Totals,
)
from ..wire.rundir import RUN_VARIABLES, RunDir
from ..wire.storage import UnreadableRecord
from ..wire.tensors import newest_finite
from . import checkpoints
from .machine import Machine, rendezvous

_LONGEST_FIRST_LINE = 256


class Plan(NamedTuple):
    """An attempt to be started."""

    number: int
    reason: str
    by: str | None = None
    device: str | None = None
    source: str | None = None
    """latest, best, scratch or a path; None for the first start, from wherever the command says."""
    template: Mapping[str, Any] | None = None
    """A launch template that replaces the run's from now on."""
    request: Request | None = None
    automatic: bool = False
    queued: bool = False
    """The run has never run: its dependencies have to be met first."""
    rehearsal: Rehearsal | None = None


class CannotCompose(Exception):
    """The command cannot be built from the template; the text says what is missing."""


class Command(NamedTuple):
    """One attempt's complete command."""

    argv: tuple[str, ...]
    cwd: str
    device: str
    env: Mapping[str, str]
    """Variables added to the supervisor's own environment."""
    checkpoint: str | None = None
    unset: tuple[str, ...] = ()
    """Variables removed from it."""
    gpus: tuple[str, ...] = ()
    """The CUDA devices reserved for this run."""
    totals: Totals = Totals()
    not_finite: tuple[str, ...] = ()
    """Newer checkpoints that were passed over because they hold NaN."""


def template_of(spec: Spec, status: Status, plan: Plan | None = None) -> LaunchTemplate:
    """Return the template in force: the plan's, else that of an earlier restart, else the spec's.

    Raises:
        CannotCompose: the plan's template cannot be read.
    """
    found = (plan.template if plan else None) or status.template
    if found is None:
        return spec.launch
    try:
        return storage.from_json(LaunchTemplate, found)
    except (UnreadableRecord, AttributeError) as error:
        raise CannotCompose(f"the new launch template cannot be read: {error}") from error


def prepare(
    run: RunDir, spec: Spec, status: Status, plan: Plan, machine: Machine, gpus: Sequence[str] = ()
) -> tuple[Command, str]:
    """Return the complete command of a plan, and a note if it differs from what was asked for.

    Args:
        gpus: the devices reserved for this run.

    Raises:
        CannotCompose: it cannot be built; nothing was changed.
    """
    template = template_of(spec, status, plan)
    last = storage.read_or_none(LaunchRecord, run.attempt(last_real_attempt(run, status.attempt)).launch)
    device = plan.device or (None if plan.template or last is None else last.device)
    picked = _pick_checkpoint(run, template, plan, machine)
    if picked.path is None and plan.source == "latest" and spec.branch is not None:
        why = picked.not_finite_words or "there is no checkpoint of its own yet"
        picked = picked._replace(path=spec.branch.checkpoint, note=f"from where it branched off: {why}")
    handed_over = _handed_over(run, spec, template, machine)
    command = compose(
        template,
        run,
        plan.number,
        device=device,
        checkpoint=picked.path,
        handed_over=handed_over,
        place=run.attempt(plan.number).rehearsal if plan.rehearsal else run.path,
    )
    return _on_gpus(command._replace(not_finite=picked.not_finite), spec, gpus), picked.note


def last_real_attempt(run: RunDir, number: int) -> int:
    """Return the newest attempt up to ``number`` that was not a rehearsal; 0 if there is none."""
    while number > 0:
        found = storage.read_or_none(LaunchRecord, run.attempt(number).launch)
        if found is None or found.rehearsal is None:
            break
        number -= 1
    return number


def _on_gpus(command: Command, spec: Spec, gpus: Sequence[str]) -> Command:
    """Make only the run's own GPUs visible to the command, unless the variable was edited at a restart."""
    rule, asked = spec.gpus, spec.launch.variants.get(command.device)
    named = command.env.get(GPU_VARIABLE)
    edited = named is not None and (asked is None or asked.env.get(GPU_VARIABLE) != named)
    if rule is None or not gpus or edited or command.device not in ("auto", "cuda"):
        return command
    env = {} if rule.fixed else {**rule.env, GPU_VARIABLE: ",".join(gpus)}
    return command._replace(env={**command.env, **env}, gpus=tuple(gpus))


def _handed_over(run: RunDir, spec: Spec, template: LaunchTemplate, machine: Machine) -> str | None:
    """Return ``{after.checkpoint}``: the newest complete checkpoint of the first run this one waited for.

    None if nothing asks for it or it waited for no run.
    """
    words = [word for variant in template.variants.values() for word in (*variant.argv, *variant.env.values())]
    if not any(AFTER_CHECKPOINT in word for word in words):
        return None
    name = next((after["run"] for after in spec.queue.after if after.get("run")), None)
    if name is None:
        return None
    other = RunDir(run.path.parent / name)
    try:
        other_spec, other_status = storage.read(Spec, other.spec), storage.read(Status, other.status)
    except (OSError, UnreadableRecord) as error:
        raise CannotCompose(f"the record of run {name} cannot be read: {error}") from error
    if other_spec is None or other_status is None:
        raise CannotCompose(f"run {name} left no record")
    found = checkpoints.pick(other, template_of(other_spec, other_status), machine.clock)
    if found.path is None:
        why = f": {found.not_finite_words}" if found.not_finite else ""
        raise CannotCompose(f"run {name} left no {'finite' if why else 'complete'} checkpoint{why}")
    return found.path


def _pick_checkpoint(run: RunDir, template: LaunchTemplate, plan: Plan, machine: Machine) -> checkpoints.Picked:
    source = plan.source
    if source is None or source == "scratch":
        return checkpoints.Picked()
    if source in ("latest", "best"):
        if template.resume_args is None:
            how = "[resume] args, or `mpstui run --resume`, tell how"
            return checkpoints.Picked(note=f"from step 0 unless it resumes by itself ({how})")
        return checkpoints.pick(run, template, machine.clock, best=source == "best")
    path = Path(template.cwd) / Path(source).expanduser()
    if not path.exists():
        raise CannotCompose(f"there is no checkpoint {path}")
    return checkpoints.Picked(str(path), note="it holds NaN" if newest_finite([path])[1] else "")


def compose(
    template: LaunchTemplate,
    run: RunDir,
    attempt: int,
    *,
    device: str | None = None,
    checkpoint: str | None = None,
    handed_over: str | None = None,
    place: Path | None = None,
) -> Command:
    """Build the command of one attempt.

    Args:
        device: a device other than the one asked for at launch.
        checkpoint: what to resume from.
        handed_over: the value of :data:`AFTER_CHECKPOINT`: the newest checkpoint of the run this one waited for.
        place: the folder that the program uses as its run directory, if not the run's own.

    Raises:
        CannotCompose: no variant for the device, no way to resume, or no system could start it.
    """
    wanted = device or template.device
    variant = template.variants.get(wanted)
    if variant is None:
        known = ", ".join(sorted(template.variants)) or "none"
        raise CannotCompose(f"nothing says how to run this program on {wanted} (known: {known})")
    argv = list(variant.argv)
    if checkpoint is not None:
        if template.resume_args is None:
            raise CannotCompose("this program has no way to resume ([resume] args, or `mpstui run --resume`)")
        argv += template.resume_args
    values = {
        "{run_dir}": str(place or run.path),
        "{attempt}": str(attempt),
        "{checkpoint}": checkpoint or "",
        AFTER_CHECKPOINT: handed_over or "",
    }
    env = {name: _fill(value, values) for name, value in variant.env.items()}
    env |= {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
    env |= dict(zip(RUN_VARIABLES, (run.run, str(place or run.path), str(attempt)), strict=True))
    if any(RENDEZVOUS in word for word in argv):
        values[RENDEZVOUS] = rendezvous()
    words = tuple(_fill(word, values) for word in argv)
    _require_startable(words, env, template.cwd)
    return Command(words, template.cwd, wanted, env, checkpoint, tuple(variant.unset), totals=template.totals)


def _require_startable(words: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
    """Refuse what exec(2) would refuse, while the current attempt still runs."""
    if not words:
        raise CannotCompose("no system can start an empty command")
    for text in (*words, cwd, *env.keys(), *env.values()):
        try:
            if b"\0" in os.fsencode(text):
                raise CannotCompose(f"no system can start a command with a NUL in it: {text!a}")
        except UnicodeEncodeError:
            raise CannotCompose(f"no system can start a command with half a character in it: {text!a}") from None
    if wrong := [name for name in env if not name or "=" in name]:
        raise CannotCompose(f"no system can set the variable {wrong[0]!a}")


def require_there(command: Command) -> None:
    """Check that the folder, the program and the interpreter after a script's ``#!`` exist.

    Raises:
        CannotCompose: one of them does not, or cannot be run.
    """
    if not os.path.isdir(command.cwd):  # noqa: PTH112
        raise CannotCompose(f"there is no folder {command.cwd}")
    program = command.argv[0]
    folders = [""] if "/" in program else os.get_exec_path(environment_of(command))
    paths = (os.path.join(command.cwd, folder, program) for folder in folders)  # noqa: PTH118
    found = next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)  # noqa: PTH113
    if found is None:
        raise CannotCompose(f"there is no program {program} that could be started")
    with contextlib.suppress(OSError), storage.open_file(found) as file:
        words = os.fsdecode(file.readline(_LONGEST_FIRST_LINE)).removeprefix("#!").split()
        is_script = os.pread(file.fileno(), 2, 0) == b"#!"
        if is_script and words and not os.access(os.path.join(command.cwd, words[0]), os.X_OK):  # noqa: PTH118
            raise CannotCompose(f"{found} is a script for {words[0]}, which is not there")


def environment_of(command: Command) -> dict[str, str]:
    """Return the whole environment of the command's process."""
    return {**{name: value for name, value in os.environ.items() if name not in command.unset}, **command.env}


def _fill(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word

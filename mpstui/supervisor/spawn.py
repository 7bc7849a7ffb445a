"""Starting the trainer: what exactly is run, and the process itself."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ..wire.records import AFTER_CHECKPOINT, LaunchTemplate
from ..wire.rundir import RUN_VARIABLES, RunDir


class CannotCompose(Exception):
    """The template does not say how this is done; the text says what is missing."""


class Command(NamedTuple):
    """One attempt's command line, complete."""

    argv: tuple[str, ...]
    cwd: str
    device: str
    env: Mapping[str, str]
    """What is added to the supervisor's own environment."""
    checkpoint: str | None = None
    unset: tuple[str, ...] = ()
    """What is taken from it."""
    gpus: tuple[str, ...] = ()
    """The CUDA devices that are this run's own."""


def compose(
    template: LaunchTemplate,
    run: RunDir,
    attempt: int,
    *,
    device: str | None = None,
    checkpoint: str | None = None,
    handed_over: str | None = None,
) -> Command:
    """The command of one attempt.

    Args:
        device: a device other than the one asked for at launch.
        checkpoint: what to continue from.
        handed_over: what :data:`AFTER_CHECKPOINT` stands for: the newest checkpoint of the run this one waited for.

    Raises:
        CannotCompose: no variant for the device, or no way to resume.
    """
    wanted = device or template.device
    variant = template.variants.get(wanted)
    if variant is None:
        known = ", ".join(sorted(template.variants)) or "none"
        raise CannotCompose(f"the profile does not say how to run on {wanted} (it knows: {known})")
    argv = list(variant.argv)
    if checkpoint is not None:
        if template.resume_args is None:
            raise CannotCompose("the profile has no [resume] args: it does not say how this program continues")
        argv += template.resume_args
    values = {
        "{run_dir}": str(run.path),
        "{attempt}": str(attempt),
        "{checkpoint}": checkpoint or "",
        AFTER_CHECKPOINT: handed_over or "",
    }
    env = {name: _fill(value, values) for name, value in variant.env.items()}
    env |= _own_environment(run, attempt)
    words = tuple(_fill(word, values) for word in argv)
    return Command(words, template.cwd, wanted, env, checkpoint, tuple(variant.unset))


def mark(run: RunDir) -> bytes:
    """What the environment of everything that comes from this run holds, whatever its parents are."""
    return b"MPSTUI_RUN_DIR=" + os.fsencode(run.path)


def start(command: Command, output: Path, kept: tuple[int, ...], announce: Callable[[], None]) -> int:
    """Start the trainer in a session of its own, with the descriptors ``kept`` open in it, and return its pid.

    The output is an append-only descriptor of its own, never a pipe: nothing that happens to the supervisor can reach
    the trainer's writes. ``announce`` runs in the new process just before the program: what it records is true even
    when this supervisor dies at that very moment. (``preexec_fn`` is safe here: the supervisor has one thread.)

    Raises:
        OSError: the program or its working folder is not there or cannot be run.
    """
    log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env={**_inherited(command.unset), **command.env},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=kept,
            preexec_fn=_quietly(announce),
        )
    finally:
        os.close(log)
    process.returncode = 0  # Popen shall neither wait for it nor warn about it: that is Child's job
    return process.pid


def describe_failure(error: OSError, command: Command) -> str:
    """Why a program could not be started: the system's words and the file's name."""
    return f"{error.strerror or error}: {error.filename or (command.argv[0] if command.argv else '(empty command)')}"


def _inherited(unset: Iterable[str]) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in unset}


def _quietly(announce: Callable[[], None]) -> Callable[[], None]:
    def call() -> None:
        with contextlib.suppress(Exception):  # a record that cannot be written must not keep the trainer from starting
            announce()

    return call


def _fill(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def _own_environment(run: RunDir, attempt: int) -> dict[str, str]:
    values = (run.run, str(run.path), str(attempt))
    return {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1", **dict(zip(RUN_VARIABLES, values, strict=True))}

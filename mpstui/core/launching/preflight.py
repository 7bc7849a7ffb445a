"""Checks before a launch: what must exist, cheapest first, and warnings that diagnosis rules derive from the plan."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ...wire import heartbeat, storage
from ...wire.rundir import RunDir, slug
from ...wire.storage import UnreadableRecord
from ..machine import INSTALLED_TRAINER, Machine, is_python, trainer_module
from ..model.checks import LineIndex, Problem, ProfileError, nearest
from ..model.errors import OperationError, UsageError
from ..model.home import Home, resolve_home
from ..profiles.model import ArgumentValue, Profile
from .choice import launch_arguments
from .editing import recorded_choice


def world_problems(profile: Profile, program: str, environ: Mapping[str, str]) -> list[Problem]:
    """Return what a profile names but does not exist: its folder, its interpreter, its program, its script.

    The sentences name the key in the profile's file; a command without a profile's file has none.
    """
    found = {}
    if not profile.cwd.is_dir():
        found["cwd"] = f"there is no folder {profile.cwd}"
    if profile.python and not _is_program(profile.python, profile.cwd, environ):
        found["python"] = f"there is no interpreter {profile.python}"
    elif not _is_program(program, profile.cwd, environ):
        what = "is not executable" if Path(program).is_file() else "does not exist"
        missing = f"the program {program} {what}" if "/" in program else f"there is no program {program!r} on the PATH"
        found["command"] = missing
    script = script_of(profile)
    if not found and script and not (profile.cwd / script).is_file():
        likely = nearest(Path(script).name, [entry.name for entry in profile.cwd.glob("*.py")])
        instead = f"; did you mean {likely}?" if likely else ""
        if (profile.cwd.parent / script).is_file():
            add = ': add cwd = ".." to the profile, which runs in its own folder otherwise' if profile.path else ""
            instead = f"; it is in {profile.cwd.parent}{add}"
        found["command"] = f"there is no file {script} in {profile.cwd}{instead}"
    if profile.pid_file:
        pid_file = profile.cwd / Path(profile.pid_file).expanduser()
        if pid_file.is_dir() or (profile.cwd.is_dir() and not pid_file.parent.is_dir()):
            why = "is a folder" if pid_file.is_dir() else f"cannot be written: there is no folder {pid_file.parent}"
            found["pid_file"] = f"{pid_file} {why}"
    lines = LineIndex(profile.text)
    return [
        Problem(key, f"`{key}`: {sentence}" if profile.path else sentence, lines.line_of((key,)))
        for key, sentence in found.items()
    ]


def require_program(profile: Profile, argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Refuse a launch whose program, script, interpreter or folder is missing.

    Raises:
        UsageError: with everything that is missing, and file and line if it is from a profile.
    """
    problems = world_problems(profile, argv[0], environ)
    if problems and profile.path:
        raise ProfileError(profile.path, problems)
    if problems:
        raise UsageError(
            "; ".join(problem.sentence for problem in problems),
            "check the spelling, or give the full path",
            field=problems[0].key,
        )


def require_text(argv: Sequence[str]) -> None:
    """Refuse words that cannot be written into a record.

    Raises:
        UsageError: a word contains bytes that are not UTF-8.
    """
    for word in argv:
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            raise UsageError(f"{word!a} is no UTF-8 text", "rename the file, or pass it in a variable")


def require_modules(argv: Sequence[str], environ: Mapping[str, str], machine: Machine) -> None:
    """Refuse a shipped trainer in an interpreter that lacks torch or the trainer itself.

    Raises:
        OperationError: with the command that adds what is missing.
    """
    modules = (after for word, after in pairwise(argv) if word == "-m")
    trainer = next((module for module in modules if module in ("trainer", INSTALLED_TRAINER)), None)
    if not trainer or not is_python(argv[0]):
        return
    found = machine.interpreter.modules(argv[0], environ, (trainer, "torch"))
    missing = [name for name, there in found.items() if not there]
    if trainer in missing and trainer != trainer_module():
        raise OperationError(
            f"{argv[0]} has no module {trainer}: mpstui calls its trainers {trainer_module()} here",
            "write {trainer} in the profile's command, which is right in a checkout and after an install",
        )
    if missing:
        raise OperationError(
            f"{argv[0]} has no {' and no '.join(missing)}, which the shipped trainers need",
            f"add it with: {argv[0]} -m pip install 'mpstui[train]'",
        )


def _is_program(program: str, cwd: Path, environ: Mapping[str, str]) -> bool:
    if "/" in program:
        path = cwd / program
        return path.is_file() and os.access(path, os.X_OK)
    return shutil.which(program, path=environ.get("PATH", os.defpath)) is not None


def script_of(profile: Profile) -> str | None:
    """Return the script that a Python command runs, if only options without a value come before it."""
    words = profile.command
    if len(words) < 2 or not (words[0] == "{python}" or is_python(words[0])):
        return None
    for word in words[1:]:
        if word in ("-m", "-c", "-X", "-W"):
            return None
        if not word.startswith("-"):
            return word if word.endswith(".py") and "{" not in word else None
    return None


def preflight_warnings(
    profile: Profile,
    arguments: Mapping[str, ArgumentValue],
    device: str,
    environ: Mapping[str, str],
    machine: Machine,
) -> list[str]:
    """Return sentences about what would fail at once or may fail later; nothing is said about what is unknown.

    Reads small files and starts nothing, since the form calls this at every key press.
    """
    from ..diagnosis.preflight import LaunchFacts, preflight, version

    python, home = profile.python or machine.python, resolve_home(environ)
    before = earlier_run(home, profile.name)
    lightning = (installed_version(python, name, environ) for name in ("lightning", "pytorch_lightning"))
    script = script_of(profile)
    text = free = available = None
    if before.memory_bytes:
        from ..telemetry.procfs import psutil

        available = int(psutil.virtual_memory().available)
    with contextlib.suppress(OSError):
        text = storage.read_text(profile.cwd / script, 1 << 20) if script else ""
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(home.runs).free
    found = preflight(
        LaunchFacts(
            environment=environ,
            arguments=arguments,
            roles=profile.roles,
            device=machine.usable_devices()[0] if device == "auto" else device,
            script=text,
            torch_version=version(installed_version(python, "torch", environ)),
            lightning_version=version(next(filter(None, lightning), None)),
            macos_version=version(platform.mac_ver()[0]) if machine.system == "Darwin" else None,
            free_disk_bytes=free if before.checkpoint_bytes else None,
            checkpoint_bytes=before.checkpoint_bytes,
            available_memory_bytes=available,
            expected_memory_bytes=before.memory_bytes,
            expected_batch_size=before.batch_size,
        )
    )
    return [f"{warning.sentence} {warning.remedy.text}".rstrip() for warning in found]


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """What the newest run of the same name left behind; None is unknown."""

    checkpoint_bytes: int | None = None
    memory_bytes: int | None = None
    """Of the whole process, from its last heartbeat."""
    batch_size: int | None = None
    """The batch size it was started with, if its profile says which argument that is."""


def installed_version(python: str, package: str, environ: Mapping[str, str]) -> str | None:
    """Return the version of a package installed for an interpreter, by the name of its metadata folder.

    Starts nothing. None if it is missing, or is installed elsewhere (in a system Python's dist-packages).
    """
    found = python if "/" in python else shutil.which(python, path=environ.get("PATH"))
    if found is None:
        return None
    # Links are not followed: a virtual environment's python links to one with other packages.
    folders = (Path(found).parent.parent / "lib").glob(f"python3*/site-packages/{package}-*.dist-info")
    versions = sorted(folder.name.removeprefix(f"{package}-").removesuffix(".dist-info") for folder in folders)
    return versions[-1] if versions else None


def earlier_run(home: Home, name: str) -> EarlierRun:
    """Return what the newest run called ``name`` left behind, of the runs that left anything."""
    ids: list[str] = []
    with contextlib.suppress(OSError):
        ids = sorted((one.name for one in home.runs.iterdir() if one.name.endswith(f"-{slug(name)}")), reverse=True)
    for run in (RunDir(home.runs / run) for run in ids[:5]):
        largest = memory = None
        with contextlib.suppress(OSError):
            largest = max(map(_bytes_of, run.checkpoints.iterdir()), default=None)
        with contextlib.suppress(OSError, UnreadableRecord):
            numbers = run.attempt_numbers()
            record = storage.read_json(run.attempt(numbers[-1]).heartbeat()) if numbers else None
            held = heartbeat.from_json(record).memory if record else None
            memory = (held.footprint or held.rss) if held else None
        if largest is not None or memory is not None:
            return EarlierRun(largest, memory, _batch_size(run) if memory else None)
    return EarlierRun()


def _bytes_of(checkpoint: Path) -> int:
    """Return the size of a file, or of all files in a folder."""
    files = checkpoint.rglob("*") if checkpoint.is_dir() else [checkpoint]
    return sum(one.stat().st_size for one in files if one.is_file())


def _batch_size(run: RunDir) -> int | None:
    from ..diagnosis.model import whole_number

    try:
        choice = recorded_choice(run)
        arguments, _ = launch_arguments(choice)
    except (OperationError, UsageError):
        return None
    return whole_number(arguments.get(choice.profile.roles.get("batch_size", "")))

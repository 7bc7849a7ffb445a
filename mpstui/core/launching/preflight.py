"""Warnings before a launch: what the rules of diagnosis make of the plan, the disk and earlier runs."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ...wire import heartbeat, storage
from ...wire.rundir import RunDir, slug
from ...wire.storage import UnreadableRecord
from ..machine import Machine
from ..model.errors import OperationError, UsageError
from ..model.home import Home, resolve_home
from ..profiles.model import ArgumentValue, Profile
from .choice import launch_arguments
from .editing import recorded_choice
from .requirements import script_of

_LARGEST_SCRIPT_BYTES = 1 << 20


def preflight_warnings(
    profile: Profile,
    arguments: Mapping[str, ArgumentValue],
    device: str,
    environ: Mapping[str, str],
    machine: Machine,
) -> list[str]:
    """Sentences about what would fail at once or may fail later; what is unknown is not warned about.

    Reads small files and starts nothing: the form asks with every key that is pressed.
    """
    from ..diagnosis.preflight import LaunchFacts, preflight, version

    python, home = profile.python or machine.python, resolve_home(environ)
    before = earlier_run(home, profile.name)
    found = preflight(
        LaunchFacts(
            environment=environ,
            arguments=arguments,
            roles=profile.roles,
            device=machine.usable_devices()[0] if device == "auto" else device,
            script=_script_text(profile),
            torch_version=version(installed_version(python, "torch", environ)),
            lightning_version=version(_lightning(python, environ)),
            macos_version=version(platform.mac_ver()[0]) if machine.system == "Darwin" else None,
            free_disk_bytes=_free_disk(home.runs) if before.checkpoint_bytes else None,
            checkpoint_bytes=before.checkpoint_bytes,
            available_memory_bytes=_available_memory() if before.memory_bytes else None,
            expected_memory_bytes=before.memory_bytes,
            expected_batch_size=before.batch_size,
        )
    )
    return [f"{warning.sentence} {warning.remedy.text}".rstrip() for warning in found]


def _lightning(python: str, environ: Mapping[str, str]) -> str | None:
    names = ("lightning", "pytorch_lightning")
    return next((found for name in names if (found := installed_version(python, name, environ))), None)


def _free_disk(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _available_memory() -> int | None:
    import psutil  # type: ignore[import-untyped]

    return int(psutil.virtual_memory().available)


def _script_text(profile: Profile) -> str | None:
    script = script_of(profile)
    path = profile.cwd / Path(script) if script else None
    try:
        if path is None or path.stat().st_size > _LARGEST_SCRIPT_BYTES:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


MOST_RUNS = 5
"""Newest runs of one name that are looked at."""


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """What the newest run of the same name left; None is unknown."""

    checkpoint_bytes: int | None = None
    memory_bytes: int | None = None
    """Of the whole process, as its last heartbeat said."""
    batch_size: int | None = None
    """What it was started with, where its profile says which argument that is."""


def installed_version(python: str, package: str, environ: Mapping[str, str]) -> str | None:
    """The version of a package beside an interpreter, by the name of its metadata folder; nothing is started.

    None where it is not there, or lies somewhere else (a system Python's dist-packages).
    """
    found = python if "/" in python else shutil.which(python, path=environ.get("PATH"))
    if found is None:
        return None
    # Not resolved: a virtual environment's python is a link to one whose packages are not its own.
    folders = (Path(found).parent.parent / "lib").glob(f"python3*/site-packages/{package}-*.dist-info")
    versions = sorted(folder.name.removeprefix(f"{package}-").removesuffix(".dist-info") for folder in folders)
    return versions[-1] if versions else None


def earlier_run(home: Home, name: str) -> EarlierRun:
    """Look at the newest runs called ``name``, by their ids, until one has left something."""
    for run in _newest(home, name):
        found = EarlierRun(_largest_checkpoint(run), _memory(run))
        if found != EarlierRun():
            return replace(found, batch_size=_batch_size(run) if found.memory_bytes else None)
    return EarlierRun()


def _newest(home: Home, name: str) -> Iterator[RunDir]:
    wanted = f"-{slug(name)}"
    try:
        ids = sorted((entry.name for entry in home.runs.iterdir() if entry.name.endswith(wanted)), reverse=True)
    except OSError:
        return
    yield from (RunDir(home.runs / run) for run in ids[:MOST_RUNS])


def _largest_checkpoint(run: RunDir) -> int | None:
    try:
        return max((file.stat().st_size for file in run.checkpoints.iterdir() if file.is_file()), default=None)
    except OSError:
        return None


def _batch_size(run: RunDir) -> int | None:
    from ..diagnosis.model import whole_number

    try:
        choice = recorded_choice(run)
        arguments, _ = launch_arguments(choice)
    except (OperationError, UsageError):
        return None
    return whole_number(arguments.get(choice.profile.roles.get("batch_size", "")))


def _memory(run: RunDir) -> int | None:
    numbers = run.attempt_numbers()
    try:
        record = storage.read_json(run.attempt(numbers[-1]).heartbeat()) if numbers else None
        memory = heartbeat.from_json(record).memory if record else None
    except (OSError, UnreadableRecord):
        return None
    return (memory.footprint or memory.rss) if memory else None

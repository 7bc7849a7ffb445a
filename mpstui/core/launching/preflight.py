"""Warnings before a launch: what the rules of diagnosis make of the plan, the disk and earlier runs."""

from __future__ import annotations

import contextlib
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
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
    lightning = (installed_version(python, name, environ) for name in ("lightning", "pytorch_lightning"))
    script = script_of(profile)
    free = available = None
    if before.memory_bytes:
        import psutil  # type: ignore[import-untyped]

        available = int(psutil.virtual_memory().available)
    source = profile.cwd / script if script else None
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(home.runs).free
    found = preflight(
        LaunchFacts(
            environment=environ,
            arguments=arguments,
            roles=profile.roles,
            device=machine.usable_devices()[0] if device == "auto" else device,
            script=_text_of(source) if source else None,
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


def _text_of(script: Path) -> str | None:
    try:
        if script.stat().st_size > _LARGEST_SCRIPT_BYTES:
            return None
        return script.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


MOST_RUNS = 5
"""So many of the newest runs of a name are read."""


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
    """What the newest run called ``name`` left, of those that left anything."""
    ids: list[str] = []
    with contextlib.suppress(OSError):
        ids = sorted((one.name for one in home.runs.iterdir() if one.name.endswith(f"-{slug(name)}")), reverse=True)
    for run in (RunDir(home.runs / run) for run in ids[:MOST_RUNS]):
        largest = None
        with contextlib.suppress(OSError):
            largest = max((one.stat().st_size for one in run.checkpoints.iterdir() if one.is_file()), default=None)
        memory = _memory(run)
        if largest is not None or memory is not None:
            return EarlierRun(largest, memory, _batch_size(run) if memory else None)
    return EarlierRun()


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

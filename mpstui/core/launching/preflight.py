"""What the rules of diagnosis have to say about a launch before it happens."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from ..machine import Machine
from ..model.home import resolve_home
from ..profiles.model import ArgumentValue, Profile
from .earlier import earlier_run, installed_version
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
    from ..diagnosis.preflight import LaunchPlan, preflight, version

    python, home = profile.python or machine.python, resolve_home(environ)
    before = earlier_run(home, profile.name)
    found = preflight(
        LaunchPlan(
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

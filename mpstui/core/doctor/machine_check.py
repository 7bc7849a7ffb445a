"""Looks at everything but torch: system, interpreter, memory, disk, limits, home, environment."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from ...wire import atomic, locks
from ..model.home import Home
from ..present.format import size
from .report import Finding, Status

LEAST_FREE_DISK_BYTES = 2 * 10**9
LEAST_FREE_MEMORY_BYTES = 10**9
LEAST_OPEN_FILES = 1024
PACKAGES = (
    "mpstui",
    "textual",
    "rich",
    "psutil",
    "watchfiles",
    "platformdirs",
    "tomlkit",
    "torch",
    "numpy",
    "safetensors",
)


def system_facts() -> dict[str, Any]:
    """System, release and processor; on macOS its own version."""
    return {
        "system": platform.system(),
        "release": platform.mac_ver()[0] or platform.release(),
        "architecture": platform.machine(),
        "translated": _is_translated(),
    }


def judge_system(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """An Intel Python on Apple silicon sees no MPS."""
    name = "macOS" if facts["system"] == "Darwin" else facts["system"]
    if facts["translated"]:
        text = "this Python is an Intel one that runs under Rosetta: torch finds no MPS from it"
        yield Finding("os", Status.PROBLEM, text, "install an arm64 Python and make the environment anew")
    else:
        yield Finding("os", Status.OK, f"{name} {facts['release']} on {facts['architecture']}")


def python_facts() -> dict[str, Any]:
    """The interpreter mpstui runs in."""
    return {"version": platform.python_version(), "path": sys.executable, "prefix": sys.prefix}


def versions() -> dict[str, str | None]:
    """Installed packages of this interpreter; None: not there."""
    return {name: _version(name) for name in PACKAGES}


def memory_facts() -> dict[str, Any]:
    """Bytes in all and bytes that can be had without swapping."""
    import psutil  # type: ignore[import-untyped]

    memory = psutil.virtual_memory()
    return {"total": memory.total, "available": memory.available, "swap_used": psutil.swap_memory().used}


def judge_memory(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Little free memory is the usual beginning of a killed run."""
    text = f"{size(facts['available'])} of {size(facts['total'])} of memory are available"
    if facts["available"] < LEAST_FREE_MEMORY_BYTES:
        yield Finding("memory", Status.WARNING, text, "close what needs memory: the system kills trainings first")
    else:
        yield Finding("memory", Status.OK, text)


def disk_facts(home: Home) -> dict[str, Any]:
    """The disk that runs are kept on."""
    existing = next(parent for parent in (home.state, *home.state.parents) if parent.is_dir())
    usage = shutil.disk_usage(existing)
    return {"path": str(existing), "total": usage.total, "free": usage.free}


def judge_disk(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """A full disk ends a training at its next print()."""
    text = f"{size(facts['free'])} are free on the disk of {facts['path']}"
    if facts["free"] < LEAST_FREE_DISK_BYTES:
        yield Finding("disk", Status.WARNING, text, "free some space before you train: a full disk ends a run")
    else:
        yield Finding("disk", Status.OK, text)


def limit_facts() -> dict[str, Any]:
    """Limits of this shell that its runs inherit; None: no limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "open_files": None if soft == resource.RLIM_INFINITY else soft,
        "open_files_hard": None if hard == resource.RLIM_INFINITY else hard,
    }


def judge_limits(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Data loader workers share tensors through file descriptors; macOS starts shells with 256."""
    files = facts["open_files"]
    if files is not None and files < LEAST_OPEN_FILES:
        text = f"a process may open {files} files only: data loader workers end with `Too many open files`"
        yield Finding("open_files", Status.WARNING, text, "`ulimit -n 4096` in the shell you launch from")
    else:
        yield Finding(
            "open_files", Status.OK, f"a process may open {'any number of' if files is None else files} files"
        )


def home_facts(home: Home) -> dict[str, Any]:
    """Whether the home can be written to, and whether its file system knows locks."""
    probe = home.state / f".doctor.{os.getpid()}"
    facts: dict[str, Any] = {"path": str(home.state), "writable": False, "locks": None, "error": None}
    try:
        atomic.make_private_folder(home.state)
        atomic.write_bytes(probe, b"x")
        facts["writable"] = True
        facts["locks"] = _locks_work(probe)
    except OSError as error:
        facts["error"] = error.strerror
    with contextlib.suppress(OSError):
        probe.unlink()
    return facts


def judge_home(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Without a writable home nothing can be launched; without locks no state can be trusted."""
    if not facts["writable"]:
        text = f"{facts['path']} cannot be written: {facts['error']}"
        yield Finding("home", Status.PROBLEM, text, "set MPSTUI_HOME to a folder of yours on a local disk")
    elif not facts["locks"]:
        text = f"the file system of {facts['path']} knows no locks: whether a run lives cannot be told"
        yield Finding("home", Status.PROBLEM, text, "set MPSTUI_HOME to a folder on a local disk")
    else:
        yield Finding("home", Status.OK, f"{facts['path']} can be written and locked")


def judge_environment(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Variables of this shell that would go wrong in a training."""
    from ..diagnosis.preflight import LaunchPlan, preflight

    for warning in preflight(LaunchPlan(environment=environ)):
        yield Finding(warning.id, Status.WARNING, warning.sentence, warning.remedy.text)


def _locks_work(path: Path) -> bool:
    descriptor = locks.acquire(path)
    if descriptor is None:
        return False
    try:
        return locks.is_held(path)
    finally:
        locks.release(descriptor)


def _is_translated() -> bool:
    """Whether this process runs under Rosetta (``sysctl sysctl.proc_translated``: 1)."""
    if platform.system() != "Darwin":
        return False
    command = ["sysctl", "-n", "sysctl.proc_translated"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.strip() == "1"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None

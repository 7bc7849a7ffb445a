"""What the doctor checks besides torch: system, memory, disk, limits, home, environment, sleep and telemetry.

For each subject, one function gathers facts and another judges them, so that tests can judge the facts of other
machines.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from ...wire import liveness, storage, trust
from ..model.home import HINT_OWN, Home
from ..present import size
from ..telemetry.reading import SourceReport
from ..telemetry.sampler import Sampler, default_sampler
from .report import CheckResult, Status

LEAST_FREE_DISK_BYTES = 2 * 10**9
LEAST_FREE_MEMORY_BYTES = 10**9
LEAST_OPEN_FILES = 1024
PACKAGES = (
    *("mpstui", "textual", "rich", "psutil", "watchfiles", "platformdirs", "tomlkit"),
    *("torch", "numpy", "safetensors"),
)


def system_facts() -> dict[str, Any]:
    """Return system, release (on macOS its version, not the kernel's), architecture, and whether Rosetta is in use."""
    asks = sys.platform == "darwin"
    return {
        "system": platform.system(),
        "release": platform.mac_ver()[0] or platform.release(),
        "architecture": platform.machine(),
        "translated": asks and _answer("sysctl", "-n", "sysctl.proc_translated").strip() == "1",
    }


def judge_system(facts: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Report an Intel Python on Apple silicon, which cannot see MPS."""
    name = "macOS" if facts["system"] == "Darwin" else facts["system"]
    if facts["translated"]:
        text = "this is an Intel Python running under Rosetta: its torch cannot see MPS"
        yield CheckResult("os", Status.PROBLEM, text, "install an arm64 Python and recreate the environment")
    else:
        yield CheckResult("os", Status.OK, f"{name} {facts['release']} on {facts['architecture']}")


def versions() -> dict[str, str | None]:
    """Return the versions of ``PACKAGES`` in this interpreter; None for one that is not installed."""
    found: dict[str, str | None] = dict.fromkeys(PACKAGES)
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def memory_facts() -> dict[str, Any]:
    """Return bytes of total memory, memory available without swapping, and swap in use."""
    from ..telemetry.procfs import psutil

    memory = psutil.virtual_memory()
    return {"total": memory.total, "available": memory.available, "swap_used": psutil.swap_memory().used}


def judge_memory(facts: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Warn about little free memory: that is how runs come to be killed by the system."""
    text = f"{size(facts['available'])} of {size(facts['total'])} of memory available"
    if facts["available"] < LEAST_FREE_MEMORY_BYTES:
        advice = "close programs that use memory: when it runs out, the system kills the training"
        yield CheckResult("memory", Status.WARNING, text, advice)
    else:
        yield CheckResult("memory", Status.OK, text)


def disk_facts(home: Home) -> dict[str, Any]:
    """Return path, size and free bytes of the disk that holds the runs."""
    existing = next(parent for parent in (home.state, *home.state.parents) if parent.is_dir())
    usage = shutil.disk_usage(existing)
    return {"path": str(existing), "total": usage.total, "free": usage.free}


def judge_disk(facts: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Warn about a nearly full disk: once full, it ends a training at its next print()."""
    text = f"{size(facts['free'])} free on the disk of {facts['path']}"
    if facts["free"] < LEAST_FREE_DISK_BYTES:
        yield CheckResult("disk", Status.WARNING, text, "free some space before you train: a full disk ends a run")
    else:
        yield CheckResult("disk", Status.OK, text)


def limit_facts() -> dict[str, Any]:
    """Return the limits of this shell, which its runs inherit; None means no limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "open_files": None if soft == resource.RLIM_INFINITY else soft,
        "open_files_hard": None if hard == resource.RLIM_INFINITY else hard,
    }


def judge_limits(facts: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Warn about a low limit of open files: DataLoader workers share tensors by file descriptor; macOS allows 256."""
    files = facts["open_files"]
    if files is not None and files < LEAST_OPEN_FILES:
        text = f"a process may open only {files} files: data loader workers will fail with `Too many open files`"
        yield CheckResult("open_files", Status.WARNING, text, "`ulimit -n 4096` in the shell you launch from")
    else:
        number = "any number of" if files is None else files
        yield CheckResult("open_files", Status.OK, f"a process may open {number} files")


def home_facts(home: Home) -> dict[str, Any]:
    """Return whether we, and no one else, can write to the home, and whether its file system supports locks."""
    probe = home.state / f".doctor.{os.getpid()}"
    facts: dict[str, Any] = {"path": str(home.state), "writable": False, "locks": None, "error": None}
    own = (home.state, home.runs, home.queue, home.config, home.settings, home.user_profiles)
    facts["distrusted"] = trust.distrust_of_any(*own)
    try:
        storage.make_private_folder(home.state)
        storage.write_bytes(probe, b"x")
        facts["writable"] = True
        descriptor = liveness.acquire(probe)
        facts["locks"] = descriptor is not None and liveness.is_held(probe)
        if descriptor is not None:
            liveness.release(descriptor)
    except OSError as error:
        facts["error"] = error.strerror
    with contextlib.suppress(OSError):
        probe.unlink()
    return facts


def judge_home(facts: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Judge the home: nothing can be launched unless it is writable, and no state can be trusted without locks."""
    if not facts["writable"]:
        text = f"{facts['path']} is not writable: {facts['error']}"
        yield CheckResult("home", Status.PROBLEM, text, "set MPSTUI_HOME to a folder of yours on a local disk")
    elif not facts["locks"]:
        text = f"the file system of {facts['path']} has no locks: mpstui cannot tell whether a run is alive"
        yield CheckResult("home", Status.PROBLEM, text, "set MPSTUI_HOME to a folder on a local disk")
    elif facts["distrusted"]:
        yield CheckResult("home", Status.PROBLEM, facts["distrusted"], HINT_OWN)
    else:
        yield CheckResult("home", Status.OK, f"{facts['path']} is writable and supports locks")


def judge_environment(environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """Warn about variables of this shell that would harm a training."""
    from ..diagnosis.preflight import LaunchFacts, preflight

    for warning in preflight(LaunchFacts(environment=environ)):
        yield CheckResult(warning.id, Status.WARNING, warning.sentence, warning.remedy.text)


def lingers(root: Path = Path("/")) -> bool | None:
    """Return whether linger is enabled for this user; None without systemd, or if ``loginctl`` does not answer.

    Without linger, a user's last logout ends their ``systemd --user`` services, and with ``KillUserProcesses=yes``
    (systemd's default since v230) every other process of theirs, too (loginctl(1), enable-linger).
    """
    if not (root / "run/systemd/system").is_dir():
        return None
    return parse_linger(_answer("loginctl", "show-user", "--property=Linger", "--value"))


def parse_linger(text: str) -> bool | None:
    """Parse the output of loginctl: ``yes`` or ``no``."""
    return {"yes": True, "no": False}.get(text.strip())


def judge_linger(linger: bool | None) -> Iterator[CheckResult]:
    """Warn that runs may end at the last logout; yields nothing if that is unknown."""
    if linger:
        yield CheckResult("linger", Status.OK, "runs survive your last logout (linger is enabled)")
    elif linger is False:
        text = "systemd may end your runs at your last logout: linger is not enabled"
        yield CheckResult("linger", Status.WARNING, text, "loginctl enable-linger")


# One setting per line, as pmset(1) prints it: ` sleep  1 (sleep prevented by powerd)`.
_PMSET_LINE = re.compile(r"^ (?P<name>[A-Za-z]+)[ \t]+(?P<value>\d+)(?: .*)?$", re.MULTILINE)
_LOW_POWER = 1
"""Value of ``powermode`` on Macs that also have a high power mode (2); others report ``lowpowermode`` 0 or 1."""


@dataclass(frozen=True, slots=True)
class SleepSettings:
    """What happens to an idle machine; None means unknown."""

    idle_minutes: int | None = None
    """macOS: minutes until it sleeps on its own; 0: never."""
    idle_action: str | None = None
    """systemd-logind: what it does to an idle machine."""
    low_power: bool | None = None


def sleep_settings(system: str, root: Path = Path("/")) -> SleepSettings:
    """Ask ``pmset`` on macOS; elsewhere read logind's configuration."""
    return from_pmset(_answer("pmset", "-g")) if system == "Darwin" else SleepSettings(idle_action=idle_action(root))


def from_pmset(text: str) -> SleepSettings:
    """Parse the output of ``pmset -g``."""
    values = {match["name"]: int(match["value"]) for match in _PMSET_LINE.finditer(text)}
    mode = values.get("lowpowermode", values.get("powermode"))
    return SleepSettings(
        idle_minutes=0 if values.get("SleepDisabled") else values.get("sleep"),
        low_power=mode == _LOW_POWER if mode is not None else None,
    )


def idle_action(root: Path) -> str | None:
    """Return systemd-logind's ``IdleAction``, ``ignore`` unless a file sets it; None without systemd."""
    if not (root / "run/systemd/system").is_dir():
        return None
    found = "ignore"
    # In the order in which systemd reads them; the last one wins (logind.conf(5)).
    for folder in (root / "usr/lib/systemd", root / "run/systemd", root / "etc/systemd"):
        for path in (folder / "logind.conf", *sorted((folder / "logind.conf.d").glob("*.conf"))):
            with contextlib.suppress(OSError):
                text = path.read_text(encoding="utf-8", errors="replace")
                for match in re.finditer(r"^[ \t]*IdleAction[ \t]*=[ \t]*(\S+)\s*$", text, re.MULTILINE):
                    found = match[1]
    return found


def judge_sleep(settings: SleepSettings) -> Iterator[CheckResult]:
    """Warn if the machine may go to sleep. mpstui keeps a Mac awake, except on battery with its lid closed."""
    if settings.idle_minutes == 0:
        yield CheckResult("sleep", Status.OK, "this Mac does not go to sleep by itself")
    elif settings.idle_minutes is not None:
        text = f"this Mac sleeps after {settings.idle_minutes} min idle; mpstui keeps it awake during its own runs"
        advice = "for other programs: caffeinate -i COMMAND; closing the lid still sleeps unless a display is attached"
        yield CheckResult("sleep", Status.NOTE, text, advice)
    if settings.low_power:
        text, advice = "low power mode is on: it throttles the GPU", "System Settings, Battery, Low Power Mode: never"
        yield CheckResult("low_power", Status.WARNING, text, advice)
    action = settings.idle_action
    if action in ("ignore", "lock", ""):
        yield CheckResult("sleep", Status.OK, f"logind leaves an idle machine alone (IdleAction={action or 'ignore'})")
    elif action is not None:
        text = f"logind will {action} this machine when nobody uses it, even while it trains"
        advice = "set IdleAction=ignore in /etc/systemd/logind.conf, or train under systemd-inhibit --what=idle"
        yield CheckResult("sleep", Status.WARNING, text, advice)


UNVERIFIED = "unverified: written from its documentation, never tried on the real thing"
PATIENCE_SECONDS = 5.0


def read_sources(
    make: Callable[[], Sampler] = default_sampler, *, patience_seconds: float = PATIENCE_SECONDS
) -> tuple[SourceReport, ...]:
    """Return the state of each telemetry source, in order of preference, after waiting a little for first values."""
    sampler = make()
    until = time.monotonic() + patience_seconds
    try:
        while True:
            sampler.sample({"doctor": (os.getpid(),)})
            reports = sampler.reports()
            if not any(report.waits for report in reports) or time.monotonic() > until:
                return reports
            time.sleep(0.5)
    finally:
        sampler.close()


def judge_telemetry(reports: Sequence[SourceReport], system: str) -> Iterator[CheckResult]:
    """Yield one note or OK per source; never a warning, since trainings need none of them."""
    for report in reports:
        mark = "" if report.verified else f" ({UNVERIFIED})"
        if report.reason:
            yield CheckResult("telemetry", Status.NOTE, f"telemetry: {report.name}: n/a, {report.reason}{mark}")
        else:
            named = (re.sub("(_bytes|_celsius|_watts)$", "", name) for name in report.gives)
            quantities = ", ".join(name.replace("_percent", " %").replace("_", " ") for name in named)
            yield CheckResult("telemetry", Status.OK, f"telemetry: {report.name}: {quantities}{mark}")
    if system == "Darwin":
        text = f"telemetry: JetsamEvent reports, read after a kill ({UNVERIFIED})"
        yield CheckResult("telemetry", Status.NOTE, text)


def _answer(*command: str) -> str:
    """Return the output of a command; empty if it cannot be run or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=5.0, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout

"""Examines the machine before a training does: what is there, what works, what would go wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..model.home import Home
from . import machine_check as machine
from . import openmp_check, sleep_check, telemetry_check
from .report import Finding, Report, Status
from .session_check import judge_linger, lingers
from .torch_check import examine_torch
from .version_check import judge_versions

__all__ = ["Finding", "Report", "Status", "examine"]


def examine(home: Home, environ: Mapping[str, str], *, python: str, train: bool = False) -> Report:
    """Look at everything; takes the seconds that importing torch takes, once a device.

    Args:
        python: the interpreter whose torch is examined.
        train: also train a tiny network for two iterations on each device; its loss must fall.
    """
    system, memory, disk = machine.system_facts(), machine.memory_facts(), machine.disk_facts(home)
    limits, kept = machine.limit_facts(), machine.home_facts(home)
    linger, sleep = lingers(), sleep_check.sleep_settings(system["system"])
    torch = examine_torch(python, environ, system=system["system"], train=train)
    place = openmp_check.environment_of(torch.torch)
    runtimes = openmp_check.openmp_runtimes(*place) if place else ()
    sources = telemetry_check.read_sources()
    findings = (
        *machine.judge_system(system),
        *torch.findings,
        *_accelerators(torch.devices),
        *judge_versions(torch.torch, system),
        *openmp_check.judge_openmp(runtimes),
        *machine.judge_memory(memory),
        *machine.judge_disk(disk),
        *machine.judge_limits(limits),
        *machine.judge_home(kept),
        *telemetry_check.judge_telemetry(sources, system["system"]),
        *judge_linger(linger),
        *sleep_check.judge_sleep(sleep),
        *machine.judge_environment(environ),
    )
    facts = {
        "os": system,
        "python": machine.python_facts(),
        "versions": machine.versions(),
        "torch": torch.torch,
        "devices": torch.devices,
        "memory": memory,
        "disk": disk,
        "limits": limits,
        "home": kept,
        "telemetry": telemetry_check.facts(sources),
        "linger": linger,
        "sleep": sleep_check.facts(sleep),
        "openmp": openmp_check.facts(runtimes),
    }
    return Report(findings, facts)


def _accelerators(devices: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Said aloud: a training that is slower than hoped for often runs where nobody looked."""
    if devices and not any(devices.get(name, {}).get("available") for name in ("mps", "cuda")):
        yield Finding("accelerator", Status.NOTE, "no accelerator: trainings run on the CPU here")

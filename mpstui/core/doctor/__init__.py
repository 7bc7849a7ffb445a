"""Examines the machine before a training does: what is there, what works, what would go wrong."""

from __future__ import annotations

from collections.abc import Mapping

from ..home import Home
from . import machine_check as machine
from .report import Finding, Report, Status
from .torch_check import examine_torch

__all__ = ["Finding", "Report", "Status", "examine"]


def examine(home: Home, environ: Mapping[str, str], *, python: str, train: bool = False) -> Report:
    """Look at everything; takes the seconds that importing torch takes, once a device.

    Args:
        python: the interpreter whose torch is examined.
        train: also train a tiny network for two iterations on each device; its loss must fall.
    """
    system, memory, disk = machine.system_facts(), machine.memory_facts(), machine.disk_facts(home)
    limits, kept = machine.limit_facts(), machine.home_facts(home)
    torch = examine_torch(python, environ, system=system["system"], train=train)
    findings = (
        *machine.judge_system(system),
        *torch.findings,
        *machine.judge_memory(memory),
        *machine.judge_disk(disk),
        *machine.judge_limits(limits),
        *machine.judge_home(kept),
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
    }
    return Report(findings, facts)

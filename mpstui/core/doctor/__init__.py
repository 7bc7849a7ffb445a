"""Examines the machine before a training runs: what is there, what works, what would go wrong."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict

from ..model.home import Home
from . import cluster_check as cluster
from . import machine_check as machine
from . import torch_check
from .report import CheckResult, Report, Status

__all__ = ["CheckResult", "Report", "Status", "examine"]


def examine(home: Home, environ: Mapping[str, str], *, python: str, train: bool = False) -> Report:
    """Check everything. Takes as long as importing torch once, plus once more per device.

    Args:
        home: where runs are kept; its disk and file system are checked.
        environ: the environment that trainings would inherit.
        python: the interpreter whose torch is examined.
        train: also train a tiny network for two steps on each device; its loss must fall.
    """
    system, memory, disk = machine.system_facts(), machine.memory_facts(), machine.disk_facts(home)
    limits, kept = machine.limit_facts(), machine.home_facts(home)
    linger, sleep = machine.lingers(), machine.sleep_settings(system["system"])
    torch = torch_check.examine_torch(python, environ, system=system["system"], train=train)
    place = torch_check.environment_of(torch.torch)
    runtimes = torch_check.openmp_runtimes(*place) if place else ()
    sources, clusters = machine.read_sources(), cluster.cluster_facts(home)
    results = (
        *machine.judge_system(system),
        *torch.results,
        *torch_check.judge_versions(torch.torch, system),
        *torch_check.judge_openmp(runtimes),
        *machine.judge_memory(memory),
        *machine.judge_disk(disk),
        *machine.judge_limits(limits),
        *machine.judge_home(kept),
        *cluster.judge_clusters(clusters),
        *machine.judge_telemetry(sources, system["system"]),
        *machine.judge_linger(linger),
        *machine.judge_sleep(sleep),
        *machine.judge_environment(environ),
    )
    facts = {
        "os": system,
        "python": {"version": platform.python_version(), "path": sys.executable, "prefix": sys.prefix},
        "versions": machine.versions(),
        "torch": torch.torch,
        "devices": torch.devices,
        "memory": memory,
        "disk": disk,
        "limits": limits,
        "home": kept,
        "telemetry": [asdict(report) for report in sources],
        "clusters": clusters,
        "linger": linger,
        "sleep": asdict(sleep),
        "openmp": [asdict(one) for one in runtimes],
    }
    return Report(results, facts)

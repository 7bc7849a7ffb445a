"""What watching five processes costs here: ``python -m tests.core.telemetry.cost [SECONDS]`` prints it."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import psutil  # type: ignore[import-untyped]

from mpstui.core.telemetry.sampler import default_sampler

SAMPLES_PER_SECOND = 1.0
TREE = "import subprocess as s, time; [s.Popen(['sleep', '600']) for _ in range(4)]; print(flush=True); time.sleep(600)"


def cpu_seconds() -> float:
    """CPU time of this process and of its children that ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(root: int, seconds: float) -> tuple[float, float]:
    """Percent of a core, and the longest sample in seconds, while ``root``'s tree is watched."""
    sampler = default_sampler()
    sampler.sample({"run": (root,)})
    before, begun, longest = cpu_seconds(), time.perf_counter(), 0.0
    while (now := time.perf_counter()) < begun + seconds:
        sampler.sample({"run": (root,)})
        longest = max(longest, time.perf_counter() - now)
        time.sleep(1 / SAMPLES_PER_SECOND)
    percent = 100 * (cpu_seconds() - before) / (time.perf_counter() - begun)
    for report in sampler.reports():
        took = "-" if report.seconds is None else f"{1000 * report.seconds:.1f} ms"
        print(f"{report.name:28} every {report.period_seconds:g} s  {took:>8}  {report.reason}")
    sampler.close()
    return percent, longest


def main() -> None:
    """Start a small tree, watch it, print the figures."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    child = subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    tree = [child.pid, *(process.pid for process in psutil.Process(child.pid).children())]
    try:
        percent, longest = measure(child.pid, seconds)
    finally:
        for pid in reversed(tree):
            psutil.Process(pid).kill()
        child.communicate()
    print(f"{percent:.2f} % of a core, longest sample {1000 * longest:.1f} ms, {len(psutil.pids())} processes")


if __name__ == "__main__":
    main()

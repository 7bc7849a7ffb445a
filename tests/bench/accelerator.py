"""What the telemetry says against what a program really does on an NVIDIA GPU; needs torch, nvidia-ml-py and the GPU.

    python -m tests.bench.accelerator

One child allocates 4 GiB and then multiplies large matrices; prints JSON: what the tree's GPU memory grew by, how busy
the GPU was before and during the products, and what emptying the cache gave back by the allocator's and NVML's count.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

from mpstui.core.telemetry.model import SystemSample, TreeSample
from mpstui.core.telemetry.sampler import default_sampler

GIB = 2**30
CHILD = """
import sys, time, torch
x = torch.ones(1, device="cuda"); torch.cuda.synchronize()
def turn(name):
    print(name, flush=True); sys.stdin.readline()
turn("ready")
held = torch.empty(4 << 30, dtype=torch.uint8, device="cuda"); torch.cuda.synchronize()
turn("allocated")
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16); end = time.time() + 6
print("busy", flush=True)
while time.time() < end:
    for _ in range(20): a @ a
    torch.cuda.synchronize()
turn("worked")
before = torch.cuda.memory_reserved(); del held, a; torch.cuda.empty_cache()
print("cleared", before - torch.cuda.memory_reserved(), flush=True); sys.stdin.readline()
"""


def main() -> None:
    """Walk the child through its turns and compare."""
    sampler = default_sampler()
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None

    def heard() -> list[str]:
        assert child.stdout is not None
        return child.stdout.readline().split()

    def go_on() -> None:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()

    def look() -> tuple[SystemSample, TreeSample]:
        time.sleep(2.5)  # longer than any source's period: the next answer is fresh
        found = sampler.sample({"child": [child.pid]})
        return found.system, found.trees["child"]

    heard()
    idle, small = look()
    go_on()
    heard()
    _, large = look()
    go_on()
    heard()
    busy, _ = look()
    heard()
    system_before, held = look()
    go_on()
    freed = int(heard()[1])
    system_after, left = look()
    go_on()
    child.wait(30)
    sampler.close()

    def gib(more: int | None, less: int | None) -> float | None:
        return round((more - less) / GIB, 4) if more is not None and less is not None else None

    result = {
        "gpu": idle.gpus[0].name,
        "tree_grew_gib_for_4": gib(large.gpu_memory_bytes, small.gpu_memory_bytes),
        "machine_grew_gib": gib(system_before.gpus[0].memory_used_bytes, idle.gpus[0].memory_used_bytes),
        "busy_idle_percent": idle.gpus[0].busy_percent,
        "busy_working_percent": busy.gpus[0].busy_percent,
        "cache_freed_gib_allocator": round(freed / GIB, 4),
        "cache_freed_gib_tree": gib(held.gpu_memory_bytes, left.gpu_memory_bytes),
        "cache_freed_gib_nvml": gib(system_before.gpus[0].memory_used_bytes, system_after.gpus[0].memory_used_bytes),
        "reasons": {report.name: report.reason for report in sampler.reports() if report.reason},
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

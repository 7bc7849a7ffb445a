"""Memory that is free goes back to the system."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

HOLES = """
import re, sys
from mpstui.core.memory_release import release_free_memory

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1])

kept = []
for _ in range(200):
    kept.append(bytes(20_000))
    hole = bytes(100_000)
    kept.append(hole)
del kept[1::2], hole  # what is kept lies between the holes, so that the heap cannot shrink by itself
before = resident()
print(release_free_memory(), before - resident())
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="glibc alone"
)
def test_holes_in_the_heap_are_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    said, kilobytes = done.stdout.split()
    assert said == "True"
    assert int(kilobytes) > 10_000

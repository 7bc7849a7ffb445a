"""The heap is one, and what is free in it goes back to the system."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

HOLES = """
import re, sys
from mpstui.core.model.allocator import release_free_memory

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


ARENAS = """
import ctypes, os, re, threading
from mpstui.core.model.allocator import share_one_heap

if {share}:
    assert share_one_heap()
held = threading.Barrier(5)

def work():
    kept = [bytes(30_000) for _ in range(20)]
    held.wait()
    held.wait()

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
held.wait()
maps = open("/proc/self/maps").read()
print(len(re.findall(r"^[0-9a-f]+000000-[0-9a-f]+ rw-p 00000000 00:00 0 *$", maps, re.MULTILINE)))
held.wait()
"""
glibc = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="glibc alone"
)


def said(program: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


@glibc
def test_threads_share_one_heap() -> None:
    [separate], [shared] = said(ARENAS.format(share=False)), said(ARENAS.format(share=True))
    assert int(separate) >= int(shared) + 3, "arenas of threads begin at multiples of 64 MiB"


@glibc
def test_holes_in_the_heap_are_given_back() -> None:
    released, kilobytes = said(HOLES)
    assert released == "True"
    assert int(kilobytes) > 10_000

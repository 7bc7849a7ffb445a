"""Memory of one step is there for the next one."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from trainer.allocator import keep_freed_memory

FAULTS = """
import ctypes, resource, sys
from trainer.allocator import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory({})
library = ctypes.CDLL(None)
library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.free.argtypes, library.memset.argtypes = [ctypes.c_void_p], [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
for turn in range(6):
    if turn == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = library.malloc(48 << 20)
    library.memset(block, 1, 48 << 20)
    library.free(block)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
with_glibc = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="only glibc has mallopt"
)


def _page_faults(way: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS, way], capture_output=True, text=True, check=True, timeout=300)
    return int(done.stdout)


@with_glibc
def test_memory_of_the_next_step_has_the_pages_of_the_last() -> None:
    assert _page_faults("keep") * 4 < _page_faults("return")


@pytest.mark.parametrize("name", ["MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"])
def test_who_set_it_himself_is_left_alone(name: str) -> None:
    assert not keep_freed_memory({**os.environ, name: "x"})


@pytest.mark.parametrize(("most", "taken"), [(128 << 20, [(-3, 128 << 20), (-1, 512 << 20)]),
                                             (32 << 20, [(-3, 32 << 20), (-1, 512 << 20)]), (0, [])])  # fmt: skip
def test_the_trim_threshold_is_never_set_alone(
    monkeypatch: pytest.MonkeyPatch, most: int, taken: list[tuple[int, int]]
) -> None:
    found = []

    def mallopt(parameter: int, value: int) -> int:
        if parameter == -3 and value > most:
            return 0
        found.append((parameter, value))
        return 1

    library = SimpleNamespace(mallopt=mallopt, gnu_get_libc_version=None)
    monkeypatch.setattr("trainer.allocator.ctypes.CDLL", lambda name: library)
    assert keep_freed_memory({}) is bool(taken)
    assert found == taken

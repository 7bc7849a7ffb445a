"""The C library's allocator, kept as small as what is in use.

Both functions load ctypes when they are called: the first picture does not wait for it.
"""

from __future__ import annotations

_M_ARENA_MAX = -8
"""Of ``mallopt`` in glibc's malloc.h."""


def share_one_heap() -> bool:
    """Have all threads that are still to come use one heap; True where there is a choice (glibc).

    glibc gives each thread a heap of its own, so that they need not wait for each other: threads of one interpreter
    never allocate at the same time, and what each of eight heaps keeps for later is two megabytes together.
    """
    import ctypes

    library = ctypes.CDLL(None)
    return hasattr(library, "mallopt") and bool(library.mallopt(_M_ARENA_MAX, 1))


def release_free_memory() -> bool:
    """Give back the pages between what is in use; True when there were some and the C library can.

    Reading a long log, and starting, leave megabytes free inside the heap that an allocator keeps for later.
    ``malloc_trim`` of glibc (since 2.8 it looks at whole pages everywhere, not at the heap's end alone) and
    ``malloc_zone_pressure_relief`` of macOS give them back within a millisecond or two; musl keeps nothing.
    """
    import ctypes

    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        return bool(library.malloc_trim(ctypes.c_size_t(0)))
    if hasattr(library, "malloc_zone_pressure_relief"):
        library.malloc_zone_pressure_relief.restype = ctypes.c_size_t
        return bool(library.malloc_zone_pressure_relief(ctypes.c_void_p(None), ctypes.c_size_t(0)))
    return False

"""Giving free memory back to the system."""

from __future__ import annotations


def release_free_memory() -> bool:
    """Give back the pages between what is in use; True when there were some and the C library can.

    Reading a long log, and starting, leave megabytes free inside the heap that an allocator keeps for later, and each
    thread's for itself. ``malloc_trim`` of glibc (since 2.8 it looks at whole pages of every arena) and
    ``malloc_zone_pressure_relief`` of macOS give them back within a millisecond or two; musl keeps nothing.
    """
    import ctypes  # seconds after the start, not before its first picture

    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        return bool(library.malloc_trim(ctypes.c_size_t(0)))
    if hasattr(library, "malloc_zone_pressure_relief"):
        library.malloc_zone_pressure_relief.restype = ctypes.c_size_t
        return bool(library.malloc_zone_pressure_relief(ctypes.c_void_p(None), ctypes.c_size_t(0)))
    return False

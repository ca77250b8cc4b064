"""Return large buffers to the system as soon as they are free.

Each time glibc frees a mapped buffer, it raises the size from which it maps buffers, up to 32 MiB. Below that size, threads that decode
blocks of megabytes leave fragmented heaps, which count as this process's memory.
"""

from __future__ import annotations

import ctypes

MAPPED_BYTES = 16 << 20

_M_MMAP_THRESHOLD = -3  # malloc.h


def return_large_buffers() -> None:
    """Return large buffers to the system from now on, for the whole process. Does nothing if the C library is not glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)

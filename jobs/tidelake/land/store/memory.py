"""Large buffers go back to the system as soon as they are free.

glibc raises the size from which it maps a buffer of its own with each one that is freed, up to 32 MiB; below it, threads that decode
blocks of megabytes leave heaps of holes behind, which count as ours.
"""

from __future__ import annotations

import ctypes

MAPPED_BYTES = 16 << 20

_M_MMAP_THRESHOLD = -3  # malloc.h


def return_large_buffers() -> None:
    """From now on, for the whole process; does nothing where the C library is not glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)

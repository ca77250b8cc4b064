"""The most memory a stretch of code had at once, by Linux's own count: also what pyarrow and numpy took."""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import re
from pathlib import Path

import pyarrow as pa

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_NUMBERS = re.compile(r"^Vm(HWM|RSS):\s+(\d+) kB", re.MULTILINE)
MEASURED = _RESET.exists()  # elsewhere than on Linux memory is not measured


class Peak:
    """Starts to count when it is made."""

    def __init__(self) -> None:
        if MEASURED:
            _RESET.write_text("5")  # the high-water mark falls back to what there is
        self._before = _numbers().get("RSS", 0)

    def grown(self) -> int:
        """Bytes above the start at the highest moment since."""
        return max(_numbers().get("HWM", 0) - self._before, 0)


def settle() -> None:
    """Give freed memory back, so that it counts when it is taken again."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    libc = ctypes.util.find_library("c")
    if MEASURED and libc and hasattr(trim := ctypes.CDLL(libc), "malloc_trim"):
        trim.malloc_trim(0)


def _numbers() -> dict[str, int]:
    return {name: 1024 * int(kib) for name, kib in _NUMBERS.findall(_STATUS.read_text())} if MEASURED else {}

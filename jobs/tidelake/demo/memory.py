"""Peak memory of this process and its descendants, from Linux's /proc."""

from __future__ import annotations

import os
import re
from pathlib import Path

_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)


def peaks() -> dict[str, int]:
    """Return the peak bytes by program (python, java, …), of the largest process of each; {} without /proc."""
    parents = dict(filter(None, map(_parent, Path("/proc").glob("[0-9]*"))))
    out: dict[str, int] = {}
    for pid in parents:
        if _descends(pid, parents):
            name, size = _peak(pid)
            out[name] = max(out.get(name, 0), size)
    return {name: size for name, size in out.items() if size}


def _parent(folder: Path) -> tuple[int, int] | None:
    try:
        return int(folder.name), int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # the process ended
        return None


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid and pid != os.getpid():
        pid = parents.get(pid, 0)
    return pid == os.getpid()


def _peak(pid: int) -> tuple[str, int]:
    try:
        found = _PEAK.search(Path(f"/proc/{pid}/status").read_text())
        name = Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return "", 0
    return name.rstrip("0123456789."), 1024 * int(found[1]) if found else 0

"""Time and memory of this process and all it starts, read from outside while it works."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

EVERY_SECONDS = 0.5  # a sample takes tens of ms of CPU time
KINDS = ("python", "java", "other")  # other: the S3 server


@dataclass(slots=True)
class Used:
    """seconds: wall time. cpu_of: CPU seconds by kind of process. peak: the largest sum of resident bytes by kind; what forks share
    counts once. worker, driver: the most that one Python process below this one, or this one itself, ever held, in bytes, shared pages
    included."""

    seconds: float = 0.0
    cpu_of: dict[str, float] = field(default_factory=dict)
    peak: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    worker: int = 0
    driver: int = 0

    @property
    def cpu(self) -> float:
        """CPU seconds of Python and Java."""
        return self.cpu_of["python"] + self.cpu_of["java"]


@contextmanager
def measured() -> Iterator[Used]:
    """What the block uses, filled in at its end."""
    used, stop = Used(), threading.Event()
    sampler = threading.Thread(target=_sample, args=(used, stop), daemon=True)
    for process in _tree():
        reset_peak(process.pid)
    started, before = time.monotonic(), _cpu()
    sampler.start()
    try:
        yield used
    finally:
        used.seconds, after = time.monotonic() - started, _cpu()
        used.cpu_of = {kind: after[kind] - before[kind] for kind in KINDS}
        stop.set()
        sampler.join()
        used.driver = peak()


def reset_peak(process: int | str = "self") -> None:
    """From now on, `peak` tells what the process holds at most after this moment, where the system can do that (Linux)."""
    with suppress(OSError):
        Path(f"/proc/{process}/clear_refs").write_text("5")


def peak(process: int | str = "self") -> int:
    """Largest resident memory since the reset, in bytes; 0 where the system does not say."""
    with suppress(OSError):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)
    return 0


def _sample(used: Used, stop: threading.Event) -> None:
    last = False
    while not last:
        last = stop.wait(EVERY_SECONDS)
        now, (own, *others) = dict.fromkeys(KINDS, 0), _tree()
        for process in (own, *others):
            with suppress(psutil.Error):
                kind = _kind(process)
                now[kind] += _own_memory(process) if kind == "python" else process.memory_info().rss
                used.worker = max(used.worker, peak(process.pid) if kind == "python" and process is not own else 0)
        used.peak = {kind: max(used.peak[kind], size) for kind, size in now.items()}


def _own_memory(process: psutil.Process) -> int:
    full = process.memory_full_info()
    return int(getattr(full, "pss", 0) or full.rss)


def _cpu() -> dict[str, float]:
    """CPU seconds of the living processes, and of those that they have seen the end of."""
    total = dict.fromkeys(KINDS, 0.0)
    for process in _tree():
        with suppress(psutil.Error):
            total[_kind(process)] += sum(process.cpu_times()[:4])
    return total


def _kind(process: psutil.Process) -> str:
    name = process.name()
    return next((kind for kind in KINDS if kind in name), "other")


def _tree() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *own.children(recursive=True)]

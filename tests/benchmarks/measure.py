"""Time and memory of this process and all it starts, read from outside while it works."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil

EVERY_SECONDS = 0.2


@dataclass(slots=True)
class Used:
    """seconds: wall time. cpu: CPU seconds. peak: the largest sum of resident bytes, `python` and `java` apart; what forks share counts
    once."""

    seconds: float = 0.0
    cpu: float = 0.0
    peak: dict[str, int] = field(default_factory=lambda: {"python": 0, "java": 0})


@contextmanager
def measured() -> Iterator[Used]:
    """What the block uses, filled in at its end."""
    used, stop = Used(), threading.Event()
    sampler = threading.Thread(target=_sample, args=(used, stop), daemon=True)
    started, before = time.monotonic(), _cpu()
    sampler.start()
    try:
        yield used
    finally:
        used.seconds, used.cpu = time.monotonic() - started, _cpu() - before
        stop.set()
        sampler.join()


def _sample(used: Used, stop: threading.Event) -> None:
    while not stop.wait(EVERY_SECONDS):
        now = {"python": 0, "java": 0}
        for process in _tree():
            try:
                kind = "java" if "java" in process.name() else "python"
                now[kind] += process.memory_info().rss if kind == "java" else _own_memory(process)
            except psutil.Error:
                continue
        for kind, size in now.items():
            used.peak[kind] = max(used.peak[kind], size)


def _own_memory(process: psutil.Process) -> int:
    full = process.memory_full_info()
    return int(getattr(full, "pss", 0) or full.rss)


def _cpu() -> float:
    """CPU seconds of the living processes; a worker that has ended in between is missing."""
    total = 0.0
    for process in _tree():
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def _tree() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *own.children(recursive=True)]

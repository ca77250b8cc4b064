"""The processes of a cluster of our own, as on other machines: ready when they say so, ended with all that they started."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

START_SECONDS = 120
STOP_SECONDS = 20


class Processes:
    """Each is of a session of its own."""

    def __init__(self) -> None:
        self._all: list[subprocess.Popen[str]] = []

    def start(self, command: Sequence[str | Path], ready: str, environment: Mapping[str, str], folder: Path) -> str:
        """Start one in a folder and wait until its log says that it is ready; what it says. Raises RuntimeError with the log's end."""
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        process = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True, **streams)
        self._all.append(process)
        said: SimpleQueue[str | None] = SimpleQueue()
        Thread(target=_read, args=(process, said), daemon=True).start()
        lines: list[str] = []
        with suppress(Empty):
            while (line := said.get(timeout=START_SECONDS)) is not None:
                lines.append(line)
                if found := re.search(ready, line):
                    return found[1]
        raise RuntimeError(f"{' '.join(map(str, command))[-200:]} does not start:\n{''.join(lines)[-4000:]}")

    def stop(self) -> None:
        """End all, the last one first, and what is of their groups."""
        for process in reversed(self._all):
            _signal(process, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
            _signal(process, signal.SIGKILL)
            process.wait()
        self._all.clear()


def elsewhere() -> dict[str, str]:
    """This process's environment without what another machine would not have: Tidelake's, AWS's, Spark's and Python's; in another zone."""
    ours = ("TIDELAKE_", "AWS_", "SPARK_", "PYSPARK_", "PYTHONPATH")
    return {k: v for k, v in os.environ.items() if not k.startswith(ours)} | {"TZ": "Asia/Tokyo"}


def _read(process: subprocess.Popen[str], said: SimpleQueue[str | None]) -> None:
    """All that a process says, to its end: a full pipe would stop it."""
    with process, process.stdout:  # type: ignore[union-attr]
        for line in process.stdout:  # type: ignore[union-attr]
            said.put(line)
    said.put(None)


def _signal(process: subprocess.Popen[str], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return

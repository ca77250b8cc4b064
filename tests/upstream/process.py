"""A producer as a process of its own, that is killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

WAIT_SECONDS = 180


class Process:
    """A program with its output in a file. Ends with the block, killed."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._command, self._folder, self._environment = list(command), folder, dict(environment or {})
        self.log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, unless it runs."""
        if not self.running:
            environment = os.environ | self._environment
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder, env=environment
                )

    def kill(self) -> None:
        """SIGKILL, as a machine that is gone."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.poll() is None

    def until(self, reached: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait for something that the program does. Raises RuntimeError with the end of its log."""
        deadline = time.monotonic() + seconds
        while not reached():
            if time.monotonic() > deadline or not self.running:
                why = "it ended" if not self.running else f"not within {seconds:.0f} s"
                raise RuntimeError(f"{what}: {why}\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.1)

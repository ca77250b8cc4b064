"""The process that reads quality pages for this one (pages/reader.py): started with the first page, kept, started again if it ended."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from tidelake.errors import StorageError

START_SECONDS = 30  # until the process has imported what pages need


class KeptReader:
    """A process that forks a process for each page. It ends when this process ends, however that ends, and may be used by many threads."""

    command: Sequence[str] = (sys.executable, "-P", "-m", "tidelake.pages.reader")

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None

    def read(self, request: Mapping[str, Any], environment: Mapping[str, str], seconds: float) -> dict[str, Any]:
        """Return the answer to a request (pages/reader.py). Raises StorageError if there is none.

        Args:
            request: The page, and the environment of its process.
            environment: Of the process that is kept, if it must be started.
            seconds: After which the page's process is ended.
        """
        started = time.monotonic()
        page, other = socket.socketpair()
        with page:
            with other:
                process = self._sent(other, environment)
            page.settimeout(seconds + START_SECONDS)
            try:
                page.sendall(json.dumps({**request, "seconds": seconds}).encode())
                page.shutdown(socket.SHUT_WR)
                with page.makefile("rb") as answer:
                    return dict(json.load(answer))
            except TimeoutError:
                process.kill()  # it does not fork: the page's process would have been ended
            except (OSError, ValueError):
                pass  # the process ended: its socket is closed, and the answer is missing or cut off
        if time.monotonic() - started >= seconds:
            raise StorageError(f"no answer within {seconds} s", remedy="check that the object store is running")
        raise StorageError("the reader ended without an answer", remedy="reload the page; if it ends again, see the web server's log")

    def close(self) -> None:
        """End the process once it has forked for what was asked."""
        if self._door is not None and self._process is not None:
            self._door.close()
            self._process.wait()
        self._process = self._door = None

    def _sent(self, page: socket.socket, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Give the process the socket of a page. Starts it if it does not run."""
        with self._lock:
            if self._process is None or not self._takes(page):
                self.close()
                self._process = self._started(environment)
                self._takes(page)
            return self._process

    def _takes(self, page: socket.socket) -> bool:
        """Send the socket of a page. Return whether there is somebody to read it."""
        try:
            return self._door is not None and socket.send_fds(self._door, [b"p"], [page.fileno()]) == 1
        except OSError:
            return False

    def _started(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        self._door, door = socket.socketpair()
        with door:
            return subprocess.Popen(
                [*self.command, str(door.fileno())],
                env={**environment, "OPENBLAS_NUM_THREADS": "1"},  # a process that forks has one thread
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[door.fileno()],
                start_new_session=True,  # Ctrl-C ends the web server alone
            )

"""A real MariaDB for tests, of the system (`apt-get install mariadb-server-core`): a socket only, data in a folder that goes with it.

with MariaDB() as server:
    server.execute("CREATE DATABASE d")
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Any, Self

import pytest

START_SECONDS = 60
_SETTINGS = """
--skip-networking --skip-grant-tables --innodb-buffer-pool-size=16M --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=0
--sql-mode= --default-time-zone=+05:30
""".split()


def mariadbd() -> str:
    """The server's program: TIDELAKE_MARIADBD, else of the path; skips the test where there is none."""
    found = os.environ.get("TIDELAKE_MARIADBD") or shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    return found or pytest.skip("needs MariaDB's server: apt-get install mariadb-server-core, or TIDELAKE_MARIADBD=/path/to/mariadbd")


class MariaDB:
    """A server of its own, as whoever runs the tests; `nobody` for root, as which it does not run."""

    def __init__(self) -> None:
        self._program = mariadbd()
        self._folder = Path(mkdtemp(prefix="tidelake-mariadb-"))  # a short path, where `nobody` may go
        self.socket = self._folder / "socket"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """For --connect."""
        return f"mysql://reader:p%40ss@localhost/?unix_socket={self.socket}"

    def __enter__(self) -> Self:
        options = ["--no-defaults", f"--datadir={self._folder}", f"--socket={self.socket}", f"--pid-file={self._folder / 'pid'}"]
        log = self._folder / "log"
        with log.open("ab") as out:
            self._process = subprocess.Popen([self._program, *options, *_SETTINGS, *self._as_whom()], stdout=out, stderr=out)
        deadline = time.monotonic() + START_SECONDS
        while not self.socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"mariadbd did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run them; the rows of the last."""
        import pymysql

        with pymysql.connect(unix_socket=str(self.socket), user="root", autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def _as_whom(self) -> list[str]:
        if os.getuid() != 0:
            return []
        shutil.chown(self._folder, "nobody")
        return ["--user=nobody"]

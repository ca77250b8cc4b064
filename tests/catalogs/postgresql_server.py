"""A real PostgreSQL for tests, of the system (`apt-get install postgresql`): on loopback, data in a folder that goes with it.

with PostgreSQL() as server:
    feed(lake={"catalog": server.catalog})
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Self
from urllib.parse import quote

import pytest

USER, PASSWORD = "keeper", "harbour pass/&?"
_QUICK = "-c fsync=off -c full_page_writes=off -c max_connections=40 -c shared_buffers=16MB"


class PostgreSQL:
    """A server of its own, as whoever runs the tests; `nobody` for root, as which it does not run."""

    def __init__(self) -> None:
        self._initdb, self._pg_ctl = _program("initdb"), _program("pg_ctl")
        self._folder = Path(mkdtemp(prefix="tidelake-postgres-"))  # a short path, where `nobody` may go
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]

    @property
    def catalog(self) -> str:
        """For lake.catalog."""
        return f"jdbc:postgresql://127.0.0.1:{self._port}/postgres?user={USER}&password={quote(PASSWORD, safe='')}"

    def __enter__(self) -> Self:
        if os.getuid() == 0:
            shutil.chown(self._folder, "nobody")
        password = self._folder / "password"
        password.write_text(PASSWORD)
        data = str(self._folder / "data")
        self._run(self._initdb, "-D", data, "-A", "scram-sha-256", "-U", USER, f"--pwfile={password}", "-E", "UTF8", "--no-sync")
        where = f"-c listen_addresses=127.0.0.1 -c port={self._port} -c unix_socket_directories={self._folder}"
        self._run(self._pg_ctl, "-D", data, "-w", "-l", str(self._folder / "log"), "-o", f"{_QUICK} {where}", "start")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._run(self._pg_ctl, "-D", str(self._folder / "data"), "-w", "-m", "immediate", "stop")
        shutil.rmtree(self._folder)

    def _run(self, *command: str) -> None:
        who = "nobody" if os.getuid() == 0 else None
        log = self._folder / "commands"
        with log.open("ab") as out:
            done = subprocess.run(command, user=who, cwd=self._folder, stdout=out, stderr=out, check=False, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} failed:\n{log.read_text(errors='replace')[-2000:]}")


def _program(name: str) -> str:
    folders = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([*folders, os.environ.get("PATH", "")]))
    return found or pytest.skip("needs PostgreSQL's server: apt-get install postgresql")

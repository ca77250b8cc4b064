"""A real MariaDB for tests, of the system (`apt-get install mariadb-server-core`): a socket only, data in a folder that goes with it.

with MariaDB() as server:
    server.execute("CREATE DATABASE d")

`MariaDB(binlog=True)` also listens on loopback, writes a row binlog, and has the user REPLICATOR with the rights of a replica.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Any, NamedTuple, Self

import pytest

HOST, SERVER_ID = "127.0.0.1", 184_054
START_SECONDS = 60
_PORTS = range(12_000, 13_000)  # no other server of the tests is there
_SETTINGS = """
--innodb-buffer-pool-size=16M --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=0 --sql-mode= --default-time-zone=+05:30
""".split()
_SOCKET_ONLY = ["--skip-networking", "--skip-grant-tables"]
_BINLOG = f"""
--bind-address={HOST} --skip-name-resolve --server-id={SERVER_ID} --log-bin=binlog --binlog-format=ROW --binlog-row-image=FULL
--max-binlog-size=65536 --sync-binlog=0
""".split()
_SYSTEM_TABLES = Path("/usr/share/mysql")  # what mariadb-install-db reads, which needs programs of other packages
_INSTALL = ("mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql")


class Login(NamedTuple):
    """A user and its password."""

    user: str
    password: str


REPLICATOR = Login("replicator", "r3plica")


def mariadbd() -> str:
    """The server's program: TIDELAKE_MARIADBD, else of the path; skips the test where there is none."""
    found = os.environ.get("TIDELAKE_MARIADBD") or shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    return found or pytest.skip("needs MariaDB's server: apt-get install mariadb-server-core, or TIDELAKE_MARIADBD=/path/to/mariadbd")


class MariaDB:
    """A server of its own, as whoever runs the tests; `nobody` for root, as which it does not run."""

    def __init__(self, *, binlog: bool = False) -> None:
        self._program = mariadbd()
        self.port = _free_port() if binlog else None
        self._folder = Path(mkdtemp(prefix="tidelake-mariadb-"))  # a short path, where `nobody` may go
        self.socket = self._folder / "socket"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """For --connect."""
        who = "reader:p%40ss" if self.port is None else f"{REPLICATOR.user}:{REPLICATOR.password}"
        where = f"localhost/?unix_socket={self.socket}" if self.port is None else f"{HOST}:{self.port}"
        return f"mysql://{who}@{where}"

    def __enter__(self) -> Self:
        if os.getuid() == 0:
            shutil.chown(self._folder, "nobody")
        if self.port is not None:
            self._install()
        self.start()
        if self.port is not None:
            name = f"'{REPLICATOR.user}'@'{HOST}'"
            self.execute(f"CREATE USER {name} IDENTIFIED BY '{REPLICATOR.password}'", f"GRANT ALL PRIVILEGES ON *.* TO {name}")
        return self

    def start(self) -> None:
        """Start it, anew after `kill`, and wait until it answers."""
        how = _SOCKET_ONLY if self.port is None else [f"--port={self.port}", *_BINLOG]
        options = [f"--socket={self.socket}", f"--pid-file={self._folder / 'pid'}", *how]
        log = self._folder / "log"
        with log.open("ab") as out:
            self._process = subprocess.Popen([*self._command(), *options], stdout=out, stderr=out)
        deadline = time.monotonic() + START_SECONDS
        while not self.socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"mariadbd did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL, as a machine that is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self.socket.unlink(missing_ok=True)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()
        shutil.rmtree(self._folder)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run them; the rows of the last."""
        import pymysql

        with pymysql.connect(unix_socket=str(self.socket), user="root", autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def _install(self) -> None:
        """Make the system's tables, with the accounts of users."""
        sql = "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n"
        sql += "".join((_SYSTEM_TABLES / name).read_text() for name in _INSTALL)
        subprocess.run(
            [*self._command(), "--bootstrap", "--log-warnings=0"], input=sql, text=True, check=True, capture_output=True, timeout=300
        )

    def _command(self) -> list[str]:
        whom = ["--user=nobody"] if os.getuid() == 0 else []
        return [self._program, "--no-defaults", f"--datadir={self._folder}", *_SETTINGS, *whom]


def _free_port() -> int:
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) != 0:
                return port
    raise RuntimeError("no port is free")

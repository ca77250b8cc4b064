"""A real server of MySQL's family for tests, with what all of them share: data in a folder that goes with it, SIGKILL, statements.

What differs is in mariadb_server.py and mysql_server.py.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self

HOST, SERVER_ID = "127.0.0.1", 184_054
START_SECONDS = 60
_PORTS = range(12_000, 13_000)  # no other server of the tests is there
_SETTINGS = """
--innodb-buffer-pool-size=16M --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=0 --sql-mode= --default-time-zone=+05:30
""".split()
_BINLOG = f"""
--bind-address={HOST} --skip-name-resolve --server-id={SERVER_ID} --log-bin=binlog --binlog-format=ROW --binlog-row-image=FULL
--max-binlog-size=65536 --sync-binlog=0
""".split()


class Login(NamedTuple):
    """A user and its password."""

    user: str
    password: str


REPLICATOR = Login("replicator", "r3plica")


class SqlServer(ABC):
    """A server of its own, as whoever runs the tests. With a binlog it also listens on loopback, and has the user REPLICATOR.

    Attributes:
        kind: `mariadb` or `mysql`.
        socket: Where its administrator, without a password, reaches it.
        port: Where REPLICATOR, with the rights of a replica, reaches it; None without a binlog.
    """

    kind: ClassVar[str]

    def __init__(self, program: str, *, binlog: bool) -> None:
        self._program = program
        self.port = _free_port() if binlog else None
        self._folder = Path(mkdtemp(prefix=f"tidelake-{self.kind}-"))  # a socket's path is short
        self._data = self._folder / "data"
        self.socket = self._folder / "socket"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """For --connect."""
        who = "reader:p%40ss" if self.port is None else f"{REPLICATOR.user}:{REPLICATOR.password}"
        where = f"localhost/?unix_socket={self.socket}" if self.port is None else f"{HOST}:{self.port}"
        return f"mysql://{who}@{where}"

    def __enter__(self) -> Self:
        self._data.mkdir()
        try:
            if self.port is not None:
                self._install()
            self.start()
            if self.port is not None:
                name = f"'{REPLICATOR.user}'@'{HOST}'"
                self.execute(f"CREATE USER {name} IDENTIFIED BY '{REPLICATOR.password}'", f"GRANT ALL PRIVILEGES ON *.* TO {name}")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def start(self) -> None:
        """Start it, anew after `kill`, and wait until it answers. Raises RuntimeError with the end of its log."""
        log = self._folder / "log"
        with log.open("ab") as out:
            command = [*self._command(), f"--socket={self.socket}", f"--pid-file={self._folder / 'pid'}", *self._options()]
            self._process = subprocess.Popen(command, stdout=out, stderr=out)
        deadline = time.monotonic() + START_SECONDS
        while not self.socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self._program} did not start: {log.read_text(errors='replace')[-2000:]}")
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

    @abstractmethod
    def _install(self) -> None:
        """Make the system's tables, with the accounts of users, in the empty folder of the data."""

    def _options(self) -> list[str]:
        """How it runs, beside the options of `_command`: with a binlog."""
        return [f"--port={self.port}", *_BINLOG]

    def _command(self) -> list[str]:
        whom = ["--user=root"] if os.getuid() == 0 else []  # as which it does not run unless it is told to
        return [self._program, "--no-defaults", f"--datadir={self._data}", *_SETTINGS, *whom]


def _free_port() -> int:
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) != 0:
                return port
    raise RuntimeError("no port is free")

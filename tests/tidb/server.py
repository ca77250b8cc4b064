"""A real TiDB for tests, with its embedded store: one process on loopback, data in a folder that goes with it.

with TiDB() as server:
    server.execute("CREATE DATABASE d")
    server.dump(folder, "d", server.ts(), "csv")
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tests.io.sql_session import connected, executed
from tests.tidb.dialect import TIDB
from tests.tidb.programs import programs
from tidelake.query.verify.cell_texts import SourceCell

if TYPE_CHECKING:
    from pymysql.connections import Connection

START_SECONDS = 300  # on a busy machine
_CONFIG = """
host = "127.0.0.1"
port = {port}
store = "unistore"
path = "{folder}/data"
temp-dir = "{folder}/temp"
socket = ""
[status]
report-status = false
[log]
level = "error"
"""
# A real cluster has this row; without it tidb_snapshot is refused.
_SAFE_POINT = "INSERT IGNORE INTO mysql.tidb VALUES ('tikv_gc_safe_point', '20240101-00:00:00 +0000', '')"
# As TiCDC's values are: TIMESTAMP in the feed's zone, text in UTF-8.
_SESSION = "SET NAMES utf8mb4, time_zone = '+00:00', allow_auto_random_explicit_insert = 1"


class TiDB:
    """A server of its own, with one session for statements: a Source."""

    kind = SourceCell.tidb
    float_text = "{}"
    dialect = TIDB

    def __init__(self) -> None:
        self._programs = programs()
        self._folder = Path(mkdtemp(prefix="tidelake-tidb-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any] | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """For --connect."""
        return f"mysql://root@127.0.0.1:{self._port}/"

    def __enter__(self) -> Self:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        config, log = self._folder / "config.toml", self._folder / "log"
        config.write_text(_CONFIG.format(port=self._port, folder=self._folder))
        with log.open("ab") as out:
            self._process = subprocess.Popen([self._programs.server, "-config", config], stdout=out, stderr=out, cwd=self._folder)
        deadline = time.monotonic() + START_SECONDS
        while not self._connected():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace")[-2000:]
                self.__exit__(None, None, None)
                raise RuntimeError(f"tidb-server did not start: {said}")
            time.sleep(0.2)
        self.execute(_SAFE_POINT, "SET GLOBAL tidb_gc_enable = 0")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run them; the rows of the last, as `executed` gives them."""
        return executed(self._connection, statements)

    def ts(self) -> int:
        """A TSO after everything that was done."""
        (found,) = self.execute("BEGIN", "SELECT @@tidb_current_ts")
        self.execute("ROLLBACK")
        return int(found[0])

    def committed(self) -> int:
        """The commit ts of this session's last transaction that wrote."""
        return int(json.loads(self.execute("SELECT @@tidb_last_txn_info")[0][0])["commit_ts"])

    def dump(self, folder: Path, database: str, ts: int, kind: str, *options: str) -> Path:
        """A full export of a database as of a TSO, by Dumpling. kind: csv or sql."""
        return self._dumped(folder, ts, "-B", database, "--filetype", kind, "-F", "1MiB", *options)

    def dump_query(self, folder: Path, query: str, name: str, ts: int) -> Path:
        """The result of a query as of a TSO, as CSV files of a table, by Dumpling. name: `database.table` as in names of files."""
        return self._dumped(folder, ts, "--sql", query, "--filetype", "csv", "--output-filename-template", f"{name}.{{{{.Index}}}}")

    def _dumped(self, folder: Path, ts: int, *what: str) -> Path:
        how = ["-h", "127.0.0.1", "-P", str(self._port), "-u", "root", "--consistency", "snapshot", "--snapshot", str(ts)]
        where = ["--params", "time_zone=+00:00", "-o", str(folder)]
        done = subprocess.run([self._programs.dumpling, *how, *what, *where], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"dumpling: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return folder

    def _connected(self) -> bool:
        import pymysql

        try:
            self._connection = connected(host="127.0.0.1", port=self._port)
        except (pymysql.Error, OSError):
            return False
        self.execute(_SESSION)
        return True

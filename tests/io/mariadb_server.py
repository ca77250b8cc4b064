"""A real MariaDB for tests, of the system (`apt-get install mariadb-server-core`): a socket only, data in a folder that goes with it.

with MariaDB() as server:
    server.execute("CREATE DATABASE d")

`MariaDB(binlog=True)` also listens on loopback, writes a row binlog, and has the user REPLICATOR with the rights of a replica.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.io.sql_server import SqlServer

_SYSTEM_TABLES = Path("/usr/share/mysql")  # what mariadb-install-db reads, which needs programs of other packages
_INSTALL = ("mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql")


def mariadbd() -> str:
    """The server's program: TIDELAKE_MARIADBD, else of the path; skips the test where there is none."""
    found = os.environ.get("TIDELAKE_MARIADBD") or shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    return found or pytest.skip("needs MariaDB's server: apt-get install mariadb-server-core, or TIDELAKE_MARIADBD=/path/to/mariadbd")


class MariaDB(SqlServer):
    """MariaDB as the system has it."""

    kind = "mariadb"

    def __init__(self, *, binlog: bool = False) -> None:
        super().__init__(mariadbd(), binlog=binlog)

    def _install(self) -> None:
        sql = "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n"
        sql += "".join((_SYSTEM_TABLES / name).read_text() for name in _INSTALL)
        subprocess.run(
            [*self._command(), "--bootstrap", "--log-warnings=0"], input=sql, text=True, check=True, capture_output=True, timeout=300
        )

    def _options(self) -> list[str]:
        return ["--skip-networking", "--skip-grant-tables"] if self.port is None else super()._options()

"""A real MySQL as a Source of tests/tidb/copied.py: no producer between, so that its own statements, partitions and values are seen alone.

MySQL has no TSO: the source counts, and what was done before `ts` has a smaller one.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tests.io.mysql_server import MySQL
from tests.io.sql_session import connected, executed
from tests.upstream.mysql_dialect import MYSQL
from tidelake.query.verify.cell_texts import SourceCell
from tidelake.tso import begin_ts, parse_hour

if TYPE_CHECKING:
    from pymysql.connections import Connection

# As a server of MySQL has it that nobody configured; those of the tests start without.
_MODE = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
_SESSION = [f"SET GLOBAL sql_mode = '{_MODE}'", "SET SESSION sql_mode = DEFAULT", "SET NAMES utf8mb4", "SET time_zone = '+00:00'"]


class MySQLSource:
    """A server with one session for statements."""

    kind = SourceCell.mysql
    float_text = "({}+0e0)"  # by itself a FLOAT has six digits, and a DOUBLE(10,3) three
    dialect = MYSQL

    def __init__(self) -> None:
        self.server = MySQL()
        self._ts = begin_ts(parse_hour("2026-01-05T10"))
        self._connection: Connection[Any] | None = None

    @property
    def url(self) -> str:
        """For --connect."""
        return self.server.url

    def __enter__(self) -> Self:
        self.server.__enter__()
        self._connection = connected(unix_socket=str(self.server.socket))
        self.execute(*_SESSION)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.server.__exit__(kind, error, trace)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run them; the rows of the last, as `executed` gives them."""
        return executed(self._connection, statements)

    def ts(self) -> int:
        """A TSO after everything that was done."""
        self._ts += 1
        return self._ts

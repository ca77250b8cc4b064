"""Canal-JSON encoder like TiCDC (docs/reference/protocols.md 5): one event per message, every value a string.

Classic TiCDC orders the members of `mysqlType` at random. Here a seed determines the first member of each message, so that equal seeds give
equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tidelake.demo.messages.gotext import easyjson_string, plain_number
from tidelake.demo.messages.model import Ddl, Row, SourceChange, SourceColumn, SourceTable, TopicRecord
from tidelake.tso import physical_ms
from tidelake.wire.cells.mysql_codes import UNSIGNED, word

_OPS = {"insert": "INSERT", "update": "UPDATE", "delete": "DELETE"}
DDL_WORDS = {  # by TiDB's job type (5.1, 11.1); every other statement on a table is an ALTER
    "CREATE": (3,),
    "ERASE": (4,),
    "TRUNCATE": (11,),
    "RENAME": (14, 47),
    "CINDEX": (7, 9, 32),
    "DINDEX": (8, 10, 33),
    "QUERY": (1, 2, 21, 24, 26, 30, 31, 34, 35, 36, 39, 42, 65),
}
_JDBC = {1: -6, 2: 5, 3: 4, 4: 7, 5: 8, 7: 93, 8: -5, 9: 4, 10: 91, 11: 92, 12: 93, 13: 12, 16: -7, 225: 12, 245: 12, 246: 3}
_JDBC |= {247: 4, 248: -7}
_JDBC_TEXT = {15: 12, 253: 12, 254: 1}  # the TEXT family is a CLOB, 2005; binary ones a BLOB, 2004
_PROMOTED = {1: (127, 5), 2: (32767, 4), 3: ((1 << 31) - 1, -5), 9: ((1 << 31) - 1, -5), 8: ((1 << 63) - 1, 3)}
_Cell = Callable[[Any], str]


class CanalJsonEncoder:
    """Encodes row changes, DDL and watermarks as Canal-JSON records. Without tidb_extension there are no watermarks."""

    def __init__(self, *, seed: int = 0, tidb_extension: bool = True, content_compatible: bool = False) -> None:
        self._random = Random(seed).random
        self._extension = tidb_extension
        self._compatible = content_compatible
        self._plans: dict[SourceTable, _Plan] = {}

    def rows(self, changes: Sequence[SourceChange], build_ms: int) -> TopicRecord:
        """Encode one row event. The key is empty, not null (docs/reference/protocols.md 1.7)."""
        (change,) = changes
        plan = self._plans.get(change.table) or self._plans.setdefault(change.table, _Plan(change.table, self._compatible))
        start = int(self._random() * len(plan.types))
        row = change.before if change.after is None else change.after
        assert row is not None
        cells = plan.cells(row)
        old = "null"
        if change.op == "update" and change.before is not None:
            only = [i for i, (a, b) in enumerate(zip(change.before, row, strict=True)) if a != b] if self._compatible else None
            old = f"[{plan.members(plan.cells(change.before), only)}]"
        names = ",".join(map(easyjson_string, change.table.primary))
        head = _head(change.table.database, change.table.name, f"[{names}]", "false", _OPS[change.op], change.commit_ts, build_ms, '""')
        types = f'"sqlType":{{{plan.sql_types(row)}}},"mysqlType":{{{plan.mysql_types(start)}}}'
        return b"", f'{head},{types},"old":{old},"data":[{plan.members(cells)}]{self._tidb("commitTs", change.commit_ts)}}}'.encode()

    def ddl(self, ddl: Ddl, build_ms: int) -> TopicRecord:
        """Encode one statement."""
        kind = next((w for w, codes in DDL_WORDS.items() if ddl.code in codes), "ALTER")
        head = _head(ddl.database, ddl.table, "null", "true", kind, ddl.commit_ts, build_ms, easyjson_string(ddl.query))
        return None, f"{head},{_EMPTY}{self._tidb('commitTs', ddl.commit_ts)}}}".encode()

    def resolved(self, ts: int, build_ms: int) -> TopicRecord:
        """Encode a watermark."""
        head = _head("", "", "null", "false", "TIDB_WATERMARK", ts, build_ms, '""')
        return None, f"{head},{_EMPTY}{self._tidb('watermarkTs', ts)}}}".encode()

    def _tidb(self, member: str, ts: int) -> str:
        return f',"_tidb":{{"{member}":{ts}}}' if self._extension else ""


_EMPTY = '"sqlType":null,"mysqlType":null,"data":null,"old":null'


def _head(database: str, table: str, keys: str, is_ddl: str, kind: str, ts: int, build_ms: int, sql: str) -> str:
    names = f'"database":{easyjson_string(database)},"table":{easyjson_string(table)},"pkNames":{keys}'
    return f'{{"id":0,{names},"isDdl":{is_ddl},"type":"{kind}","es":{physical_ms(ts)},"ts":{build_ms},"sql":{sql}'


class _Plan:
    """What all messages of a table's definition share."""

    def __init__(self, table: SourceTable, compatible: bool) -> None:
        self._names = [f"{easyjson_string(c.name)}:" for c in table.columns]
        self._cells = [_cell(c) for c in table.columns]
        self.types = [f"{n}{easyjson_string(_type(c, compatible))}" for n, c in zip(self._names, table.columns, strict=True)]
        limits = [_PROMOTED.get(c.code) if c.flag & UNSIGNED else None for c in table.columns]
        self._sql = list(zip(self._names, map(jdbc_type, table.columns), limits, strict=True))

    def cells(self, row: Row) -> list[str]:
        """Return the values as JSON strings, or null."""
        return ["null" if v is None else cell(v) for cell, v in zip(self._cells, row, strict=True)]

    def members(self, cells: list[str], only: list[int] | None = None) -> str:
        """Return an object of the cells, or of some of them."""
        indexes = range(len(cells)) if only is None else only
        return "{" + ",".join([self._names[i] + cells[i] for i in indexes]) + "}"

    def mysql_types(self, start: int) -> str:
        """Return the members of mysqlType, starting with a column and continuing at the first one after the last."""
        return ",".join(self.types[start:] + self.types[:start])

    def sql_types(self, row: Row) -> str:
        """Return the members of sqlType. An unsigned number above its signed type's maximum has the next larger type's code (5.3)."""
        return ",".join(
            [
                f"{name}{limit[1] if limit and isinstance(v, int) and v > limit[0] else code}"
                for (name, code, limit), v in zip(self._sql, row, strict=True)
            ]
        )


def jdbc_type(column: SourceColumn) -> int:
    """Return the number of a column's type in java.sql.Types (5.3)."""
    if column.code in _JDBC:
        return _JDBC[column.code]
    return 2004 if column.is_binary else _JDBC_TEXT.get(column.code, 2005)


def _type(column: SourceColumn, compatible: bool) -> str:
    if compatible:
        return column.type
    return (word(column.code, column.flag) or "") + (" zerofill" if "zerofill" in column.type else "")


def _cell(column: SourceColumn) -> _Cell:
    if column.code in (4, 5):
        return lambda v: f'"{plain_number(v)}"'
    if column.code in (15, 249, 250, 251, 252, 253, 254):
        return (lambda v: easyjson_string(v.decode("latin-1"))) if column.is_binary else easyjson_string
    return easyjson_string if column.code == 245 else lambda v: f'"{v}"'

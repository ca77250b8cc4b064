"""A small TiCDC storage sink: a history of the bazaar as files of CSV or Canal-JSON (docs/reference/protocols.md 9.5)."""

from __future__ import annotations

import base64
import json
import zlib
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

from tidelake.demo.history import History
from tidelake.demo.messages.encode_canal_json import CanalJsonEncoder
from tidelake.demo.messages.model import PRIMARY_KEY, Ddl, SourceChange, SourceColumn, SourceTable, Value
from tidelake.history.ddl.column_types import MysqlType
from tidelake.io.storage import Store
from tidelake.tso import from_ms, physical_ms
from tidelake.wire.cells.mysql_codes import NULLABLE

FLUSH_MS = 7 * 60_000
BACK_MS = 120_000
END = "\r\n"


class SinkFiles:
    """Writes the files of a history; `write` returns how many. form: csv or json. restart_ms: rows of two minutes come again, in folders
    of a new table version."""

    def __init__(self, store: Store, history: History, form: str, restart_ms: int) -> None:
        self._store, self._history, self._form, self._restart_ms = store, history, form, restart_ms
        self._json = CanalJsonEncoder(seed=1)
        self._versions: dict[str, int] = {}
        self._numbers: dict[str, int] = defaultdict(int)
        self._rows: dict[str, list[SourceChange]] = defaultdict(list)  # by folder, without its date

    def write(self) -> int:
        """All files; metadata say how far they go."""
        self._start_tables(from_ms(self._history.start_ms), self._history.definitions()[:6])
        definitions = {t.name: t for t in self._history.definitions()[:6]}
        after = {s.ddl.commit_ts: s.after for s in self._history.statements()}
        due_ms, sent = self._history.start_ms + FLUSH_MS, list[SourceChange]()
        for commit in self._history.commits():
            at_ms = physical_ms(commit.commit_ts)
            if at_ms >= due_ms or isinstance(commit, Ddl):
                self._flush(at_ms)
                due_ms = at_ms + FLUSH_MS
            if self._restart_ms and at_ms >= self._restart_ms:
                self._restart_ms = 0
                self._flush(at_ms)
                self._start_tables(commit.commit_ts - 1, list(definitions.values()))
                self._take([r for r in sent if r.table.name in definitions and r.table.columns == definitions[r.table.name].columns])
            if isinstance(commit, Ddl):
                self._state(commit, after[commit.commit_ts])
                definitions = {n: t for n, t in definitions.items() if n != commit.query.split("`")[1]}
                definitions |= {t.name: t for t in [after[commit.commit_ts]] if t is not None}
            else:
                self._take(commit.rows)
                sent = [r for r in [*sent, *commit.rows] if physical_ms(r.commit_ts) > at_ms - BACK_MS]
        self._flush(self._history.end_ms)
        self.checkpoint(from_ms(self._history.end_ms))
        return sum(self._numbers.values())

    def checkpoint(self, ts: int) -> None:
        """Rewrite the metadata."""
        self._store.write("metadata", json.dumps({"checkpoint-ts": ts}).encode())

    def _take(self, rows: list[SourceChange]) -> None:
        for r in rows:
            physical = f"/{r.physical_id}" if len(r.table.physical_ids) > 1 else ""
            self._rows[f"{r.table.database}/{r.table.name}/{self._versions[r.table.name]}{physical}"].append(r)

    def _flush(self, at_ms: int) -> None:
        """The index is written before the file that it names."""
        date = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")
        for place, rows in self._rows.items():
            folder = f"{place}/{date}"
            self._numbers[folder] += 1
            name = f"CDC{self._numbers[folder]:020d}.{self._form}"
            self._store.write(f"{folder}/meta/CDC.index", f"{name}\n".encode())
            self._store.write(f"{folder}/{name}", b"".join(line for r in rows for line in self._lines(r)))
        self._rows.clear()

    def _lines(self, r: SourceChange) -> Iterator[bytes]:
        if self._form == "json":
            yield (self._json.rows([r], 1)[1] or b"") + END.encode()
            return
        images = [("D", r.before), ("I", r.after)] if r.op == "update" else [("D" if r.after is None else "I", r.after or r.before)]
        for op, row in images:
            cells = [_cell(c, v) for c, v in zip(r.table.columns, row or (), strict=True)]
            head = [f'"{op}"', f'"{r.table.name}"', f'"{r.table.database}"', str(r.commit_ts), str(r.op == "update").lower()]
            yield (",".join([*head, *cells]) + END).encode()

    def _start_tables(self, version: int, definitions: list[SourceTable]) -> None:
        for t in definitions:
            self._versions[t.name] = version
            self._schema(t.database, t.name, version, "", 0, t)

    def _state(self, ddl: Ddl, after: SourceTable | None) -> None:
        self._versions[ddl.table] = ddl.commit_ts
        self._schema(ddl.database, ddl.table, ddl.commit_ts, ddl.query, ddl.code, after)

    def _schema(self, database: str, table: str, version: int, query: str, code: int, row_schema: SourceTable | None) -> None:
        columns = [_described(c) for c in row_schema.columns] if row_schema else []
        said = {"Table": table, "Schema": database, "Version": 1, "TableVersion": version, "Query": query, "Type": code}
        content = json.dumps(said | {"TableColumns": columns, "TableColumnsTotal": len(columns)}, indent=4).encode()
        self._store.write(f"{database}/{table}/meta/schema_{version}_{zlib.crc32(content):010d}.json", content)


def _described(c: SourceColumn) -> dict[str, str]:
    kind = MysqlType.parse(c.type)
    said = {"ColumnName": c.name, "ColumnType": kind.name.upper()}
    if kind.length is not None:
        said["ColumnScale" if kind.fraction_digits is not None else "ColumnPrecision"] = str(kind.length)
    said |= {"ColumnScale": str(kind.scale)} if kind.scale else {}
    said |= {} if c.flag & NULLABLE else {"ColumnNullable": "false"}
    return said | ({"ColumnIsPk": "true"} if c.flag & PRIMARY_KEY else {})


def _cell(c: SourceColumn, value: Value) -> str:
    if value is None:
        return "\\N"
    if c.elements:
        assert isinstance(value, int)
        return _quoted(c.names(value))
    if isinstance(value, bytes):
        return _quoted(base64.b64encode(value).decode())
    if isinstance(value, str):
        return _quoted(value)
    return _shortest(value) if isinstance(value, float) else str(value)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _shortest(value: float) -> str:
    """Go's %v: an exponent below 1e-4 and from 1e6."""
    number = Decimal(repr(value)).normalize()
    if value == 0 or -4 <= number.adjusted() < 6:
        return f"{number:f}"
    sign, digits, _ = number.as_tuple()
    rest = "".join(map(str, digits[1:]))
    return f"{'-' if sign else ''}{digits[0]}{'.' if rest else ''}{rest}e{number.adjusted():+03d}"

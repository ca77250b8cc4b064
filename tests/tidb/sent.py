"""TiDB's tables and rows as TiCDC has them before it encodes: for the demo's encoders."""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

from tests.tidb.present import DATABASE, Cells, Present, SourceField, rows
from tests.tidb.server import TiDB
from tidelake.demo.messages.model import PRIMARY_KEY, SourceColumn, SourceTable, Value
from tidelake.demo.messages.model import Row as SentRow
from tidelake.demo.upstream import Ident
from tidelake.wire.cells.mysql_codes import BINARY, HANDLE_KEY, NULLABLE, UNSIGNED, word

_CODES = {name: code for code in range(256) for flag in (0, BINARY) if (name := word(code, flag)) is not None and code not in (14, 253)}
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})
_WHOLE = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit", "enum", "set"})


def source_table(table: Present) -> SourceTable:
    """The definition. Rows of a table without a clustered key have a hidden row id."""
    physical = (crc32(table.name.encode()),)
    return SourceTable(DATABASE, table.name, tuple(_column(f) for f in table.sent), physical, clustered=table.clustered)


def sent_rows(server: TiDB, table: Present, of: SourceTable) -> Iterator[tuple[Ident, SentRow]]:
    """All rows with their handles in TiKV."""
    for cells in rows(server, table, handle="" if of.clustered else "_tidb_rowid"):
        own = cells if of.clustered else cells[1:]
        row = _row(table, own)
        yield (of.key_of(row) if of.clustered else int(cells[0] or b"0")), row


def _row(table: Present, cells: Cells) -> SentRow:
    return tuple(_value(f, c) for f, c in zip(table.sent, cells, strict=True))


def _column(field: SourceField) -> SourceColumn:
    flag = 0 if field.type.word in _TEXTS else BINARY
    flag |= UNSIGNED if field.type.unsigned or field.type.word in ("year", "bit") else 0
    flag |= (HANDLE_KEY | PRIMARY_KEY if field.key else 0) | (NULLABLE if field.nullable else 0)
    return SourceColumn(
        field.name, field.sql.lower() if field.type.elements is None else field.sql, _CODES[field.type.word], flag, field.default
    )


def _value(field: SourceField, cell: bytes | None) -> Value:
    if cell is None or field.type.is_binary:
        return cell
    if field.type.word in _WHOLE:
        return int(cell)
    return float(cell) if field.type.word in ("float", "double") else cell.decode()

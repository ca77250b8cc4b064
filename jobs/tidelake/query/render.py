"""Lake values as canonical text (docs/architecture.md 6), for `asof` and `changelog`. Inverse of lake.columns.cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.history.ddl.column_types import MAX_PRECISION, MysqlType
from tidelake.io.duckdb_door import identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A column to print. type: the MySQL type; None for Tidelake's own columns, which are printed as they are."""

    name: str
    type: MysqlType | None


def local(rows: pa.RecordBatchReader, time_zone: str) -> pa.RecordBatchReader:
    """Return the batches with instants as local times of a time zone."""

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            yield pa.RecordBatch.from_arrays([_local(c, time_zone) for c in batch.columns], schema=schema)

    schema = pa.schema([pa.field(f.name, pa.timestamp("us") if _is_instant(f.type) else f.type) for f in rows.schema])
    return pa.RecordBatchReader.from_batches(schema, batches())


def expressions(columns: Sequence[Rendered]) -> list[str]:
    """Return one DuckDB expression per column, over `local` batches: text, NULL, or {"hex": …}. Each has the column's name."""
    return [f"{_text(identifier(c.name), c.type)} AS {identifier(c.name)}" for c in columns]


def flat(columns: Sequence[Rendered]) -> list[str]:
    """Return one DuckDB expression per column for people: text, NULL, or 0x… for binary."""
    return [
        f"'0x' || lower(hex({identifier(c.name)}))" if c.type is not None and c.type.is_binary else _text(identifier(c.name), c.type)
        for c in columns
    ]


def _text(name: str, mysql: MysqlType | None) -> str:
    if mysql is None:
        return name
    if mysql.is_binary:
        return f"CASE WHEN {name} IS NULL THEN NULL ELSE {{'hex': lower(hex({name}))}} END"
    if mysql.word == "vector":
        return f"'[' || array_to_string(list_transform({name}, lambda x: regexp_replace(CAST(x AS VARCHAR), '\\.0$', '')), ',') || ']'"
    text = f"CAST({name} AS VARCHAR)"
    if mysql.word in ("date", "datetime", "timestamp"):
        return f"CASE WHEN typeof({name}) = 'VARCHAR' THEN {text} ELSE {_date(name, mysql.fraction_digits)} END"  # kept as text
    if mysql.word == "decimal":
        return _decimal(name, mysql)
    return text


def _date(name: str, digits: int | None) -> str:
    """SQL of a date. DuckDB writes MySQL's year 0 as `0001 (BC)`."""
    if digits is not None:
        full = f"strftime(TRY_CAST({name} AS TIMESTAMP), '%Y-%m-%d %H:%M:%S.%f')"
        return f"left({full}, {20 + digits if digits else 19})"
    text = f"CAST({name} AS VARCHAR)"
    return f"CASE WHEN {text} LIKE '0001-% (BC)' THEN '0000' || left(substr({text}, 5), -5) ELSE {text} END"


def _decimal(name: str, mysql: MysqlType) -> str:
    """SQL of a decimal. DuckDB writes no 0 before the point of decimal(38,38); text of more than 38 digits may lack trailing zeros."""
    text = f"CAST({name} AS VARCHAR)"
    text = f"regexp_replace({text}, '^(-?)[.]', '\\10.')" if mysql.scale == mysql.length else text
    if (mysql.length or 0) <= MAX_PRECISION or not mysql.scale:
        return text
    point = f"instr({text}, '.')"
    zeros = f"repeat('0', {mysql.scale} - if({point} = 0, 0, length({text}) - {point}))"
    return f"CASE WHEN typeof({name}) = 'VARCHAR' THEN {text} WHEN {point} = 0 THEN {text} || '.' || {zeros} ELSE {text} || {zeros} END"


def _local(column: pa.Array, time_zone: str) -> pa.Array:
    if not _is_instant(column.type):
        return column
    return pc.local_timestamp(pc.cast(column, pa.timestamp("us", tz=time_zone)))


def _is_instant(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None

"""DuckDB, for turning record batches into text without a loop over rows. The only user of duckdb."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa


def write_jsonl(rows: pa.RecordBatchReader, select: Sequence[str], path: Path | str, order: str = "") -> int:
    """One JSON object a row, of these SQL expressions over the batches' columns, streamed to a file; how many rows.

    order: an ORDER BY clause; without one the rows keep theirs.
    """
    with _connect() as connection:
        connection.register("rows", rows)
        target = str(path).replace("'", "''")
        done = connection.execute(f"COPY (SELECT {', '.join(select)} FROM rows{order}) TO '{target}' (FORMAT json)").fetchone()  # noqa: S608
    return int(done[0]) if done else 0


def to_text(rows: pa.RecordBatchReader, select: Sequence[str], limit: int, order: str = "") -> list[tuple[str | None, ...]]:
    """The first rows of these SQL expressions."""
    with _connect() as connection:
        connection.register("rows", rows)
        found: list[tuple[str | None, ...]] = connection.execute(f"SELECT {', '.join(select)} FROM rows{order} LIMIT {limit}").fetchall()  # noqa: S608
    return found


def identifier(name: str) -> str:
    """A column's name in DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


def _connect() -> duckdb.DuckDBPyConnection:
    """An in-memory database that keeps order, needs no network and little memory."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "preserve_insertion_order": True,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "memory_limit": "1GB",
    }
    return duckdb.connect(":memory:", config=settings)

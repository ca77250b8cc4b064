"""Convert record batches to text and compare them with DuckDB, without a loop over rows. The only user of duckdb."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa

# Keeps the rows' order, and needs no network and little memory.
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "preserve_insertion_order": True,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "memory_limit": "1GB",
}
_SEPARATORS = {c.encode(): f"\\u{ord(c):04x}".encode() for c in "\x85\u2028\u2029"}


def write_jsonl(rows: pa.RecordBatchReader, select: Sequence[str], path: Path | str, order: str = "") -> int:
    """Write one JSON object per row, from SQL expressions over the batches' columns, streamed to a file. Returns the number of rows.

    order: an ORDER BY clause; without one the rows keep their order.
    """
    with _connect() as connection:
        connection.register("rows", rows)
        target = str(path).replace("'", "''")
        done = connection.execute(f"COPY (SELECT {', '.join(select)} FROM rows{order}) TO '{target}' (FORMAT json)").fetchone()  # noqa: S608
    _escape_separators(Path(path))
    return int(done[0]) if done else 0


def to_text(
    rows: pa.RecordBatchReader, select: Sequence[str], limit: int, order: str = "", where: str = "true"
) -> list[tuple[str | None, ...]]:
    """Return the first rows of SQL expressions over the batches' columns, where a condition holds."""
    with _connect() as connection:
        connection.register("rows", rows)
        question = f"SELECT {', '.join(select)} FROM rows WHERE {where}{order} LIMIT {limit}"  # noqa: S608
        found: list[tuple[str | None, ...]] = connection.execute(question).fetchall()
    return found


@contextmanager
def scratch(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a database whose tables, and data beyond its memory, are in a file below the folder."""
    with _connect(str(folder / "scratch.duckdb")) as connection:
        connection.execute("SET memory_limit = '512MB'")
        connection.execute("SET preserve_insertion_order = false")
        yield connection


def _escape_separators(path: Path) -> None:
    """Escape the characters that many readers take for line ends; DuckDB writes them raw. Most files have none."""
    if not path.stat().st_size:
        return
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if all(content.find(raw) < 0 for raw in _SEPARATORS):
            return
    beside = path.with_name(f"{path.name}.escaped")
    with path.open("rb") as stream, beside.open("wb") as out:
        for line in stream:
            for raw, escaped in _SEPARATORS.items():
                line = line.replace(raw, escaped)
            out.write(line)
    beside.replace(path)


def identifier(name: str) -> str:
    """Return a column name quoted for DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


def _connect(path: str = "") -> duckdb.DuckDBPyConnection:
    """Open a database at a path, or without one a connection to the process's database in memory, which sees no other's views."""
    return duckdb.connect(path, config=_SETTINGS) if path else _in_memory(os.getpid()).cursor()


@cache
def _in_memory(pid: int) -> duckdb.DuckDBPyConnection:
    """Open the database in memory once in a process: it takes 30 ms. A fork opens its own."""
    return duckdb.connect(config=_SETTINGS)

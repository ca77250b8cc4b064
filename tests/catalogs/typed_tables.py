"""Tables with every type of the lake at its limits, written as Tidelake writes them: what each reader must find in them, by snapshot.

`grown`: position deletes on data files, then columns renamed, dropped, widened and added, then rows with the new columns.
`plain`: one commit with every type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeCatalog, LakeColumn, LakeTable
from tidelake.lake.data_files import WrittenFile, columns_of_files, stage_files
from tidelake.spark.parquet_files import OpenFile, footer
from tidelake.spark.position_deletes import write_position_deletes

Row = dict[str, Any]

TYPES = {
    "id": "bigint",
    "i": "int",
    "f": "float",
    "d": "double",
    "money": "decimal(12,2)",
    "wide": "decimal(38,10)",
    "unsigned": "decimal(20,0)",
    "day": "date",
    "at": "timestamp_ntz",
    "instant": "timestamp",
    "text": "string",
    "raw": "binary",
    "vec": "array<float>",
    "_commit_ts": "bigint",
}
ROWS: list[Row] = [
    {
        "id": 1,
        "i": -(1 << 31),
        "f": 0.5,
        "d": 5e-324,
        "money": Decimal("-9999999999.99"),
        "wide": Decimal("9999999999999999999999999999.9999999999"),
        "unsigned": Decimal(2**64 - 1),
        "day": date(1, 1, 1),
        "at": datetime(1, 1, 1),  # noqa: DTZ001
        "instant": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "text": "",
        "raw": b"",
        "vec": [],
        "_commit_ts": -(1 << 63),
    },
    {
        "id": (1 << 63) - 1,
        "i": (1 << 31) - 1,
        "f": -3.4028234663852886e38,
        "d": 1.7976931348623157e308,
        "money": Decimal("0.01"),
        "wide": Decimal("-0.0000000001"),
        "unsigned": Decimal(0),
        "day": date(9999, 12, 31),
        "at": datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
        "instant": datetime(2038, 1, 19, 3, 14, 7, 999999, tzinfo=UTC),
        "text": "é 測試 🚀 'x' \\ \t\n\x00z",
        "raw": bytes(range(256)),
        "vec": [1.0, None, -2.5],
        "_commit_ts": 463368564662075392,
    },
    {"id": 3, **dict.fromkeys(list(TYPES)[1:-1]), "_commit_ts": 463368564662075393},
]
SMALL = {"id": "bigint", "n": "int", "gone": "string", "v": "string", "_commit_ts": "bigint"}


@dataclass(frozen=True)
class Expected:
    """A table at one snapshot. snapshot_id: None for the newest state."""

    identifier: str
    snapshot_id: int | None
    rows: list[Row]


def write_tables(catalog: LakeCatalog, store: Store, uri: str, folder: Path) -> list[Expected]:
    """Make the tables in namespace `typed`. store, uri: where the warehouse is; folder: for files on their way. Returns what they hold."""
    catalog.claim_namespace("typed", "shop")
    return [*_plain(catalog), *_grown(catalog, _Writer(catalog, store, uri, folder))]


def _plain(catalog: LakeCatalog) -> list[Expected]:
    made = catalog.create("typed.plain", _columns(TYPES), properties={"tidelake.feed": "shop"})
    catalog.append("typed.plain", pa.Table.from_pylist(ROWS, schema=made.table.schema().as_arrow()))
    return [Expected("typed.plain", None, ROWS)]


def _grown(catalog: LakeCatalog, writer: _Writer) -> list[Expected]:
    name = "typed.grown"
    catalog.create(name, _columns(SMALL), properties={"tidelake.feed": "shop"})
    rows = [{"id": n, "n": n * n, "gone": f"g{n}", "v": f"v{n}", "_commit_ts": n} for n in range(100)]
    first, second = writer.data("a", name, rows[:60]), writer.data("b", name, rows[60:])
    whole = writer.publish(name, [first, second])
    deleted = writer.publish(name, deletes=[writer.deletes("c", name, {first.path: [0, 7, 59], second.path: [39]})])
    left = [r for r in rows if r["id"] not in (0, 7, 59, 99)]
    catalog.evolve(name, _change)
    now = [{"id": r["id"], "n": r["n"], "word": r["v"], "_commit_ts": r["_commit_ts"], "added": None} for r in left]
    more = {"id": 200, "n": 1 << 40, "word": "new", "_commit_ts": 200, "added": Decimal("1.5")}
    catalog.append(name, pa.Table.from_pylist([more], schema=catalog.load(name).table.schema().as_arrow()))
    return [Expected(name, whole, rows), Expected(name, deleted, left), Expected(name, None, [*now, more])]


def _change(update: Any) -> None:
    from pyiceberg.types import DecimalType, LongType

    update.rename_column("v", "word").delete_column("gone").update_column("n", LongType()).add_column("added", DecimalType(9, 1))


class _Writer:
    """Writes files as workers do, and publishes them as runs do."""

    def __init__(self, catalog: LakeCatalog, store: Store, uri: str, folder: Path) -> None:
        self._catalog, self._store, self._uri, self._folder, self._runs = catalog, store, uri, folder, 0

    def data(self, name: str, identifier: str, rows: Sequence[Row]) -> WrittenFile:
        table = self._catalog.load(identifier)
        schema = columns_of_files(table)

        def fill(path: Path) -> None:
            with OpenFile(path, schema) as file:
                file.write(pa.Table.from_pylist(list(rows), schema=schema))

        return self._file(table, name, fill)

    def deletes(self, name: str, identifier: str, found: dict[str, list[int]]) -> WrittenFile:
        table = self._catalog.load(identifier)
        places = ((f"{table.table.location()}/{p}", np.array(found[p], np.int64)) for p in sorted(found))
        return self._file(table, name, lambda path: write_position_deletes(path, places))

    def publish(self, identifier: str, files: Sequence[WrittenFile] = (), deletes: Sequence[WrittenFile] = ()) -> int:
        """Stage and publish; the snapshot."""
        self._runs += 1
        run, main = f"run_{self._runs}_1", self._catalog.load(identifier).main
        staged = stage_files(self._catalog, identifier, run, main, (), files, {"tidelake.run": run}, deletes).table
        self._catalog.advance(staged, main, staged.branch(run), run)
        return staged.branch(run)

    def _file(self, table: LakeTable, name: str, fill: Callable[[Path], None]) -> WrittenFile:
        path = self._folder / f"{name}.parquet"
        fill(path)
        at = f"{table.table.location()}/data/{name}.parquet"
        self._store.write(at.removeprefix(f"{self._uri}/"), path.read_bytes())
        return WrittenFile(path=f"data/{name}.parquet", partition=(), size=path.stat().st_size, footer=footer(path))


def _columns(types: dict[str, str]) -> list[LakeColumn]:
    return [LakeColumn(name=n, type=t, doc=f"{i}: {t}") for i, (n, t) in enumerate(types.items(), 1)]

"""Protocols whose messages do not say their columns' types, or not always: what our tests know of the tables, and what gets lost.

The tables are made from the vectors' own types, as the schema files that TiCDC's storage sink writes (docs/reference/protocols.md 9.5).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.data_files import data_bytes
from tidelake.history.event import SchemaColumn
from tidelake.protocols.table_schemas import table_schemas
from tidelake.wire.cells.mysql_codes import word

PROTOCOLS = ("debezium", "maxwell", "csv")
DECIMAL, DATES, TEMPORAL = 246, (10, 12), (7, 11, 12)


@cache
def columns(protocol: str) -> Callable[[str, str], tuple[SchemaColumn, ...] | None] | None:
    """Context.columns for the vectors of the protocol."""
    with TemporaryDirectory() as folder:
        return table_schemas(Path(folder)) if write(protocol, Path(folder)) else None


def write(protocol: str, folder: Path) -> int:
    """One schema file a table into the folder; how many."""
    tables = _tables() if protocol in PROTOCOLS else {}
    for i, ((database, table), of_table) in enumerate(tables.items()):
        said = {"Schema": database, "Table": table, "Version": 1, "TableVersion": i, "Query": "", "Type": 0, "TableColumns": of_table}
        (folder / f"schema_{i}_0000000000.json").write_text(json.dumps(said | {"TableColumnsTotal": len(of_table)}))
    return len(tables)


def carried(event: dict[str, Any], vector: dict[str, Any]) -> dict[str, Any]:
    """The expected event, reduced to what the protocol can carry (docs/reference/protocols.md 9.2, 9.3, 11.6)."""
    if vector["protocol"] not in PROTOCOLS:
        return event
    sides = {side: event[side] for side in ("columns", "old_columns") if side in event}
    if vector["protocol"] == "maxwell":  # rows are sorted by name
        sides = {side: sorted(cells) for side, cells in sides.items()}
    if vector["protocol"] == "debezium":
        types = {c["name"]: c.get("type") for e in _events(vector) for c in _columns(e)}
        sides = {side: [(n, key, _of_debezium(cell, types[n])) for n, key, cell in cells] for side, cells in sides.items()}
    if vector["protocol"] == "csv" and not vector["options"]["quote"]:  # text that spells the null word is that word's bytes
        null = vector["options"]["null"].encode()
        sides = {
            side: [(n, key, None if cell == null and null != rb"\N" else cell) for n, key, cell in cells] for side, cells in sides.items()
        }
    return event | sides


def _of_debezium(cell: Any, code: int | None) -> Any:
    if code == DECIMAL and cell is not None:
        return float(cell)  # a double
    return None if code in DATES and cell is not None and cell.startswith(b"0000-00-00") else cell


@cache
def _tables() -> dict[tuple[str, str], list[dict[str, str]]]:
    """The columns of each table, by its widest row."""
    rows: dict[tuple[str, str], list[list[dict[str, Any]]]] = {}
    for vector in json.loads(data_bytes("vectors/ticdc_encoders.json.xz")):
        if vector["protocol"] in PROTOCOLS:
            for e in _events(vector):
                images = [e[side] for side in ("columns", "old_columns") if side in e]
                rows.setdefault((e.get("schema"), e.get("table")), []).extend(images)
    return {name: _described(images) for name, images in rows.items() if images}


def _described(images: list[list[dict[str, Any]]]) -> list[dict[str, str]]:
    digits: dict[str, int] = {}
    for c in (c for image in images for c in image):
        digits[c["name"]] = max(digits.get(c["name"], 0), len(str(c.get("value", "")).partition(".")[2]))
    return [_column(c, digits[c["name"]]) for c in max(images, key=len)]


def _column(c: dict[str, Any], digits: int) -> dict[str, str]:
    said = {"ColumnName": c["name"], "ColumnType": (word(c["type"], c["flag"]) or "").upper()}
    said |= {"ColumnIsPk": "true"} if c["handle"] else {}
    if c["type"] in TEMPORAL and digits:
        said["ColumnScale"] = str(digits)
    if c["type"] == DECIMAL:
        said |= {"ColumnPrecision": "65", "ColumnScale": str(digits)}
    return said


def _events(vector: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from vector["expected"].get("events", [vector["expected"]])


def _columns(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for side in ("columns", "old_columns"):
        yield from event.get(side) or ()

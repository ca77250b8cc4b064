"""Read records of an Avro container's blocks into columns, compiled (Avro 1.11 specification, Binary Encoding).

A schema is compiled to a flat list of steps, so records need no recursion. `program` refuses schemas that the steps cannot express.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidelake.wire.kernels.arrays import Bytes, Longs
from tidelake.wire.kernels.binary_kernels import BAD, varint
from tidelake.wire.kernels.compiled import compiled
from tidelake.wire.kernels.spans import NULL, column

Path = tuple[str, ...]

LONG, BYTES, SKIP, UNION, PAIRS = range(5)
NOWHERE = -1
_SKIPPED = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_DEPTH = 20


class UnsupportedError(ValueError):
    """A schema that the steps cannot express, or that does not match a wanted member."""


@dataclass(frozen=True, slots=True)
class ColumnsProgram:
    """Steps that read a schema. steps: (operation, column or count, null branch); kinds: the kind of every wanted member that the schema
    has, by path.
    """

    steps: Longs
    kinds: Mapping[Path, int]


@dataclass(frozen=True, slots=True)
class ScannedColumns:
    """Columns of some blocks by path: int64 and binary; pairs as list<struct<key, value>>, null if the member is null."""

    rows: int
    found: Mapping[Path, pa.Array]


def program(schema: Any, wanted: Mapping[Path, int]) -> ColumnsProgram:
    """Return the steps for a schema. wanted: LONG, BYTES or PAIRS (a map of bytes, or an array of key and value) by path; () is the record
    itself.

    Raises UnsupportedError.
    """
    compiler = _Compiler(list(wanted.items()))
    steps = compiler.compile(schema, ())
    return ColumnsProgram(np.array(steps, np.int64).reshape(-1, 3), compiler.kinds)


def read_blocks(data: Bytes, ends: Longs, counted: Longs, plan: ColumnsProgram, wanted: Mapping[Path, int]) -> ScannedColumns | int:
    """Return the columns of consecutive blocks, or the index of the first record that cannot be read or ends its block wrongly.

    ends: where each block ends in the data; counted: number of records in all blocks up to it.
    """
    places, rows = list(wanted), int(counted[-1])
    longs = np.zeros((len(places), rows), np.int64)
    sizes = np.full((len(places), rows), NULL, np.int64)
    starts = np.zeros((len(places), rows), np.int64)
    counts = np.full(rows, NULL, np.int64)
    pairs = np.empty((len(data) // 2 if PAIRS in plan.kinds.values() else 0, 4), np.int64)
    row, found = _scan(data, ends, counted, plan.steps, longs, starts, sizes, counts, pairs)
    if found < 0:
        return int(row)
    out: dict[Path, pa.Array] = {}
    for i, (path, kind) in enumerate(wanted.items()):
        if path not in plan.kinds:
            continue
        if kind == LONG:
            out[path] = pa.array(longs[i], mask=sizes[i] < 0)
        elif kind == BYTES:
            out[path] = column(data, starts[i], sizes[i])
        else:
            out[path] = _lists(data, counts, pairs[:found])
    return ScannedColumns(rows, out)


def _lists(data: Bytes, counts: Longs, pairs: Longs) -> pa.Array:
    keys, values = (column(data, pairs[:, i], pairs[:, i + 1]) for i in (0, 2))
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(np.maximum(counts, 0), out=offsets[1:])
    structs = pa.StructArray.from_arrays([keys.cast(pa.string()), values], names=["key", "value"])
    return pa.ListArray.from_arrays(pa.array(offsets), structs, mask=pa.array(counts < 0))


class _Compiler:
    def __init__(self, wanted: list[tuple[Path, int]]) -> None:
        self._places = {path: (i, kind) for i, (path, kind) in enumerate(wanted)}
        self._names: dict[str, Any] = {}
        self.kinds: dict[Path, int] = {}

    def compile(self, schema: Any, path: Path) -> list[tuple[int, int, int]]:
        """Return the steps that read one value."""
        if len(path) > _DEPTH:
            raise UnsupportedError(f"{'.'.join(path[:3])}… goes too deep")
        if isinstance(schema, list):
            return self._union(schema, path)
        if isinstance(schema, str):
            return self._named(schema, path)
        match schema["type"]:
            case "record":
                self._names[schema["name"]] = schema
                return [step for field in schema["fields"] for step in self.compile(field["type"], (*path, field["name"]))]
            case "array" | "map" as form:
                return [(PAIRS, self._place(path, PAIRS), self._pair_value(schema[_ITEMS[form]], form, path))]
            case "enum" | "fixed" as form:
                self._names[schema["name"]] = schema
                return [(LONG, NOWHERE, 0)] if form == "enum" else [(SKIP, int(schema["size"]), 0)]
            case other:
                return self.compile(other, path)

    def _named(self, name: str, path: Path) -> list[tuple[int, int, int]]:
        if name in _SKIPPED:
            if path in self._places:
                raise UnsupportedError(f"{_shown(path)} is {name}")
            return [(SKIP, _SKIPPED[name], 0)]
        if name in ("int", "long"):
            return [(LONG, self._place(path, LONG), 0)]
        if name in ("bytes", "string"):
            return [(BYTES, self._place(path, BYTES), 0)]
        if name in self._names:
            return self.compile(self._names[name], path)
        raise UnsupportedError(f"{_shown(path)} is of type {name}")

    def _union(self, branches: list[Any], path: Path) -> list[tuple[int, int, int]]:
        if len(branches) != 2 or "null" not in branches:
            raise UnsupportedError(f"{_shown(path)} is a union of {len(branches)} types other than null and one more")
        null = branches.index("null")
        inner = self.compile(branches[1 - null], path)
        return [(UNION, len(inner), null), *inner]

    def _pair_value(self, item: Any, form: str, path: Path) -> int:
        """Return the null branch of the values of a map, or of an array of key and value; NOWHERE if they cannot be null."""
        if isinstance(item, dict) and item.get("type") == "record" and form == "array":
            fields = item["fields"]
            if [field["name"] for field in fields] == ["key", "value"] and fields[0]["type"] == "string":
                return self._pair_value(fields[1]["type"], "value", path)
        elif form != "array" and (item in ("bytes", "string")):
            return NOWHERE
        elif form != "array" and isinstance(item, list) and len(item) == 2 and "null" in item and {"bytes", "string"} & set(item):
            return item.index("null")
        raise UnsupportedError(f"{_shown(path)} is not a map of bytes")

    def _place(self, path: Path, kind: int) -> int:
        place, wanted = self._places.get(path, (NOWHERE, kind))
        if wanted != kind:
            raise UnsupportedError(f"{_shown(path)} is {_WORDS[kind]}, not {_WORDS[wanted]}")
        if place != NOWHERE:
            self.kinds[path] = kind
        elif kind == PAIRS:
            raise UnsupportedError(f"{_shown(path)} is {_WORDS[kind]}, which is not expected there")
        return place


_ITEMS = {"array": "items", "map": "values"}
_WORDS = {LONG: "a number", BYTES: "bytes", PAIRS: "headers"}


def _shown(path: Path) -> str:
    return ".".join(path) or "a record"


@compiled
def _scan(
    buf: Bytes, ends: Longs, counted: Longs, steps: Longs, longs: Longs, starts: Longs, sizes: Longs, counts: Longs, pairs: Longs
) -> tuple[int, int]:
    """Return the number of records read, and the number of their pairs; BAD if a record cannot be read or does not end with its block."""
    pos, row, found = 0, 0, 0
    for block in range(len(ends)):
        end = ends[block]
        while row < counted[block]:
            pos, found = _record(buf, pos, end, steps, longs, starts, sizes, counts, pairs, row, found)
            if pos < 0:
                return row, BAD
            row += 1
        if pos != end:
            return row, BAD
    return row, found


@compiled
def _record(
    buf: Bytes,
    pos: int,
    end: int,
    steps: Longs,
    longs: Longs,
    starts: Longs,
    sizes: Longs,
    counts: Longs,
    pairs: Longs,
    row: int,
    found: int,
) -> tuple[int, int]:
    """Read a record. Returns the position after it, and the number of pairs including its own."""
    i = 0
    while i < len(steps):
        what, place, null = steps[i, 0], steps[i, 1], steps[i, 2]
        i += 1
        if what == SKIP:
            pos += place
        elif what == PAIRS:
            pos, more = _pairs(buf, pos, end, null, pairs, found)
            counts[row] = more - found
            found = more
        elif what == UNION:
            taken, pos = _branch(buf, pos, end, null)
            i += 0 if taken else place
        else:
            pos = _put(buf, pos, end, what, longs, starts, sizes, place, row)
        if pos < 0 or pos > end:
            return BAD, found
    return pos, found


@compiled
def _branch(buf: Bytes, pos: int, end: int, null: int) -> tuple[bool, int]:
    """Read a union's branch. Returns whether it is not null, and the position of its value."""
    value, pos = varint(buf, pos, end)
    return value != null, pos if value in (0, 1) else BAD


@compiled
def _put(buf: Bytes, pos: int, end: int, what: int, longs: Longs, starts: Longs, sizes: Longs, place: int, row: int) -> int:
    """Read a number or bytes. Returns the position after it."""
    value, pos = varint(buf, pos, end)
    if what == BYTES:
        pos, value = _sized(pos, end, value)
    if place >= 0 and pos >= 0:
        longs[place, row] = value
        starts[place, row] = pos - value
        sizes[place, row] = value if what == BYTES else 0
    return pos


@compiled
def _sized(pos: int, end: int, size: int) -> tuple[int, int]:
    """Return the position after `size` bytes, BAD if they are missing, and the size."""
    if pos < 0 or size < 0 or size > end - pos:
        return BAD, 0
    return pos + size, size


@compiled
def _pairs(buf: Bytes, pos: int, end: int, null: int, pairs: Longs, found: int) -> tuple[int, int]:
    """Read a map, or an array of key and value. Returns the position after it, and the number of pairs including its own."""
    while True:
        count, pos = varint(buf, pos, end)
        if pos < 0 or count == 0:
            return pos, found
        if count < 0:
            count = -count
            _, pos = varint(buf, pos, end)
        if count < 0 or pos < 0 or count > end - pos:
            return BAD, found
        for _ in range(count):
            if found >= len(pairs):
                return BAD, found
            size, pos = varint(buf, pos, end)
            pos, size = _sized(pos, end, size)
            pairs[found, 0] = pos - size
            pairs[found, 1] = size
            branch = NOWHERE
            if null >= 0:
                branch, pos = varint(buf, pos, end)
            if branch == null and null >= 0:
                pairs[found, 2] = 0
                pairs[found, 3] = NULL
            else:
                size, pos = varint(buf, pos, end)
                pos, size = _sized(pos, end, size)
                pairs[found, 2] = pos - size
                pairs[found, 3] = size
            if pos < 0:
                return BAD, found
            found += 1

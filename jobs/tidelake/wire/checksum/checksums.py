"""Row checksums (docs/reference/protocols.md 4.2): does a row add up to the number that TiCDC sent with it?

A row is `verified`, a `mismatch`, or `unverifiable`: a column is not there, or not known well enough, to say that it differs. A sum that
agrees says that all is there, so an image with fewer columns than its table is summed too: tables have columns that are never sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidelake.errors import ContractError, DecodeError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import CHECKSUMS, RowSchema, SchemaColumn
from tidelake.wire.checksum.checksum_kernels import (
    CORRUPTED,
    CURRENT,
    DOUBLE,
    DOUBTFUL,
    FLOAT,
    MARK,
    MENDED,
    NAME,
    NAMES,
    NOT_A_SUM,
    NOT_SENT,
    NUMBER,
    PREVIOUS,
    SCRATCH_BYTES,
    TEXT,
    TIMESTAMP,
    UNKNOWN,
    UNREADABLE,
    VECTOR,
    ZONE,
    ChecksumCells,
    ChecksumProgram,
    sum_images,
)
from tidelake.wire.checksum.checksum_zones import Zones, zones
from tidelake.wire.kernels import columnar
from tidelake.wire.kernels.arrays import Flags, Ints, Longs
from tidelake.wire.kernels.columnar import NONE, Scanned

VERIFIED, MISMATCH, UNVERIFIABLE = range(len(CHECKSUMS))

_CODES = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit", "enum", "set"), NUMBER),
    **dict.fromkeys(("decimal", "date", "datetime", "time", "json"), TEXT),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), TEXT),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), MENDED),
    **{"float": FLOAT, "double": DOUBLE, "timestamp": TIMESTAMP, "vector": VECTOR},
}
_MEMORY = "checksum programs"
_MAX_KEPT = 1 << 13

_Column = tuple[int, tuple[bytes, ...]]  # code, members


class ChecksumRules(NamedTuple):
    """What differs between protocols. names_sent: ENUM and SET are names, not numbers; mended: invalid UTF-8 came as U+FFFD."""

    names_sent: bool
    mended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One side of a row. number: the checksum sent; whole: no column of the table is missing."""

    row_schema: RowSchema
    cells: Sequence[bytes | None]
    number: int
    whole: bool


def sum_of_text(text: bytes) -> int:
    """A checksum as decimal digits."""
    return int(text) if text.isdigit() and len(text) <= 20 and int(text) < 1 << 32 else NOT_A_SUM


def with_verdicts(scanned: Scanned, sent: Longs, zone_names: Sequence[str], rules: ChecksumRules, memory: dict[str, object]) -> Scanned:
    """The batch with its rows judged. sent: by event, in the order of checksum_kernels.MARK …"""
    sent = sent[: len(scanned.message)]
    there = sent[:, MARK] != NOT_SENT
    if not there.any():
        return scanned
    programs, zone, known = _kept(memory), sent[:, ZONE].astype(np.int32), zones(zone_names)
    differs, unclear = sent[:, MARK] == CORRUPTED, np.zeros(len(sent), np.bool_)
    sides = ((scanned.after, scanned.row_schema, CURRENT), (scanned.before, scanned.before_schema, PREVIOUS))
    for cells, row_schema, number in sides:
        used = np.unique(row_schema[there & (row_schema != NONE)])
        doubtful = np.zeros(len(used), np.bool_) if scanned.whole is None else ~scanned.whole[used]
        program = _program([scanned.row_schemas[i] for i in used.tolist()], doubtful, rules, programs)
        place = np.full(len(scanned.row_schemas) + 1, NONE, np.int32)  # the last place is NONE's
        place[used] = np.arange(len(used))
        _, wrong, open_ = _judged(cells, program, place[np.where(there, row_schema, NONE)], sent[:, number], zone, known)
        differs, unclear = differs | wrong, unclear | open_
    verdicts = np.where(differs, MISMATCH, np.where(unclear, UNVERIFIABLE, VERIFIED))
    return replace(scanned, checksum=np.where(there, verdicts, NONE).astype(np.int8))


def verdict(images: Sequence[Image], *, corrupted: bool, zone: str | None, rules: ChecksumRules, refuse: bool) -> str:
    """One row's, of CHECKSUMS. zone: of its times, None where they have several. refuse: raise DecodeError (CHECKSUM) for a mismatch."""
    if corrupted and refuse:
        raise DecodeError("TiCDC says that the row is corrupted", code="CHECKSUM")
    differs, unclear = corrupted, False
    known, place = zones([zone] if zone is not None else []), np.zeros(1, np.int32) if zone is not None else np.full(1, NONE, np.int32)
    for image in images:
        program = _program([image.row_schema], np.array([not image.whole]), rules, {})
        numbers = np.array([image.number], np.int64)
        sums, wrong, open_ = _judged(_cells(image.cells), program, np.zeros(1, np.int32), numbers, place, known)
        if wrong[0] and refuse:
            number = "no number" if image.number == NOT_A_SUM else str(image.number)
            raise DecodeError(f"the row's checksum is {sums[0]}, expected {number}, which came with it", code="CHECKSUM")
        differs, unclear = differs or bool(wrong[0]), unclear or bool(open_[0])
    return CHECKSUMS[MISMATCH if differs else UNVERIFIABLE if unclear else VERIFIED]


def _judged(
    cells: columnar.Cells, program: ChecksumProgram, which: Ints, numbers: Longs, zone: Ints, known: Zones
) -> tuple[Longs, Flags, Flags]:
    """By event: the sum, whether it certainly differs, and whether that is unknown. TiCDC sends 0 for an image without checksum."""
    sums, worth, scratch = np.zeros(len(which), np.int64), np.zeros(len(which), np.uint8), np.zeros(SCRATCH_BYTES, np.uint8)
    side = ChecksumCells(*(_frozen(a) for a in (cells.starts, cells.offsets, cells.present, cells.data)))
    sum_images(side, program, which, zone, known, False, sums, worth, scratch)
    differs = (which != NONE) & (sums != numbers)
    if differs.any():
        others, which = sums.copy(), np.where(differs & (worth != UNREADABLE), which, NONE).astype(np.int32)
        sum_images(side, program, which, zone, known, True, others, worth, scratch)
        differs &= others != numbers
    unclear = (worth == UNREADABLE) | differs & ((worth == DOUBTFUL) | (numbers == 0))
    return sums, differs & ~unclear, unclear


def _program(
    row_schemas: Sequence[RowSchema], doubtful: Flags, rules: ChecksumRules, kept: dict[tuple[int, ChecksumRules], list[_Column]]
) -> ChecksumProgram:
    columns = list[_Column]()
    first = [0]
    for row_schema in row_schemas:
        of_schema = kept.get((row_schema.id, rules))
        if of_schema is None:
            of_schema = kept[row_schema.id, rules] = [_column(c, rules) for c in row_schema.columns]
        columns += of_schema
        first.append(len(columns))
    members = [m for _, of_column in columns for m in of_column]
    return ChecksumProgram(
        first=np.array(first, np.int32),
        doubtful=doubtful.astype(np.uint8),
        code=np.array([code for code, _ in columns], np.uint8),
        element=np.cumsum([0, *(len(of_column) for _, of_column in columns)], dtype=np.int32),
        ends=np.cumsum([0, *(len(m) for m in members)], dtype=np.int32),
        names=_frozen(np.frombuffer(b"".join(members) or b"\0", np.uint8)),
    )


def _column(column: SchemaColumn, rules: ChecksumRules) -> _Column:
    try:
        word = MysqlType.parse(column.type or "").word
    except ContractError:
        return UNKNOWN, ()
    if word in ("enum", "set") and rules.names_sent:
        elements = tuple(e.encode() for e in column.elements or ())
        return (NAME if word == "enum" else NAMES) if elements else UNKNOWN, elements
    code = _CODES.get(word, UNKNOWN)
    return TEXT if code == MENDED and not rules.mended else code, ()


def _kept(memory: dict[str, object]) -> dict[tuple[int, ChecksumRules], list[_Column]]:
    """What schemas were found to mean."""
    found = memory.get(_MEMORY)
    if not isinstance(found, dict) or len(found) > _MAX_KEPT:
        found = memory[_MEMORY] = {}
    return found


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Contiguous and read-only: else numba recompiles everything for another kind of array."""
    array = np.ascontiguousarray(array).view()
    array.flags.writeable = False
    return array


def _cells(cells: Sequence[bytes | None]) -> columnar.Cells:
    texts = [c or b"" for c in cells]
    return columnar.Cells(
        starts=np.array([0, len(cells)], np.int32),
        offsets=np.cumsum([0, *map(len, texts)], dtype=np.int32),
        present=np.array([c is not None for c in cells], np.bool_),
        data=np.frombuffer(b"".join(texts) or b"\0", np.uint8),
    )

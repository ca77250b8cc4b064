"""The lake's side: one pass over the table stores every row's place and sum in a scratch database; ranges and their sums come from it.

It takes 16 to 40 bytes of disk per row and bounded memory. Python does not loop over rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from tidelake.io import duckdb_door as duck
from tidelake.query.verify.cell_texts import row_text
from tidelake.query.verify.questions import EVERYTHING, Bound, ComparePlan, KeyRange, anywhere, within

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


SIZES = (51_200, 1_600, 50)  # rows of a part at each level; each divides the one before it


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart:
    """A range of the table with about as many rows as the level's size.

    Attributes:
        place: Position of its first row.
        range: The key range.
        rows: Number of rows.
        total: Sum of the rows.
    """

    place: int
    range: KeyRange
    rows: int
    total: int


@dataclass(frozen=True, slots=True)
class Here:
    """The sums of one table. rows: number of rows."""

    rows: int
    _plan: ComparePlan
    _scratch: DuckDBPyConnection

    def parts(self, size: int, inside: KeyRange = EVERYTHING) -> list[KeyPart]:
        """Return the parts of a range, in order and without gaps; a single part of no rows if the range is empty."""
        names = _places(self._plan)
        condition = within(names, inside)
        where = f"WHERE {condition}" if condition else ""
        highs = ", ".join(f"CAST(arg_max({n}, pos) AS VARCHAR)" for n in names)
        found = self._scratch.execute(
            f"SELECT min(pos), sum(n), {_total(self._plan)}(total), {highs} FROM rows {where} GROUP BY pos // {size} ORDER BY pos // {size}"  # noqa: S608
        ).fetchall()
        bounds: list[Bound | None] = [inside.low, *(tuple(r[3:]) for r in found[:-1]), inside.high]
        ranges = [KeyRange(low=low, high=high) for low, high in pairwise(bounds)]
        counted = found or [(0, 0, 0)]
        return [KeyPart(place=int(f[0]), range=r, rows=int(f[1]), total=int(f[2])) for r, f in zip(ranges, counted, strict=True)]


@contextmanager
def summed(plan: ComparePlan, rows: pa.RecordBatchReader) -> Iterator[Here]:
    """Yield the sums of a table's rows. rows: with instants as local times of UTC."""
    with TemporaryDirectory(prefix="tidelake-verify-") as folder, duck.scratch(Path(folder)) as scratch:
        names = _places(plan)
        places = ", ".join(f"{p.here} AS {n}" for p, n in zip(plan.places, names, strict=True))
        scratch.register("source", rows)
        scratch.execute(
            f"CREATE TABLE sums AS SELECT {places}, CAST('0x' || md5({row_text(plan.texts)[1]})[1:16] AS UBIGINT) AS total FROM source"  # noqa: S608
        )
        at = ", ".join(names)
        scratch.execute(f"CREATE TABLE places AS SELECT {at}, count(*) AS n, {_total(plan)}(total) AS total FROM sums GROUP BY {at}")  # noqa: S608
        scratch.execute("DROP TABLE sums")
        last = f"CAST(sum(n) OVER (ORDER BY {at} ROWS UNBOUNDED PRECEDING) - 1 AS BIGINT)"
        scratch.execute(f"CREATE TABLE rows AS SELECT *, {last} AS pos FROM places")  # noqa: S608
        count = scratch.execute("SELECT coalesce(sum(n), 0) FROM rows").fetchone()
        yield Here(int(count[0]) if count else 0, plan, scratch)


def texts_within(plan: ComparePlan, rows: pa.RecordBatchReader, ranges: Sequence[KeyRange]) -> list[tuple[str, ...]]:
    """Return the texts of the rows in any of these ranges."""
    condition = anywhere([p.here for p in plan.places], ranges) or "true"
    found = duck.to_text(rows, [t.here for t in plan.texts], _EVERY, where=condition)
    return [tuple(str(v) for v in row) for row in found]


_EVERY = 1 << 40  # row limit that no table reaches


def _places(plan: ComparePlan) -> list[str]:
    return [f"p{i}" for i in range(len(plan.places))]


def _total(plan: ComparePlan) -> str:
    return "bit_xor" if plan.key else "sum"

"""Questions to the source: read-only SQL, one statement per question. The question's id identifies the answer.

    sums    SELECT id, part, COUNT(*), BIT_XOR(64 bits of MD5(row text)) … WHERE range GROUP BY 2
    rows    SELECT id, cell, … WHERE range

sync-diff-inspector sums rows in the same way, with CRC32 in the past and MD5 now. CRC32 is linear: two rows that change by the same bits
cancel out. For a table without a key the sums are added instead, because two equal rows would cancel out in XOR.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from tidelake.config.table_name import written
from tidelake.query.verify.cell_texts import CellText, SourceCell, quoted, row_text

Bound = tuple[int | str, ...]  # values of the range columns: integers, or decimals as text
DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlace:
    """A column or expression that ranges are built on: integers or decimals, which all servers order alike."""

    upstream: str
    here: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """Rows after low, up to and including high. None: unbounded."""

    low: Bound | None = None
    high: Bound | None = None


EVERYTHING = KeyRange()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePlan:
    """How a table is compared.

    Attributes:
        source: Kind of source.
        ts: The TSO.
        database: The table's database.
        table: The table's name in it.
        texts: Columns to compare.
        key: Columns that identify a row; empty if there is no key.
        places: What ranges are built on.
        scans: Ranges are of a hash: each question reads the whole table.
    """

    source: SourceCell
    ts: int
    database: str
    table: str
    texts: tuple[CellText, ...]
    key: tuple[str, ...]
    places: tuple[RowPlace, ...]
    scans: bool

    @property
    def name(self) -> str:
        """The name, `db.table`."""
        return written(self.database, self.table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One statement, and the id of its answer."""

    id: str
    sql: str

    @property
    def script(self) -> str:
        """Return the statement, and a second one that marks its answer as complete."""
        return f"{self.sql};\nSELECT '{self.id}','{DONE}';"


def sums(plan: ComparePlan, inside: KeyRange, bounds: Sequence[Bound] = ()) -> Question:
    """Return the question for the sums of a range's parts: part i ends at bounds[i], the last part at the range's end."""
    value = f"CAST(CONV(SUBSTRING(MD5({row_text(plan.texts)[0]}),1,16),16,10) AS UNSIGNED)"
    total = f"{'BIT_XOR' if plan.key else 'SUM'}({value})"
    return _question(plan, f"{_part(plan, bounds)},COUNT(*),COALESCE({total},0)", [inside], " GROUP BY 2" if bounds else "")


def rows(plan: ComparePlan, ranges: Sequence[KeyRange]) -> Question:
    """Return the question for the texts of the rows in any of these ranges."""
    return _question(plan, ",".join(t.upstream for t in plan.texts), ranges)


def session(source: SourceCell, ts: int) -> list[str]:
    """Return the statements that begin a session: as of the TSO if the source can, else one consistent state for all questions.

    After them the session cannot change data. TiDB refuses writes while tidb_snapshot is set. The others use a READ ONLY transaction, which
    TiDB does not support (tidb_enable_noop_functions).
    """
    common = ["SET NAMES utf8mb4", "SET SESSION time_zone='+00:00'", "SET SESSION sql_mode=''"]
    if source is SourceCell.tidb:
        return [*common, f"SET SESSION tidb_snapshot='{ts}'"]
    consistent = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
    return [*common, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", consistent]


def within(names: Sequence[str], inside: KeyRange) -> str:
    """Return SQL, valid on both sides: the columns' values are in the range. Empty if they always are."""
    terms = []
    if inside.low is not None:
        terms += [f"{names[0]} >= {inside.low[0]}"] * (len(names) > 1)  # so that the index is used
        terms.append(f"NOT ({_until(names, inside.low)})" if len(names) > 1 else f"{names[0]} > {inside.low[0]}")
    if inside.high is not None:
        terms += [f"{names[0]} <= {inside.high[0]}"] * (len(names) > 1)
        terms.append(f"({_until(names, inside.high)})")
    return " AND ".join(terms)


def anywhere(names: Sequence[str], ranges: Sequence[KeyRange]) -> str:
    """Return SQL, valid on both sides: the columns' values are in one of the ranges. Empty if they always are."""
    terms = [within(names, r) for r in ranges]
    return " OR ".join(f"({t})" if len(terms) > 1 else t for t in terms) if all(terms) else ""


def hashed(text: tuple[str, str]) -> RowPlace:
    """Return a place for rows without a numeric key: 32 bits of a text's MD5."""
    return RowPlace(
        upstream=f"CAST(CONV(SUBSTRING(MD5({text[0]}),1,8),16,10) AS UNSIGNED)",
        here=f"CAST('0x' || md5({text[1]})[1:8] AS BIGINT)",
    )


def _question(plan: ComparePlan, select: str, ranges: Sequence[KeyRange], group: str = "") -> Question:
    condition = anywhere([p.upstream for p in plan.places], ranges)
    where = f" WHERE {condition}" if condition else ""
    tail = f"{select} FROM {quoted(plan.database)}.{quoted(plan.table)}{where}{group}"
    made = (
        "q" + hashlib.sha256(f"{plan.source} {plan.ts} {tail}".encode()).hexdigest()[:15]
    )  # the id depends on the TSO, as the answer does
    return Question(id=made, sql=f"SELECT '{made}',{tail}")


def _part(plan: ComparePlan, bounds: Sequence[Bound]) -> str:
    if not bounds:
        return "0"
    names = [p.upstream for p in plan.places]
    if plan.scans:  # INTERVAL computes the hash once and counts the bounds at or below it: the next integer begins the next part
        return f"INTERVAL({names[0]},{','.join(str(int(b[0]) + 1) for b in bounds)})"
    whens = " ".join(f"WHEN {_until(names, b)} THEN {i}" for i, b in enumerate(bounds))
    return f"CASE {whens} ELSE {len(bounds)} END"


def _until(names: Sequence[str], bound: Bound) -> str:
    """SQL: the columns' values are at most the bound's, compared in column order."""
    last = len(names) - 1
    either = []
    for i, name in enumerate(names):
        equal = [f"{n} = {v}" for n, v in zip(names[:i], bound[:i], strict=True)]
        either.append(" AND ".join([*equal, f"{name} {'<=' if i == last else '<'} {bound[i]}"]))
    return " OR ".join(f"({e})" if len(either) > 1 else e for e in either)

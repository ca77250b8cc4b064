"""Mask the masked columns of EVENT batches, in the worker that decodes them (docs/masking.md).

The driver has determined the columns, their names and times (decode.mask_names). Rows of which it could not know stop the hour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.config.table_name import written
from tidelake.decode.selected_rows import in_one, selected
from tidelake.errors import Coordinates, OrderError
from tidelake.history.event import EVENT, RowSchema, schema_rows
from tidelake.history.names import KnownNames, same_name
from tidelake.history.window import sent_type
from tidelake.wire.hashes import Hashes
from tidelake.wire.kernels.arrays import Longs
from tidelake.wire.masks import SIDES, MaskPlaces, kind_of, mark_at, marked, marks_by_name, masked_cells, refuse_other_key


class MaskedName(BaseModel):
    """A name of a table with masks, for rows in (after_ts, until_ts] (TSO); None = no end.

    columns: the table's columns at that time, with their marks. rules: marks of other columns, by name. whole: the columns are all that the
    table has. before: rows are older than what is known of the columns, and may have others.
    """

    database: str
    table: str
    after_ts: int
    until_ts: int | None
    columns: dict[str, str | None]
    rules: dict[str, str]
    whole: bool = True
    before: bool = False


class MaskNames(BaseModel):
    """Names of masked tables. marks: as the feed writes them, for names of unknown tables. others: names of tables without masks. timed:
    rows have a commit ts comparable with those of statements; otherwise a column is masked if it is ever masked under the name.
    """

    marks: list[tuple[str, str, str]] = []
    masked: list[MaskedName] = []
    others: list[tuple[str, str]] = []
    timed: bool = True


@dataclass(frozen=True, slots=True)
class _Span:
    """The masked schema of rows in (after_ts, until_ts]. strange: columns that may be masked ones under another name."""

    after_ts: int
    until_ts: int | None
    row_schema: RowSchema
    strange: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sent:
    """Masking of rows of one name and schema. ever: for rows whose commit ts is unknown or in no span."""

    spans: tuple[_Span, ...]
    ever: _Span


@dataclass(frozen=True)
class Masker:
    """Masks EVENT batches of one object.

    sent: by (database, table, schema id); row_schemas: all received ones, and their masked ones; told: those that masked batches had.
    """

    names: MaskNames
    hashes: Hashes
    sent: dict[tuple[str, str, int], _Sent] = field(default_factory=dict)
    row_schemas: dict[int, RowSchema] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)

    @cached_property
    def _masked(self) -> KnownNames[MaskedName]:
        return KnownNames((n.database, n.table, n) for n in self.names.masked)

    @cached_property
    def _others(self) -> KnownNames[bool]:
        return KnownNames((d, t, True) for d, t in self.names.others)

    @cached_property
    def _marks(self) -> KnownNames[tuple[str, str]]:
        return marks_by_name(self.names.marks)

    def __call__(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with masked cells, and the schemas of its rows that no masked batch before it had.

        Raises ConfigError for a mask that the column cannot have, OrderError (MASK_UNKNOWN) for rows of an unknown table or column that may
        be masked.
        """
        carries = pc.equal(events.column("kind"), "row_schema")
        carried = events.filter(carries)
        texts = zip(carried.column("row_schema").to_pylist(), carried.column("columns").to_pylist(), strict=True)
        self.row_schemas.update({i: RowSchema.from_json(text) for i, text in texts if i not in self.row_schemas})
        out, at = in_one(selected(events, pc.invert(carries))), EVENT.get_field_index
        names = [out.column(c).dictionary_encode() for c in ("database", "table")]
        found = {side: self._places(out, names, said) for side, said in SIDES.items()}
        if not any(places for _, places in found.values()):
            return events
        masked = masked_cells([(out.column(side), places) for side, (_, places) in found.items()], self.hashes)
        for (side, said), (new, _), cells in zip(SIDES.items(), found.values(), masked, strict=True):
            out = out.set_column(at(said), EVENT.field(said), new).set_column(at(side), EVENT.field(side), cells)
        untold = {i for c in SIDES.values() for i in pc.unique(out.column(c).drop_null()).to_pylist()} - self.told
        self.told.update(untold)
        return pa.concat_batches([out, schema_rows(self.row_schemas[i] for i in untold)]) if untold else out

    def _places(self, events: pa.RecordBatch, names: Sequence[pa.DictionaryArray], said: str) -> tuple[pa.Array, MaskPlaces]:
        """Return the schemas of one side's masked images, and which cells to mask. names: of databases and tables."""
        ids, places = events.column(said), MaskPlaces()
        new = np.array(ids.fill_null(0))
        for (database, table, row_schema), rows in _by_value([*names, ids.dictionary_encode()]):
            for span, mine in self._spans(events, self._sent(database, table, row_schema), rows):
                if span.strange:
                    raise self._unknown(events, int(mine[0]), span)
                if span.row_schema.id == row_schema:
                    continue
                new[mine] = span.row_schema.id
                for i, c in enumerate(span.row_schema.columns):
                    if c.mask is not None:
                        places.setdefault(kind_of(c.mask, sent_type(c)), []).append((mine, i))
        return pa.array(new, pa.int64(), mask=np.array(ids.is_null())), places

    def _spans(self, events: pa.RecordBatch, sent: _Sent, rows: Longs) -> Iterator[tuple[_Span, Longs]]:
        """Yield the rows, grouped by how they are masked."""
        if not sent.spans or not self.names.timed:
            yield sent.ever, rows
            return
        ts = events.column("commit_ts")
        left, when = np.array(ts.is_valid())[rows], np.array(ts.fill_null(0))[rows]
        undated = ~left
        for span in sent.spans:
            inside = left & (when > span.after_ts) & (when <= (np.iinfo(np.int64).max if span.until_ts is None else span.until_ts))
            left &= ~inside
            if inside.any():
                yield span, rows[inside]
        if (left | undated).any():
            yield sent.ever, rows[left | undated]

    def _sent(self, database: str, table: str, row_schema: int) -> _Sent:
        at = (database, table, row_schema)
        if at not in self.sent:
            self.sent[at] = found = self._found(database, table, self.row_schemas[row_schema])
            self.row_schemas.update({s.row_schema.id: s.row_schema for s in (*found.spans, found.ever)})
        return self.sent[at]

    def _found(self, database: str, table: str, plain: RowSchema) -> _Sent:
        name = written(database, table)
        spans = tuple(_span(plain, name, n) for n in self._masked.meant(database, table))
        rules = dict(self._marks.meant(database, table))
        marks = {c.name: mark_at(rules, c.name) for c in plain.columns}
        for span in spans:
            marks |= {c.name: c.mask for c in span.row_schema.columns if c.mask is not None}
        strange = _common(spans) if spans else () if rules else self._like_a_masked_one(database, table, plain)
        return _Sent(spans, _Span(0, None, marked(plain, name, marks), strange))

    def _like_a_masked_one(self, database: str, table: str, plain: RowSchema) -> tuple[str, ...]:
        """Return the masked columns of a table whose columns are all in the schema of an unknown table."""
        if self._others.meant(database, table):
            return ()
        for n in self.names.masked:
            hidden = [c for c, m in n.columns.items() if m is not None]
            if n.until_ts is None and n.whole and hidden and all(_has(plain, c) for c in n.columns):
                return tuple(hidden)
        return ()

    def _unknown(self, events: pa.RecordBatch, row: int, span: _Span) -> OrderError:
        r: dict[str, Any] = {c: events.column(c)[row].as_py() for c in ("topic", "partition", "offset", "database", "table")}
        name, what = written(r["database"], r["table"]), ", ".join(span.strange)
        known = bool(self._masked.meant(r["database"], r["table"]))
        return OrderError(
            f"{name} has {what}, which no statement added, and lacks a masked column: the column may have been renamed"
            if known
            else f"no statement created {name}, and it has the columns of a table with masks ({what}): the table may have been renamed",
            code="MASK_UNKNOWN",
            at=Coordinates(r["topic"], r["partition"], r["offset"]),
            remedy="no row of the hour was written. Write the missing statement (RENAME, ADD COLUMN, CREATE TABLE) into ddl.jsonl "
            f'with its commit_ts, or set a mask in feed.toml ([columns."{name}".…]), then run again (docs/masking.md)',
        )


def _by_value(encoded: Sequence[pa.DictionaryArray]) -> Iterator[tuple[list[Any], Longs]]:
    """Yield the rows by their values in these columns, without rows that have a NULL in one."""
    values = [e.dictionary.to_pylist() for e in encoded]
    code = np.zeros(len(encoded[0]), np.int64)
    if all(len(v) == 1 and not e.indices.null_count for v, e in zip(values, encoded, strict=True)):
        yield [v for (v,) in values], np.arange(len(code))
        return
    for e, v in zip(encoded, values, strict=True):
        at = np.asarray(e.indices.cast(pa.int64()).fill_null(-1))
        code = np.where((code < 0) | (at < 0), -1, code * max(len(v), 1) + at)
    sizes = [max(len(v), 1) for v in values]
    for found in np.unique(code[code >= 0]).tolist():
        places = np.unravel_index(found, sizes)
        yield [v[i] for v, i in zip(values, places, strict=True)], np.flatnonzero(code == found)


def _span(plain: RowSchema, table: str, n: MaskedName) -> _Span:
    own = {c: (m,) for c, m in n.columns.items()}  # a mark of None is known, too
    found = {c.name: mark_at(own, c.name) for c in plain.columns}
    rules = {c: mark_at(n.rules, c) for c, m in found.items() if m is None}
    strange = tuple(c for c, m in rules.items() if m is None)
    marks = {c: rules.get(c) if m is None else m[0] for c, m in found.items()}
    lost = n.before or any(m is not None and not _has(plain, c) for c, m in n.columns.items())
    return _Span(n.after_ts, n.until_ts, marked(plain, table, marks), strange if n.whole and lost else ())


def _has(plain: RowSchema, column: str) -> bool:
    return any(same_name(c.name, column) for c in plain.columns)


def _common(spans: Sequence[_Span]) -> tuple[str, ...]:
    """Return the columns that are strange in all spans."""
    return tuple(c for c in spans[0].strange if all(c in s.strange for s in spans))


def masker(names: MaskNames, key: bytes) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return a function that masks EVENT batches; it changes nothing without masks. Raises ConfigError for a missing or different key."""
    if not names.marks:
        return lambda events: events
    refuse_other_key({m for _, _, m in names.marks}, key)
    return Masker(names, Hashes(key))

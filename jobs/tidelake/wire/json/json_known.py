"""What a JSON scan remembers of the tables it has met: the constant bytes between the values of a row.

Encoders print a table's rows alike but for the values, so a row seen once (by the general reader's means, in Python) lets compiled
code read the next thousands by comparing its constant pieces, byte for byte, and reading one value after each. Nothing is ever
recognised by a hash alone. What does not fit is left to the general reader.

A layout is the columns of one row image in order. An image that has some of a layout's columns, in order (changed columns only,
handle columns only), is a subset of it and has a schema of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.wire.kernels.arrays import Bytes, Ints, Words
from tidelake.wire.kernels.columnar import NONE

TEXTS = 3  # raw texts that name a table, at most
MAX_COLUMNS = 4096  # of a layout; more than MySQL has
MAX_PIECE = 4096  # bytes
MAX_CHAIN = 16  # layouts of one table
MAX_KNOWN = 4096  # tables, layouts and subsets, each
MAX_WORDS = 1 << 19  # of all pieces
MAX_LESSONS = 256  # in one scan


class KnownColumn(NamedTuple):
    """A column of a layout: the bytes before its value, the bytes of its type if they are elsewhere, kind of its cells."""

    piece: bytes
    type_piece: bytes
    kind: int
    described: SchemaColumn


class KnownTable(NamedTuple):
    """A table: the raw texts that name it in a message, and what they mean."""

    raw: tuple[bytes, ...]
    name: tuple[str | None, str | None]


class Arrays(NamedTuple):
    """What compiled code sees. Never written to, so that scans in other threads are not disturbed."""

    words: Words  # of all pieces, each beginning with a word of its own
    masks: Words  # which bits of the words count
    raw_word: Ints  # by table and raw text (TEXTS for each): first word
    raw_length: Ints  # in bytes
    newest: Ints  # by table: layout
    older: Ints  # by layout: layout
    column: Ints  # by layout, and one more: first column
    name_word: Ints  # by column: first word of its piece
    name_length: Ints
    type_word: Ints
    type_length: Ints
    kind: Bytes
    row_schema: Ints  # by layout: of all its columns
    subset_layout: Ints
    subset_column: Ints  # by subset, and one more: into subset_columns
    subset_columns: Ints
    subset_schema: Ints


def _ints(*values: int) -> Ints:
    return np.array(values, np.int32)


def _nothing() -> Arrays:
    nothing = Arrays(*(_ints() for _ in Arrays._fields))  # type: ignore[arg-type]  # three are of other types
    words, kinds = np.zeros(0, np.uint64), np.zeros(0, np.uint8)
    return nothing._replace(words=words, masks=words, kind=kinds, column=_ints(0), subset_column=_ints(0))


@dataclass(frozen=True)
class KnownSchemas:
    """Everything learned so far. Never changed: learning answers a new one."""

    arrays: Arrays = field(default_factory=_nothing)
    names: tuple[tuple[str | None, str | None], ...] = ()
    row_schemas: tuple[RowSchema, ...] = ()
    tables: dict[tuple[bytes, ...], int] = field(default_factory=dict)
    layouts: tuple[tuple[int, tuple[KnownColumn, ...]], ...] = ()  # table and columns
    crowded: bool = False  # a table has more layouts than are searched

    def __reduce__(self) -> tuple[type[KnownSchemas], tuple[()]]:
        """Other processes learn for themselves."""
        return KnownSchemas, ()

    @property
    def full(self) -> bool:
        """Whether it is time to forget."""
        a = self.arrays
        most = max(len(a.newest), len(a.older), len(a.subset_layout), len(a.subset_columns) // 64)
        return self.crowded or most >= MAX_KNOWN or len(a.words) >= MAX_WORDS

    def with_table(self, table: KnownTable) -> KnownSchemas:
        """Also this table."""
        if table.raw in self.tables:
            return self
        raw = table.raw + (b"",) * (TEXTS - len(table.raw))
        arrays, words, lengths = self._with_pieces(raw)
        arrays = arrays._replace(
            raw_word=_and(arrays.raw_word, *words), raw_length=_and(arrays.raw_length, *lengths), newest=_and(arrays.newest, NONE)
        )
        tables = self.tables | {table.raw: len(self.names)}
        return replace(self, arrays=arrays, names=(*self.names, table.name), tables=tables)

    def with_layout(self, table: KnownTable, columns: Sequence[KnownColumn]) -> KnownSchemas:
        """Also this layout, unless the table has one that it is part of, or has or is too much."""
        known = self.with_table(table)
        number = known.tables[table.raw]
        layouts = [known.layouts[i][1] for i in _chain(known.arrays, number)]
        fits = 0 < len(columns) <= MAX_COLUMNS and all(len(c.piece) + len(c.type_piece) <= MAX_PIECE for c in columns)
        if not fits or any(_in_order(columns, layout) for layout in layouts):
            return known
        if len(layouts) == MAX_CHAIN:
            return replace(known, crowded=True)
        arrays, words, lengths = known._with_pieces([c.piece for c in columns] + [c.type_piece for c in columns])
        layout, count = len(known.layouts), len(columns)
        newest = arrays.newest.copy()
        newest[number] = layout
        arrays = arrays._replace(
            newest=newest,
            older=_and(arrays.older, known.arrays.newest[number]),
            column=_and(arrays.column, len(arrays.kind) + count),
            name_word=_and(arrays.name_word, *words[:count]),
            name_length=_and(arrays.name_length, *lengths[:count]),
            type_word=_and(arrays.type_word, *words[count:]),
            type_length=_and(arrays.type_length, *lengths[count:]),
            kind=np.append(arrays.kind, np.array([c.kind for c in columns], np.uint8)),
            row_schema=_and(arrays.row_schema, len(known.row_schemas)),
        )
        row_schemas = (*known.row_schemas, RowSchema(tuple(c.described for c in columns)))
        return replace(known, arrays=arrays, row_schemas=row_schemas, layouts=(*known.layouts, (number, tuple(columns))))

    def with_subset(self, layout: int, columns: Sequence[int]) -> KnownSchemas:
        """Also the images that have these columns of the layout, counted within it."""
        a, described = self.arrays, self.layouts[layout][1]
        arrays = a._replace(
            subset_layout=_and(a.subset_layout, layout),
            subset_column=_and(a.subset_column, len(a.subset_columns) + len(columns)),
            subset_columns=_and(a.subset_columns, *columns),
            subset_schema=_and(a.subset_schema, len(self.row_schemas)),
        )
        return replace(self, arrays=arrays, row_schemas=(*self.row_schemas, RowSchema(tuple(described[i].described for i in columns))))

    def _with_pieces(self, pieces: Sequence[bytes]) -> tuple[Arrays, list[int], list[int]]:
        """The arrays with more pieces, where each of those begins, and its length."""
        a = self.arrays
        words = b"".join(p.ljust(_rounded(p), b"\0") for p in pieces)
        masks = b"".join((b"\xff" * len(p)).ljust(_rounded(p), b"\0") for p in pieces)
        sizes = [0] + [_rounded(p) // 8 for p in pieces]
        extended = a._replace(
            words=np.append(a.words, np.frombuffer(words, "<u8").astype(np.uint64)),
            masks=np.append(a.masks, np.frombuffer(masks, "<u8").astype(np.uint64)),
        )
        return extended, [len(a.words) + n for n in accumulate(sizes[:-1])], [len(p) for p in pieces]


def _rounded(piece: bytes) -> int:
    return -(-len(piece) // 8) * 8


def _and(array: Ints, *values: int) -> Ints:
    return np.append(array, np.array(values, np.int32))


def _chain(arrays: Arrays, table: int) -> Iterable[int]:
    layout = int(arrays.newest[table])
    while layout != NONE:
        yield layout
        layout = int(arrays.older[layout])


def _in_order(some: Sequence[KnownColumn], layout: Sequence[KnownColumn]) -> bool:
    rest = iter(layout)
    return all(column in rest for column in some)


class ScanState(NamedTuple):
    """What compiled code keeps during one scan: guesses that are checked, and room for one image and one message."""

    hints: Ints  # by table: the layout that fitted last
    table_guess: Ints  # by hash of the raw texts
    subset_guess: Ints  # by hash of the columns
    name_guess: Ints  # by hash of a column's name: its place in its layout
    columns: Ints  # of the image just read, counted within its layout
    seen: Ints  # by column of a layout: the last message that gave its type
    spans: npt.NDArray[np.int64]  # parts of one message
    asked: Ints  # layout and number of columns of the subset that is not known


GUESSES = 1 << 12
SPANS = 17


def state() -> ScanState:
    """For one scan."""
    many = 2 * (MAX_KNOWN + MAX_LESSONS)
    hints, tables, subsets = (np.full(n, NONE, np.int32) for n in (many, GUESSES, GUESSES))
    columns, seen = np.zeros(MAX_COLUMNS, np.int32), np.full(MAX_COLUMNS, NONE, np.int32)
    names, spans, asked = np.zeros(GUESSES, np.int32), np.zeros(SPANS, np.int64), np.zeros(2, np.int32)
    return ScanState(hints, tables, subsets, names, columns, seen, spans, asked)

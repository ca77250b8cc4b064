"""Masks follow columns and tables through renames: against a model in plain Python, and what nothing told of stops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake import lakes
from tests.lake.histories import row, row_schema
from tests.wire.event_batches import batch, images
from tidelake.config.feed import Feed
from tidelake.config.policy import ColumnPolicy, Policy
from tidelake.decode.mask_names import mask_names
from tidelake.decode.masker import MaskNames, masker
from tidelake.errors import OrderError
from tidelake.history.ddl.changes import CreateTable
from tidelake.history.ddl.statement import parse
from tidelake.history.evolution import apply
from tidelake.history.incarnations import ALWAYS, Catalog, create
from tidelake.history.window import Statement

KEY = "a key of these tests, long enough"
RULES = {("people", "mail"): "hash", ("people", "note"): "null", ("members", "phone"): "hash"}
TABLES = {"people": ("mail", "note", "x"), "members": ("phone", "mail"), "pets": ("mail", "note", "x", "y")}
NAMES = ("mail", "note", "phone", "x", "y", "tel")
PLACES = ("people", "members", "pets", "persons", "old")
CLEAR = "CLEAR"


def feed(folder: Path = Path("nowhere"), **how: Any) -> Feed:
    columns: dict[str, dict[str, ColumnPolicy]] = {}
    for (table, column), mask in RULES.items():
        columns.setdefault(f"d.{table}", {})[column] = ColumnPolicy(mask=mask)
    return lakes.feed(folder, columns=columns, policy=Policy(mask_key=KEY, **how))


FEED = feed()


@dataclass(eq=False)
class Cell:
    """A column's life upstream: all names that it bore, those of what it was copied from included."""

    names: set[str]


@dataclass(eq=False)
class Held:
    """A table's life upstream."""

    names: set[str]
    cells: dict[str, Cell] = field(default_factory=dict)


@dataclass
class Upstream:
    """What the oracle knows: tables by name; rows as (ts, table, columns, each with whether it was masked then); statements."""

    tables: dict[str, Held] = field(default_factory=dict)
    rows: list[tuple[int, str, list[tuple[str, Cell, Held, bool]]]] = field(default_factory=list)
    said: list[Statement] = field(default_factory=list)
    ts: int = 100

    def say(self, query: str) -> None:
        """After a row in each table, which stands exactly at its commit ts: such rows are older."""
        self.ts += 1
        self._write_at(dict.fromkeys(self.tables, self.ts))
        self.said.append(Statement(commit_ts=self.ts, database="d", query=query))

    def write(self) -> None:
        """A row in each table."""
        self._write_at({name: self.ts + 1 + n for n, name in enumerate(self.tables)})
        self.ts += len(self.tables)

    def _write_at(self, at: Mapping[str, int]) -> None:
        for name, ts in at.items():
            table = self.tables[name]
            self.rows.append((ts, name, [(n, c, table, is_masked(c, table)) for n, c in table.cells.items()]))

    def rename_table(self, a: int, b: int) -> None:
        old, free = sorted(self.tables)[a % len(self.tables)], [p for p in PLACES if p not in self.tables]
        if free:
            self.say(f"RENAME TABLE `{old}` TO `{free[b % len(free)]}`")
            self._call(old, free[b % len(free)])

    def swap_tables(self, a: int, b: int) -> None:
        one, other = sorted(self.tables)[a % len(self.tables)], sorted(self.tables)[b % len(self.tables)]
        if one != other:
            self.say(f"RENAME TABLE `{one}` TO `tmp`, `{other}` TO `{one}`, `tmp` TO `{other}`")
            for old, new in ((one, "tmp"), (other, one), ("tmp", other)):
                self._call(old, new)

    def _call(self, old: str, new: str) -> None:
        self.tables[new] = table = self.tables.pop(old)
        table.names.add(new)

    def rename_column(self, a: int, b: int) -> None:
        name, table = self._one(a)
        free = [n for n in NAMES if n not in table.cells]
        if table.cells and free:
            old, new = sorted(table.cells)[b % len(table.cells)], free[a % len(free)]
            how = f"RENAME COLUMN `{old}` TO `{new}`" if b % 2 else f"CHANGE COLUMN `{old}` `{new}` varchar(99)"
            self.say(f"ALTER TABLE `{name}` {how}")
            self._name(table, old, new)

    def swap_columns(self, a: int, b: int) -> None:
        """As three statements, with no row between them."""
        name, table = self._one(a)
        if len(table.cells) > 1:
            one, other = sorted(table.cells)[b % len(table.cells)], sorted(table.cells)[(b + 1) % len(table.cells)]
            for old, new in ((one, "between"), (other, one), ("between", other)):
                self.say(f"ALTER TABLE `{name}` RENAME COLUMN `{old}` TO `{new}`")
                self._name(table, old, new)

    def _name(self, table: Held, old: str, new: str) -> None:
        table.cells = {new if n == old else n: c for n, c in table.cells.items()}
        table.cells[new].names.add(new)

    def add_column(self, a: int, b: int) -> None:
        name, table = self._one(a)
        if free := [n for n in NAMES if n not in table.cells]:
            self.say(f"ALTER TABLE `{name}` ADD COLUMN `{free[b % len(free)]}` varchar(99)")
            table.cells[free[b % len(free)]] = Cell({free[b % len(free)]})

    def drop_column(self, a: int, b: int) -> None:
        name, table = self._one(a)
        if table.cells:
            gone = sorted(table.cells)[b % len(table.cells)]
            self.say(f"ALTER TABLE `{name}` DROP COLUMN `{gone}`")
            del table.cells[gone]

    def drop_and_create(self, a: int, b: int) -> None:
        name, _ = self._one(a)
        columns = NAMES[: 1 + b % len(NAMES)]
        self.say(f"DROP TABLE `{name}`")
        del self.tables[name]
        self.say(f"CREATE TABLE `{name}` (id bigint PRIMARY KEY, {', '.join(f'`{c}` varchar(99)' for c in columns)})")
        self.tables[name] = Held({name}, {c: Cell({c}) for c in columns})

    def create_like(self, a: int, b: int) -> None:
        source, table = self._one(a)
        if free := [p for p in PLACES if p not in self.tables]:
            name = free[b % len(free)]
            self.say(f"CREATE TABLE `{name}` LIKE `{source}`")
            self.tables[name] = Held({name, *table.names}, {n: Cell(set(c.names)) for n, c in table.cells.items()})

    def _one(self, a: int) -> tuple[str, Held]:
        return sorted(self.tables.items(), key=lambda item: item[0])[a % len(self.tables)]


OPERATIONS = (
    Upstream.rename_table,
    Upstream.swap_tables,
    Upstream.rename_column,
    Upstream.swap_columns,
    Upstream.add_column,
    Upstream.drop_column,
    Upstream.drop_and_create,
    Upstream.create_like,
)
STEPS = st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 29), st.integers(0, 29)), min_size=1, max_size=5)


def created(known: Catalog, query: str) -> Catalog:
    (change,) = parse(query, "d")
    assert isinstance(change, CreateTable)
    return create(known, "d", change.table, change.definition, ALWAYS)


def definitions() -> Catalog:
    """The tables as tables.sql defines them."""
    known = Catalog()
    for name, columns in TABLES.items():
        known = created(known, f"CREATE TABLE d.{name} (id bigint PRIMARY KEY, {', '.join(f'`{c}` varchar(99)' for c in columns)})")
    return known


def after(known: Catalog, said: Iterable[Statement]) -> Catalog:
    """As a cut holds it, once the window with these statements is published."""
    for s in said:
        for change in parse(s.query, s.database):
            known = apply(known, s.commit_ts, change)
    return known.opened()


def is_masked(cell: Cell, table: Held) -> bool:
    """What the feed says of the column, or said of it under another name of it or its table."""
    return any((t, c) in RULES for t in table.names for c in cell.names)


@settings(max_examples=40)
@given(st.lists(st.tuples(STEPS, st.booleans()), min_size=1, max_size=3), st.booleans(), st.randoms(use_true_random=False))
def test_no_value_of_a_masked_column_s_life_is_left_and_no_other_is_touched(hours: Any, defined: bool, rng: Any) -> None:
    upstream, opening = Upstream({t: Held({t}, {c: Cell({c}) for c in cs}) for t, cs in TABLES.items()}), definitions()
    told = 0
    for steps, is_cut in hours:
        upstream.rows.clear()
        upstream.write()
        for operation, a, b in steps:
            operation(upstream, a, b)
            upstream.write()
        names = mask_names(FEED, opening if defined else Catalog(), upstream.said[told:] if defined else upstream.said)
        rng.shuffle(upstream.rows)
        found = _masked(names, upstream)
        if found is None:
            assert not defined, "it stopped"
            return
        for (ts, name, cells), (image, _) in zip(upstream.rows, found, strict=True):
            for (column, cell, table, was_masked), value in zip(cells, image[1:], strict=True):
                hidden = value is None or CLEAR.encode() not in value
                where = (ts, name, column, [s.query for s in upstream.said])
                assert hidden or not was_masked, where
                assert not defined or hidden == is_masked(cell, table), where
        if is_cut:
            opening, told = after(opening, upstream.said[told:]), len(upstream.said)


def _masked(names: MaskNames, upstream: Upstream) -> list[tuple[Any, Any]] | None:
    """The images, None where it is unknown what to mask."""
    try:
        return images(masker(names, KEY.encode())(_sent(upstream)))
    except OrderError as e:
        if e.code == "MASK_UNKNOWN":
            return None
        raise


def _sent(upstream: Upstream) -> Any:
    """The rows as events, each column's text in clear."""
    events = []
    for ts, name, cells in upstream.rows:
        s = row_schema("id bigint", *(f"{n} varchar" for n, *_ in cells))
        events.append(row(0, "insert", ts, s, ("1", *(f"{CLEAR} {n}" for n, *_ in cells)), table=name))
    return batch(*events)


def people(*columns: str, ts: int = 200, table: str = "people") -> Any:
    """A batch with one row."""
    return batch(row(0, "insert", ts, row_schema("id bigint", *(f"{c} varchar" for c in columns)), ("1", *columns), table=table))


def said(*queries: str) -> list[Statement]:
    """At 110, 120, …"""
    return [Statement(commit_ts=110 + 10 * n, database="d", query=q) for n, q in enumerate(queries)]


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        ("people", ("email", "note", "x"), r"d\.people has email, which no statement added, and lacks a masked column"),
        ("humans", ("mail", "note", "x"), r"no statement created d\.humans, and it has the columns of a table with masks \(mail, note\)"),
    ],
)
def test_what_may_be_masked_under_another_name_stops_the_hour(table: str, columns: Sequence[str], message: str) -> None:
    names = mask_names(FEED, definitions())
    with pytest.raises(OrderError, match=message) as error:
        masker(names, KEY.encode())(people(*columns, table=table))
    assert (error.value.code, error.value.exit_code, str(error.value.at)) == ("MASK_UNKNOWN", 3, "t[0]@0")
    assert "ddl.jsonl" in error.value.remedy
    query = f"RENAME TABLE people TO {table}" if table != "people" else "ALTER TABLE people RENAME COLUMN mail TO email"
    ((image, _),) = images(masker(mask_names(FEED, definitions(), said(query)), KEY.encode())(people(*columns, table=table)))
    assert (len(image[1]), image[2], image[3]) == (32, None, b"x")


@pytest.mark.parametrize("columns", [("mail", "note", "x", "added"), ("x",), ()])
def test_more_columns_and_fewer_are_no_other_names(columns: Sequence[str]) -> None:
    (image, _), *_ = images(masker(mask_names(FEED, definitions()), KEY.encode())(people(*columns)))
    assert image[-1] == (columns[-1].encode() if columns else b"1")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("ALTER TABLE people RENAME COLUMN mail TO x, RENAME COLUMN x TO mail", "COLUMN_EXISTS"),
        ("RENAME TABLE people TO pets", "TABLE_EXISTS"),
        ("ALTER TABLE people WITH SYSTEM VERSIONING", "UNSUPPORTED_DDL"),
        ("IMPORT something", "UNSUPPORTED_DDL"),
    ],
)
def test_a_statement_that_cannot_be_followed_stops_the_hour_unless_the_feed_passes_over_it(query: str, code: str) -> None:
    with pytest.raises(OrderError, match="the masked columns of feed shop are unknown after a statement") as error:
        mask_names(FEED, definitions(), said(query))
    assert (error.value.code, error.value.exit_code) == (code, 3)
    assert "`ignore_ddl = [110]` under [policy] in feed.toml" in error.value.remedy
    assert mask_names(feed(ignore_ddl=(110,)), definitions(), said(query)) == mask_names(FEED, definitions())


def test_every_schema_of_masked_rows_comes_once_and_with_the_first_of_its_rows() -> None:
    mask, told, used = masker(mask_names(FEED, definitions()), KEY.encode()), list[int](), set[int]()
    for columns in (("mail", "note", "x"), ("mail", "note", "x"), ("mail", "note", "x", "added"), ("mail", "note", "x")):
        rows = mask(people(*columns))
        new = rows.filter(pc.equal(rows.column("kind"), "row_schema"))
        told += new.column("row_schema").to_pylist()
        used |= {*rows.filter(pc.equal(rows.column("kind"), "row")).column("row_schema").to_pylist()}
        assert used == {*told}
    assert len(told) == len(used) == 2


def test_statements_about_tables_without_masks_stop_nothing() -> None:
    queries = "ALTER TABLE cats RENAME COLUMN b TO c, RENAME COLUMN c TO id", "ALTER TABLE cats RENAME COLUMN a TO b"
    known = created(definitions(), "CREATE TABLE d.cats (id bigint PRIMARY KEY, b text)")
    assert mask_names(FEED, known, said(*queries)).masked == mask_names(FEED, known).masked


@pytest.mark.parametrize("by_offsets", [False, True])
def test_rows_without_a_commit_ts_to_compare_are_masked_if_they_ever_would_be(by_offsets: bool) -> None:
    swapped = "ALTER TABLE people DROP COLUMN note", "ALTER TABLE people RENAME COLUMN x TO note", "ALTER TABLE people ADD COLUMN x text"
    names = mask_names(FEED, definitions(), said(*swapped))
    assert [images(masker(names, KEY.encode())(people("mail", "x", ts=ts)))[0][0][2] for ts in (100, 200)] == [None, b"x"]
    event = people("mail", "x", ts=200)
    if by_offsets:
        names = names.model_copy(update={"timed": False})
    else:
        at = event.schema.get_field_index("commit_ts")
        event = event.set_column(at, event.schema.field(at), pa.nulls(len(event), pa.int64()))
    ((image, _),) = images(masker(names, KEY.encode())(event))
    assert (len(image[1]), image[2]) == (32, None)


def test_a_new_key_keeps_what_is_known_of_a_table_and_what_is_not() -> None:
    told = [(5, "RENAME TABLE people TO persons"), (9, "ALTER TABLE persons ADD PRIMARY KEY (mail)")]
    found = mask_names(FEED, Catalog(), [Statement(commit_ts=ts, database="d", query=q) for ts, q in told])
    of_persons = [n for n in found.masked if n.table == "persons" and not n.before]
    assert [(n.after_ts, n.until_ts, n.whole) for n in of_persons] == [(5, 9, False), (9, None, False)]
    assert {tuple(sorted(n.columns)) for n in of_persons} == {("mail", "note")}

"""The lives of tables, by statements and against a small model that replays them on plain dicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelake.ddl import parse
from tidelake.errors import OrderError
from tidelake.incarnations import ALWAYS, Catalog, Column, Incarnation, Name, apply

SHOP = "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20), total DECIMAL(10,2))"


def after(*statements: tuple[int, str], catalog: Catalog | None = None) -> Catalog:
    """The catalog after statements in database `shop`."""
    catalog = catalog or Catalog()
    for ts, query in statements:
        for change in parse(query, "shop"):
            catalog = apply(catalog, ts, change)
    return catalog


def refused(*statements: tuple[int, str], catalog: Catalog | None = None) -> OrderError:
    """The error of the last statement."""
    before = after(*statements[:-1], catalog=catalog)
    with pytest.raises(OrderError) as error:
        after(statements[-1], catalog=before)
    return error.value


def only(catalog: Catalog) -> Incarnation:
    (found,) = catalog.incarnations.values()
    return found


def names(columns: tuple[Column, ...]) -> list[str]:
    return [c.name for c in columns]


def row_columns(i: Incarnation, ts: int) -> list[str]:
    """The columns of a row at ts: a statement at ts is not in force yet."""
    (segment,) = [s for s in i.segments if s.after_ts < ts and (s.until_ts is None or ts <= s.until_ts)]
    return names(segment.columns)


# names


def test_a_table_holds_rows_after_its_create() -> None:
    catalog = after((100, SHOP))
    assert catalog.at("shop", "orders", 100) is None
    assert catalog.at("shop", "orders", 101) is only(catalog)
    assert (only(catalog).from_ts, only(catalog).name, only(catalog).id) == (100, "shop.orders", "shop.orders@100")


def test_a_row_exactly_at_a_statement_is_older_and_an_asof_there_is_younger() -> None:
    catalog = after((1, SHOP), (100, "RENAME TABLE orders TO sales"))
    i = only(catalog)
    assert (catalog.at("shop", "orders", 100), catalog.at("shop", "sales", 100)) == (i, None)
    assert (catalog.at("shop", "orders", 101), catalog.at("shop", "sales", 101)) == (None, i)
    assert (catalog.asof("shop", "orders", 99), catalog.asof("shop", "orders", 100)) == (i, None)
    assert catalog.asof("shop", "sales", 100) is i


def test_a_dropped_table_s_last_row_is_at_the_drop() -> None:
    catalog = after((1, SHOP), (100, "DROP TABLE orders"))
    assert catalog.at("shop", "orders", 100) is only(catalog)
    assert catalog.at("shop", "orders", 101) is None
    assert catalog.asof("shop", "orders", 99) is only(catalog)
    assert catalog.asof("shop", "orders", 100) is None
    assert (only(catalog).dropped_ts, catalog.alive()) == (100, [])


def test_drop_and_create_of_one_name_are_two_lives_of_rows() -> None:
    catalog = after((1, SHOP), (100, "DROP TABLE orders"), (105, "CREATE TABLE orders (a INT)"))
    old, new = catalog.incarnations.values()
    assert [catalog.at("shop", "orders", ts) for ts in (100, 101, 105, 106)] == [old, None, None, new]
    assert (old.id, new.id) == ("shop.orders@1", "shop.orders@105")
    assert (names(old.columns), names(new.columns)) == (["id", "note", "total"], ["a"])


def test_lives_born_at_one_ts_have_different_ids() -> None:
    born = (100, SHOP), (100, "DROP TABLE orders")
    catalog = after(*born, *born, (100, SHOP))
    assert list(catalog.incarnations) == ["shop.orders@100", "shop.orders@100#1", "shop.orders@100#2"]
    assert catalog.at("shop", "orders", 101) is catalog.incarnations["shop.orders@100#2"]


def test_names_ignore_case() -> None:
    catalog = after((1, "CREATE TABLE Shop.Orders (Id INT PRIMARY KEY)"), (2, "ALTER TABLE SHOP.ORDERS RENAME COLUMN ID TO Key_"))
    assert catalog.find("sHOP", "oRDERS") is only(catalog)
    assert catalog.at("shop", "ORDERS", 3) is only(catalog)
    assert only(catalog).column("KEY_") == only(catalog).columns[0]


def test_a_table_may_change_the_case_of_its_name() -> None:
    catalog = after((1, SHOP), (5, "RENAME TABLE orders TO Orders"))
    assert only(catalog).name == "shop.Orders"
    assert [n.until_ts for n in only(catalog).names] == [5, None]


def test_dots_in_names_are_part_of_them() -> None:
    catalog = after((1, "CREATE TABLE `a.b`.`c` (x INT)"), (2, "CREATE TABLE `a`.`b.c` (y INT)"))
    one, other = catalog.incarnations.values()
    assert (catalog.find("a.b", "c"), catalog.find("a", "b.c")) == (one, other)


def test_a_rename_moves_a_table_between_databases() -> None:
    catalog = after((1, SHOP), (5, "RENAME TABLE orders TO archive.orders"), (9, "DROP DATABASE shop"))
    assert only(catalog).names == (
        Name(database="shop", table="orders", after_ts=1, until_ts=5),
        Name(database="archive", table="orders", after_ts=5),
    )
    assert catalog.alive() == [only(catalog)]


def test_dropping_a_database_ends_its_tables_and_no_others() -> None:
    catalog = after((1, SHOP), (2, "CREATE TABLE t (a INT)"), (3, "CREATE TABLE other.t (a INT)"), (9, "DROP DATABASE SHOP"))
    assert {i.name: i.dropped_ts for i in catalog.incarnations.values()} == {"shop.orders": 9, "shop.t": 9, "other.t": None}


def test_three_renames_at_one_ts_swap_two_tables() -> None:
    queries = ["RENAME TABLE a TO tmp", "RENAME TABLE b TO a", "RENAME TABLE tmp TO b"]
    catalog = after((1, "CREATE TABLE a (x INT)"), (2, "CREATE TABLE b (y INT)"), *((50, q) for q in queries))
    a, b = catalog.incarnations.values()
    assert [catalog.at("shop", "a", ts) for ts in (50, 51)] == [a, b]
    assert [catalog.at("shop", "b", ts) for ts in (50, 51)] == [b, a]
    assert {catalog.at("shop", "tmp", ts) for ts in (49, 50, 51)} == {None}
    assert catalog.asof("shop", "a", 50) is b
    assert after((1, "CREATE TABLE a (x INT)"), (2, "CREATE TABLE b (y INT)"), (50, "RENAME TABLE a TO tmp, b TO a, tmp TO b")) == catalog


def test_a_name_that_is_taken_is_not_given_twice() -> None:
    error = refused((1, SHOP), (2, "CREATE TABLE t (a INT)"), (3, "RENAME TABLE t TO ORDERS"))
    assert (error.code, error.message) == ("TABLE_EXISTS", "shop.orders is there already, shop.t cannot take its name")


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE x",
        "TRUNCATE x",
        "RENAME TABLE x TO y",
        "ALTER TABLE x ADD a INT",
        "ALTER TABLE x ADD a TIMESTAMP DEFAULT CURRENT_TIMESTAMP",
        "ALTER TABLE x DROP a",
        "ALTER TABLE x MODIFY a INT",
        "ALTER TABLE x RENAME COLUMN a TO b",
        "ALTER TABLE x ADD UNIQUE (a)",
        "ALTER TABLE x DROP INDEX a",
        "ALTER TABLE x RENAME INDEX a TO b",
        "CREATE TABLE y LIKE x",
        "DROP DATABASE x",
        "CREATE VIEW v AS SELECT 1",
        "ALTER TABLE orders COMMENT 'x'",
    ],
)
def test_statements_about_unknown_tables_and_harmless_ones_have_no_effect(query: str) -> None:
    before = after((1, SHOP))
    assert after((2, query), catalog=before) == before


def test_a_statement_that_cannot_be_followed_is_refused() -> None:
    error = refused((1, SHOP), (2, "ALTER TABLE orders DROP PARTITION p"))
    assert (error.code, error.message) == ("UNSUPPORTED_DDL", "this version cannot follow ALTER TABLE … DROP PARTITION")


# creating what is there


def defined(query: str) -> Catalog:
    """As tables.sql defines it: before every row."""
    return after((ALWAYS, query))


@pytest.mark.parametrize(
    "query",
    [
        SHOP,
        "CREATE TABLE Orders (ID INT(11) PRIMARY KEY, note VARCHAR(20) NOT NULL DEFAULT 'x', total NUMERIC(10,2), KEY k (note))",
        "CREATE TABLE orders (id INT, note VARCHAR(20), v INT AS (id) VIRTUAL, total DECIMAL(10,2), PRIMARY KEY (id))",
        "CREATE TABLE IF NOT EXISTS orders (quite_other INT)",
    ],
)
def test_the_create_of_a_table_that_tables_sql_defines_alike_changes_nothing(query: str) -> None:
    before = defined(SHOP)
    assert after((100, query), catalog=before) == before
    assert before.at("shop", "orders", 1) is only(before)


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20))",
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, note VARCHAR(20), total DECIMAL(10,2))",
        "CREATE TABLE orders (id INT, note VARCHAR(20), total DECIMAL(10,2))",
        "CREATE TABLE orders (id INT, note VARCHAR(20), total DECIMAL(10,2), PRIMARY KEY (id, note))",
    ],
)
def test_the_create_of_a_table_that_tables_sql_defines_otherwise_is_refused(query: str) -> None:
    error = refused((100, query), catalog=defined(SHOP))
    said = "shop.orders is there already, as tables.sql defines it, with other columns or another key"
    assert (error.code, error.message) == ("TABLE_EXISTS", said)
    assert "since TSO 5, with other" in refused((5, SHOP), (100, query)).message


def test_a_table_like_another_takes_its_columns_and_key_but_not_its_history() -> None:
    source = "CREATE TABLE a (x INT, k INT NOT NULL, v INT AS (x) VIRTUAL, UNIQUE u (k))"
    catalog = after((1, source), (2, "ALTER TABLE a ADD n INT NOT NULL DEFAULT 5"), (3, "CREATE TABLE b LIKE a"))
    a, b = catalog.incarnations.values()
    assert [(c.name, c.type, c.nullable) for c in b.columns] == [(c.name, c.type, c.nullable) for c in a.columns]
    assert [(c.since_ts, c.default) for c in b.columns] == [(ALWAYS, None)] * 3
    assert (b.key, b.key_index, b.from_ts) == ((2,), "u", 3)
    assert refused((4, "DROP INDEX u ON b"), catalog=catalog).code == "UNSUPPORTED_DDL"


# columns


def altered(*clauses: str, table: str = SHOP) -> Incarnation:
    """The table after one ALTER a clause, at 10, 20, …"""
    return only(after((1, table), *((10 * n, f"ALTER TABLE orders {c}") for n, c in enumerate(clauses, 1))))


def test_an_added_column_is_in_rows_after_its_statement() -> None:
    i = altered("ADD COLUMN extra INT NOT NULL DEFAULT 7")
    assert [row_columns(i, ts) for ts in (2, 10, 11)] == [["id", "note", "total"]] * 2 + [["id", "note", "total", "extra"]]
    assert [names(i.columns_at(ts)) for ts in (9, 10)] == [["id", "note", "total"], ["id", "note", "total", "extra"]]
    added = i.column("extra")
    assert (added.id, added.since_ts, added.default, added.nullable) == (4, 10, "7", False)


@pytest.mark.parametrize(
    ("clause", "wanted"),
    [
        ("ADD x INT FIRST", ["x", "id", "note", "total"]),
        ("ADD x INT AFTER ID", ["id", "x", "note", "total"]),
        ("ADD x INT AFTER total", ["id", "note", "total", "x"]),
        ("ADD x INT FIRST, ADD y INT AFTER x", ["x", "y", "id", "note", "total"]),
        ("MODIFY total INT FIRST", ["total", "id", "note"]),
        ("MODIFY id INT AFTER total", ["note", "total", "id"]),
        ("CHANGE id nr INT AFTER note", ["note", "nr", "total"]),
        ("MODIFY note TEXT", ["id", "note", "total"]),
        ("DROP note", ["id", "total"]),
        ("DROP IF EXISTS nothing", ["id", "note", "total"]),
        ("ADD v INT AS (id) VIRTUAL", ["id", "note", "total"]),
        ("ADD note INT", ["id", "note", "total"]),  # rows may have shown it before its statement came
        ("ADD x INT AFTER virtual_one", ["id", "note", "total", "x"]),  # virtual columns have no place here
    ],
)
def test_columns_stand_in_the_table_s_order(clause: str, wanted: list[str]) -> None:
    assert names(altered(clause).columns) == wanted


def test_a_column_keeps_its_id_through_every_change_and_no_other_gets_it() -> None:
    i = altered("RENAME COLUMN note TO remark", "CHANGE remark text BIGINT UNSIGNED", "DROP total", "ADD total INT", "ADD note INT")
    assert {c.name: c.id for c in i.columns} == {"id": 1, "text": 2, "total": 4, "note": 5}
    assert i.column("text").former == ("note", "remark")
    assert i.column("text").type.name == "bigint unsigned"
    assert i.next_column == 6


def test_a_column_can_take_a_name_that_another_gave_up() -> None:
    i = altered("DROP note", "RENAME COLUMN total TO note")
    assert [(c.id, c.name) for c in i.columns] == [(1, "id"), (3, "note")]
    assert [[(c.id, c.name) for c in s.columns] for s in i.segments] == [
        [(1, "id"), (2, "note"), (3, "total")],
        [(1, "id"), (3, "total")],
        [(1, "id"), (3, "note")],
    ]


@pytest.mark.parametrize(
    "clause", ["RENAME COLUMN total TO NOTE", "CHANGE total note INT", "RENAME COLUMN note TO total, RENAME COLUMN total TO note"]
)
def test_two_columns_never_share_a_name(clause: str) -> None:
    error = refused((1, SHOP), (2, f"ALTER TABLE orders {clause}"))
    assert error.code == "COLUMN_EXISTS"
    assert error.message.startswith("shop.orders has a column '")


def test_statements_at_one_ts_leave_no_empty_segment() -> None:
    i = only(
        after((1, SHOP), (10, "ALTER TABLE orders ADD a INT"), (10, "ALTER TABLE orders ADD b INT"), (10, "ALTER TABLE orders DROP a"))
    )
    assert [(s.after_ts, s.until_ts, names(s.columns)) for s in i.segments] == [
        (1, 10, ["id", "note", "total"]),
        (10, None, ["id", "note", "total", "b"]),
    ]


def test_a_statement_at_the_table_s_birth_leaves_no_empty_segment() -> None:
    i = only(after((1, SHOP), (1, "ALTER TABLE orders ADD a INT")))
    assert [(s.after_ts, names(s.columns)) for s in i.segments] == [(1, ["id", "note", "total", "a"])]


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("ADD x TIMESTAMP DEFAULT CURRENT_TIMESTAMP", "UNSUPPORTED_DDL"),
        ("ADD x INT AS (id) STORED", "UNSUPPORTED_DDL"),
        ("DROP ID", "UNSUPPORTED_DDL"),
        ("MODIFY missing INT", "UNKNOWN_COLUMN"),
        ("CHANGE missing x INT", "UNKNOWN_COLUMN"),
        ("RENAME COLUMN missing TO x", "UNKNOWN_COLUMN"),
        ("ADD PRIMARY KEY (note)", "UNSUPPORTED_DDL"),
        ("DROP INDEX `primary`", "UNSUPPORTED_DDL"),
    ],
)
def test_what_would_have_to_be_guessed_is_refused(clause: str, code: str) -> None:
    assert refused((1, SHOP), (2, f"ALTER TABLE orders {clause}")).code == code


def test_an_unknown_column_is_told_with_those_there_are() -> None:
    assert refused((1, SHOP), (2, "ALTER TABLE orders MODIFY x INT")).message == "shop.orders has no column 'x': id, note, total"


def test_a_column_of_the_primary_key_is_never_null_whatever_a_modify_says() -> None:
    assert altered("MODIFY id BIGINT").column("id").nullable is False
    assert altered("MODIFY note TEXT NOT NULL").column("note").nullable is False


# keys

UNIQUE = "CREATE TABLE orders (a INT NOT NULL, b INT NOT NULL, c INT, v INT AS (a) VIRTUAL NOT NULL, UNIQUE ab (a, b))"


@pytest.mark.parametrize(
    ("clause", "follows"),
    [
        ("ADD UNIQUE (c)", True),  # c may be NULL
        ("ADD UNIQUE (b, a)", True),  # not smaller
        ("ADD UNIQUE (v)", True),  # never sent, so never a handle
        ("ADD UNIQUE ((a + 1))", True),
        ("ADD UNIQUE (b)", False),
        ("DROP INDEX ab", False),
        ("DROP INDEX AB", False),
        ("DROP INDEX other", True),
        ("RENAME INDEX ab TO x, DROP INDEX ab", True),
        ("RENAME INDEX ab TO x, DROP INDEX x", False),
        ("MODIFY a INT", False),  # it may be NULL now
        ("MODIFY a BIGINT NOT NULL", True),
        ("DROP b", False),
    ],
)
def test_a_table_whose_handle_would_change_is_not_followed(clause: str, follows: bool) -> None:
    before = after((1, UNIQUE))
    assert only(before).key == (1, 2)
    if follows:
        assert only(after((2, f"ALTER TABLE orders {clause}"), catalog=before)).key == (1, 2)
    else:
        assert refused((2, f"ALTER TABLE orders {clause}"), catalog=before).code == "UNSUPPORTED_DDL"


def test_a_primary_key_stays_the_handle_whatever_indexes_come() -> None:
    assert altered("ADD UNIQUE (total)", "MODIFY total INT NOT NULL", "ADD UNIQUE t2 (total)").key == (1,)


def test_a_table_without_a_key_would_take_the_first_that_fits() -> None:
    keyless = "CREATE TABLE orders (a INT, b INT NOT NULL)"
    assert only(after((1, keyless), (2, "ALTER TABLE orders ADD UNIQUE (a)"))).key == ()
    assert (
        refused((1, keyless), (2, "CREATE UNIQUE INDEX u ON orders (b)")).message
        == "the unique index 'u' becomes the handle of shop.orders"
    )


# truncations


def test_rows_up_to_and_including_a_truncate_leave() -> None:
    catalog = after((1, SHOP), (100, "TRUNCATE orders"), (200, "TRUNCATE TABLE orders"))
    i = only(catalog)
    assert [i.truncated(ts) for ts in (99, 100, 199, 200, 300)] == [ALWAYS, 100, 100, 200, 200]
    assert catalog.at("shop", "orders", 150) is i


def test_the_next_window_starts_without_what_no_later_row_meets() -> None:
    catalog = after((1, SHOP), (5, "TRUNCATE orders"), (6, "ALTER TABLE orders ADD x INT"), (7, "RENAME TABLE orders TO sales"))
    i = only(catalog.opened())
    assert (i.truncations, len(i.segments), i.columns) == ((), 1, only(catalog).columns)
    assert i.names == only(catalog).names


# against a model that replays statements on dicts

DATABASES = ("shop", "other")
TABLES = ("t", "u", "v")
COLUMNS = ("w", "x", "y", "z")
Place = tuple[str, str]


@dataclass
class Table:
    """A life number, and the columns in order as [number of the column in the life, name]."""

    life: int
    columns: list[list[object]]
    made: int = 2

    @property
    def free(self) -> list[str]:
        return [c for c in COLUMNS if c not in [name for _, name in self.columns]]

    @property
    def others(self) -> list[str]:
        return [str(name) for _, name in self.columns if name != "k"]

    def find(self, name: str) -> list[object]:
        return next(c for c in self.columns if c[1] == name)

    def new(self, name: str) -> list[object]:
        self.made += 1
        return [self.made, name]


State = dict[Place, tuple[int, list[tuple[int, str]]]]


@dataclass
class Model:
    """Tables by name, and how they stood after every statement."""

    tables: dict[Place, Table] = field(default_factory=dict)
    lives: int = 0
    states: list[tuple[int, State]] = field(default_factory=list)

    def record(self, ts: int) -> None:
        self.states.append((ts, {n: (t.life, [(int(str(i)), str(c)) for i, c in t.columns]) for n, t in self.tables.items()}))

    def of_row(self, ts: int) -> State:
        """What a row at ts meets: statements before ts."""
        return next((s for at, s in reversed(self.states) if at < ts), {})

    def asof(self, ts: int) -> State:
        return next((s for at, s in reversed(self.states) if at <= ts), {})


Draw = Callable[[st.SearchStrategy[str]], str]


def create(draw: Draw, m: Model, at: Place) -> str:
    if at in m.tables:
        del m.tables[at]
        return f"DROP TABLE {at[0]}.{at[1]}"
    m.lives += 1
    m.tables[at] = Table(m.lives, [[1, "k"], [2, "w"]])
    return f"CREATE TABLE {at[0]}.{at[1].upper()} (k INT PRIMARY KEY, w INT)"


def rename(draw: Draw, m: Model, at: Place) -> str:
    to = (draw(st.sampled_from(DATABASES)), draw(st.sampled_from(TABLES)))
    if at not in m.tables:
        return f"ALTER TABLE {at[0]}.{at[1]} RENAME {at[0]}.nobody"
    if to in m.tables and to != at:
        m.tables[at], m.tables[to] = m.tables[to], m.tables[at]
        a, b = ".".join(at), ".".join(to)
        return f"RENAME TABLE {a} TO shop.tmp, {b} TO {a}, shop.tmp TO {b}"
    m.tables[to] = m.tables.pop(at)
    return f"RENAME TABLE {at[0]}.{at[1]} TO {to[0]}.{to[1]}"


def add(draw: Draw, m: Model, at: Place) -> str:
    start = f"ALTER TABLE {at[0]}.{at[1]} ADD COLUMN"
    t = m.tables.get(at)
    if t is None or not t.free:
        return f"{start} k INT"
    name, where = draw(st.sampled_from(t.free)), draw(st.sampled_from(["", "FIRST", *(str(n) for _, n in t.columns)]))
    position = len(t.columns) if where == "" else 0 if where == "FIRST" else t.columns.index(t.find(where)) + 1
    t.columns.insert(position, t.new(name))
    return f"{start} {name} INT {'' if where in ('', 'FIRST') else 'AFTER '}{where}"


def drop(draw: Draw, m: Model, at: Place) -> str:
    start = f"ALTER TABLE {at[0]}.{at[1]} DROP COLUMN"
    t = m.tables.get(at)
    if t is None or not t.others:
        return f"{start} nothing"
    name = draw(st.sampled_from(t.others))
    t.columns.remove(t.find(name))
    return f"{start} {name.upper()}"


def change(draw: Draw, m: Model, at: Place) -> str:
    start = f"ALTER TABLE {at[0]}.{at[1]}"
    t = m.tables.get(at)
    if t is None or not t.others or not t.free:
        return f"{start} COMMENT 'nothing'"
    name, to = draw(st.sampled_from(t.others)), draw(st.sampled_from(t.free))
    column = t.find(name)
    column[1] = to
    if draw(st.sampled_from(["rename", "change"])) == "rename":
        return f"{start} RENAME COLUMN {name} TO {to}"
    t.columns.remove(column)
    t.columns.insert(0, column)
    return f"{start} CHANGE {name} {to} BIGINT FIRST"


def clear(draw: Draw, m: Model, at: Place) -> str:
    for name in [n for n in m.tables if n[0] == at[0]]:
        del m.tables[name]
    return f"DROP DATABASE {at[0]}"


STEPS = [create] * 4 + [rename] * 3 + [add] * 3 + [drop] * 2 + [change] * 3 + [clear]


@settings(max_examples=300)
@given(st.data())
def test_random_statements_give_the_lives_that_replaying_them_gives(data: st.DataObject) -> None:
    model, catalog, ts = Model(), Catalog(), 10
    for _ in range(data.draw(st.integers(1, 25))):
        ts += data.draw(st.integers(0, 2))
        at = (data.draw(st.sampled_from(DATABASES)), data.draw(st.sampled_from(TABLES)))
        query = data.draw(st.sampled_from(STEPS))(data.draw, model, at)
        model.record(ts)
        catalog = after((ts, query), catalog=catalog)
    lives: dict[int, str] = {}
    for moment in range(8, ts + 3):
        for database in DATABASES:
            for table in TABLES:
                found = catalog.at(database, table, moment)
                check(lives, found, model.of_row(moment).get((database, table)), lambda i, m=moment: row_ids(i, m))
                found = catalog.asof(database, table, moment)
                wanted = model.asof(moment).get((database, table))
                check(lives, found, wanted, lambda i, m=moment: [(c.id, c.name) for c in i.columns_at(m)])
    assert len(set(lives.values())) == len(lives)
    assert {(i.names[-1].database.lower(), i.names[-1].table.lower()) for i in catalog.alive()} == set(model.tables)
    assert all(catalog.opened().at(*place, ts + 1).id == lives[t.life] for place, t in model.tables.items())


def row_ids(i: Incarnation, ts: int) -> list[tuple[int, str]]:
    (segment,) = [s for s in i.segments if s.after_ts < ts and (s.until_ts is None or ts <= s.until_ts)]
    return [(c.id, c.name) for c in segment.columns]


def check(
    lives: dict[int, str],
    found: Incarnation | None,
    wanted: tuple[int, list[tuple[int, str]]] | None,
    columns: Callable[[Incarnation], list[tuple[int, str]]],
) -> None:
    """The same life, with the same columns in the same order."""
    if wanted is None:
        assert found is None
        return
    assert found is not None
    life, of_model = wanted
    assert lives.setdefault(life, found.id) == found.id
    assert columns(found) == of_model

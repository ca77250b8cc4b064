"""A window's statements and first sights → the catalog at its end and the ledger."""

from __future__ import annotations

import pytest

from tests.history.windows import ID, compiled, known, only, row_schema, said, seen
from tidelake.config.policy import Policy
from tidelake.errors import OrderError
from tidelake.history.ddl.column_types import MysqlType, lake_type
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.history.incarnations import ALWAYS, Catalog, Incarnation
from tidelake.history.window import LedgerEntry, SchemaMismatch, Statement, compile_window, sent_type
from tidelake.tso import from_ms, show


def names(i: Incarnation) -> list[str]:
    return [c.name for c in i.columns]


# statements


def test_statements_are_carried_out_in_order_of_their_commit_ts_and_of_arrival_where_that_is_equal() -> None:
    swap = [said(50, "RENAME TABLE a TO tmp"), said(50, "RENAME TABLE b TO a"), said(50, "RENAME TABLE tmp TO b")]
    births = [said(9, "CREATE TABLE b (y INT)"), said(8, "CREATE TABLE a (x INT)")]
    catalog, ledger = compiled([*swap, *births], [])
    assert {i.name: names(i) for i in catalog.incarnations.values()} == {"shop.b": ["x"], "shop.a": ["y"]}
    assert ledger == ["8 applied", "9 applied", "50 applied", "50 applied", "50 applied"]


def test_the_ledger_says_what_was_done_about_every_statement() -> None:
    statements = [
        said(1, "CREATE TABLE orders (id INT)"),
        said(2, "CREATE INDEX i ON orders (id)"),
        said(3, "DROP TABLE unknown"),
        said(4, "ALTER TABLE orders DROP PARTITION p"),
        said(5, "TRUNCATE orders", "elsewhere"),
    ]
    catalog, ledger, _ = compile_window(Catalog(), statements, [], Policy(ignore_ddl=(4,)))
    assert [(e.commit_ts, e.database, e.query) for e in ledger] == [(s.commit_ts, s.database, s.query) for s in statements]
    assert [e.effect for e in ledger] == ["applied", "no effect", "no effect", "ignored", "no effect"]
    assert only(catalog).truncations == ()


def test_the_identity_of_a_statement_is_its_commit_ts_and_text() -> None:
    assert said(5, "DROP TABLE a").identity == said(5, "DROP TABLE a", "copy").identity == (5, "DROP TABLE a")
    assert said(5, "DROP TABLE b").identity != said(5, "DROP TABLE a").identity


def test_an_alter_is_applied_whole_or_not_at_all() -> None:
    before = known()
    broken = said(5, "ALTER TABLE orders ADD b INT, DROP PARTITION p")
    catalog, ledger = compiled([broken], [], before, ddl="ignore")
    assert (catalog, ledger) == (before, ["5 ignored"])


TSO = from_ms(1767614400000, 7)


@pytest.mark.parametrize(
    ("query", "code", "what"),
    [
        ("INSERT INTO orders SELECT 1", "UNSUPPORTED_DDL", "this version cannot follow INSERT INTO orders"),
        (
            "ALTER TABLE orders DROP PARTITION p",
            "UNSUPPORTED_DDL",
            "the rows of partition 'p' of shop.orders cannot be determined: its partitioning is unknown, or not by plain columns",
        ),
        ("ALTER TABLE orders DROP id", "UNSUPPORTED_DDL", "column 'id' is part of the key of shop.orders"),
        ("ALTER TABLE orders MODIFY x INT", "UNKNOWN_COLUMN", "shop.orders has no column 'x': id, a"),
        (
            "CREATE TABLE orders (x INT)",
            "TABLE_EXISTS",
            "shop.orders already exists, as tables.sql defines it, with other columns or another key",
        ),
        ("DROP TABLE", "CONTRACT", "the statement ends too early: 'DROP TABLE'"),
    ],
)
def test_a_statement_that_cannot_be_followed_stops_the_window_and_says_how_to_go_on(query: str, code: str, what: str) -> None:
    with pytest.raises(OrderError) as error:
        compiled([said(TSO, query)], [], known())
    assert (error.value.code, error.value.exit_code) == (code, 3)
    assert error.value.message == f"{what}: {query!r} in 'shop' at TSO {show(TSO)}"
    assert f"`ignore_ddl = [{TSO}]` under [policy] in feed.toml" in error.value.remedy


@pytest.mark.parametrize("query", ["TRUNCATE orders", "DROP TABLE IF EXISTS shop.other, orders", "CREATE OR REPLACE TABLE orders (x INT)"])
def test_a_table_without_a_database_in_a_statement_without_one_stops_the_window(query: str) -> None:
    with pytest.raises(OrderError, match="nothing says in which database it looks for table 'orders'") as error:
        compiled([said(TSO, query, "")], [], known())
    assert error.value.code == "UNSUPPORTED_DDL"
    assert compiled([said(5, "CREATE INDEX i ON orders (a)", ""), said(6, "TRUNCATE shop.orders", "")], [], known())[1] == [
        "5 no effect",
        "6 applied",
    ]


def test_a_statement_to_be_ignored_is_not_even_read() -> None:
    catalog, ledger = compiled([said(7, "not ' SQL"), said(8, "ALTER TABLE orders ADD b INT")], [], known(), ignore_ddl=(7,))
    assert (names(only(catalog)), ledger) == (["id", "a", "b"], ["7 ignored", "8 applied"])


def test_the_policy_strict_lets_only_harmless_statements_pass() -> None:
    assert compiled([said(5, "ALTER TABLE orders COMMENT 'x'")], [], known(), ddl="strict")[1] == ["5 no effect"]
    with pytest.raises(OrderError, match="the feed's policy is ddl = strict") as error:
        compiled([said(5, "ALTER TABLE orders ADD b INT")], [], known(), ddl="strict")
    assert error.value.code == "DDL_REFUSED"
    assert compiled([said(5, "ALTER TABLE orders ADD b INT")], [], known(), ddl="strict", ignore_ddl=(5,))[1] == ["5 ignored"]


def test_the_policy_strict_lets_pass_what_has_no_effect_though_it_might_have() -> None:
    quiet = [said(5, "ALTER TABLE orders ADD UNIQUE u (a)"), said(6, "DROP TABLE unknown"), said(7, "DROP INDEX i ON orders")]
    assert compiled(quiet, [], known(), ddl="strict")[1] == ["5 no effect", "6 no effect", "7 no effect"]


def test_the_ledger_says_why_a_statement_was_ignored_and_which_tables_one_changed() -> None:
    broken, swap = "ALTER TABLE orders FROBNICATE", "RENAME TABLE orders TO t, u TO orders"
    before = compiled([said(1, "CREATE TABLE u (a INT)")], [], known())[0]
    _, ledger, _ = compile_window(before, [said(5, broken), said(6, swap), said(7, "x")], [], Policy(ddl="ignore", ignore_ddl=(7,)))
    assert [(e.why, e.tables) for e in ledger] == [
        ("UNSUPPORTED_DDL: this version cannot follow ALTER TABLE … FROBNICATE", ()),
        ("", ("shop.orders@-1", "shop.u@1")),
        ("ignore_ddl contains its commit ts", ()),
    ]


def test_a_statement_recorded_by_hand_takes_the_place_of_one_that_is_ignored() -> None:
    sent = said(5, "ALTER TABLE orders ADD at DATETIME DEFAULT CURRENT_TIMESTAMP")
    ours = Statement(commit_ts=5, database="shop", query="ALTER TABLE orders ADD at DATETIME DEFAULT '2026-01-05 10:00:00'", recorded=True)
    catalog, ledger = compiled([sent, ours], [], known(), ignore_ddl=(5,))
    assert (only(catalog).column("at").default, ledger) == ("2026-01-05 10:00:00", ["5 ignored", "5 applied"])


@pytest.mark.parametrize(
    ("first", "last", "table", "same"),
    [
        (8, 9, "orders", True),  # of the life before
        (30, 40, "orders", True),  # after the statement
        (8, 40, "orders", False),  # may have been between
        (15, 15, "orders", False),
        (15, 15, "other", True),
    ],
)
def test_a_table_is_without_rows_only_if_none_can_have_been_there(first: int, last: int, table: str, same: bool) -> None:
    life = [said(9, "DROP TABLE orders"), said(10, "CREATE TABLE orders (id BIGINT)"), said(20, "ALTER TABLE orders ADD PRIMARY KEY (id)")]
    rows = [seen(first, last, RowSchema((ID,)), table)]
    keyed = compiled(life, rows, known())[0].find("shop", "orders")
    assert keyed is not None
    assert (keyed.key, keyed.empty) == ((1,), table == "other" or last < 10)
    assert (keyed.from_ts, keyed.rekey is None) == ((10, True) if same else (20, False))


def test_the_policy_ignore_passes_over_what_it_cannot_follow_and_follows_the_rest() -> None:
    statements = [said(5, "ALTER TABLE orders DROP PARTITION p"), said(6, "ALTER TABLE orders ADD b INT"), said(7, "DROP TABLE")]
    catalog, ledger = compiled(statements, [], known(), ddl="ignore")
    assert (names(only(catalog)), ledger) == (["id", "a", "b"], ["5 ignored", "6 applied", "7 ignored"])


# sights


def test_a_table_that_nothing_defines_comes_to_life_at_its_first_row() -> None:
    catalog, ledger = compiled([], [seen(30, 90, row_schema("a"))])
    i = only(catalog)
    assert (i.id, i.from_ts, i.guessed, i.key) == ("shop.orders@29", 29, True, (1,))
    assert [(c.name, c.type.name, c.nullable) for c in i.columns] == [("id", "bigint", False), ("a", "varchar", True)]
    assert (catalog.at("shop", "orders", 29), catalog.at("shop", "orders", 30)) == (None, i)
    assert ledger == ["30 seen: table shop.orders"]


def test_a_table_without_handle_columns_has_no_key() -> None:
    assert only(compiled([], [seen(30, 90, RowSchema((SchemaColumn(name="a", type="int"),)))])[0]).key == ()


def test_what_rows_say_of_a_type_is_kept() -> None:
    columns = (
        SchemaColumn(name="d", type="decimal", full_type="decimal(10,4)"),
        SchemaColumn(name="e", type="enum", elements=("a", "b,c")),
        SchemaColumn(name="u", type="bigint unsigned"),
    )
    catalog, _ = compiled([], [seen(30, 90, RowSchema(columns))])
    assert [lake_type(c.type) for c in only(catalog).columns] == ["decimal(10,4)", "string", "decimal(20,0)"]
    assert only(catalog).column("e").type == MysqlType("enum", elements=("a", "b,c"))
    assert [sent_type(c) for c in columns] == [c.type for c in only(catalog).columns]
    catalog, _ = compiled([], [seen(30, 90, RowSchema(columns[:1])), seen(40, 90, RowSchema(columns))])
    assert [c.type for c in only(catalog).columns] == [sent_type(c) for c in columns]


BARE = RowSchema((ID, SchemaColumn(name="price", type="decimal"), SchemaColumn(name="status", type="enum"), SchemaColumn(name="note")))
UNSAID = (
    ("price", "decimal without precision and scale"),
    ("status", "enum without its elements"),
    ("note", "its type"),
)


@pytest.mark.parametrize("ddl", ["evolve", "ignore"])
@pytest.mark.parametrize("told", [True, False])
def test_a_table_whose_types_nothing_says_is_set_aside_whole(told: bool, ddl: str) -> None:
    sent = [seen(20, 90, RowSchema((ID,))), seen(30, 90, BARE), seen(30, 90, BARE, "other")]
    definition = said(10, "CREATE TABLE other (id BIGINT PRIMARY KEY, price DECIMAL(9,2), status ENUM('a'), note TEXT)")
    catalog, _, mismatches = compile_window(Catalog(), [definition], sent, Policy.model_validate({"ddl": ddl}), has_ddl=told)
    assert [i.name for i in catalog.alive()] == ["shop.other"]
    assert [(m.table, m.first_ts, m.until_ts, m.unsaid, m.known) for m in mismatches] == [
        ("shop.orders", 20, None, UNSAID, ""),
        ("shop.orders", 30, None, UNSAID, ""),
    ]


def test_rows_from_before_the_statement_that_creates_their_table_are_set_aside_up_to_it() -> None:
    create = "CREATE TABLE orders (id BIGINT PRIMARY KEY, price DECIMAL(9,2), status ENUM('a'), note TEXT)"
    statements = [said(50, create), said(60, "DROP TABLE orders")]
    catalog, _, mismatches = compile_window(Catalog(), statements, [seen(30, 90, BARE)], Policy())
    assert names(only(catalog)) == ["id", "price", "status", "note"]
    assert [(m.first_ts, m.until_ts) for m in mismatches] == [(30, 50), (61, None)]


def test_a_table_that_rows_made_takes_no_column_whose_type_they_do_not_say() -> None:
    first, _ = compiled([], [seen(30, 40, RowSchema((ID,)))])
    catalog, _, (mismatch,) = compile_window(first.opened(), [], [seen(50, 60, BARE)], Policy())
    assert (names(only(catalog)), mismatch.unsaid, mismatch.known) == (["id"], UNSAID, "id bigint")


def test_a_new_column_of_a_defined_table_needs_a_statement_where_messages_do_not_say_its_type() -> None:
    avro = RowSchema((ID, SchemaColumn(name="price", type="decimal")))
    catalog, _, (mismatch,) = compile_window(known(), [], [seen(50, 60, avro)], Policy())
    assert (names(only(catalog)), mismatch.columns, mismatch.unsaid) == (["id", "a"], ("price",), ())
    added = [said(40, "ALTER TABLE orders ADD price DECIMAL(9,2)")]
    catalog, _, mismatches = compile_window(known(), added, [seen(50, 60, avro)], Policy())
    assert (names(only(catalog)), mismatches) == (["id", "a", "price"], [])
    _, _, mismatches = compile_window(known(), [said(55, added[0].query)], [seen(50, 60, avro)], Policy(), has_ddl=True)
    assert [(m.first_ts, m.until_ts) for m in mismatches] == [(50, 55)]
    catalog, _, mismatches = compile_window(known(), [], [seen(50, 60, avro)], Policy(ddl="ignore"))
    assert (names(only(catalog)), mismatches) == (["id", "a", "price"], [])


def test_a_column_that_no_statement_told_of_comes_to_life_at_its_first_row() -> None:
    catalog, ledger = compiled([], [seen(30, 90, row_schema("a")), seen(60, 90, row_schema("a", "b", "c"))], known())
    i = only(catalog)
    assert [(s.after_ts, [c.name for c in s.columns]) for s in i.segments] == [(ALWAYS, ["id", "a"]), (59, ["id", "a", "b", "c"])]
    assert [(c.since_ts, c.default) for c in i.columns[2:]] == [(59, None), (59, None)]
    assert ledger == ["60 seen: column b of shop.orders", "60 seen: column c of shop.orders"]


def test_rows_that_fit_a_table_neither_before_nor_after_are_told_with_both_schemas() -> None:
    sent = [seen(30, 90, row_schema("a", "b"))]
    catalog, ledger, (mismatch,) = compile_window(known(), [said(50, "ALTER TABLE orders ADD c INT")], sent, Policy(), has_ddl=True)
    assert names(only(catalog)) == ["id", "a", "c"]
    assert [e.effect for e in ledger] == ["applied"]
    assert mismatch == SchemaMismatch(
        observed_table=sent[0],
        first_ts=30,
        until_ts=None,
        table="shop.orders",
        columns=("b",),
        sent="id bigint, a varchar, b varchar",
        known="id bigint, a varchar(5)",
    )


@pytest.mark.parametrize(
    ("table", "statements", "first", "until"),
    [
        ("(id BIGINT PRIMARY KEY, a INT, b INT)", ["ALTER TABLE orders DROP b"], 51, None),
        ("(id BIGINT PRIMARY KEY, a INT, x INT)", ["ALTER TABLE orders CHANGE x b INT"], 30, 50),
        ("(id BIGINT PRIMARY KEY, a INT)", ["DROP TABLE orders", "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT, b INT)"], 30, 50),
        ("(id BIGINT PRIMARY KEY, a INT, b INT)", ["DROP TABLE orders", "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)"], 51, None),
    ],
)
def test_rows_on_both_sides_of_a_statement_fit_neither_on_one(table: str, statements: list[str], first: int, until: int | None) -> None:
    before, sent = known(f"CREATE TABLE orders {table}"), [seen(30, 90, row_schema("a", "b"))]
    made = compile_window(before, [said(50, s) for s in statements], sent, Policy(), has_ddl=True)
    assert [(m.first_ts, m.until_ts, m.columns) for m in made.mismatches] == [(first, until, ("b",))]


@pytest.mark.parametrize(
    ("table", "statement", "policy"),
    [
        ("CREATE TABLE orders (id BIGINT PRIMARY KEY, a TEXT)", "ALTER TABLE orders ADD b INT", "evolve"),  # as after
        ("CREATE TABLE orders (id BIGINT PRIMARY KEY, a TEXT, B INT)", "ALTER TABLE orders DROP b", "evolve"),  # as before
        ("CREATE TABLE orders (id BIGINT PRIMARY KEY, a TEXT, b INT AS (id) VIRTUAL)", "DROP TABLE x", "evolve"),
        ("CREATE TABLE orders (id BIGINT PRIMARY KEY, a TEXT)", "DROP TABLE x", "ignore"),
        ("CREATE TABLE other (id BIGINT PRIMARY KEY)", "DROP TABLE x", "evolve"),  # nothing defined it
    ],
)
def test_rows_that_fit_before_or_after_or_need_not_are_taken(table: str, statement: str, policy: str) -> None:
    sent = [seen(30, 40, row_schema("a", "b"))]
    catalog, _, mismatches = compile_window(known(table), [said(50, statement)], sent, Policy.model_validate({"ddl": policy}), has_ddl=True)
    assert mismatches == []
    assert catalog.asof("shop", "orders", 50) is not None


def test_what_is_known_is_not_seen_again() -> None:
    before = known()
    assert compiled([], [seen(30, 90, row_schema("a")), seen(31, 80, row_schema()), seen(32, 70, row_schema("A"))], before) == (before, [])


def test_a_column_seen_before_its_statement_is_not_added_twice() -> None:
    catalog, ledger = compiled([said(40, "ALTER TABLE orders ADD b TEXT")], [seen(30, 90, row_schema("a", "b"))], known())
    assert names(only(catalog)) == ["id", "a", "b"]
    assert ledger == ["30 seen: column b of shop.orders", "40 no effect"]


def test_a_column_seen_after_its_statement_is_the_statement_s() -> None:
    catalog, ledger = compiled([said(29, "ALTER TABLE orders ADD b TEXT FIRST")], [seen(30, 90, row_schema("a", "b"))], known())
    assert (names(only(catalog)), only(catalog).column("b").type.name) == (["b", "id", "a"], "text")
    assert ledger == ["29 applied"]


def test_a_row_exactly_at_a_statement_is_of_the_table_before_it() -> None:
    statements = [said(50, "DROP TABLE orders"), said(50, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")]
    catalog, ledger = compiled(statements, [seen(50, 50, row_schema("a", "b"))], known())
    old, new = catalog.incarnations.values()
    assert (names(old), names(new)) == (["id", "a", "b"], ["id"])
    assert ledger == ["50 seen: column b of shop.orders", "50 applied", "50 applied"]


def test_rows_on_both_sides_of_drop_and_create_belong_to_two_tables() -> None:
    statements = [said(50, "DROP TABLE orders"), said(60, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a VARCHAR(5))")]
    catalog, ledger = compiled(statements, [seen(30, 90, row_schema("a"))], known())
    old, new = catalog.incarnations.values()
    assert [catalog.at("shop", "orders", ts) for ts in (50, 51, 61)] == [old, None, new]
    assert ledger == ["50 applied", "60 applied"]


def test_rows_after_a_drop_without_a_create_are_of_a_new_table() -> None:
    sent = [seen(30, 90, row_schema("a")), seen(40, 95, row_schema("a", "b"))]
    catalog, ledger = compiled([said(50, "DROP TABLE orders")], sent, known())
    old, new = catalog.incarnations.values()
    assert (old.dropped_ts, new.from_ts, new.guessed, names(new)) == (50, 50, True, ["id", "a", "b"])
    assert catalog.at("shop", "orders", 90) is new
    assert ledger[-2:] == ["51 seen: table shop.orders", "51 seen: column b of shop.orders"]


def test_rows_under_a_name_that_was_given_away_are_of_a_new_table() -> None:
    statements = [said(50, "RENAME TABLE orders TO old_orders"), said(50, "RENAME TABLE unknown TO orders")]
    catalog, _ = compiled(statements, [seen(30, 90, row_schema("a"))], known())
    old, new = catalog.incarnations.values()
    assert (old.name, new.name, new.from_ts) == ("shop.old_orders", "shop.orders", 50)


def test_columns_of_rows_after_a_new_create_are_seen_there_too() -> None:
    statements = [said(50, "DROP TABLE orders"), said(60, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")]
    catalog, ledger = compiled(statements, [seen(30, 90, row_schema("a"))], known())
    assert [names(i) for i in catalog.incarnations.values()] == [["id", "a"], ["id", "a"]]
    assert ledger == ["50 applied", "60 applied", "61 seen: column a of shop.orders"]


def test_a_dropped_column_is_not_seen_again_in_rows_before_its_drop() -> None:
    catalog, ledger = compiled([said(50, "ALTER TABLE orders DROP a")], [seen(30, 50, row_schema("a"))], known())
    assert (names(only(catalog)), ledger) == (["id"], ["50 applied"])


def test_a_renamed_table_s_rows_before_and_after_are_one_table() -> None:
    sent = [seen(30, 50, row_schema("a")), seen(60, 90, row_schema("a"), "sales")]
    catalog, ledger = compiled([said(50, "RENAME TABLE orders TO sales")], sent, known())
    assert (only(catalog).name, ledger) == ("shop.sales", ["50 applied"])


def test_a_guessed_table_takes_the_statements_that_come_later() -> None:
    first, _ = compiled([], [seen(30, 40, row_schema("a"))])
    later = [said(50, "ALTER TABLE orders MODIFY a DECIMAL(10,2), ADD b INT FIRST"), said(60, "ALTER TABLE orders ADD UNIQUE (id)")]
    catalog, ledger = compiled(later, [], first.opened())
    assert [(c.name, c.type.sql) for c in only(catalog).columns] == [("b", "int"), ("id", "bigint"), ("a", "decimal(10,2)")]
    assert ledger == ["50 applied", "60 no effect"]


def test_an_entry_of_the_ledger_keeps_the_statement_as_sent() -> None:
    _, ledger, _ = compile_window(Catalog(), [said(5, "drop  TABLE x ;")], [], Policy())
    assert ledger == [LedgerEntry(commit_ts=5, database="shop", query="drop  TABLE x ;", effect="no effect")]

"""Which columns a table had at any TSO."""

from __future__ import annotations

import pytest

from tests.history.incarnations.lives import SHOP, after, altered, names, only, refused, row_columns
from tidelake.history.ddl.column_types import MysqlType


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
    assert error.message.startswith("shop.orders already has a column '")


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
        ("ADD nr BIGINT AUTO_INCREMENT UNIQUE", "UNSUPPORTED_DDL"),
        ("ADD nr SERIAL", "UNSUPPORTED_DDL"),
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


@pytest.mark.parametrize(
    ("old", "new", "follows"),
    [
        ("INT", "BIGINT UNSIGNED", True),
        ("BIGINT", "TINYINT", True),  # the server refuses values that do not fit
        ("INT", "DECIMAL(12,2)", True),
        ("DECIMAL(10,2)", "INT", True),
        ("DECIMAL(10,4)", "DECIMAL(10,2)", True),
        ("DECIMAL(60,2)", "DECIMAL(65,2)", True),
        ("DECIMAL(60,2)", "DECIMAL(65,4)", False),  # kept as text, with its digits
        ("DECIMAL(60,0)", "VARCHAR(80)", False),
        ("FLOAT", "DOUBLE", True),
        ("DOUBLE", "VARCHAR(30)", False),  # its digits are the server's
        ("DOUBLE", "INT", False),
        ("VARCHAR(20)", "TEXT", True),
        ("VARCHAR(20)", "CHAR(5)", False),  # loses spaces at the end
        ("VARCHAR(20)", "INT", True),
        ("VARCHAR(20)", "DATETIME", False),
        ("VARCHAR(20)", "VARBINARY(20)", False),
        ("VARCHAR(20)", "ENUM('a')", False),
        ("ENUM('a','b')", "ENUM('b','a','c')", True),  # by name
        ("ENUM('a')", "VARCHAR(9)", True),
        ("ENUM('a')", "INT", False),
        ("SET('a')", "SET('a','b')", True),
        ("DATE", "DATETIME(3)", True),
        ("DATETIME(3)", "DATETIME(6)", True),
        ("DATETIME(3)", "DATETIME", False),  # rounds
        ("DATETIME", "TIMESTAMP", False),  # of the session's time zone
        ("DATETIME", "DATE", False),
        ("TIME(3)", "TIME", False),
        ("CHAR(9)", "CHAR(12)", True),
        ("CHAR(9)", "VARCHAR(9)", True),
        ("INT", "CHAR(9)", True),
        ("SET('a','b')", "SET('b','a')", False),  # 'a,b' becomes 'b,a'
        ("SET('a','b')", "SET('x','a','y','b')", True),
        ("ENUM('a','b')", "ENUM('b','a')", True),
        ("ENUM('a','b')", "ENUM('A','b')", False),
        ("TIME", "TIME(3)", False),  # the lake has its text, without a fraction
        ("BLOB", "VARBINARY(9)", True),
        ("VARBINARY(9)", "BINARY(9)", False),  # is padded
        ("JSON", "TEXT", False),
        ("JSON", "JSON", True),
        ("BIT(8)", "BIT(16)", True),
        ("YEAR", "INT", False),
    ],
)
def test_a_type_changes_where_it_is_known_how_values_are_written_then(old: str, new: str, follows: bool) -> None:
    made, change = (1, f"CREATE TABLE orders (id INT PRIMARY KEY, x {old})"), (2, f"ALTER TABLE orders MODIFY x {new}")
    if follows:
        assert only(after(made, change)).column("x").type == MysqlType.parse(new) or new in ("TIME", "DATETIME")
    else:
        assert refused(made, change).message.startswith("the result of converting ")


def test_virtual_columns_are_known_by_their_names_and_never_become_stored_ones_unseen() -> None:
    i = altered("ADD v INT AS (id) VIRTUAL", "RENAME COLUMN V TO w", "MODIFY w BIGINT AS (id) VIRTUAL", "ADD z INT AS (1)", "DROP COLUMN w")
    assert (i.virtual, names(i.columns)) == (("z",), ["id", "note", "total"])
    error = refused((1, SHOP), (2, "ALTER TABLE orders ADD v INT AS (id)"), (3, "ALTER TABLE orders MODIFY v INT"))
    assert error.message == "the generated column 'v' of shop.orders is stored from now on"

"""Tables whose charset is binary: text columns that later statements define without a charset are bytes."""

from __future__ import annotations

import pytest

from tests.history.incarnations.lives import after
from tidelake.history.incarnations import Catalog

BINARY = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(5)) CHARSET binary"
TEXT = "CREATE TABLE t (id INT PRIMARY KEY, a VARBINARY(5))"


def types(catalog: Catalog, table: str = "t") -> dict[str, str]:
    found = catalog.find("shop", table)
    assert found is not None
    return {c.name: c.type.sql for c in found.columns if c.name != "id"}


@pytest.mark.parametrize(
    ("clause", "wanted"),
    [
        ("ADD b TEXT", "blob"),
        ("ADD b CHAR(3) NOT NULL", "binary(3)"),
        ("ADD b VARCHAR(3) CHARSET latin1", "varchar(3)"),
        ("ADD b TEXT COLLATE utf8mb4_bin", "text"),
        ("ADD b NVARCHAR(3)", "varchar(3)"),
        ("CHANGE a b TEXT", "blob"),
        ("ADD b ENUM('x')", "enum('x')"),
        ("CHARACTER SET latin1, ADD b TEXT", "text"),
        ("CONVERT TO CHARACTER SET utf8mb4, ADD b TEXT", "text"),
    ],
)
def test_text_without_a_charset_is_bytes_in_a_binary_table(clause: str, wanted: str) -> None:
    assert types(after((1, BINARY), (2, f"ALTER TABLE t {clause}")))["b"] == wanted


def test_defaults_are_bytes_too() -> None:
    catalog = after((1, BINARY), (2, "ALTER TABLE t ADD b CHAR(3) DEFAULT 'é'"))
    (found,) = catalog.incarnations.values()
    assert found.column("b").default == "c3a900"


def test_a_table_becomes_binary_for_columns_to_come() -> None:
    made = after((1, TEXT), (2, "ALTER TABLE t ADD b TEXT"), (3, "ALTER TABLE t DEFAULT CHARSET = binary"), (4, "ALTER TABLE t ADD c TEXT"))
    assert types(made) == {"a": "varbinary(5)", "b": "text", "c": "blob"}


def test_a_table_that_is_created_like_a_binary_one_is_binary() -> None:
    made = after((1, BINARY), (2, "CREATE TABLE u LIKE t"), (3, "ALTER TABLE u ADD b TEXT"))
    assert types(made, "u") == {"a": "varbinary(5)", "b": "blob"}

"""The clauses of an ALTER TABLE are one step: the key comes behind those that make its columns, before those that drop what was one."""

from __future__ import annotations

import pytest

from tidelake.history.ddl.changes import (
    AddPrimary,
    AddUnique,
    Change,
    DropColumn,
    DropIndex,
    DropPrimary,
    Index,
    RenameColumn,
    RenameTable,
)
from tidelake.history.ddl.statement import parse

T = ("db", "t")


@pytest.mark.parametrize(
    ("clauses", "wanted"),
    [
        ("DROP PRIMARY KEY, DROP COLUMN b, ADD PRIMARY KEY (a)", [AddPrimary(*T, ("a",)), DropColumn(*T, "b")]),
        ("DROP INDEX i, ADD PRIMARY KEY (a)", [AddPrimary(*T, ("a",)), DropIndex(*T, "i")]),
        (
            "ADD PRIMARY KEY (A), DROP c, RENAME COLUMN b TO a, DROP d",
            [DropColumn(*T, "c"), RenameColumn(*T, "b", "a"), AddPrimary(*T, ("A",)), DropColumn(*T, "d")],
        ),
        ("ADD PRIMARY KEY (a), RENAME TO u", [AddPrimary(*T, ("a",)), RenameTable(*T, "db", "u")]),
        ("RENAME TO u, ADD PRIMARY KEY (a)", [RenameTable(*T, "db", "u"), AddPrimary("db", "u", ("a",))]),
        ("DROP PRIMARY KEY, DROP INDEX i", [DropIndex(*T, "i"), DropPrimary(*T)]),
        (
            "DROP PRIMARY KEY, ADD UNIQUE u (a), DROP b",
            [AddUnique(*T, Index(name="u", columns=("a",))), DropPrimary(*T), DropColumn(*T, "b")],
        ),
    ],
)
def test_a_key_changes_where_its_columns_are_there(clauses: str, wanted: list[Change]) -> None:
    assert parse(f"ALTER TABLE t {clauses}", "db") == wanted


@pytest.mark.parametrize(
    "clauses", ["ADD PRIMARY KEY (a), MODIFY a INT", "ADD PRIMARY KEY (a), ADD a INT", "ADD PRIMARY KEY (a), CHANGE b a INT"]
)
def test_a_clause_that_makes_a_column_of_the_key_comes_first(clauses: str) -> None:
    assert parse(f"ALTER TABLE t {clauses}", "db")[1:] == [AddPrimary(*T, ("a",))]

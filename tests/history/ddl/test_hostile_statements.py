"""Hostile DDL text gives changes or a ContractError."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelake.errors import ContractError
from tidelake.history.ddl.statement import parse

WORDS = """CREATE TABLE ALTER ADD COLUMN DROP INDEX UNIQUE PRIMARY KEY ( ) , ; . a `b c` 'x' 5 -1 INT DECIMAL(5,2) ENUM('a') DEFAULT
NULL NOT AS STORED RENAME TO LIKE IF EXISTS FIRST AFTER CONSTRAINT MODIFY CHANGE TRUNCATE DATABASE ON CHARACTER SET binary PARTITION
/* -- '""".split()


@settings(max_examples=500)
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join) | st.text())
def test_hostile_text_gives_changes_or_a_contract_error_and_nothing_else(query: str) -> None:
    try:
        changes = parse(query, "db")
    except ContractError:
        return
    assert len(changes) > 0


@settings(max_examples=150)
@given(
    st.sampled_from(["CREATE TABLE t (", "ALTER TABLE t ADD COLUMN (", "ALTER TABLE t ADD COLUMN ", "CREATE UNIQUE INDEX u ON t "]),
    st.text(),
)
def test_hostile_definitions_give_changes_or_a_contract_error_and_nothing_else(start: str, rest: str) -> None:
    try:
        changes = parse(start + rest, "db")
    except ContractError:
        return
    assert len(changes) > 0


def test_deep_nesting_ends_in_a_contract_error() -> None:
    with pytest.raises(ContractError):
        parse("CREATE TABLE t (a INT CHECK " + "(" * 50_000, "db")

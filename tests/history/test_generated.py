"""Stored generated columns: a statement after which the server computes them anew in existing rows is refused, unless TiDB executed it."""

from __future__ import annotations

import pytest

from tests.history.windows import said
from tidelake.config.policy import Policy
from tidelake.errors import OrderError
from tidelake.history.incarnations import ALWAYS, Catalog
from tidelake.history.window import compile_window

TABLE = """CREATE TABLE t (id INT PRIMARY KEY, n DECIMAL(10,2), a VARCHAR(20), z INT(6) ZEROFILL, o VARCHAR(20),
v INT AS (LENGTH(a)) VIRTUAL, s VARCHAR(99) AS (CONCAT(`N`, id, z)) STORED, l INT AS (v) STORED)"""
ANEW = "the server computes the stored generated columns of shop.t ({}) anew in existing rows"


def executed(*clauses: str, table: str = TABLE, of_tidb: bool = False) -> Catalog:
    """The catalog after statements on a table with rows."""
    first = compile_window(Catalog(), [said(ALWAYS, table)], [], Policy(), of_tidb=of_tidb).catalog
    statements = [said(10 + n, clause if clause.startswith("CREATE") else f"ALTER TABLE t {clause}") for n, clause in enumerate(clauses)]
    return compile_window(first, statements, [], Policy(), of_tidb=of_tidb).catalog


def refused(*clauses: str) -> str:
    """The message about the last statement."""
    executed(*clauses[:-1])
    with pytest.raises(OrderError) as error:
        executed(*clauses)
    assert error.value.code == "UNSUPPORTED_DDL"
    return error.value.message


@pytest.mark.parametrize(
    ("clause", "columns"),
    [
        ("MODIFY s VARCHAR(99) AS (CONCAT(`n`, '#')) STORED", "'s'"),
        ("CHANGE o made VARCHAR(20) AS (id) STORED", "'made'"),
        ("MODIFY n DECIMAL(10,4)", "'s', 'l'"),
        ("MODIFY z INT", "'s', 'l'"),  # its text has no zeros any more
        ("MODIFY id INT UNSIGNED", "'s', 'l'"),
        ("MODIFY a VARCHAR(20) CHARACTER SET latin1", "'s', 'l'"),
        ("MODIFY v INT AS (9) VIRTUAL", "'s', 'l'"),
        ("CONVERT TO CHARACTER SET latin1", "'s', 'l'"),
    ],
)
def test_a_statement_is_refused_that_computes_columns_anew(clause: str, columns: str) -> None:
    message = refused(clause)
    assert message.startswith(ANEW.format(columns))
    assert "write a statement into ddl.jsonl that first defines them without their expressions" in message
    executed(clause, of_tidb=True)  # which TiDB carries out only where values stay


@pytest.mark.parametrize(
    "clause",
    [
        "MODIFY id BIGINT",
        "MODIFY n DECIMAL(10,2) NOT NULL FIRST",
        "MODIFY o VARCHAR(40)",  # in no expression
        "MODIFY s VARCHAR(99)",
        "DEFAULT CHARACTER SET latin1",
        "MODIFY s VARCHAR(99), MODIFY l INT, MODIFY n DECIMAL(10,4), CONVERT TO CHARACTER SET latin1",
        "DROP s, DROP l, MODIFY a VARCHAR(40)",
    ],
)
def test_other_statements_are_carried_out(clause: str) -> None:
    executed(clause)


def test_what_columns_are_computed_from_is_known_of_later_ones_too() -> None:
    assert refused("ADD w INT AS (LENGTH(o)) VIRTUAL", "RENAME COLUMN o TO p", "MODIFY p VARCHAR(40)").startswith(ANEW.format("'s', 'l'"))
    assert refused("DROP l", "CHANGE id nr BIGINT", "MODIFY nr VARCHAR(40)").startswith(ANEW.format("'s'"))


def test_a_table_without_rows_may_get_any_column() -> None:
    after = executed("CREATE TABLE empty LIKE t", "ADD w INT AS (id) VIRTUAL")
    (empty,) = [i for i in after.incarnations.values() if i.names[-1].table == "empty"]
    assert ([c.name for c in empty.columns if c.stored], empty.inputs) == (["s", "l"], ("id", "n", "a", "z", "v"))
    compile_window(after, [said(20, "ALTER TABLE empty MODIFY n INT")], [], Policy())

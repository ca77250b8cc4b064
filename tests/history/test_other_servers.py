"""Statements that MySQL carries out in another way than TiDB are refused, unless TiDB executed them."""

from __future__ import annotations

import pytest

from tests.history.windows import said
from tidelake.config.policy import Policy
from tidelake.errors import OrderError
from tidelake.history.incarnations import ALWAYS, Catalog
from tidelake.history.window import compile_window


def executed(clause: str, *, of_tidb: bool) -> Catalog:
    """The catalog after a statement on a table with rows."""
    table = "CREATE TABLE t (id INT PRIMARY KEY, long_one MEDIUMTEXT, short VARCHAR(20))"
    statements = [said(ALWAYS, table), said(10, f"ALTER TABLE t {clause}")]
    return compile_window(Catalog(), statements, [], Policy(), of_tidb=of_tidb).catalog


def test_a_text_becomes_the_number_that_it_begins_with_in_mysql_alone() -> None:
    clause = "MODIFY long_one DECIMAL(20,4)"
    executed(clause, of_tidb=True)
    with pytest.raises(OrderError, match=r"t\.long_one from mediumtext to decimal\(20,4\) depends on the server: MySQL takes the number"):
        executed(clause, of_tidb=False)


@pytest.mark.parametrize("clause", ["MODIFY long_one BIGINT", "MODIFY short DECIMAL(20,4)", "MODIFY long_one VARCHAR(99)"])
def test_other_texts_become_the_same_everywhere(clause: str) -> None:
    assert executed(clause, of_tidb=False) == executed(clause, of_tidb=True)

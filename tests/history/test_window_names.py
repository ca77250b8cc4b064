"""Names as Avro writes them, and the tables that they mean."""

from __future__ import annotations

import pytest

from tests.history.windows import compiled, known, row_schema, said, seen
from tidelake.history.names import same_name, sanitised
from tidelake.history.window import find_sent


@pytest.mark.parametrize(
    ("name", "safe"), [("a", "a"), ("1Col", "_1Col"), ("A.B", "A_B"), ("col中文", "col__"), ("a-b c", "a_b_c"), ("_", "_"), ("", "")]
)
def test_a_name_is_sanitised_as_avro_does(name: str, safe: str) -> None:
    assert sanitised(name) == safe


@pytest.mark.parametrize(
    ("sent", "name", "same"),
    [("a", "A", True), ("A_B", "a.b", True), ("_1x", "1X", True), ("a.b", "a_b", False), ("col__", "col中文", True), ("a", "b", False)],
)
def test_a_sent_name_means_a_table_s_ignoring_case_or_sanitised(sent: str, name: str, same: bool) -> None:
    assert same_name(sent, name) is same


def test_a_sanitised_name_means_the_table_unless_one_is_called_just_so() -> None:
    dotted = known("CREATE TABLE `or.ders` (id INT)")
    found = find_sent(dotted, "shop", "or_ders")
    assert found is not None
    assert found.name == "shop.`or.ders`"
    both = compiled([said(5, "CREATE TABLE or_ders (id INT)")], [], dotted)[0]
    exact = find_sent(both, "shop", "OR_DERS")
    assert exact is not None
    assert exact.name == "shop.or_ders"
    assert find_sent(both, "shop", "nothing") is None


def test_avro_rows_do_not_make_a_second_table_of_a_sanitised_one() -> None:
    dotted = known("CREATE TABLE `or.ders` (id BIGINT PRIMARY KEY, `a b` TEXT)")
    assert compiled([], [seen(30, 90, row_schema("a_b"), "or_ders")], dotted) == (dotted, [])

"""Expectations of every basis on real windows, and their results as Great Expectations loads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake.histories import publish, resolved, row
from tests.lake.windows import KV, opened
from tests.validate.test_gx_export import loaded, results
from tidelake.errors import QualityError
from tidelake.history.contract import read_expectations
from tidelake.lake.cut_documents import read_certificate
from tidelake.validate.quality.gx_project import export
from tidelake.validate.report import hour_facts

RULES = """
[[expect]]
type = "expect_table_row_count_to_be_between"
min_value = 2
severity = "warning"

[[expect]]
type = "expect_table_row_count_to_be_between"
row_condition = "_change_type = 'DELETE'"
max_value = 1
severity = "warning"

[[expect]]
type = "expect_table_columns_to_match_set"
column_set = ["id", "v"]
exact_match = false

[[expect]]
type = "expect_column_values_to_match_like_pattern"
column = "v"
like_pattern = "a%"
severity = "warning"

[[expect]]
type = "expect_column_values_to_be_increasing"
column = "id"
severity = "warning"
"""


@pytest.mark.usefixtures("small_hours")
def test_rules_of_every_basis_are_judged_and_a_window_of_deletes_only_by_its_counts(tmp_path: Path) -> None:
    inserts = [row(0, "insert", 10 + n, KV, (i, v)) for n, (i, v) in enumerate([("1", "ab"), ("3", "xa"), ("2", "a")])]
    deletes = [row(0, "delete", 60 + n, KV, None, (i, v)) for n, (i, v) in enumerate([("1", "ab"), ("3", "xa")])]
    with opened(tmp_path) as (feed, lake):
        (feed.feed.folder / "expectations").mkdir()
        (feed.feed.folder / "expectations" / "d.k.toml").write_text(RULES)
        first, second = feed.add(lake, [*inserts, *resolved(50)]), feed.add(lake, [*deletes, *resolved(90)])
        publish(lake, first)
        publish(lake, second)
        found = [read_certificate(lake.store, "shop", n)["expectations"]["checks"] for n in (1, 2)]
        own = [[c for c in of if "[[expect]]" in c.get("origin", "")] for of in found]
        rules = read_expectations(feed.feed.folder)
        done = export(tmp_path / "gx", "shop", rules, hour_facts(lake, first), docs=True)
    said = [(c["origin"].rpartition("] ")[2], c["success"], c["observed"].partition("; ")[0]) for c in own[0]]
    assert said == [
        ("1", True, "3 rows"),
        ("2", True, "0 rows"),
        ("3", True, "_change_seq, _change_type, _commit_at, _commit_ts, _kafka_partition, _offset, _ordinal, _origin, _topic, id, v"),
        ("4", False, "1 bad value among 3 (33.3 %)"),
        ("5", False, "1 bad value among 3 (33.3 %)"),
    ]
    rows = {c["origin"].rpartition("] ")[2]: c["result"]["partial_unexpected_index_list"] for c in own[0] if "result" in c}
    assert {n: [(r["id"], r["_offset"]) for r in found] for n, found in rows.items()} == {"4": [(3, 1)], "5": [(2, 2)]}
    assert [(c["origin"].rpartition("] ")[2], c["success"], c["observed"]) for c in own[1]] == [
        ("1", False, "0 rows"),
        ("2", False, "2 rows"),
    ]

    assert (done.suites, done.results, done.changed) == (["shop.d.k"], 5, [])
    (result,) = results(loaded(tmp_path / "gx")).values()
    assert [r.success for r in result.results] == [True, True, True, False, False]
    like = result.results[3].result
    assert (like["element_count"], like["unexpected_count"], like["partial_unexpected_list"]) == (3, 1, ["xa"])
    assert (result.results[0].result, result.results[1].result) == ({"observed_value": 3}, {"observed_value": 0})


@pytest.mark.usefixtures("small_hours")
def test_a_rule_that_cannot_be_judged_keeps_a_window_back_and_says_what_to_use(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        (feed.feed.folder / "expectations").mkdir()
        rule = '[[expect]]\ntype = "expect_table_row_count_to_equal_other_table"\nother_table_name = "d.m"\n'
        (feed.feed.folder / "expectations" / "d.k.toml").write_text(rule)
        hour = feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), *resolved(50)])
        with pytest.raises(QualityError) as error:
            publish(lake, hour)
    assert "expect_table_row_count_to_equal_other_table of d.k cannot be judged: it counts the rows of another table" in error.value.message
    assert "use `tidelake verify`, or expect_table_row_count_to_be_between" in error.value.message

"""The tables that tests/workloads/shop.py makes of the wire are those of the truth files, at the hours' ends of all five changefeeds."""

from __future__ import annotations

from collections import Counter

from tests.workloads.shop import FEEDS, shop, truth, types, wanted
from tidelake.demo.verify import differences


def test_the_tables_of_the_wire_are_the_truth_at_every_hour_of_every_changefeed() -> None:
    hours = {hour["resolved_ts"]: hour for feed in FEEDS for hour in truth(feed)["hours"]}
    compared, kinds = 0, types()
    for ts, tables in shop().at(hours):
        assert {f"shopdb.{name}" for name in tables} - set(hours[ts]["tables"]) <= {"shopdb.audit_log"}, "which Avro leaves out"
        for name, known in hours[ts]["tables"].items():
            short = name.removeprefix("shopdb.")
            made = wanted(short, tables[short], kinds[short])
            assert differences(made["rows"], known) == [], f"{name} at {ts}"
            assert list(made["columns"]) == known["columns"]
            compared += known["row_count"]
    assert (len(hours), compared > 90_000) == (25, True)


def test_as_many_changes_were_read_as_there_were() -> None:
    last = truth("open")["hours"][-1]
    read = Counter((f"shopdb.{c.table}", c.op.lower()) for c in shop().changes)
    told = {(table, op): n for table, ops in last["row_changes"].items() for op, n in ops.items() if n}
    assert read == told
    assert [query for _, query in shop().statements] == [d["query"] for d in last["ddl"]]

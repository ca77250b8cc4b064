"""What offsets do not order is named: tables and statements over two partitions, hours whose offsets go back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.decode.hour import BEGIN, END, HOUR
from tests.lake import lakes
from tests.lake.histories import partition_of
from tidelake.config.feed import Feed, Watermark
from tidelake.config.policy import Policy
from tidelake.errors import OrderError
from tidelake.land.store.coverage import coverage
from tidelake.land.store.manifest import Manifest
from tidelake.order.offset_rules import TablePlaces, findings, mixed, placed_statements, repeated
from tidelake.order.progress import resolved_now

AT = BEGIN + 700
ELSEWHERE: TablePlaces = {(HOUR, "d", "k"): frozenset({("t", 1)}), (HOUR, "d", "m"): frozenset({("t", 0)})}


def feed(one_partition_per: str = "table", **changes: Any) -> Feed:
    """A feed ordered by offsets."""
    rule = Watermark.model_validate({"from": "offsets", "one_partition_per": one_partition_per})
    return lakes.feed(Path("/nowhere"), protocol="canal", partitions=2, watermark=rule, **changes)


def test_only_rows_with_a_commit_ts_are_of_tidb_for_certain() -> None:
    assert (feed().of_tidb, lakes.feed(Path("/nowhere")).of_tidb) == (False, True)


def held_from(sql: str, places: TablePlaces = ELSEWHERE, made: Feed | None = None) -> int:
    """The ts at which a statement of partition 0 holds."""
    sent = {"topic": "t", "partition": 0, "offset": 2, "commit_ts": AT, "database": "d", "ddl": sql}
    (found,) = placed_statements(made or feed(), [sent], places)
    assert found == sent | {"commit_ts": found["commit_ts"]}
    ts: int = found["commit_ts"]
    return ts


@pytest.mark.parametrize(
    ("sql", "ts"),
    [
        ("CREATE TABLE k (id INT)", BEGIN),
        ("ALTER TABLE k ADD COLUMN n INT", BEGIN),
        ("ALTER TABLE k ADD COLUMN n INT NULL, ADD COLUMN o TEXT", BEGIN),
        ("ALTER TABLE D.K DROP COLUMN n", END),
        ("ALTER TABLE k ADD INDEX i (v)", AT),
        ("TRUNCATE TABLE m", AT),
        ("TRUNCATE TABLE other.k", AT),
        ("not a statement", AT),
    ],
)
def test_a_statement_of_another_partition_holds_where_rows_read_the_same(sql: str, ts: int) -> None:
    assert held_from(sql) == ts


UNPLACED = [
    "TRUNCATE TABLE k",
    "DROP TABLE k",
    "RENAME TABLE m TO k",
    "ALTER TABLE k ADD COLUMN n INT DEFAULT 4",
    "ALTER TABLE k ADD COLUMN n INT NOT NULL",
    "ALTER TABLE k ADD COLUMN n INT, DROP COLUMN o",
    "ALTER TABLE k MODIFY COLUMN v TEXT",
    "ALTER TABLE m EXCHANGE PARTITION p0 WITH TABLE k",
]


@pytest.mark.parametrize("sql", UNPLACED)
def test_any_other_statement_waits_for_a_decision(sql: str) -> None:
    with pytest.raises(OrderError, match=r"UNPLACED_DDL t\[0\]@2: a statement on d\.k is in t\[0\], rows of the table in t\[1\]") as e:
        held_from(sql)
    assert e.value.remedy.startswith(f"decide: ignore_ddl = [{AT}] under [policy], and the statement in ddl.jsonl with commit_ts {BEGIN}")
    assert f"or {END} (after them)" in e.value.remedy
    assert held_from(sql, {("2026-01-05T11", "d", "k"): frozenset({("t", 1)})}) == AT, "rows of another hour do not matter"
    assert held_from(sql, made=feed(policy=Policy(ignore_ddl=(AT,)))) == AT
    assert held_from(sql, made=feed("none")) == AT


def test_a_table_of_two_partitions_is_refused_spread_by_key_or_leaves_the_cut_incomplete() -> None:
    both: TablePlaces = {(HOUR, "d", "k"): frozenset({("t", 1), ("t", 0)}), (HOUR, "d", "m"): frozenset({("t", 0)})}
    with pytest.raises(OrderError, match=rf"TWO_PARTITIONS: rows of d\.k come from t\[0\] and from t\[1\] in hour {HOUR}") as e:
        mixed(feed(), both)
    assert e.value.exit_code == 3
    assert [mixed(feed(), ELSEWHERE), mixed(feed("key"), both), mixed(feed("none"), ELSEWHERE)] == [None, None, None]
    assert mixed(feed("none"), both) == f"rows of d.k come from t[0] and from t[1] in hour {HOUR}, in no certain order"


def manifests(*spans: tuple[int, int]) -> dict[str, Manifest]:
    """An hour with these offsets after the other."""
    rest: dict[str, Any] = {"sources": (), "objects": (), "findings": (), "protocol": "canal", "layout": "kcat", "generation": 1}
    hours = [f"2026-01-05T{10 + n}" for n in range(len(spans))]
    return {h: Manifest(feed="shop", hour=h, partitions={"t": {0: partition_of(*s)}}, **rest) for h, s in zip(hours, spans, strict=True)}


def test_what_came_with_an_earlier_hour_does_not_count_again() -> None:
    made = manifests((0, 9), (5, 14), (15, 19))
    (again,) = repeated(feed(), [*made], made, {})
    assert (again.hour, again.topic, again.partition, again.offsets) == ("2026-01-05T11", "t", 0, ((5, 9),))
    at = [{"hour": again.hour, "topic": "t", "partition": 0, "offset": o} for o in (4, 5, 9, 10)]
    assert [again.has(e) for e in at] == [False, True, True, False]
    assert not again.has(at[1] | {"hour": HOUR})
    assert repeated(feed(), ["2026-01-05T12"], made, {}) == ()
    assert repeated(feed(), [HOUR], manifests((3, 4)), {"t": {0: (0, 9)}})[0].offsets == ((3, 4),), "known before the first of these hours"


def test_new_offsets_below_those_of_an_earlier_hour_stop_the_feed() -> None:
    made = manifests((10, 19), (5, 9))
    with pytest.raises(
        OrderError, match=r"OFFSETS_WENT_BACK t\[0\]: hour 2026-01-05T11 brings offset 5 \(5–9\), and an earlier hour has offset 19"
    ):
        repeated(feed(), [*made], made, {})
    assert repeated(feed("none"), [*made], made, {}) == ()
    assert repeated(feed(), [HOUR], made, {}) == (), "of hours that are published already the late ledger tells"


def test_the_cut_is_the_hour_s_end_unless_offsets_are_missing() -> None:
    whole, holed = coverage(manifests((0, 9), (10, 12)).values()), coverage(manifests((0, 9), (12, 14)).values())
    assert resolved_now(feed(), {}, whole, HOUR) == (END, None)
    with pytest.raises(OrderError, match=r"GAP t\[0\]: offsets 10 to 11 are not landed"):
        resolved_now(feed(), {}, holed, HOUR)
    assert resolved_now(feed(policy=Policy(on_gap="warn")), {}, holed, HOUR) == (END, None)


def test_certificates_say_that_repeats_are_changes() -> None:
    (found,) = findings(feed())
    assert (found["code"], found["severity"]) == ("ORDERED_BY_OFFSETS", "info")
    assert findings(lakes.feed(Path("/nowhere"))) == []

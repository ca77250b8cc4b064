"""Windows of feeds ordered by offsets, one by one: repeats, keys and statements over partitions, hours landed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.lake.histories import publish, rows_of
from tests.lake.windows import table
from tests.order.offset_feeds import A, B, C, Sent, Step, Truth, ddl, drop, encoded, opened, put, sent
from tidelake.decode.positions import origins
from tidelake.errors import OrderError
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import newest
from tidelake.order.late.ledger import late_rows
from tidelake.validate.report import hour_facts

KEYS = "12345678"
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # an example takes seconds
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("spark_app")]


STEPS = st.tuples(st.sampled_from("pppdm"), st.sampled_from(KEYS), st.sampled_from(KEYS), st.sampled_from("abc"))


def one(*steps: Step) -> Sent:
    """A Canal packet of these."""
    return encoded("canal", steps)[0]


def test_keys_in_two_partitions_wait_for_a_decision_and_statements_hold_where_rows_read_the_same(tmp_path: Path) -> None:
    two = {"id": "2", "v": "z"}
    with opened(tmp_path, "canal", one_partition_per="key") as (feed, lake):
        made = [one(ddl("k", "ALTER TABLE k ADD COLUMN n INT")), one(put("k", A | {"n": "1"}))]
        publish(lake, feed.put(lake, {0: made, 1: [one(put("k", two)), one(put("k", two | {"n": "5"}, two))]}))
        assert rows_of(lake, "d.k") == table(("1", "a", "1"), ("2", "z", "5"), names=("id", "v", "n"))
        moved = [one(put("k", two | {"id": "1", "n": "5"}, two | {"n": "5"}))]
        hour = feed.put(lake, {0: [one(drop("k", A | {"n": "1"}))], 1: moved})
        with pytest.raises(
            OrderError, match=r"TWO_PARTITIONS: 1 key of d\.k with changes in t\[0\] and in t\[1\] in one hour, the first in"
        ):
            publish(lake, hour)
        assert rows_of(lake, "d.k") == table(("1", "a", "1"), ("2", "z", "5"), names=("id", "v", "n")), "nothing is published"


def test_a_repeat_without_names_is_a_change_but_the_same_offset_is_not(tmp_path: Path) -> None:
    with opened(tmp_path, "canal") as (feed, lake):
        first = [one(put("k", A), put("m", {"v": "x"})), one(put("k", B, A)), one(put("k", C, B))]
        publish(lake, feed.put(lake, {0: first}))
        again = feed.put(lake, {0: [first[1], first[2], one(put("k", {"id": "2", "v": "n"}), put("m", {"v": "x"}))]}, first={0: 1})
        publish(lake, again)
        assert rows_of(lake, "d.k") == table(("1", "c"), ("2", "n")), "offsets 1 and 2 came with the hour before"
        assert rows_of(lake, "d.m") == table(*[("x",)] * 2, names=("v",))
        publish(lake, feed.put(lake, {0: [first[0], first[1]]}))
        assert rows_of(lake, "d.k") == table(("1", "b"), ("2", "n")), "inside a repeat under new offsets an earlier value shows"
        assert rows_of(lake, "d.m") == table(*[("x",)] * 3, names=("v",))
        publish(lake, feed.put(lake, {0: [first[2]]}))
        assert rows_of(lake, "d.k") == table(("1", "c"), ("2", "n")), "at its end the table is right"
        said = read_certificate(lake.store, feed.feed.name, 1)
        assert [f["code"] for f in said["findings"]] == ["ORDERED_BY_OFFSETS"]
        assert [(f.code, f.severity) for f in hour_facts(lake, again).findings] == [("ORDERED_BY_OFFSETS", "info")]


def test_a_partition_by_key_is_not_emptied_as_tidb_would_where_the_source_may_be_mysql(tmp_path: Path) -> None:
    by = "ALTER TABLE k PARTITION BY KEY () PARTITIONS 2"
    with opened(tmp_path, "canal") as (feed, lake):
        publish(lake, feed.put(lake, {0: [one(ddl("k", by)), one(put("k", A))]}))
        hour = feed.put(lake, {0: [one(ddl("k", "ALTER TABLE k TRUNCATE PARTITION p0"))]})
        with pytest.raises(OrderError, match=r"a partition of d\.k cannot be determined: it is partitioned by KEY") as error:
            publish(lake, hour)
        assert error.value.code == "UNSUPPORTED_DDL"
        assert rows_of(lake, "d.k") == table(("1", "a"))


def test_what_comes_after_its_hour_is_late_and_what_was_there_is_a_replay(tmp_path: Path) -> None:
    with opened(tmp_path, "canal") as (feed, lake):
        made = [one(put("k", A)), one(put("k", {"id": "2", "v": "n"})), one(put("k", {"id": "3", "v": "late"}))]
        hour = feed.put(lake, {0: made[:2]})
        publish(lake, hour)
        feed.again_with(lake, hour, {0: list(enumerate(made))})
        publish(lake, feed.put(lake, {0: [one(put("k", B, A))]}, first={0: 3}))
        assert rows_of(lake, "d.k") == table(("1", "b"), ("2", "n"))
        assert [(r["verdict"], r["offset"]) for r in late_rows(lake.catalog, lake.feed.name)] == [("late", 2)]
        said = read_certificate(lake.store, feed.feed.name, 2)
        assert (said["late"], said["incomplete"]) == ({"d.k": {"replays": 2, "late": 1}}, True)


def test_a_table_of_two_partitions_stops_the_feed_or_leaves_it_incomplete(tmp_path: Path) -> None:
    shares = {0: sent("canal", [[put("k", A)]]), 1: sent("canal", [[put("k", {"id": "2", "v": "n"})]])}
    with opened(tmp_path / "a", "canal") as (feed, lake):
        hour = feed.put(lake, shares)
        with pytest.raises(OrderError, match=r"TWO_PARTITIONS: rows of d\.k come from t\[0\] and from t\[1\]"):
            publish(lake, hour)
    with opened(tmp_path / "b", "canal", one_partition_per="none") as (feed, lake):
        cut = publish(lake, feed.put(lake, shares))
        assert cut is not None
        assert cut.incomplete
        assert rows_of(lake, "d.k") == table(("1", "a"), ("2", "n"))


def stepped(rows: dict[str, str], wish: tuple[str, str, str, str]) -> list[Step]:
    """What of a wish (put, delete or move; key, other key, value) is possible, done to the rows."""
    kind, key, other, value = wish
    before = {"id": key, "v": rows[key]} if key in rows else None
    if kind == "p":
        rows[key] = value
        return [put("k", {"id": key, "v": value}, before)]
    if before is None or (kind == "m" and other in rows):
        return []
    del rows[key]
    if kind == "d":
        return [drop("k", before)]
    rows[other] = value
    return [put("k", {"id": other, "v": value}, before)]


@settings(max_examples=6, derandomize=True, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(
    wishes=st.lists(st.lists(st.lists(STEPS, min_size=1, max_size=9), min_size=1, max_size=8), min_size=1, max_size=3),
    protocol=st.sampled_from(["canal", "canal-json", "maxwell"]),
)
def test_every_place_in_the_stream_is_the_truth_of_the_steps_up_to_it(
    wishes: list[list[list[tuple[str, str, str, str]]]], protocol: str
) -> None:
    rows: dict[str, str] = {}
    truth, places = Truth(), dict[int, Counter[tuple[tuple[str, object], ...]]]()
    with TemporaryDirectory() as folder, opened(Path(folder), protocol, 1) as (feed, lake):
        for share in wishes:
            steps = [[s for wish in message for s in stepped(rows, wish)] for message in share]
            steps = [some for some in steps if some]
            messages = [encoded(protocol, some) for some in steps]
            begin = feed.offsets[0]
            hour = feed.put(lake, {0: [m for some in messages for m in some]})
            publish(lake, hour)
            places |= places_of(lake, hour, begin, steps, messages, truth)
            assert rows_of(lake, "d.k") == truth.of("k")
        for ts in sorted(places)[:: max(1, len(places) // 4)]:
            assert rows_of(lake, "d.k", ts) == places[ts], f"at {ts}"


def places_of(
    lake: Lake, hour: str, begin: int, steps: Sequence[Sequence[Step]], messages: Sequence[Sequence[Sent]], truth: Truth
) -> dict[int, Counter[tuple[tuple[str, object], ...]]]:
    """The table after each group of messages, by the last ts of its last one."""
    manifest, out = newest(lake.store, lake.feed.name, hour), {}
    assert manifest is not None
    for some, group in zip(steps, messages, strict=True):
        for step in some:
            truth.apply(step)
        begin += len(group)
        ((_, _, origin),) = origins(manifest)
        out[origin + (begin << 8) - 1] = truth.of("k")
    return out

"""The storage sink's files by hour: which hour takes a file, and what stays as it was when others come."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.land.archive import HOUR, codes, landed
from tests.land.sink_folder import DAY, START, checkpoint, put, sink
from tidelake.archives import layout_of
from tidelake.archives.storage_sink import DataFile
from tidelake.config.feed import Feed
from tidelake.errors import ConfigError, LeaseError, OrderError, StorageError
from tidelake.io.storage import open_store
from tidelake.land import sink_hours
from tidelake.land.hour import land_hour
from tidelake.land.listing import lister
from tidelake.land.store.coverage import coverage
from tidelake.land.store.manifest import all_newest
from tidelake.tso import end_ts, from_ms

NEXT = HOUR + timedelta(hours=1)
PARTITION = DataFile("shop", "orders", 441, 0, "2026-01-05", "", 1, "", 0, "").partition
LATER = from_ms(int(NEXT.timestamp() * 1000))


def offsets(feed: Feed) -> dict[str, dict[str, dict[int, list[tuple[int, int]]]]]:
    """Landed ranges by hour, topic and partition; an offset as (number of the file, line)."""
    return {
        hour[-2:]: {
            t: {p: [(o >> 32, o & 0xFFFFFFFF) for r in facts.ranges for o in range(r[0], r[1] + 1)] for p, facts in ps.items()}
            for t, ps in m.partitions.items()
        }
        for hour, m in all_newest(open_store(feed.lake.uri), feed.name).items()
    }


def test_an_hour_is_landed_when_the_checkpoint_has_passed_it(tmp_path: Path) -> None:
    feed = sink(tmp_path)
    put(feed, 1, START)
    for ts in (None, START, end_ts(HOUR) - 1):
        if ts is not None:
            checkpoint(feed, ts)
        with pytest.raises(StorageError, match=r"HOUR_OPEN: the storage sink .* before the end of hour 2026-01-05T10"):
            land_hour(feed, HOUR)
    assert offsets(feed) == {}
    checkpoint(feed, end_ts(HOUR))
    assert land_hour(feed, HOUR).messages == 1


def test_an_hour_takes_the_files_up_to_the_last_one_with_a_row_of_it(tmp_path: Path) -> None:
    feed = sink(tmp_path)
    put(feed, 1, START, START + 1)
    put(feed, 2, LATER)  # of another part of the table, in the same folder
    put(feed, 3, end_ts(HOUR), LATER + 5)
    put(feed, 4, LATER)
    put(feed, 1, LATER, folder="shop/lines/7/2026-01-05")
    checkpoint(feed, LATER + 10)
    land_hour(feed, HOUR)
    assert offsets(feed) == {"10": {"shop.orders": {PARTITION: [(1, 0), (1, 1), (2, 0), (3, 0), (3, 1)]}}}
    checkpoint(feed, end_ts(NEXT))
    land_hour(feed, NEXT)
    assert offsets(feed)["11"]["shop.orders"] == {PARTITION: [(4, 0)]}
    assert [len(ps) for ps in offsets(feed)["11"].values()] == [1, 1]
    (found,) = (
        m
        for name, m in landed(feed, all_newest(open_store(feed.lake.uri), feed.name)["2026-01-05T11"], tmp_path).items()
        if "orders" in str(name)
    )
    assert [(m.key, m.value) for m in found] == [(None, b'{"data":[{"a":"\\"commitTs\\":1"}],"_tidb":{"commitTs":%d}}' % LATER)]


def test_rows_that_are_written_again_belong_to_the_next_hour(tmp_path: Path) -> None:
    feed = sink(tmp_path)
    put(feed, 1, START)
    checkpoint(feed, end_ts(NEXT))
    land_hour(feed, HOUR)
    put(feed, 2, START)
    again = land_hour(feed, HOUR)
    assert (again.new, again.messages) == (False, 1)
    land_hour(feed, NEXT)
    assert offsets(feed) == {"10": {"shop.orders": {PARTITION: [(1, 0)]}}, "11": {"shop.orders": {PARTITION: [(2, 0)]}}}


def test_a_missing_file_is_a_gap_and_takes_its_place_when_it_is_back(tmp_path: Path) -> None:
    feed = sink(tmp_path)
    put(feed, 1, START)
    put(feed, 3, START + 2)
    checkpoint(feed, end_ts(HOUR))
    with pytest.raises(OrderError, match=r"^GAP .*files 2 are missing \(1 file\)"):
        land_hour(feed, HOUR)
    put(feed, 2, START + 1, START + 1)
    report = land_hour(feed, HOUR)
    assert (report.generation, [f.code for f in report.findings]) == (2, ["SINK_INDEX", "LATE_FILE"])
    assert offsets(feed)["10"]["shop.orders"] == {PARTITION: [(1, 0), (2, 0), (2, 1), (3, 0)]}
    found = coverage(all_newest(open_store(feed.lake.uri), feed.name).values(), file_bits=32)
    assert (found.prefixes, found.holes) == ({"shop.orders": {PARTITION: (1, 3)}}, {})


def test_who_lands_an_hour_again_takes_the_files_that_were_taken_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = sink(tmp_path)
    put(feed, 1, START)
    checkpoint(feed, end_ts(NEXT))
    with monkeypatch.context() as patched:
        patched.setattr("tidelake.land.hour.record", killed)
        with pytest.raises(KeyboardInterrupt):
            land_hour(feed, HOUR)
    slow = lister(feed, open_store(feed.source.uri), open_store(feed.lake.uri), NEXT, layout_of("storage-sink"))
    assert [o.number for o in slow().objects] == [1]  # it looks before the hour is landed
    put(feed, 2, START)
    assert land_hour(feed, HOUR).messages == 1
    land_hour(feed, NEXT)
    with pytest.raises(LeaseError, match="LANDED_MEANWHILE"):
        slow.record()
    assert offsets(feed)["11"] == {"shop.orders": {PARTITION: [(2, 0)]}}


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_index_that_names_another_file_than_the_newest_is_told(tmp_path: Path) -> None:
    feed = sink(tmp_path)
    put(feed, 1, START)
    checkpoint(feed, end_ts(HOUR))
    for named, said in ((1, []), (2, [("SINK_INDEX", "warning")])):
        open_store(feed.source.uri).write(f"{DAY}/meta/CDC.index", f"CDC{named:020d}.json\n".encode())
        assert codes(land_hour(feed, HOUR).findings) == said


@pytest.mark.parametrize(("written", "patience", "lost"), [(30, 10**6, True), (61, 10**6, False), (61, 15, True)])
def test_the_newest_file_is_lost_once_it_cannot_come_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int, patience: int, lost: bool
) -> None:
    feed = sink(tmp_path)
    put(feed, 1, START)
    index(feed, 3, HOUR + timedelta(minutes=written))
    index(feed, 9, HOUR, folder="other/orders/441/2026-01-05")  # of no topic of the feed
    checkpoint(feed, end_ts(HOUR))
    monkeypatch.setattr(sink_hours, "SINK_PATIENCE", timedelta(minutes=patience))
    if not lost:
        assert codes(land_hour(feed, HOUR).findings) == [("SINK_INDEX", "warning")] * 2
        return
    with pytest.raises(OrderError) as caught:
        land_hour(feed, HOUR)
    said = f"{DAY}: the index names CDC{3:020d}.json, and the newest file is number 1;"
    assert str(caught.value).startswith(f"GAP shop.orders[{PARTITION}]@{2 << 32}: hour 2026-01-05T10: {said}")
    assert (caught.value.exit_code, offsets(feed)) == (3, {})
    put(feed, 2, START)
    put(feed, 3, START + 1)
    assert codes(land_hour(feed, HOUR).findings) == [("SINK_INDEX", "warning")]  # the other one
    assert offsets(feed)["10"]["shop.orders"] == {PARTITION: [(1, 0), (2, 0), (3, 0)]}


def test_a_lost_file_that_does_not_block_is_told_for_a_day_and_belongs_to_the_next_hour_when_it_is_back(tmp_path: Path) -> None:
    feed = sink(tmp_path)
    warns = feed.model_copy(update={"policy": feed.policy.model_copy(update={"on_gap": "warn"})})
    put(feed, 1, START)
    index(feed, 2, HOUR)
    day = HOUR + timedelta(hours=24)
    checkpoint(feed, end_ts(day))
    report = land_hour(warns, HOUR)
    assert codes(report.findings) == [("GAP", "warning")]
    with pytest.raises(
        OrderError, match=rf"^GAP shop.orders\[{PARTITION}\]@{2 << 32}: hour 2026-01-05T10: {DAY}: the index names .* only up to the gap$"
    ):
        land_hour(feed, HOUR)  # judged again, by another policy
    assert codes(land_hour(warns, NEXT).findings) == [("GAP", "warning"), ("EMPTY", "info")]
    put(feed, 2, START)
    assert land_hour(feed, NEXT + timedelta(hours=1)).messages == 1
    open_store(feed.source.uri).delete(f"{DAY}/CDC{2:020d}.json")
    assert codes(land_hour(feed, day).findings) == [("SINK_INDEX", "warning"), ("EMPTY", "info")]


def test_a_lost_file_behind_rows_of_later_hours_says_nothing_of_this_one(tmp_path: Path) -> None:
    feed = sink(tmp_path)
    put(feed, 1, START)
    put(feed, 2, LATER)
    index(feed, 3, HOUR)
    checkpoint(feed, end_ts(NEXT))
    assert codes(land_hour(feed, HOUR).findings) == [("SINK_INDEX", "warning")]
    with pytest.raises(OrderError, match=r"^GAP .*the newest file is number 2"):
        land_hour(feed, NEXT)


def index(feed: Feed, number: int, written: datetime, folder: str = DAY) -> None:
    """An index of that time."""
    key = f"{folder}/meta/CDC.index"
    open_store(feed.source.uri).write(key, f"CDC{number:020d}.json\n".encode())
    os.utime(f"{feed.source.uri}/{key}", (written.timestamp(), written.timestamp()))


def test_hours_are_landed_in_order(tmp_path: Path) -> None:
    feed = sink(tmp_path)
    checkpoint(feed, end_ts(NEXT))
    land_hour(feed, NEXT)
    with pytest.raises(OrderError, match=r"HOUR_ORDER: hour 2026-01-05T10 .* was not landed before hour 2026-01-05T11"):
        land_hour(feed, HOUR)


def test_lines_without_a_commit_ts_are_refused_with_the_option(tmp_path: Path) -> None:
    feed = sink(tmp_path)
    open_store(feed.source.uri).write(f"{DAY}/CDC{1:020d}.json", b'{"data":[{"a":"\\"_tidb\\":{\\"commitTs\\":1"}]}\n')
    checkpoint(feed, end_ts(HOUR))
    with pytest.raises(ConfigError, match=r"ARCHIVE_LAYOUT.* a line has no commit ts; set enable-tidb-extension=true"):
        land_hour(feed, HOUR)


def test_lines_of_csv_keep_their_ends_and_say_the_table_version(tmp_path: Path) -> None:
    feed = sink(tmp_path, "csv")
    content = f'ticdc-meta$operation,ticdc-meta$table,x\r\n"I","a,""b","shop",{START},"two\r\nlines"\r\nD,orders,shop,{START + 1},\\N\r\n'
    open_store(feed.source.uri).write(f"{DAY}/CDC{1:020d}.csv", content.encode())
    checkpoint(feed, end_ts(HOUR))
    land_hour(feed, HOUR)
    (found,) = landed(feed, all_newest(open_store(feed.lake.uri), feed.name)["2026-01-05T10"], tmp_path).values()
    assert b"".join(m.value or b"" for m in found) == content.encode()
    assert [m.key for m in found] == [b"441"] * 3

"""Landing an hour: what is written, and what happens when it is landed again."""

from __future__ import annotations

import gzip
import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.archives.objects import WRITERS, Message, protocol, suited
from tests.archives.objects import confluent as confluent_json
from tests.conftest import FreshUri
from tests.land.archive import HOUR, TOPIC, archive, at, codes, contents, lake, landed, make_feed, manifest, messages, put
from tidelake.config.feed import Feed
from tidelake.errors import ConfigError, LeaseError, OrderError, StorageError
from tidelake.history.event import MESSAGE
from tidelake.io.storage import Store
from tidelake.land import hour, land_hour
from tidelake.land.hour import LandReport
from tidelake.land.store.manifest import SourceFile


def filled(root: Path | str) -> Feed:
    """A feed with two partitions of 30 and 20 messages in two objects and one."""
    feed = make_feed(root)
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(10, 29))
    put(feed, 1, messages(0, 19, "w"))
    return feed


def check(feed: Feed, report: LandReport, folder: Path) -> None:
    assert (report.hour, report.generation, report.new, report.messages, report.sources) == ("2026-01-05T10", 1, True, 50, 3)
    assert (report.objects_written, report.objects_kept, report.findings) == (2, 0, ())
    found = manifest(feed)
    assert landed(feed, found, folder) == {(TOPIC, 0): messages(0, 29), (TOPIC, 1): messages(0, 19, "w")}
    assert report.bytes == sum(len(m.key or b"") + len(m.value or b"") for m in [*messages(0, 29), *messages(0, 19)])


def test_an_hour_lands_as_one_sorted_object_a_partition_and_a_manifest(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    check(feed, land_hour(feed, HOUR), tmp_path)
    keys = [info.key for info in lake(feed).objects()]
    assert [key.rpartition("-")[0] for key in keys[:2]] == [
        "landed/small/shop/hour=2026-01-05T10/partition=0/00000000000000000000-00000000000000000029",
        "landed/small/shop/hour=2026-01-05T10/partition=1/00000000000000000000-00000000000000000019",
    ]
    assert keys[2:] == ["manifests/small/hour=2026-01-05T10/000001.json"]


def test_an_hour_lands_from_s3_into_s3(s3: FreshUri, tmp_path: Path) -> None:
    feed = filled(s3("land"))
    check(feed, land_hour(feed, HOUR), tmp_path)
    before = contents(lake(feed))
    assert land_hour(feed, HOUR).new is False
    assert contents(lake(feed)) == before


def test_a_canonical_object_says_what_it_holds_and_is_named_after_its_content(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    land_hour(feed, HOUR)
    item = manifest(feed).objects[0]
    content = lake(feed).read(item.key)
    digest = hashlib.sha256(content).hexdigest()
    assert (item.sha256, item.size, item.key.endswith(f"-{digest[:16]}.parquet")) == (digest, len(content), True)
    (tmp_path / "object").write_bytes(content)
    file = pq.ParquetFile(tmp_path / "object")
    assert file.schema_arrow.equals(MESSAGE)
    assert {k: v for k, v in file.metadata.metadata.items() if k.startswith(b"tidelake")} == {
        b"tidelake.first": b"0",
        b"tidelake.last": b"29",
        b"tidelake.count": b"30",
    }
    assert file.metadata.row_group(0).column(5).compression == "ZSTD"


def test_the_manifest_names_sources_objects_and_offsets(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    land_hour(feed, HOUR)
    found = manifest(feed)
    assert (found.feed, found.hour, found.generation, found.protocol, found.layout) == ("small", "2026-01-05T10", 1, "craft", "aiven-jsonl")
    infos = list(archive(feed).objects())
    assert found.sources == tuple(
        SourceFile(key=i.key, size=i.size, etag=i.etag, sha256=hashlib.sha256(archive(feed).read(i.key)).hexdigest()) for i in infos
    )
    facts = found.partitions[TOPIC][0]
    assert (facts.first, facts.last, facts.count, facts.ranges, facts.gaps) == (0, 29, 30, ((0, 29),), ())
    assert (facts.min_timestamp_ms, facts.max_timestamp_ms) == (1_767_607_200_000, 1_767_607_200_029)
    assert [(o.first, o.last, o.count) for o in found.objects] == [(0, 29, 30), (0, 19, 20)]
    assert sum(o.bytes for o in found.objects) == sum(p.bytes for p in found.partitions[TOPIC].values())


def test_landing_again_changes_nothing_and_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = filled(tmp_path)
    land_hour(feed, HOUR)
    before = contents(lake(feed))
    monkeypatch.setattr(Store, "download", lambda *_: pytest.fail("the archive was read again"))
    report = land_hour(feed, HOUR)
    assert (report.new, report.generation, report.messages, report.objects_written, report.objects_kept) == (False, 1, 50, 0, 2)
    assert contents(lake(feed)) == before


def test_an_archive_that_was_copied_without_a_change_makes_no_generation(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    land_hour(feed, HOUR)
    before = contents(lake(feed))
    for info in list(archive(feed).objects()):
        archive(feed).write(info.key, archive(feed).read(info.key))
    report = land_hour(feed, HOUR)
    assert (report.new, report.generation, report.objects_written) == (False, 1, 0)
    assert contents(lake(feed)) == before


def test_a_late_file_makes_a_second_generation_and_the_first_stays(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    land_hour(feed, HOUR)
    before = contents(lake(feed))
    put(feed, 1, messages(20, 24, "w"))
    report = land_hour(feed, HOUR)
    assert (report.generation, report.new, report.messages, report.objects_written, report.objects_kept) == (2, True, 55, 1, 1)
    assert codes(report.findings) == [("LATE_FILE", "warning")]
    assert report.findings[0].detail == "since generation 1: 1 object appeared, 0 disappeared; new: shop[1] 20–24 (5 messages)"
    after = contents(lake(feed))
    assert before.items() <= after.items()
    assert landed(feed, manifest(feed), tmp_path)[TOPIC, 1] == messages(0, 24, "w")
    again = land_hour(feed, HOUR)
    assert (again.new, again.findings) == (False, report.findings)


def test_an_object_that_was_overwritten_by_a_larger_one_makes_a_second_generation(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    land_hour(feed, HOUR)
    key = put(feed, 1, messages(0, 29, "w"))
    report = land_hour(feed, HOUR)
    assert (report.generation, report.messages, codes(report.findings)) == (2, 60, [("CHANGED_AFTER_LANDING", "warning")])
    assert report.findings[0].detail == f"since generation 1: other bytes in {key}; new: shop[1] 20–29 (10 messages)"
    assert land_hour(feed, HOUR).findings == report.findings


def test_an_archive_that_lost_what_was_landed_makes_no_generation(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    land_hour(feed, HOUR)
    before = contents(lake(feed))
    archive(feed).delete(next(archive(feed).objects()).key)
    with pytest.raises(OrderError) as caught:
        land_hour(feed, HOUR)
    assert str(caught.value) == (
        "VANISHED shop[0]@0: hour 2026-01-05T10: offsets 0–9 are in generation 1 and no longer in the archive; "
        "restore the archive's objects; generation 1 stays valid"
    )
    assert {key: value for key, value in contents(lake(feed)).items() if key in before} == before
    assert manifest(feed).generation == 1


@pytest.mark.parametrize("layout", list(WRITERS))
def test_every_layout_lands(layout: str, tmp_path: Path) -> None:
    feed = make_feed(tmp_path, protocol=protocol(layout), partitions=1, source={"uri": f"{tmp_path}/archive", "layout": layout})
    whole = suited(layout, messages(0, 149))
    objects = [(put(feed, 0, part), part) for part in (whole[:100], whole[100:])]
    if feed.protocol == "open":
        for key, part in objects:
            archive(feed).write(key.replace(".bin", ".keys.json"), confluent_json([m._replace(value=m.key) for m in part]))
    report = land_hour(feed, HOUR)
    assert (report.messages, report.sources) == (150, 4 if feed.protocol == "open" else 2)
    (found,) = landed(feed, manifest(feed), tmp_path).values()
    assert [(m.offset, m.value) for m in found] == [(m.offset, m.value) for m in whole]


def test_an_hour_of_an_idle_feed_with_recorded_checkpoints_lands_empty(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, watermark={"from": "checkpoints", "uri": "x"})
    put(feed, 0, messages(0, 9), hours=1)
    report = land_hour(feed, HOUR)
    assert (report.new, report.messages, report.sources, report.objects_written) == (True, 0, 0, 0)
    assert codes(report.findings) == [("MISSING_PARTITION", "info"), ("MISSING_PARTITION", "info"), ("EMPTY", "info")]
    assert manifest(feed).partitions == {}
    assert land_hour(feed, HOUR).new is False


def test_progress_counts_the_archives_bytes(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    calls: list[tuple[int, int]] = []
    land_hour(feed, HOUR, lambda done, total: calls.append((done, total)))
    sizes = [info.size for info in archive(feed).objects()]
    assert [total for _, total in calls] == [sum(sizes)] * 3
    assert sorted(done for done, _ in calls) == [done for done, _ in calls]
    assert calls[-1][0] == sum(sizes)


def test_topics_of_a_pattern_land_side_by_side_and_count_from_their_first_hour(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, topics=("/shop_.*/",), partitions=1)
    put(feed, 0, messages(0, 4), topic="shop_a")
    put(feed, 0, messages(5, 9), topic="shop_a", hours=1)
    put(feed, 0, messages(0, 2), topic="shop_b", hours=1)
    assert land_hour(feed, at(0)).messages == 5
    assert land_hour(feed, at(1)).messages == 8
    assert list(manifest(feed, "2026-01-05T11").partitions) == ["shop_a", "shop_b"]


def test_a_damaged_record_blocks_the_hour_and_nothing_of_it_is_recorded(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    key = put(feed, 1, messages(20, 24), zipped=False)
    archive(feed).write(key, archive(feed).read(key).replace(b'"offset":22', b'"offset":*'))
    with pytest.raises(OrderError, match=rf"DAMAGED_OBJECT: {key.replace('+', '.')}, line 3: not a JSON object") as caught:
        land_hour(feed, HOUR)
    assert caught.value.exit_code == 3
    assert [info.key for info in lake(feed).objects("manifests/")] == []


def test_a_truncated_object_fails_the_hour_and_nothing_of_it_is_recorded(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    key = put(feed, 1, messages(20, 24))
    archive(feed).write(key, archive(feed).read(key)[:-5])
    with pytest.raises(StorageError, match=r"BAD_OBJECT: .*Truncated"):
        land_hour(feed, HOUR)
    assert [info.key for info in lake(feed).objects("manifests/")] == []


def test_an_archive_that_grows_while_it_is_landed_is_landed_again_not_recorded(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    late: list[str] = []
    with pytest.raises(StorageError, match=r"SOURCE_CHANGED: .* the archiver was still writing: land the hour again"):
        land_hour(feed, HOUR, lambda *_: late.append(put(feed, 1, messages(20, 24, "w"))))
    assert late
    assert land_hour(feed, HOUR).messages == 55


def test_an_object_that_is_replaced_between_listing_and_reading_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = filled(tmp_path)
    download = Store.download

    def replaced(store: Store, key: str, path: Path) -> str:
        archive(feed).write(key, archive(feed).read(key) + b"more")
        return download(store, key, path)

    monkeypatch.setattr(Store, "download", replaced)
    with pytest.raises(StorageError, match="SOURCE_CHANGED"):
        land_hour(feed, HOUR)
    assert [info.key for info in lake(feed).objects("manifests/")] == []


def test_a_manifest_that_another_run_wrote_meanwhile_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = filled(tmp_path)
    other = b'{"another": "manifest"}'
    record = hour.record

    def late(store: Store, found: object) -> None:
        store.write("manifests/small/hour=2026-01-05T10/000001.json", other)
        record(store, found)  # type: ignore[arg-type]

    monkeypatch.setattr(hour, "record", late)
    with pytest.raises(LeaseError, match=r"LANDED_MEANWHILE: .*another run landed .* at the same time; land the hour again"):
        land_hour(feed, HOUR)
    assert lake(feed).read("manifests/small/hour=2026-01-05T10/000001.json") == other
    with pytest.raises(StorageError, match="DAMAGED"):
        land_hour(feed, HOUR)


def test_two_runs_of_one_hour_at_once_agree(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda _: land_hour(feed, HOUR), range(2)))
    assert [(r.generation, r.messages) for r in reports] == [(1, 50), (1, 50)]
    assert len(list(lake(feed).objects())) == 3


def confluent(root: Path, protocol: str, layout: str = "confluent-json", **settings: Any) -> Feed:
    return make_feed(root, protocol=protocol, source={"uri": f"{root}/archive", "layout": layout}, **settings)


def test_a_protocol_that_needs_keys_is_refused_where_they_do_not_lie_beside_the_values(tmp_path: Path) -> None:
    feed = confluent(tmp_path, "open", partitions=1)
    key = put(feed, 0, messages(0, 2))
    with pytest.raises(ConfigError, match=rf"KEYS_LOST: protocol 'open' needs Kafka keys, and {re.escape(key)} has no \.keys object"):
        land_hour(feed, HOUR)
    beside = key.replace(".json", ".keys.json")
    archive(feed).write(beside, gzip.compress(b'"YQ=="\n"Yg=="\n"Yw=="\n', mtime=0))
    report = land_hour(feed, HOUR)
    assert codes(report.findings) == [("NO_OFFSETS", "info"), ("TOMBSTONES_LOST", "info"), ("LOSSY_LAYOUT", "info")]
    found = manifest(feed)
    assert [m.key for m in landed(feed, found, tmp_path)["shop", 0]] == [b"a", b"b", b"c"]
    assert [source.key for source in found.sources] == [key, beside]
    assert land_hour(feed, HOUR).new is False
    archive(feed).write(beside, gzip.compress(b'"YQ=="\n"Yg=="\n"eA=="\n', mtime=0))
    assert (land_hour(feed, HOUR).generation, land_hour(feed, HOUR).new) == (2, False)


@pytest.mark.parametrize(
    ("protocol", "layout", "problem"),
    [
        ("avro", "confluent-json", "protocol 'avro' writes deletes as null values, which layout 'confluent-json' loses"),
        ("craft", "confluent-json-string", "layout 'confluent-json-string' does not keep messages of protocol 'craft' whole"),
        ("csv", "confluent-json-nested", "layout 'confluent-json-nested' does not keep messages of protocol 'csv' whole"),
    ],
)
def test_a_protocol_whose_messages_a_layout_spoils_is_refused(protocol: str, layout: str, problem: str, tmp_path: Path) -> None:
    more = {"avro": {"schemas": "x"}, "watermark": {"from": "checkpoints", "uri": "x"}} if protocol == "avro" else {}
    with pytest.raises(ConfigError, match=problem):
        land_hour(confluent(tmp_path, protocol, layout, **more), HOUR)


def test_temporary_files_are_gone_after_an_hour_whether_it_landed_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    feed = filled(tmp_path)
    land_hour(feed, HOUR)
    key = put(feed, 0, [Message(0, b"x")], hours=1)
    archive(feed).write(key, b"\x1f\x8bbroken")
    with pytest.raises(StorageError):
        land_hour(feed, HOUR + timedelta(hours=1))
    assert list(scratch.iterdir()) == []

"""What a person sees when an hour is not whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.archives.objects import Message
from tests.land.archive import HOUR, archive, at, codes, lake, landed, make_feed, manifest, messages, put
from tidelake.config.feed import Feed
from tidelake.errors import ConfigError, Coordinates, OrderError
from tidelake.land import land_hour
from tidelake.land.findings import CODES, REMEDIES
from tidelake.land.store.coverage import coverage
from tidelake.land.store.manifest import Manifest

BRING_BACK = (
    'restore the missing file and land the hour again, or set [policy] on_gap = "warn": the resolved ts then counts only up to the gap'
)


def feed_of(tmp_path: Path, **settings: Any) -> Feed:
    return make_feed(tmp_path, **({"partitions": 1} | settings))


def blocked(feed: Feed, hours: int = 0) -> OrderError:
    with pytest.raises(OrderError) as caught:
        land_hour(feed, at(hours))
    assert caught.value.exit_code == 3
    return caught.value


def test_a_gap_inside_an_hour_blocks_and_says_where_and_what_to_do(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, messages(0, 9))
    middle = put(feed, 0, messages(10, 19))
    put(feed, 0, messages(20, 29))
    content = archive(feed).read(middle)
    archive(feed).delete(middle)
    error = blocked(feed)
    assert str(error) == f"GAP shop[0]@10: hour 2026-01-05T10: offsets 10–19 are missing (10 messages); {BRING_BACK}"
    found = manifest(feed)
    assert (found.partitions["shop"][0].ranges, found.partitions["shop"][0].gaps) == (((0, 9), (20, 29)), ((10, 19),))
    assert len(landed(feed, found, tmp_path)["shop", 0]) == 20
    archive(feed).write(middle, content)
    report = land_hour(feed, HOUR)
    assert (report.generation, report.messages, codes(report.findings)) == (2, 30, [("LATE_FILE", "warning")])


def test_a_gap_is_only_a_warning_where_the_feed_says_so(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, policy={"on_gap": "warn"})
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(15, 19))
    (finding,) = land_hour(feed, HOUR).findings
    assert (finding.code, finding.severity, finding.topic, finding.partition, finding.offset) == ("GAP", "warning", "shop", 0, 10)


def test_an_hour_must_continue_where_the_one_before_ended(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, messages(0, 9))
    lost = put(feed, 0, messages(10, 19))
    content = archive(feed).read(lost)
    archive(feed).delete(lost)
    put(feed, 0, messages(20, 29), hours=1)
    assert land_hour(feed, at(0)).findings == ()
    assert blocked(feed, 1).message == "hour 2026-01-05T11: offsets 10–19 are missing (10 messages)"
    archive(feed).write(lost, content)
    assert land_hour(feed, at(0)).messages == 20
    report = land_hour(feed, at(1))
    assert (report.new, report.findings) == (False, ())


def test_an_hour_whose_neighbour_is_not_landed_is_not_judged_by_hours_further_back(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    for hours in range(3):
        put(feed, 0, messages(hours * 10, hours * 10 + 9), hours=hours)
    land_hour(feed, at(0))
    assert land_hour(feed, at(2)).findings == ()
    assert land_hour(feed, at(1)).findings == ()


def test_late_records_that_fill_a_hole_of_the_hour_before_are_no_gap(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, [*messages(0, 2), *messages(36, 36)])
    put(feed, 0, [*messages(3, 35), *messages(37, 40)], hours=1)
    assert codes(land_hour(feed, at(0)).findings) == [("GAP_AHEAD", "warning")]
    assert land_hour(feed, at(1)).findings == ()
    assert codes(land_hour(feed, at(0)).findings) == [("GAP_CLOSED", "info")]


def test_an_expected_partition_without_a_message_blocks_a_feed_whose_messages_carry_the_watermark(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=3)
    put(feed, 0, messages(0, 9))
    error = blocked(feed)
    assert (error.code, error.at) == ("MISSING_PARTITION", Coordinates("shop", 1))
    assert error.message == ("hour 2026-01-05T10: there is no message in the hour (and 1 more critical finding: MISSING_PARTITION shop[2])")
    assert "an idle partition still receives resolved events" in error.remedy
    assert codes(manifest(feed).findings) == [("MISSING_PARTITION", "critical")] * 2


@pytest.mark.parametrize(
    ("settings", "severity"),
    [
        ({"policy": {"on_gap": "warn"}}, "warning"),
        ({"watermark": {"from": "checkpoints", "uri": "x"}}, "info"),
    ],
)
def test_a_missing_partition_is_less_serious_where_nothing_waits_for_it(settings: dict[str, Any], severity: str, tmp_path: Path) -> None:
    feed = make_feed(tmp_path, **settings)
    put(feed, 0, messages(0, 9))
    assert codes(land_hour(feed, HOUR).findings) == [("MISSING_PARTITION", severity)]


def test_a_topic_that_was_never_seen_lacks_all_its_partitions(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, topics=("shop", "ghost"), partitions={"shop": 1, "ghost": 2})
    put(feed, 0, messages(0, 9))
    assert blocked(feed).at == Coordinates("ghost", 0)
    assert [(f.topic, f.partition) for f in manifest(feed).findings] == [("ghost", 0), ("ghost", 1)]


def test_an_hour_without_any_object_is_empty_and_lacks_every_partition(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, messages(0, 9), hours=1)
    assert blocked(feed).code == "MISSING_PARTITION"
    assert codes(manifest(feed).findings) == [("MISSING_PARTITION", "critical"), ("EMPTY", "info")]


def test_objects_without_a_single_record_do_not_hide_a_missing_partition(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    archive(feed).write("shop/dt=2026-01-05/hr=10/shop+0+0.jsonl", b"\n")
    assert blocked(feed).at == Coordinates("shop", 0)
    assert (manifest(feed).objects, manifest(feed).partitions["shop"][0].count, len(manifest(feed).sources)) == ((), 0, 1)


def test_a_partition_above_the_expected_number_always_blocks(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, policy={"on_gap": "warn"})
    put(feed, 0, messages(0, 9))
    put(feed, 1, messages(0, 9))
    error = blocked(feed)
    assert (error.code, error.at) == ("UNEXPECTED_PARTITION", Coordinates("shop", 1))
    assert error.message == "hour 2026-01-05T10: feed.toml sets 1 partition, counted from 0"


def test_a_topic_that_the_table_of_partitions_lacks_is_wrong_configuration(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, topics=("/sh.*/",), partitions={"other": 1})
    put(feed, 0, messages(0, 9))
    with pytest.raises(ConfigError, match="partitions: topic 'shop' is missing"):
        land_hour(feed, HOUR)


def test_an_unknown_file_in_the_hours_folder_is_a_warning_that_stays_and_goes_with_it(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    folder = put(feed, 0, messages(0, 9)).rpartition("/")[0]
    land_hour(feed, HOUR)
    archive(feed).write(f"{folder}/notes.txt", b"hello")
    report = land_hour(feed, HOUR)
    assert (report.new, codes(report.findings)) == (False, [("UNKNOWN_OBJECT", "warning")])
    assert report.findings[0].detail == f"not read, because the name does not match layout aiven-jsonl: {folder}/notes.txt"
    archive(feed).delete(f"{folder}/notes.txt")
    assert land_hour(feed, HOUR).findings == ()


def test_a_partition_that_does_not_begin_at_its_first_offset_is_a_warning_in_the_first_hour_only(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, messages(100, 109))
    put(feed, 0, messages(110, 119), hours=1)
    (finding,) = land_hour(feed, at(0)).findings
    assert (finding.code, finding.severity, finding.offset) == ("LATE_START", "warning", 100)
    assert finding.detail == "offsets before 100 were never landed"
    assert land_hour(feed, at(1)).findings == ()


@pytest.mark.parametrize(("layout", "severity"), [("aiven-jsonl", "warning"), ("confluent-json", "critical")])
def test_offsets_of_an_hour_before_are_told_and_block_where_offsets_come_from_names(layout: str, severity: str, tmp_path: Path) -> None:
    feed = feed_of(tmp_path, source={"uri": f"{tmp_path}/archive", "layout": layout})
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(7, 19), hours=1)
    land_hour(feed, at(0))
    findings = blocked(feed, 1) and manifest(feed, "2026-01-05T11").findings if severity == "critical" else land_hour(feed, at(1)).findings
    assert ("OVERLAP_HOURS", severity) in codes(findings)
    assert findings[0].detail == "offsets 7–9 were already landed with an earlier hour"


def test_layouts_that_lose_something_say_so_in_every_hour(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, source={"uri": f"{tmp_path}/archive", "layout": "confluent-json"})
    put(feed, 0, messages(0, 9))
    assert codes(land_hour(feed, HOUR).findings) == [
        ("NO_OFFSETS", "info"),
        ("TOMBSTONES_LOST", "info"),
        ("KEYS_LOST", "info"),
        ("LOSSY_LAYOUT", "info"),
    ]


def test_changing_the_policy_changes_the_judgement_without_a_new_generation(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(15, 19))
    assert blocked(feed).code == "GAP"
    assert blocked(feed).code == "GAP"
    report = land_hour(feed_of(tmp_path, policy={"on_gap": "warn"}), HOUR)
    assert (report.generation, report.new, codes(report.findings)) == (1, False, [("GAP", "warning")])


@pytest.mark.parametrize(
    ("action", "severity"),
    [("warn", "warning"), ("ignore", "info")],
)
def test_a_feed_says_what_a_finding_does_and_none_is_ever_hidden(action: str, severity: str, tmp_path: Path) -> None:
    feed = feed_of(tmp_path, policy={"on_finding": {"GAP": action}})
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(15, 19))
    report = land_hour(feed, HOUR)
    assert (report.new, codes(report.findings)) == (True, [("GAP", severity)])
    assert report.findings[0].detail == "offsets 10–14 are missing (5 messages)"
    assert manifest(feed).findings == report.findings


def test_what_a_feed_says_of_a_code_goes_before_on_gap_and_for_that_code_only(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, policy={"on_gap": "warn", "on_finding": {"GAP": "block"}})
    put(feed, 0, [*messages(0, 4), *messages(6, 9)])
    assert blocked(feed).code == "GAP"
    assert codes(manifest(feed).findings) == [("GAP", "critical"), ("MISSING_PARTITION", "warning")]


def test_what_is_only_told_by_default_blocks_if_the_feed_says_so(tmp_path: Path) -> None:
    source = {"uri": f"{tmp_path}/archive", "layout": "confluent-json"}
    feed = feed_of(tmp_path, source=source, policy={"on_finding": {"TOMBSTONES_LOST": "block"}})
    put(feed, 0, messages(0, 9))
    error = blocked(feed)
    assert (error.code, error.at) == ("TOMBSTONES_LOST", None)
    assert error.message == "hour 2026-01-05T10: layout confluent-json loses information: a null value stops the connector, or is left out"


def test_a_conflict_that_only_warns_stays_a_hole(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, policy={"on_finding": {"OVERLAP_CONFLICT": "warn"}})
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(5, 5, "other"), name=5)
    report = land_hour(feed, HOUR)
    assert codes(report.findings) == [("OVERLAP_CONFLICT", "warning")]
    assert (report.messages, manifest(feed).partitions["shop"][0].ranges) == (9, ((0, 4), (6, 9)))
    assert coverage([manifest(feed)]).prefixes == {"shop": {0: (0, 4)}}


def test_a_late_file_blocks_where_the_feed_wants_to_decide_and_goes_on_once_it_did(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, policy={"on_finding": {"LATE_FILE": "block"}})
    put(feed, 0, messages(0, 9))
    land_hour(feed, HOUR)
    put(feed, 0, messages(10, 19))
    assert (blocked(feed).code, blocked(feed).code, manifest(feed).generation) == ("LATE_FILE", "LATE_FILE", 2)
    report = land_hour(feed_of(tmp_path), HOUR)
    assert (report.new, codes(report.findings)) == (False, [("LATE_FILE", "warning")])


def test_every_finding_has_a_remedy(tmp_path: Path) -> None:
    assert all(REMEDIES[code] for code in CODES)
    assert lake(feed_of(tmp_path)).folders() == []


def test_objects_without_timestamps_or_keys_are_counted(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, protocol="open")
    put(feed, 0, messages(0, 4))
    put(feed, 0, [Message(i, b"v", None, None) for i in range(5, 10)])
    report = land_hour(feed, HOUR)
    assert [(f.code, f.severity, f.detail) for f in report.findings] == [
        ("KEYS_LOST", "warning", "1 of 2 objects have no keys, and messages of open cannot be read without them"),
        ("LOSSY_LAYOUT", "info", "1 of 2 objects have no timestamps"),
    ]
    assert manifest(feed).partitions["shop"][0].lacking == {"keys": 1, "timestamps": 1}
    assert land_hour(feed, HOUR).findings == report.findings


def test_keys_that_a_protocol_does_not_need_are_not_missed_and_an_older_manifest_says_nothing(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, [Message(i, b"v", None, 1_767_607_200_000, []) for i in range(5)])
    assert land_hour(feed, HOUR).findings == ()
    written = json.loads(manifest(feed).to_json())
    del written["partitions"]["shop"]["0"]["lacking"]
    assert Manifest.model_validate(written).partitions["shop"][0].lacking == {}

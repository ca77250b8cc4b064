"""A whole archive: every layout is recognised as what it is, and the feed.toml that is printed lands its hours."""

from __future__ import annotations

import tomllib
from datetime import timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.archives.objects import WRITERS, Message
from tests.checkout import CHECKOUT
from tests.data_files import data_path
from tests.sniff.archived import HOUR, TOPIC, fill, load, looked, only, partitions, put, records
from tests.sniff.messages import avro, of_every_protocol
from tidelake.archives import layout_of
from tidelake.config.feed import Feed, load_feed
from tidelake.config.source import LayoutName
from tidelake.demo.generate import generate
from tidelake.errors import ConfigError
from tidelake.io.storage import open_store
from tidelake.land import land_hour
from tidelake.land.hour import check_layout
from tidelake.sniff.objects import UNREAD
from tidelake.sniff.promises import blockers, promises
from tidelake.sniff.proof import proved
from tidelake.sniff.reading import chosen
from tidelake.sniff.starter import starter

LAYOUTS = {  # what tests/archives reads each folder with
    "aiven/avro": "aiven-avro",
    "aiven/csv-gzip": "aiven-csv",
    "aiven/json": "aiven-json",
    "aiven/jsonl-gzip": "aiven-jsonl",
    "aiven/jsonl-jsonconverter": "aiven-jsonl-nested",
    "aiven/jsonl-maxrec": "aiven-jsonl",
    "aiven/jsonl-snappy": "aiven-jsonl",
    "aiven/jsonl-stringconverter": "aiven-jsonl-string",
    "aiven/parquet": "aiven-parquet",
    "aiven/parquet-wallclock": "aiven-parquet",
    "confluent/cf-avro": "confluent-avro",
    "confluent/cf-avro-keys": "confluent-avro",
    "confluent/cf-bin-keys": "confluent-bin-open",
    "confluent/cf-json-b64": "confluent-json",
    "confluent/cf-json-conv": "confluent-json-nested",
    "confluent/cf-json-str": "confluent-json-string",
    "confluent/cf-null-ignore": "confluent-json",
    "confluent/cf-null-write": "confluent-json",
    "confluent/cf-tag": "confluent-json",
}


@pytest.mark.parametrize("folder", LAYOUTS)
def test_what_real_connectors_wrote_is_recognised(folder: str) -> None:
    archive = looked(data_path(f"archives/objects/{folder}"), messages=50)
    assert {section.layout for section in archive.sections} == {LAYOUTS[folder]}
    assert archive.unknown == ()
    assert sum(t.objects for s in archive.sections for t in s.topics) == len(list(values_of(folder)))
    assert all(t.records and t.offsets for s in archive.sections for t in s.topics)


def values_of(folder: str) -> list[Path]:
    files = [p for p in data_path(f"archives/objects/{folder}").rglob("*") if p.is_file()]
    return [p for p in files if ".keys." not in p.name and ".headers." not in p.name]


def test_one_folder_may_hold_two_layouts() -> None:
    found = {s.topics[0].name: s for s in looked(data_path("archives/objects/confluent/cf-bin")).sections}
    assert {name: s.layout for name, s in found.items()} == {"cdc.canal": "confluent-bin", "cdc.open": "confluent-bin-open"}
    (broken,) = found["cdc.open"].topics[0].damaged
    assert broken[0] == "cdc.open/partition=0/cdc.open+0+0000000000.bin"
    assert "record 12: not Open Protocol" in broken[1]


@pytest.mark.parametrize(("folder", "form"), [("default", "lines of base64 values"), ("jsonl-bare", "lines of bare values")])
def test_values_alone_are_told_and_are_no_layout(folder: str, form: str) -> None:
    archive = looked(data_path(f"archives/objects/aiven/{folder}"), messages=50)
    assert {(s.form, s.layout) for s in archive.sections} == {(form, None)}
    for section in archive.sections:
        assert blockers(section)[0].says.endswith("they hold values only, without keys, offsets and timestamps")


def test_a_real_archive_tells_what_confluent_s_names_prove() -> None:
    archive = looked(data_path("archives/objects/confluent/cf-null-write"))
    section = only(archive)
    assert (section.tombstones, section.topics[0].with_keys, section.tags) == (2, 4, False)
    states = {p.what: p.state for p in promises(section)}
    assert (states["keys"], states["offsets"], states["null values"]) == ("kept", "unsure", "lost")
    assert [b.says for b in blockers(section)] == ["avro writes deletes as null values, which this layout loses"]


def test_folders_by_the_clock_of_the_writer_are_told_from_those_by_the_records() -> None:
    by = {}
    for folder in ("parquet", "parquet-wallclock"):
        section = looked(data_path(f"archives/objects/aiven/{folder}"), messages=50).sections[0]
        by[folder] = next(p.state for p in promises(section) if p.what == "hours")
    assert by == {"parquet": "kept", "parquet-wallclock": "unsure"}


@pytest.mark.parametrize("layout", WRITERS)
def test_every_layout_is_recognised_and_its_feed_lands_what_is_there(tmp_path: Path, layout: str) -> None:
    fill(open_store(str(tmp_path / "archive")), layout)
    archive, numbers = looked(tmp_path / "archive"), partitions(layout)
    section, many = only(archive), len(numbers)
    topic = section.topics[0]
    assert (section.layout, section.guess and section.guess.protocol) == (
        layout,
        "open" if layout == "confluent-bin-open" else "canal-json",
    )
    assert (topic.name, topic.objects, topic.partitions, topic.records, topic.missing) == (TOPIC, 2 * many, numbers, 10 * many, ())
    assert topic.offsets is not None
    assert (topic.offsets.gaps, topic.offsets.again, topic.offsets.last) == (0, 0, dict.fromkeys(numbers, 9))
    assert section.contents.rows == {"shop.orders": 6 * many}
    assert (section.contents.statements, section.contents.resolved) == (2 * many, {(TOPIC, number): 2 for number in numbers})
    assert blockers(section) == []
    feed = load(tmp_path, starter(section, archive), archive)
    assert (feed.topics, feed.partitions, feed.source.layout) == ((TOPIC,), many, layout)
    assert [land_hour(feed, hour).messages for hour in topic.hours] == [5 * many, 5 * many]


@pytest.mark.parametrize(
    "place",
    [
        "{topic}/{at:%Y}/{at:%m}/{at:%d}/{at:%H}/{topic}-{partition}-{first:020d}.{extension}",
        "cdc/{topic}/{at:%Y%m%d}/{at:%H}/{partition}-{first}.{extension}",
        "{at:%Y-%m-%d}/{at:%H}/{topic}-{partition}-{first:020d}.{extension}",
        "x/y/date={at:%Y-%m-%d}/hour={at:%H}/min=05/{topic}+{partition}+{first}.{extension}",
        "{topic}/{at:%Y-%m-%dT%H}/partition={partition}/{last}.{extension}",
        "{topic}/dt={at:%Y-%m-%d}/hr={at:%H}/{topic}+{partition}+{first}-0-0af3.{extension}",
    ],
)
def test_a_template_is_found_for_any_usual_names(tmp_path: Path, place: str) -> None:
    fill(open_store(str(tmp_path / "archive")), "aiven-jsonl", place=place)
    archive = looked(tmp_path / "archive")
    section = only(archive)
    assert blockers(section) == []
    feed = load(tmp_path, starter(section, archive), archive)
    assert [land_hour(feed, hour).messages for hour in section.topics[0].hours] == [10, 10]


@pytest.mark.parametrize("below", ["", "lake", "lake/cdc", f"lake/cdc/{TOPIC}", f"lake/cdc/{TOPIC}/dt=2026-01-05"])
def test_it_does_not_matter_where_above_or_inside_of_the_archive_one_looks(tmp_path: Path, below: str) -> None:
    fill(open_store(str(tmp_path / "store" / "lake" / "cdc")), "aiven-parquet")
    archive = looked(tmp_path / "store" / below)
    section = only(archive)
    assert section.base == str(tmp_path / "store" / "lake" / "cdc")
    feed = load(tmp_path, starter(section, archive), archive)
    assert feed.source.uri == section.base
    assert land_hour(feed, HOUR).messages == 10


@pytest.fixture(scope="module")
def bazaar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bazaar")
    generate(open_store(str(root / "archive")), ["open", "craft", "canal-json", "avro"], hours=1, rows_per_hour=200, crashes=())
    return root


SCHEMAS = CHECKOUT / "schemas"


def test_the_demo_s_archives_give_feeds_that_land_what_the_demo_s_own_feeds_land(bazaar: Path, tmp_path: Path) -> None:
    archive = looked(bazaar / "archive", messages=200)
    own = {p: f"bazaar-{'canal' if p == 'canal-json' else p}" for p in ("avro", "canal-json", "craft", "open")}
    assert [s.guess.protocol for s in archive.sections if s.guess] == list(own)
    assert archive.unknown == ()
    for section in archive.sections:
        assert (section.verdict.guesses[0].confidence, blockers(section)) == ("certain", [])
        protocol = section.verdict.guesses[0].protocol
        environment = {"TIDELAKE_ARCHIVE": archive.uri, "TIDELAKE_LAKE": str(tmp_path / "own"), "TIDELAKE_CATALOG": "jdbc:sqlite:/x"}
        theirs = load_feed(SCHEMAS, own[protocol], environment)
        feed = load(tmp_path / protocol, starter(section, archive), archive)
        assert (feed.source.uri, feed.source.layout, feed.source.template) == (theirs.source.uri, theirs.source.layout, None)
        assert (feed.watermark.source, feed.watermark.uri) == (theirs.watermark.source, theirs.watermark.uri)
        assert feed.options.model_copy(update={"max_batch_size": 0}) == theirs.options.model_copy(update={"max_batch_size": 0})
        for hour in section.topics[0].hours:
            mine, wanted = land_hour(feed, hour), land_hour(theirs, hour)
            assert (mine.messages, mine.bytes, mine.sources) == (wanted.messages, wanted.bytes, wanted.sources)
            assert mine.messages > 0


def test_records_of_another_place_than_their_name_says_are_not_believed(tmp_path: Path) -> None:
    put(open_store(str(tmp_path)), "kcat", records("kcat", 1, 0), 1, 0)
    section = only(looked(tmp_path))
    assert (section.layout, section.guess) == (None, None)
    assert section.why.endswith(f"it holds records of a topic or partition other than {TOPIC}[1]")


def test_an_object_that_went_since_it_was_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(open_store(str(tmp_path)), "aiven-jsonl")
    gone = f"{TOPIC}/dt=2026-01-05/hr=10/{TOPIC}+0+00000000000000000000.jsonl.gz"
    monkeypatch.setattr("tidelake.sniff.archive.chosen", lambda streams: [(tmp_path / gone).unlink(), chosen(streams)][1])
    landed, lost = looked(tmp_path).sections
    assert (landed.layout, landed.topics[0].read, lost.form, lost.layout) == ("aiven-jsonl", 3, UNREAD, None)
    assert lost.why == f"NOT_FOUND: {tmp_path / gone} does not exist"


def test_objects_that_are_too_large_are_not_read_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(open_store(str(tmp_path)), "aiven-jsonl")
    monkeypatch.setattr("tidelake.sniff.reading.LARGEST", 10)
    section = only(looked(tmp_path))
    assert (section.form, section.topics[0].objects, section.topics[0].read, section.guess) == (UNREAD, 4, 0, None)
    assert section.why == "none was read, as each is larger than 64 MB"


def test_only_some_objects_of_a_topic_are_read_and_the_newest_among_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for hour in range(9):
        put(open_store(str(tmp_path)), "aiven-jsonl", records("aiven-jsonl", 0, hour), 0, hour)
    monkeypatch.setattr("tidelake.sniff.reading.MOST_READ", 4)
    topic = only(looked(tmp_path)).topics[0]
    assert (topic.objects, topic.read, topic.records, topic.missing) == (9, 5, 25, ())
    assert topic.offsets is not None
    assert (topic.offsets.records, topic.offsets.gaps, topic.offsets.last) == (20, 0, {0: 19})


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_hostile_archives_are_told_and_never_raise(tmp_path: Path, data: st.DataObject) -> None:
    root = Path(mkdtemp(dir=tmp_path))
    layout = data.draw(st.sampled_from(sorted(WRITERS)))
    fill(open_store(str(root)), layout)
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        content = bytearray(path.read_bytes())
        for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
            content[at] = data.draw(st.integers(0, 255))
        path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    archive = looked(root)
    for section in archive.sections:
        promises(section)
        if not blockers(section):
            tomllib.loads(starter(section, archive).text)


def test_a_mixed_prefix_has_a_section_for_each_feed(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    fill(open_store(str(tmp_path / "a")), "aiven-jsonl", topic="one")
    fill(open_store(str(tmp_path / "a")), "aiven-jsonl", topic="two")
    fill(open_store(str(tmp_path / "a")), "aiven-parquet", topic="three")
    fill(open_store(str(tmp_path / "b")), "confluent-json")
    craft = [Message(i, value, key) for i, (key, value) in enumerate(of_every_protocol()["craft"])]
    put(open_store(str(tmp_path / "a")), "aiven-jsonl", craft, 0, 0, "four")
    for key in ("readme.txt", "a/one/notes"):
        store.write(key, b"x")
    for key in ("a/_SUCCESS", "a/one/.crc", "empty"):
        store.write(key, b"")
    archive = looked(tmp_path)
    assert [(Path(s.base).name, s.layout, s.guess and s.guess.protocol, [t.name for t in s.topics]) for s in archive.sections] == [
        ("a", "aiven-jsonl", "craft", ["four"]),
        ("a", "aiven-jsonl", "canal-json", ["one", "two"]),
        ("a", "aiven-parquet", "canal-json", ["three"]),
        ("b", "confluent-json", "canal-json", [TOPIC]),
    ]
    assert (archive.unknown, archive.ignored, archive.whole) == (("a/one/notes", "readme.txt"), 3, True)


def test_gaps_missing_hours_and_partitions_are_told(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    put(store, "aiven-jsonl", records("aiven-jsonl", 0, 0)[:3], 0, 0)
    put(store, "aiven-jsonl", records("aiven-jsonl", 0, 3), 0, 3)
    put(store, "aiven-jsonl", records("aiven-jsonl", 2, 3), 2, 3)
    topic = only(looked(tmp_path)).topics[0]
    assert topic.offsets is not None
    assert (topic.offsets.gaps, topic.offsets.first, topic.offsets.last) == (12, {0: 0, 2: 15}, {0: 19, 2: 19})
    assert [f"{hour:%H}" for hour in topic.missing or ()] == ["11", "12"]
    assert (topic.partitions, topic.holes) == ((0, 2), "1")
    says = [p.says for p in promises(only(looked(tmp_path))) if p.state == "unsure"]
    assert says == [f"{TOPIC}: no object in 2026-01-05T11, 2026-01-05T12", f"{TOPIC}: no object of partition 1"]


def test_names_whose_counts_do_not_join_prove_nothing(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    put(store, "confluent-json", records("confluent-json", 0, 0), 0, 0)
    put(store, "confluent-json", records("confluent-json", 0, 1)[1:], 0, 1)
    section = only(looked(tmp_path))
    assert section.topics[0].offsets is not None
    assert (section.topics[0].offsets.joints, section.topics[0].offsets.unproven) == (1, 1)
    (told,) = [p for p in promises(section) if p.what == "offsets"]
    assert told.says.endswith("; 1 of 1 neighbouring objects that were read do not join")
    assert told.mend.startswith("s3.object.tagging = true")


@pytest.mark.parametrize(
    ("layout", "place", "template"),
    [
        ("confluent-avro", "{topic}/partition={partition}/{topic}+{partition}+{first:010d}.{extension}", None),
        ("aiven-jsonl", "{topic}-{partition}-{first:020d}.{extension}", None),
        ("aiven-parquet", "x/{topic}/{partition}-{first}.{extension}", "{topic}/{partition}-{start_offset}"),
    ],
)
def test_an_archive_without_hours_lands_by_timestamps_and_says_which_setting_mends_it(
    layout: str, place: str, template: str | None, tmp_path: Path
) -> None:
    fill(open_store(str(tmp_path / "archive")), layout, place=place)
    archive = looked(tmp_path / "archive")
    section = only(archive)
    assert blockers(section) == []
    start = starter(section, archive)
    assert 'hours = "timestamps"  # no path has an hour' in start.text
    proof = proved(section, start)
    assert (proof.hour, proof.objects, proof.absent, proof.unknown) == (None, 4, (), ())
    feed = load(tmp_path, start, archive)
    assert (feed.source.hours, feed.source.template) == ("timestamps", template)
    (told,) = [p for p in promises(section) if p.what == "hours"]
    assert (told.state, told.says.split(",")[0]) == ("unsure", "no path has an hour: messages land by their timestamps")
    if layout == "confluent-avro":
        assert "partitioner.class = …TimeBasedPartitioner" in told.mend
    else:
        assert [land_hour(feed, HOUR + timedelta(hours=hours)).messages for hours in (0, 1)] == [10, 10]


def test_dates_without_hours_are_told_and_no_feed_of_one_day_is_printed(tmp_path: Path) -> None:
    fill(open_store(str(tmp_path)), "aiven-jsonl", place="{topic}/2026/01/05/{topic}-{partition}-{first}.{extension}")
    (blocker,) = blockers(only(looked(tmp_path)))
    said = "{topic}/2026/01/05/{topic}-{partition}-{start_offset}"
    assert blocker.says == f"dates without hours are in the objects' names: {said}"
    assert blocker.mend.startswith('write a feed by hand, with hours = "timestamps" and {any} for the date in template')


def test_keys_beside_some_objects_only_are_not_enough_for_open_protocol(tmp_path: Path) -> None:
    fill(open_store(str(tmp_path)), "confluent-bin-open")
    section = only(looked(tmp_path))
    assert (blockers(section), section.topics[0].with_keys) == ([], 4)
    next(tmp_path.rglob("*+1+0000000005.keys.bin")).unlink()
    section = only(looked(tmp_path))
    assert [(p.state, p.says) for p in promises(section) if p.what == "keys"] == [
        ("unsure", "1 of 4 objects have no .keys object beside them")
    ]
    (blocker,) = blockers(section)
    assert blocker.says.endswith("Open Protocol and Avro cannot be recognised without their keys, which 1 object lacks")
    assert blocker.mend.startswith("store.kafka.keys = true")


def test_one_object_of_ten_without_keys_blocks_though_the_protocol_is_told(tmp_path: Path) -> None:
    for hour in range(12):
        put(open_store(str(tmp_path)), "confluent-bin-open", records("confluent-bin-open", 0, hour), 0, hour)
    next(tmp_path.rglob("*+0+0000000055.keys.bin")).unlink()
    section = only(looked(tmp_path))
    assert section.guess is not None
    assert (section.guess.protocol, section.guess.confidence) == ("open", "likely")
    assert [b.says for b in blockers(section)] == ["open needs Kafka keys, which 1 object lacks"]


@pytest.mark.parametrize("layout", [name for name in get_args(LayoutName) if name != "storage-sink"])  # which is not an archive of Kafka's
@pytest.mark.parametrize("protocol", ["open", "craft", "avro", "canal-json"])
def test_what_land_refuses_is_a_blocker_and_nothing_else(tmp_path: Path, layout: str, protocol: str) -> None:
    """For layouts that hold any bytes the messages are there; for the others the declaration alone is compared."""
    messages = avro()[0] if protocol == "avro" else of_every_protocol()[protocol]
    if protocol == "avro":
        messages = [m for m in messages if m[1] is not None]
    feed = Feed(
        name="f",
        folder=tmp_path,
        protocol=protocol,  # type: ignore[arg-type]
        topics=(TOPIC,),
        partitions=1,
        source={"uri": str(tmp_path), "layout": layout},  # type: ignore[arg-type]
        lake={"uri": str(tmp_path)},  # type: ignore[arg-type]
        avro={"schemas": "x"},  # type: ignore[arg-type]
        options={"avro_enable_watermark": True},  # type: ignore[arg-type]
    )
    try:
        check_layout(feed)
        refused = False
    except ConfigError:
        refused = True
    if layout_of(layout).protocols is not None:
        assert refused == (protocol not in (layout_of(layout).protocols or ()))
        return
    put(open_store(str(tmp_path)), layout, [Message(i, value, key) for i, (key, value) in enumerate(messages)], 0, 0)
    section = only(looked(tmp_path))
    needs_keys = protocol in ("open", "avro") and not layout_of(layout).has_keys  # which land looks for beside the objects
    assert bool(blockers(section)) == (refused or needs_keys)

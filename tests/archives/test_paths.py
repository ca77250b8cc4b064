from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tidelake.archives import Listing, layout_of, list_hour, topics_of
from tidelake.config.feed import Feed
from tidelake.errors import ConfigError
from tidelake.io.storage import ObjectInfo, Store, open_store

HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
FOLDER = "t/dt=2026-01-05/hr=10"


def feed(root: Path, topics: tuple[str, ...] = ("t",), layout: str = "aiven-jsonl", template: str | None = None) -> Feed:
    source: dict[str, Any] = {"uri": str(root), "layout": layout, "template": template}
    return Feed(name="f", folder=Path("f"), protocol="craft", topics=topics, partitions=1, source=source, lake={"uri": "x"})  # type: ignore[arg-type]


def listed(root: Path, *keys: str, content: bytes = b"x", **settings: Any) -> Listing:
    store = open_store(str(root))
    for key in keys:
        store.write(key, content)
    its = feed(root, **settings)
    return list_hour(its, store, "t", HOUR, layout_of(its.source.layout or ""))


def keys(listing: Listing) -> list[str]:
    return [source.key for source in listing.objects]


@pytest.mark.parametrize(
    "key",
    [
        f"{FOLDER}/t+0+00000000000000000007.jsonl.gz",
        f"{FOLDER}/t-0-7.gz",
        f"{FOLDER}/t+0+7",
        f"{FOLDER}/t+0+7-12-0af3.json",
        "t/year=2026/month=01/day=05/hour=10/t+0+0000000007.json.gz",
    ],
)
def test_the_usual_folders_and_names_need_no_template(key: str, tmp_path: Path) -> None:
    (source,) = listed(tmp_path, key).objects
    assert (source.topic, source.partition, source.number, source.size, source.key) == ("t", 0, 7, 1, key)


def test_objects_are_in_the_order_of_partition_and_key(tmp_path: Path) -> None:
    names = [f"{FOLDER}/t+{p}+{n:020d}.jsonl" for p in (10, 2) for n in (5, 0)]
    assert [(s.partition, s.number) for s in listed(tmp_path, *names).objects] == [(2, 0), (2, 5), (10, 0), (10, 5)]


def test_other_hours_and_topics_are_not_listed(tmp_path: Path) -> None:
    others = ["t/dt=2026-01-05/hr=11/t+0+0.jsonl", "t/dt=2026-01-06/hr=10/t+0+0.jsonl", "u/dt=2026-01-05/hr=10/u+0+0.jsonl"]
    listing = listed(tmp_path, *others)
    assert (listing.objects, listing.unknown) == ((), ())


def test_only_the_hours_prefixes_are_listed(tmp_path: Path) -> None:
    asked: list[str] = []

    class Watched(type(open_store(str(tmp_path)))):  # type: ignore[misc]
        def objects(self, prefix: str = "") -> Any:
            asked.append(prefix)
            return super().objects(prefix)

    store: Store = Watched(tmp_path)
    list_hour(feed(tmp_path), store, "t", HOUR, layout_of("aiven-jsonl"))
    assert asked == ["t/dt=2026-01-05/hr=10/", "t/year=2026/month=01/day=05/hour=10/"]


@pytest.mark.parametrize(
    "name", ["_SUCCESS", "metadata", ".part.tmp", "t+0+0.jsonl.crc", "CDC.index", "_temporary/0/t+0+0.jsonl", ".hidden/t+0+0.jsonl"]
)
def test_files_that_every_archive_has_beside_its_data_are_passed_over(name: str, tmp_path: Path) -> None:
    listing = listed(tmp_path, f"{FOLDER}/{name}")
    assert (listing.objects, listing.unknown) == ((), ())


def test_an_empty_object_is_passed_over(tmp_path: Path) -> None:
    assert listed(tmp_path, f"{FOLDER}/t+0+0.jsonl", content=b"") == Listing(objects=())


@pytest.mark.parametrize(
    "name",
    ["readme.txt", "t+0+0.avro", "t+0+0.keys.json", "u+0+0.jsonl", "t+x+0.jsonl", "t+0+0.jsonl.bz2", "sub/t+0+0.jsonl", "t+0-0.jsonl"],
)
def test_any_other_file_in_the_folder_is_unknown_and_not_forgotten(name: str, tmp_path: Path) -> None:
    listing = listed(tmp_path, f"{FOLDER}/{name}", f"{FOLDER}/t+0+5.jsonl")
    assert keys(listing) == [f"{FOLDER}/t+0+5.jsonl"]
    assert [info.key for info in listing.unknown] == [f"{FOLDER}/{name}"]


def test_a_topic_with_signs_of_regular_expressions_is_taken_literally(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    for topic in ("a.b", "aXb"):
        store.write(f"{topic}/dt=2026-01-05/hr=10/{topic}+1+0.jsonl", b"x")
    listing = list_hour(feed(tmp_path, ("a.b",)), store, "a.b", HOUR, layout_of("aiven-jsonl"))
    assert [(s.key, s.partition) for s in listing.objects] == [("a.b/dt=2026-01-05/hr=10/a.b+1+0.jsonl", 1)]


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ("{topic}/{yyyy}/{MM}/{dd}/{HH}/{topic}-{partition}-{start_offset}.gz", "t/2026/01/05/10/t-3-0042.gz"),
        ("raw/{yyyy}{MM}{dd}T{HH}/{topic}/{partition}/{start_offset}", "raw/20260105T10/t/3/42.jsonl.gz"),
        ("{yyyy}-{MM}-{dd}/{HH}_{topic}_{partition}_{partition}_{start_offset}.jsonl", "2026-01-05/10_t_3_3_42.jsonl"),
    ],
)
def test_a_template_describes_any_other_path(template: str, key: str, tmp_path: Path) -> None:
    (source,) = listed(tmp_path, key, template=template).objects
    assert (source.key, source.partition, source.number) == (key, 3, 42)


def test_a_field_that_stands_in_a_template_twice_must_be_the_same_twice(tmp_path: Path) -> None:
    listing = listed(tmp_path, "2026010510/3/t-4-0.gz", template="{yyyy}{MM}{dd}{HH}/{partition}/{topic}-{partition}-{start_offset}.gz")
    assert [info.key for info in listing.unknown] == ["2026010510/3/t-4-0.gz"]


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{topic}/{yyyy}/{MM}/{dd}/{topic}-{partition}-{start_offset}", "it has no hour"),
        ("{topic}/{year}/{yyyy}/{MM}/{dd}/{HH}/{partition}-{start_offset}", "its fields are"),
        ("{topic}/{partition}/{yyyy}/{MM}/{dd}/{HH}/{start_offset}", "comes before the hour"),
    ],
)
def test_a_template_from_which_an_hour_cannot_be_listed_is_refused(template: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        listed(tmp_path, template=template)
    assert caught.value.message.startswith("f/feed.toml: source.template: ")


def test_a_pattern_takes_the_topic_folders_that_fit_it_whole(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    for topic in ("shop_b", "shop_a", "xshop_a", "other"):
        store.write(f"{topic}/dt=2026-01-05/hr=10/{topic}+0+0.jsonl", b"x")
    assert topics_of(feed(tmp_path, ("/shop_.*/",)), store) == ["shop_a", "shop_b"]


def test_a_pattern_works_with_a_template_that_has_the_topic_as_a_folder(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.write("raw/shop_a/2026010510/1-2.gz", b"x")
    its = feed(tmp_path, ("/shop_.*/",), template="raw/{topic}/{yyyy}{MM}{dd}{HH}/{partition}-{start_offset}.gz")
    assert topics_of(its, store) == ["shop_a"]
    with pytest.raises(ConfigError, match="folder of its own"):
        topics_of(feed(tmp_path, ("/s.*/",), template="{yyyy}{MM}{dd}{HH}/{topic}/{partition}-{start_offset}"), store)


def test_names_are_taken_as_they_are_whether_the_archive_has_them_or_not(tmp_path: Path) -> None:
    assert topics_of(feed(tmp_path, ("b", "a")), open_store(str(tmp_path))) == ["b", "a"]


def test_an_hour_is_listed_the_same_from_s3(s3: Any) -> None:
    store = open_store(s3("paths"))
    store.write(f"{FOLDER}/t+0+7.jsonl", b"xyz")
    (source,) = list_hour(feed(Path(), ("t",)), store, "t", HOUR, layout_of("aiven-jsonl")).objects
    assert (source.key, source.size) == (f"{FOLDER}/t+0+7.jsonl", 3)
    assert store.head(source.key) == ObjectInfo(source.key, 3, source.etag)


def test_keys_and_headers_belong_to_the_object_beside_them(tmp_path: Path) -> None:
    names = ["t+0+5.json.gz", "t+0+5.keys.avro", "t+0+5.headers.json.gz", "t+0+9.keys.json", "t+1+5.json"]
    listing = listed(tmp_path, *(f"{FOLDER}/{name}" for name in names), layout="confluent-json")
    assert [(s.key, [(x.view, x.key) for x in s.siblings]) for s in listing.objects] == [
        (f"{FOLDER}/{names[0]}", [("headers", f"{FOLDER}/{names[2]}"), ("keys", f"{FOLDER}/{names[1]}")]),
        (f"{FOLDER}/{names[4]}", []),
    ]
    assert [part.key for part in listing.objects[0].parts] == [f"{FOLDER}/{names[i]}" for i in (0, 2, 1)]
    assert [info.key for info in listing.unknown] == [f"{FOLDER}/{names[3]}"]


AIVEN = "{{topic}}/{{timestamp:unit=yyyy}}/{{ timestamp:unit=MM }}{{timestamp:unit=dd}}{{timestamp:unit=HH}}"


@pytest.mark.parametrize(
    ("template", "key", "number"),
    [
        (AIVEN + "/{{partition:padding=true}}-{{start_offset:padding=true}}.gz", "t/2026/010510/0000000003-00000000000000000042.gz", 42),
        ("{topic}/{yyyy}/{MM}/{dd}/{HH}/{partition}.jsonl.gz", "t/2026/01/05/10/3.jsonl.gz", 0),
        ("{topic}/{yyyy}/{MM}/{dd}/{HH}/{any}_{partition}_{any}", "t/2026/01/05/10/00042_3_1767_b.json", 0),
    ],
)
def test_a_template_may_be_aivens_own_and_may_leave_out_what_records_say(template: str, key: str, number: int, tmp_path: Path) -> None:
    (source,) = listed(tmp_path, key, template=template).objects
    assert (source.key, source.partition, source.number) == (key, 3, number)


def test_a_template_by_keys_is_refused_as_every_record_replaces_the_one_before(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="keeps the last record of every key only"):
        listed(tmp_path, template=AIVEN + "/{{partition}}-{{key}}")


def test_a_template_without_the_offset_is_refused_where_offsets_come_from_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"layout 'confluent-json' takes offsets from names, so \{start_offset\} must be in it"):
        listed(tmp_path, layout="confluent-json", template="{topic}/{yyyy}/{MM}/{dd}/{HH}/{partition}.json")

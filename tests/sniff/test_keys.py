"""What keys say: every connector's names, and names that say nothing."""

from __future__ import annotations

import pytest

from tidelake.sniff.keys import named

KEYS = {
    "lake/topics/shop/dt=2026-01-05/hr=10/shop+0+00000000000000000007.jsonl.gz": (
        "lake/topics", "{topic}/dt={yyyy}-{MM}-{dd}/hr={HH}/{topic}+{partition}+{start_offset}", "shop", 0, 7, "", ("jsonl",),
    ),
    "shop/year=2026/month=01/day=05/hour=10/shop+3+0000000012.keys.json.gz": (
        "", "{topic}/year={yyyy}/month={MM}/day={dd}/hour={HH}/{topic}+{partition}+{start_offset}", "shop", 3, 12, "keys", ("json",),
    ),
    "ch-1/shop/year=2026/month=01/day=05/hour=10/shop+0+12345-0-abcdef01.json.gz": (
        "ch-1", "{topic}/year={yyyy}/month={MM}/day={dd}/hour={HH}/{topic}+{partition}+{start_offset}-{any}",
        "shop", 0, 12345, "", ("json",),
    ),
    "a/shop/hour=2026-01-05T10/partition=2/0000-0029-0af3abcd.parquet": (
        "a", "{topic}/hour={yyyy}-{MM}-{dd}T{HH}/partition={partition}/{start_offset}-{any}", "shop", 2, 0, "", ("parquet",),
    ),
    "shop/dt=2026-01-05/hr=10/1_4_00000000000000000009.seq": (
        "", "{topic}/dt={yyyy}-{MM}-{dd}/hr={HH}/{any}_{partition}_{start_offset}", "shop", 4, 9, "", ("seq",),
    ),
    "a/b/2026/01/05/10/shop.x/6/000000000123_1767607200000_1767607209999.parquet": (
        "a/b", "{yyyy}/{MM}/{dd}/{HH}/{topic}/{partition}/{any}", "shop.x", 6, None, "", ("parquet",),
    ),
    "a/2026/01/05/10/shop(0_123).avro": ("a", "{yyyy}/{MM}/{dd}/{HH}/{topic}({partition}_{any})", "shop", 0, None, "", ("avro",)),
    "a/shop/2026010510/shop-0-7.gz": ("a", "{topic}/{yyyy}{MM}{dd}{HH}/{topic}-{partition}-{start_offset}", "shop", 0, 7, "", ()),
    "a/shop/20260105/10/min=35/3-7": ("a", "{topic}/{yyyy}{MM}{dd}/{HH}/min={any}/{partition}-{start_offset}", "shop", 3, 7, "", ()),
}  # fmt: skip
WITHOUT_HOUR = {
    "cf/cdc.open/partition=1/cdc.open+1+0000000000.headers.json": (
        "cf", "{topic}/partition={partition}/{topic}+{partition}+{start_offset}", "cdc.open", 1, 0, "headers", ("json",),
    ),
    "aiven/default/cdc.open-0-00000000000000000051.gz": ("aiven/default", "{topic}-{partition}-{start_offset}", "cdc.open", 0, 51, "", ()),
    "cf/cdc2.avro/tombstone/cdc2.avro+0+0000000004.keys.json": (
        "cf", "{topic}/{topic}+{partition}+{start_offset}", "cdc2.avro", 0, 4, "tombstones", ("json",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("key", [*KEYS, *WITHOUT_HOUR])
def test_names_of_every_connector(key: str) -> None:
    said = named(key)
    assert said is not None
    found = (said.base, said.template, said.topic, said.partition, said.number, said.view, said.extensions)
    assert found == (KEYS | WITHOUT_HOUR)[key]
    assert (said.hour and f"{said.hour:%Y-%m-%dT%H}") == ("2026-01-05T10" if key in KEYS else None)


@pytest.mark.parametrize(
    "key",
    ["", "avro_schemas.json", "a/b/readme.txt", "shop/dt=2026-01-05/hr=10/part-00000-3e.json", "+/dt=2026-01-05/hr=10/+-0", "a/++0+0"],
)
def test_names_that_say_nothing(key: str) -> None:
    assert named(key) is None


def test_an_hour_that_is_none_is_not_taken_for_one() -> None:
    said = named("shop/dt=2026-02-31/hr=10/shop+0+1.json")
    assert said is not None
    assert said.hour is None


def test_a_number_from_which_offsets_cannot_be_counted_is_none() -> None:
    said = named(f"shop/dt=2026-01-05/hr=10/shop+0+{1 << 63}.json")
    assert said is not None
    assert said.number is None

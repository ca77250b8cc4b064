"""schemas/manifest.schema.json is the manifest's JSON Schema. To write it anew: python -m tests.land.test_manifest_schema"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.checkout import CHECKOUT
from tests.land.archive import HOUR, lake, make_feed, manifest, messages, put
from tidelake.config.feed import feed_names, load_feed
from tidelake.demo.generate import generate
from tidelake.errors import OrderError
from tidelake.io.storage import open_store
from tidelake.land import land_hour
from tidelake.land.store.manifest import json_schema

SCHEMAS = CHECKOUT / "schemas"
FILE = SCHEMAS / "manifest.schema.json"


def problems(content: bytes | dict[str, Any]) -> list[str]:
    """What the stored schema says is wrong with a manifest."""
    document = json.loads(content) if isinstance(content, bytes) else content
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(json.loads(FILE.read_bytes())).iter_errors(document)]


def test_the_schema_is_that_of_the_manifest() -> None:
    assert FILE.read_bytes() == json_schema(), f"write it anew: {__doc__}"
    Draft202012Validator.check_schema(json.loads(FILE.read_bytes()))


def test_the_schema_is_no_feed() -> None:
    assert feed_names(SCHEMAS) == ["bazaar-avro", "bazaar-canal", "bazaar-craft", "bazaar-open"]


def test_manifests_of_the_demo_are_as_the_schema_says(tmp_path: Path) -> None:
    workload = generate(open_store(str(tmp_path / "archive")), hours=1, rows_per_hour=100)
    places = {"TIDELAKE_ARCHIVE": f"{tmp_path}/archive", "TIDELAKE_LAKE": f"{tmp_path}/lake", "TIDELAKE_CATALOG": "x"}
    for name in feed_names(SCHEMAS):
        for hour in workload.hours[:1]:
            land_hour(load_feed(SCHEMAS, name, places), hour)
    found = {
        info.key: problems(open_store(f"{tmp_path}/lake").read(info.key)) for info in open_store(f"{tmp_path}/lake").objects("manifests/")
    }
    assert found == {f"manifests/{name}/hour=2026-01-05T10/000001.json": [] for name in feed_names(SCHEMAS)}


def test_a_manifest_with_all_that_can_be_wrong_is_as_the_schema_says(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=3)
    put(feed, 0, [*messages(0, 4), *messages(6, 9)])
    put(feed, 0, messages(8, 8, "other"), name=8)
    put(feed, 1, messages(0, 3))
    put(feed, 1, messages(2, 3), name=2)
    with pytest.raises(OrderError, match="OVERLAP_CONFLICT"):
        land_hour(feed, HOUR)
    assert {f.code for f in manifest(feed).findings} == {"OVERLAP_CONFLICT", "GAP", "MISSING_PARTITION", "OVERLAP_SAME"}
    assert problems(lake(feed).read("manifests/small/hour=2026-01-05T10/000001.json")) == []


def test_what_is_no_manifest_is_refused_with_its_place(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=1)
    put(feed, 0, messages(0, 9))
    land_hour(feed, HOUR)
    found = json.loads(manifest(feed).to_json())
    assert problems(found | {"generation": "1"}) == ["$.generation: '1' is not of type 'integer'"]
    assert problems(found | {"more": 1}) == ["$: Additional properties are not allowed ('more' was unexpected)"]
    del found["objects"][0]["sha256"]
    assert problems(found) == ["$.objects[0]: 'sha256' is a required property"]


if __name__ == "__main__":
    FILE.write_bytes(json_schema())

"""Objects whose tags say their offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import FreshUri
from tests.land.archive import HOUR, TOPIC, codes, make_feed, messages, put
from tidelake.archives import SourceObject
from tidelake.errors import OrderError
from tidelake.io import storage
from tidelake.land import land_hour
from tidelake.land.tags import check_tags

SOURCE = SourceObject(TOPIC, 0, "key", 5, 9, "")


def tags(first: int, last: int, count: int) -> dict[str, str]:
    return {"startOffset": str(first), "endOffset": str(last), "recordCount": str(count)}


def test_as_many_records_as_offsets_from_the_name_s_on_are_a_proof() -> None:
    check_tags(tags(5, 7, 3), SOURCE, 3)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ({}, "it has no tags"),
        (tags(5, 7, 3) | {"endOffset": "x"}, "it has no tags"),
        (tags(5, 8, 3), "its tags state 3 records between the offsets 5 and 8"),
        (tags(5, 8, 4), "it holds 3 records from offset 5 on, its tags state 4 from 5 on"),
        (tags(4, 6, 3), "it holds 3 records from offset 5 on, its tags state 3 from 4 on"),
    ],
)
def test_tags_that_prove_nothing_block(found: dict[str, str], problem: str) -> None:
    with pytest.raises(OrderError, match=rf"OFFSETS_UNPROVEN shop\[0\]@5: key: {problem}") as caught:
        check_tags(found, SOURCE, 3)
    assert caught.value.exit_code == 3


def test_tagged_objects_land_from_s3_without_a_doubt_about_their_offsets(s3: FreshUri) -> None:
    root = s3("tags")
    feed = make_feed(root, partitions=1, source={"uri": f"{root}/archive", "layout": "confluent-json", "tags": True})
    key = put(feed, 0, messages(0, 9))
    with pytest.raises(OrderError, match=r"OFFSETS_UNPROVEN.*it has no tags"):
        land_hour(feed, HOUR)
    bucket, _, prefix = root.removeprefix("s3://").partition("/")
    tagging = {"TagSet": [{"Key": name, "Value": value} for name, value in tags(0, 9, 10).items()]}
    storage._client().put_object_tagging(Bucket=bucket, Key=f"{prefix}/archive/{key}", Tagging=tagging)  # type: ignore[typeddict-item]
    assert "NO_OFFSETS" not in dict(codes(land_hour(feed, HOUR).findings))


def test_a_local_archive_has_no_tags(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=1, source={"uri": f"{tmp_path}/archive", "layout": "confluent-json", "tags": True})
    put(feed, 0, messages(0, 9))
    with pytest.raises(OrderError, match="OFFSETS_UNPROVEN"):
        land_hour(feed, HOUR)

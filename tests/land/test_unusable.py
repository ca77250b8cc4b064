"""Why nothing of an hour can be landed: each cause by its name, and no manifest of an hour that nobody looked at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.land.archive import HOUR, codes, lake, make_feed, manifest, messages, put
from tidelake.config.feed import Feed
from tidelake.errors import ConfigError, OrderError
from tidelake.land import land_hour
from tidelake.land.comparison import compare_hour
from tidelake.land.store.manifest import generations


def refused(feed: Feed, hour: datetime = HOUR) -> ConfigError | OrderError:
    """The error of landing; nothing is recorded."""
    with pytest.raises((ConfigError, OrderError)) as caught:
        land_hour(feed, hour)
    assert generations(lake(feed), feed.name) == {}
    return caught.value


def test_an_archive_s_folder_that_does_not_exist_is_wrong_configuration(tmp_path: Path) -> None:
    feed = make_feed(tmp_path)
    error = refused(feed)
    assert (error.code, error.exit_code) == ("NO_ARCHIVE", 2)
    assert error.message == f"schemas/small/feed.toml: source.uri: {tmp_path}/archive does not exist"
    with pytest.raises(ConfigError, match="NO_ARCHIVE"):
        compare_hour(feed, HOUR)


def test_an_empty_archive_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    error = refused(make_feed(tmp_path))
    assert (error.code, error.exit_code, error.message) == ("ARCHIVE_EMPTY", 3, f"{tmp_path}/archive is empty")
    assert compare_hour(make_feed(tmp_path), HOUR).objects == 0  # the DAG's task waits for its hour


def test_objects_of_another_layout_are_counted_and_named(tmp_path: Path) -> None:
    feed = make_feed(tmp_path)
    keys = [put(feed, 0, messages(10 * n, 10 * n + 9)) for n in range(5)]
    other = make_feed(tmp_path, source={"uri": f"{tmp_path}/archive", "layout": "aiven-parquet"})
    error = refused(other)
    assert (error.code, error.exit_code) == ("ARCHIVE_LAYOUT", 2)
    assert error.message == (
        "schemas/small/feed.toml: source.layout: the hour has 5 objects, and no name matches layout 'aiven-parquet' (*.parquet with "
        f"partition and offset): {', '.join(keys[:3])} and 2 more"
    )
    assert "tidelake sniff" in error.remedy


def test_topics_that_have_no_folder_are_named_beside_those_that_have(tmp_path: Path) -> None:
    put(make_feed(tmp_path), 0, messages(0, 9))
    error = refused(make_feed(tmp_path, topics=("shopp",)))
    assert (error.code, error.exit_code) == ("NO_TOPIC", 2)
    assert error.message == f"schemas/small/feed.toml: topics: {tmp_path}/archive has no folder shopp; it has shop"


def test_an_hour_without_objects_between_others_is_landed_as_what_it_is(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, policy={"on_gap": "warn"})
    put(feed, 0, messages(0, 9), hours=1)
    assert codes(land_hour(feed, HOUR).findings) == [("MISSING_PARTITION", "warning")] * 2 + [("EMPTY", "info")]
    assert manifest(feed).sources == ()


def test_an_hour_that_is_not_over_is_not_landed(tmp_path: Path) -> None:
    feed = make_feed(tmp_path)
    put(feed, 0, messages(0, 9))
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    for hour in (now, now + timedelta(days=400)):
        error = refused(feed, hour)
        assert (error.code, error.exit_code) == ("HOUR_NOT_OVER", 3)
        assert error.message == f"hour {hour:%Y-%m-%dT%H} of feed small ends at {hour + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"

"""The dry run of landing: what the archive holds that is not landed. Nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calls import call
from tests.land.archive import HOUR, archive, codes, contents, lake, make_feed, messages, put
from tidelake.config.feed import Feed
from tidelake.land import land_hour
from tidelake.land.comparison import compare_hour


def landed_feed(tmp_path: Path, **settings: object) -> tuple[Feed, list[str]]:
    """A feed with an hour of three objects that is landed, and their keys."""
    feed = make_feed(tmp_path, **settings)
    keys = [put(feed, 0, messages(0, 9)), put(feed, 0, messages(10, 19)), put(feed, 1, messages(0, 4))]
    land_hour(feed, HOUR)
    return feed, keys


def test_an_hour_that_is_not_landed_says_how_many_objects_it_has(tmp_path: Path) -> None:
    feed = make_feed(tmp_path)
    put(feed, 0, messages(0, 9))
    found = compare_hour(feed, HOUR)
    assert (found.hour, found.generation, found.objects, found.findings, found.waits) == ("2026-01-05T10", None, 1, (), ())
    assert contents(lake(feed)) == {}


def test_an_archive_that_did_not_change_is_compared_without_reading_an_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed, _ = landed_feed(tmp_path)
    read: list[str] = []
    store = type(archive(feed))
    opened = store.open
    monkeypatch.setattr(store, "open", lambda self, key: read.append(key) or opened(self, key))
    found = compare_hour(feed, HOUR)
    assert read == ["manifests/small/hour=2026-01-05T10/000001.json"]
    assert (found.generation, found.objects, found.findings) == (1, 3, ())


def test_other_bytes_under_a_landed_name_are_found_and_a_copy_is_none(tmp_path: Path) -> None:
    feed, (copied, changed, _) = landed_feed(tmp_path)
    archive(feed).write(copied, archive(feed).read(copied))
    content = archive(feed).read(changed)
    archive(feed).write(changed, content[:-1] + bytes([content[-1] ^ 1]))
    before = contents(lake(feed))
    found = compare_hour(feed, HOUR)
    assert [(f.code, f.severity, f.detail) for f in found.findings] == [
        ("CHANGED_AFTER_LANDING", "warning", f"since generation 1: other bytes in {changed}")
    ]
    assert contents(lake(feed)) == before


def test_objects_that_came_and_went_are_told_as_the_feed_wants_them(tmp_path: Path) -> None:
    feed, keys = landed_feed(tmp_path, policy={"on_finding": {"LATE_FILE": "block"}})
    put(feed, 1, messages(5, 9))
    put(feed, 1, messages(10, 14))
    archive(feed).delete(keys[0])
    found = compare_hour(feed, HOUR)
    assert codes(found.findings) == [("LATE_FILE", "critical")]
    assert found.findings[0].detail == "since generation 1: 2 objects appeared, 1 disappeared"


def test_what_a_new_hour_waits_for_is_known_before_it_is_landed(tmp_path: Path) -> None:
    source = {"uri": f"{tmp_path}/archive", "layout": "aiven-jsonl", "closed_by": "next-offset"}
    feed = make_feed(tmp_path, source=source, topics=("/sh.*/",))
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(12, 12), hours=1)
    assert [str(w) for w in compare_hour(feed, HOUR).waits] == ["shop[1]: there is no object of a later hour"]
    put(feed, 1, messages(0, 9))
    put(feed, 1, messages(10, 12), hours=1)
    assert compare_hour(feed, HOUR).waits == ()
    land_hour(feed, HOUR)
    assert [str(w) for w in compare_hour(feed, HOUR).waits] == ["shop[0]: its next object begins at offset 12, and no object has 10–11"]


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    """A folder with the feed `small`, whose archive has an hour and nothing after it."""
    put(make_feed(tmp_path), 0, messages(0, 9))
    folder = tmp_path / "schemas" / "small"
    folder.mkdir(parents=True)
    text = 'protocol = "craft"\ntopics = ["shop"]\npartitions = 1\n'
    text += f'[source]\nuri = "{tmp_path}/archive"\nlayout = "aiven-jsonl"\n[lake]\nuri = "{tmp_path}/lake"\n'
    (folder / "feed.toml").write_text(text)
    return tmp_path / "schemas"


def test_the_command_line_says_it_for_people_and_for_programs(schemas: Path) -> None:
    arguments = ("land", "--feed", "small", "--hour", "2026-01-05T10", "--dry-run", "--schemas", schemas)
    done = call(*arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["2026-01-05T10: 1 object, not landed", "  not complete: shop[0]: there is no object of a later hour"]
    assert json.loads(call(*arguments, "--json").out) == {
        "hour": "2026-01-05T10",
        "generation": None,
        "objects": 1,
        "closed": False,
        "waits_for": ["shop[0]: there is no object of a later hour"],
        "findings": [],
    }
    assert sorted(p.name for p in schemas.parent.iterdir()) == ["archive", "schemas"]

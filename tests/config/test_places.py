"""A place in feed.toml is the same from every working directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import feeds
from tests.cli.calls import call
from tidelake.config.feed import Feed, load_feed
from tidelake.errors import ConfigError

OF_LAKE = 'uri = "${TIDELAKE_LAKE}"'


def load(folder: Path, text: str = feeds.FEED, archive: str = "/archive", lake: str = "/lake") -> Feed:
    feeds.write(folder / "schemas", feed=text)
    return load_feed(folder / "schemas", "shop", {"TIDELAKE_ARCHIVE": archive, "TIDELAKE_LAKE": lake})


@pytest.mark.parametrize(
    ("key", "members", "whole"),
    [
        ("lake.uri", 'uri = "lake"', "/lake"),
        ("lake.uri", 'uri = "../lake"', "/../lake"),
        ("lake.uri", 'uri = "file://lake"', "/lake"),
        ("lake.catalog", f'{OF_LAKE}\ncatalog = "jdbc:sqlite:catalog.db?x=1"', "/catalog.db?x=1"),
        ("watermark.uri", f'{OF_LAKE}\n[watermark]\nfrom = "checkpoints"\nuri = "c.json"', "/c.json"),
        ("maintenance.archive_changelog", f'{OF_LAKE}\n[maintenance]\nkeep_changelog = "30d"\narchive_changelog = "old"', "/old"),
    ],
)
def test_a_relative_path_is_refused_with_the_absolute_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, members: str, whole: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"feed.toml: {key}: a relative path depends on the working directory") as error:
        load(tmp_path, feeds.FEED.replace(OF_LAKE, members))
    assert error.value.remedy.endswith(f"{tmp_path}{whole}")


def test_the_archive_and_its_claim_files_are_places_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"source.uri: a relative path .* \(found '\$\{TIDELAKE_ARCHIVE\}/open'\)"):
        load(tmp_path / "a", archive="archive")
    with pytest.raises(ConfigError, match=r"source\.claim_check: a relative path"):
        load(tmp_path / "b", feeds.FEED.replace('layout = "aiven-jsonl"', 'layout = "aiven-jsonl"\nclaim_check = "claims"'))


@pytest.mark.parametrize("lake", ["/lake", "s3://bucket/lake", "file:///lake"])
def test_absolute_paths_and_urls_are_taken(tmp_path: Path, lake: str) -> None:
    assert load(tmp_path, lake=lake).lake.uri == lake


def test_brokers_are_no_path(tmp_path: Path) -> None:
    text = feeds.FEED.replace('uri = "${TIDELAKE_ARCHIVE}/open"\nlayout = "aiven-jsonl"', 'kind = "kafka"\nuri = "b1:9092,b2:9092"')
    assert load(tmp_path, text).source.uri == "b1:9092,b2:9092"


def test_check_says_it_where_the_file_does(tmp_path: Path) -> None:
    feeds.write(tmp_path, feed=feeds.FEED.replace(OF_LAKE, 'uri = "lake"'), rules=None)
    done = call("check", "--schemas", tmp_path)
    assert (done.code, "lake.uri: a relative path" in done.out) == (2, True)


def test_a_lake_is_the_same_from_every_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feeds.write(tmp_path / "schemas")
    for name in ("ARCHIVE", "LAKE"):
        monkeypatch.setenv(f"TIDELAKE_{name}", name.lower())
    monkeypatch.chdir(tmp_path)
    done = call("run", "--feed", "shop", "--hour", "2026-01-05T10")
    assert (done.code, "a relative path depends on the working directory" in done.err) == (2, True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["schemas"]

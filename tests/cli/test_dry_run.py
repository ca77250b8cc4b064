"""What a dry run says before anything is there, and that it leaves it so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.calls import call
from tests.cli.feeds import FEED, write
from tidelake.config.feed import load_feed
from tidelake.io import storage
from tidelake.lake.opened import Lake


@pytest.fixture
def schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "archive" / "open" / "shop.open").mkdir(parents=True)
    monkeypatch.setenv("TIDELAKE_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("TIDELAKE_LAKE", str(tmp_path / "lake"))
    storage.reset()
    write(tmp_path / "schemas")
    return tmp_path / "schemas"


def test_a_dry_run_makes_no_lake_and_says_what_the_run_would_of_an_empty_archive(schemas: Path) -> None:
    flags = ("run", "--feed", "shop", "--hour", "2026-01-05T10", "--schemas", schemas)
    said = call(*flags, "--dry-run", "--json")
    plan = json.loads(said.out)[0]
    assert (plan["hour"], plan["objects"], plan["decodes"], plan["published"]) == ("2026-01-05T10", 0, True, False)
    assert sorted(p.name for p in schemas.parent.iterdir()) == ["archive", "schemas"]
    assert plan["blocked"].startswith("ARCHIVE_EMPTY: ")
    assert (said.code, call(*flags).err.splitlines()[-1]) == (3, f"error: {plan['blocked']}")


def test_a_dry_run_of_an_archive_that_is_not_there_is_refused_as_the_run_is(schemas: Path) -> None:
    shutil.rmtree(schemas.parent / "archive")
    flags = ("run", "--feed", "shop", "--hour", "2026-01-05T10", "--schemas", schemas)
    dry, real = call(*flags, "--dry-run"), call(*flags)
    assert dry.err.startswith("error: NO_ARCHIVE: ")
    assert (dry.code, dry.err) == (real.code, real.err.splitlines()[-1] + "\n")
    assert real.code == 2


def test_a_dry_run_of_live_topics_asks_no_broker(schemas: Path) -> None:
    feed = FEED.replace('uri = "${TIDELAKE_ARCHIVE}/open"\nlayout = "aiven-jsonl"', 'kind = "kafka"\nuri = "127.0.0.1:1"')
    write(schemas, "live", feed=feed)
    said = call("run", "--feed", "live", "--hour", "2026-01-05T10", "--dry-run", "--schemas", schemas)
    assert (said.code, said.out.splitlines()[1]) == (0, "  land      live topics, new")


def test_a_wrong_hour_makes_no_lake(schemas: Path) -> None:
    assert call("land", "--feed", "shop", "--hour", "10 o'clock", "--schemas", schemas).code == 2
    assert sorted(p.name for p in schemas.parent.iterdir()) == ["archive", "schemas"]


def test_a_dry_run_says_what_the_run_would_of_a_namespace_of_another_feed(schemas: Path) -> None:
    with Lake.of(load_feed(schemas, "shop")) as lake:
        lake.catalog.claim_namespace("shop_changelog", "first")
    flags = ("--feed", "shop", "--hour", "2026-01-05T10", "--schemas", schemas)
    dry, real = call("run", *flags, "--dry-run"), call("run", *flags)
    assert dry.err.startswith("error: CONFIG: namespace 'shop_changelog' of the lake belongs to feed 'first', feed 'shop' may not write")
    assert (dry.code, dry.err) == (real.code, real.err) == (2, dry.err)
    assert not (schemas.parent / "lake" / "manifests").exists(), "it was refused before it landed anything"


def test_a_dry_run_names_what_is_taken_where_nothing_tells_the_feeds_databases(schemas: Path) -> None:
    write(schemas, "untold", tables=None, rules=None)
    with Lake.of(load_feed(schemas, "shop")) as lake:
        for namespace in ("d", "d_changelog", "d_past"):
            lake.catalog.claim_namespace(namespace, "first")
    said = call("run", "--feed", "untold", "--hour", "2026-01-05T10", "--dry-run", "--schemas", schemas)
    assert said.code == 3, "the archive is empty, too"
    assert [line for line in said.out.splitlines() if "refused" in line] == [
        "  refused   if it has rows of that database: d belongs to feed 'first'"
    ]

"""What a dry run says before anything is there, and that it leaves it so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calls import call
from tests.cli.feeds import FEED, write
from tidelake import storage


@pytest.fixture
def schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "archive" / "open" / "shop.open").mkdir(parents=True)
    monkeypatch.setenv("TIDELAKE_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("TIDELAKE_LAKE", str(tmp_path / "lake"))
    storage.reset()
    write(tmp_path / "schemas")
    return tmp_path / "schemas"


def test_a_dry_run_makes_no_lake(schemas: Path) -> None:
    said = call("run", "--feed", "shop", "--hour", "2026-01-05T10", "--dry-run", "--json", "--schemas", schemas)
    assert said.code == 0, said.err
    plan = json.loads(said.out)[0]
    assert (plan["hour"], plan["objects"], plan["decodes"], plan["published"]) == ("2026-01-05T10", 0, True, False)
    assert sorted(p.name for p in schemas.parent.iterdir()) == ["archive", "schemas"]


def test_a_dry_run_of_live_topics_asks_no_broker(schemas: Path) -> None:
    feed = FEED.replace('uri = "${TIDELAKE_ARCHIVE}/open"\nlayout = "aiven-jsonl"', 'kind = "kafka"\nuri = "127.0.0.1:1"')
    write(schemas, "live", feed=feed)
    said = call("run", "--feed", "live", "--hour", "2026-01-05T10", "--dry-run", "--schemas", schemas)
    assert (said.code, said.out.splitlines()[1]) == (0, "  land      live topics, new")


def test_a_wrong_hour_makes_no_lake(schemas: Path) -> None:
    assert call("land", "--feed", "shop", "--hour", "10 o'clock", "--schemas", schemas).code == 2
    assert sorted(p.name for p in schemas.parent.iterdir()) == ["archive", "schemas"]

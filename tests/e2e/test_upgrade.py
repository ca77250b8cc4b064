"""A lake that version 0.1.0 wrote (tests/data/lakes): read, compared with the truth, run on and audited by this version."""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.checkout import CHECKOUT
from tidelake.audit.audit import audit
from tidelake.config.feed import load_feed
from tidelake.demo.play import demo_lake
from tidelake.demo.verify import differences
from tidelake.io import storage
from tidelake.io.duckdb_door import write_jsonl
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake
from tidelake.query.asof import table_asof
from tidelake.query.render import expressions, local
from tidelake.query.status import feed_status
from tidelake.run import run_hour
from tidelake.tso import parse_hour

FEED = "bazaar-open"
TEN, ELEVEN, TWELVE, THIRTEEN = HOURS = ("2026-01-05T10", "2026-01-05T11", "2026-01-05T12", "2026-01-05T13")


class Upgraded:
    """The lake with its truth. truth: hour → table → rows; ts: hour → resolved ts (TSO)."""

    def __init__(self, lake: Lake, known: Mapping[str, Any]) -> None:
        self.lake = lake
        self.truth: dict[str, Any] = known["truth"]
        self.ts = dict(zip(HOURS, known["ts"], strict=True))

    def run(self, hour: str) -> int:
        """Run an hour. Returns the number of its cut."""
        done = run_hour(self.lake, parse_hour(hour)).compacted
        assert done is not None
        assert done.cut is not None
        return done.cut.seq

    def none(self, hour: str) -> dict[str, list[str]]:
        """What `differs` returns if all tables are equal."""
        return {name: [] for name in self.truth[hour]}

    def differs(self, hour: str) -> dict[str, list[str]]:
        """The differences of every table from the truth at the end of an hour."""
        out = {}
        for name, truth in self.truth[hour].items():
            with table_asof(self.lake, name, self.ts[hour]) as found, tempfile.NamedTemporaryFile() as file:
                write_jsonl(local(found.rows, self.lake.feed.time_zone), expressions(found.columns), file.name)
                rows = [json.loads(line) for line in Path(file.name).read_text(encoding="utf-8").split("\n") if line]
            out[name] = differences(rows, truth)
        return out


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Upgraded]:
    """The lake of 0.1.0 with two published hours, and the archive of a third, on a server of its own."""
    packed = CHECKOUT / "tests" / "data" / "lakes" / "0.1.0.tar.xz"
    with patch.dict(os.environ), demo_lake(tmp_path / "demo", fresh=True) as variables, tarfile.open(packed) as tar:
        store, known = open_store("s3://lake"), dict[str, Any]()
        for member in tar:
            content = tar.extractfile(member)
            assert content is not None
            if member.name == "truth.json":
                known = json.load(content)
            elif member.name == "catalog.db":
                Path(variables["TIDELAKE_CATALOG"].removeprefix("jdbc:sqlite:")).write_bytes(content.read())
            else:
                store.write(member.name, content.read())
        with Lake.of(load_feed(CHECKOUT / "schemas", FEED, os.environ)) as lake:
            yield Upgraded(lake, known)
    storage.reset()  # its variables are gone


def test_a_lake_of_the_version_before_is_read_and_run_on(old: Upgraded) -> None:
    said = feed_status(old.lake)
    assert (said["cut"], said["published_hour"], said["resolved_ts"]) == (2, ELEVEN, old.ts[ELEVEN])
    assert (said["checks"]["checked"], said["checks"]["failed"]) == (31, 0)
    assert old.differs(TEN) == old.none(TEN)
    assert old.differs(ELEVEN) == old.none(ELEVEN)
    assert [old.run(hour) for hour in (TWELVE, THIRTEEN)] == [3, 4]
    assert old.differs(THIRTEEN) == old.none(THIRTEEN)
    assert old.differs(TEN) == old.none(TEN), "cuts of both versions stand side by side"
    audited = audit(old.lake.feed.name, old.lake.store.uri, deep=old.lake.feed)
    assert (audited.first, audited.last, audited.wrong) == (1, 4, [])
    assert audited.checked["certificates"] == 4
    assert [u.many for u in audited.unchecked if "an earlier version of Tidelake wrote them, without a chain" in u.why] == [2]

"""Two feeds through all stages on a lake whose catalog is a server: hours with statements, rollback, redo, maintenance, audit, doctor."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.cli.calls import Called, call
from tests.e2e import bazaar
from tests.lake.versioned import documents
from tidelake.config.feed import load_feed
from tidelake.demo.generate import Workload, generate
from tidelake.demo.play import FEEDS, compare
from tidelake.io import storage
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake
from tidelake.tso import format_hour

FEED, OTHER = bazaar.FEED, "bazaar-craft"
ROWS = 150  # an hour


@dataclass(frozen=True)
class Walk:
    """A workload of two hours with all statements, its archive and a feed. uri: above archive and lake, on S3; place: of the catalog."""

    uri: str
    workload: Workload
    schemas: Path
    place: str
    feed: str = FEED

    @property
    def hours(self) -> list[str]:
        """All hours."""
        return [format_hour(h) for h in self.workload.hours]

    def done(self, *arguments: object) -> Called:
        """A command that must succeed."""
        done = call(*arguments, "--feed", self.feed)
        assert done.code == 0, f"{arguments}: {done.err[-3000:]}"
        return done

    def json(self, *arguments: object) -> Any:
        """What a command prints with --json."""
        return json.loads(self.done(*arguments, "--json").out)

    @contextmanager
    def lake(self) -> Iterator[Lake]:
        """The feed's lake."""
        with Lake.of(load_feed(self.schemas, self.feed)) as lake:
            yield lake

    def differences(self, hour: int) -> dict[str, list[str]]:
        """What differs from the truth at the cut of the nth hour, for tables that differ; there must be tables."""
        with self.lake() as lake:
            found = compare(lake, self.workload, FEEDS[self.feed], self.workload.hours[hour])
        assert len(found) >= 5
        return {table: said for table, said in found.items() if said}


@contextmanager
def walk_on(uri: str, folder: Path, catalog: str, more: str = "", environment: Mapping[str, str] | None = None) -> Iterator[Walk]:
    """A workload below uri, with feeds in the folder whose lakes have this catalog. more: sections of their feed.toml."""
    at: dict[str, Any] = {"hours": 2, "ddl_span_hours": 2.0, "crashes": (40.2, 59.7)}
    workload = generate(open_store(f"{uri}/archive"), [FEEDS[FEED], FEEDS[OTHER]], rows_per_hour=ROWS, **at)
    schemas = bazaar.schemas_for(workload, folder)
    for feed in (FEED, OTHER):
        settings = schemas / feed / "feed.toml"
        settings.write_text(settings.read_text() + more)
    variables = {
        "TIDELAKE_ARCHIVE": f"{uri}/archive",
        "TIDELAKE_LAKE": f"{uri}/lake",
        "TIDELAKE_CATALOG": catalog,
        "TIDELAKE_SCHEMAS": str(schemas),
    }
    with patch.dict(os.environ, variables | dict(environment or {})):
        storage.reset()
        yield Walk(uri, workload, schemas, catalog.partition("?")[0])
    storage.reset()


def two_feeds(walk: Walk) -> None:
    """Every stage of a feed between two hours of another one, which has the same catalog and lake."""
    other = replace(walk, feed=OTHER)
    first, second = walk.hours[:2]
    other.done("run", "--hour", first)
    all_stages(walk)
    assert other.differences(0) == {}, "rollback, redo and maintenance of the one leave the other"
    other.done("run", "--hour", second)
    other.done("maintain")
    assert (other.differences(0), other.differences(1), walk.differences(1)) == ({}, {}, {})
    for each in (walk, other):
        assert "as certified" in each.done("audit", "--deep").out
    taken = walk.schemas / OTHER / "feed.toml"
    taken.write_text(taken.read_text().replace('"{feed}_{database}"', '"bazaar_open_{database}"'))
    refused = call("redo", "--from", first, "--to", second, "--feed", OTHER)
    assert (refused.code, "bazaar-open" in refused.err) == (2, True), refused.err
    assert walk.differences(1) == {}, "a feed takes no namespace of another one"


def all_stages(walk: Walk) -> None:
    """Every stage, and every table equal to the truth after each."""
    first, second = walk.hours[:2]
    walk.done("run", "--hour", first, "--hours", 2)
    assert walk.differences(1) == {}, "two hours with statements"
    assert walk.differences(0) == {}, "an earlier cut"
    cuts = walk.json("status")
    assert (cuts["cut"], cuts["published_hour"]) == (2, second)

    middle = (walk.workload.deliveries["open"].resolved(walk.workload.hours[0]) + cuts["resolved_ts"]) // 2
    between = walk.done("asof", "--table", "bazaar.bids", "--ts", middle, "--format", "jsonl")
    assert between.out.count("\n") > 10, "a TSO between two cuts"

    to = walk.workload.deliveries["open"].resolved(walk.workload.hours[0])
    walk.done("rollback", "--to", to)
    assert walk.differences(0) == {}, "set back"
    walk.done("run", "--hour", second)
    assert walk.differences(1) == {}, "and forward again"
    redone = walk.done("redo", "--from", first, "--to", second)
    assert "every table holds the same rows as before" in redone.out
    assert walk.differences(1) == {}, "built again"

    walk.done("maintain")
    assert walk.differences(1) == {}, "maintained"
    audited = walk.done("audit", "--deep")
    assert "as certified" in audited.out, audited.out
    assert [key for key, named in documents(open_store(f"{walk.uri}/lake")).items() if not named] == []
    asked = json.loads(call("doctor", "--feed", FEED, "--json").out)["checks"]  # this host may lack what a run does not need
    assert [d["found"] for d in asked if d["subject"] == f"{FEED}: {walk.place}"] == ["answers"], asked

"""Debezium through the line: with schemas in the messages and without, every table equals the truth at every hour, but for zero dates."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from pathlib import Path

import pytest

from tests.e2e import bazaar
from tidelake.config.feed import load_feed
from tidelake.demo.generate import Workload, generate
from tidelake.demo.play import compare
from tidelake.demo.upstream import TableContents
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake
from tidelake.run import run_hour

FEED = "bazaar-debezium"
TOPICS = {"debezium": "bazaar.debezium", "debezium-bare": "bazaar.debezium-bare"}

pytestmark = pytest.mark.usefixtures("small_hours")


class Carried(Workload):
    """A workload whose truth is what Debezium can carry: a zero date that may be NULL is sent as NULL (docs/reference/protocols.md 9.2)."""

    def truth(self, protocol: str, hour: datetime) -> dict[str, TableContents]:
        """The tables at M of the hour."""
        tables = super().truth(protocol, hour)
        return {name: t | {"rows": [{c: _carried(v) for c, v in row.items()} for row in t["rows"]]} for name, t in tables.items()}


def _carried(value: object) -> object:
    return None if str(value).startswith("0000-00-00") else value


def schemas_for(made: bazaar.Bazaar, protocol: str) -> Path:
    """The open feed's folder as one of this protocol. Zero dates do not come, so no column has to keep them as text."""
    schemas = bazaar.schemas_for(made.workload, made.folder)
    (schemas / "bazaar-open").rename(schemas / FEED)
    feed, _, _ = (schemas / FEED / "feed.toml").read_text().partition("# The column holds")
    feed = feed.replace('"open"', '"debezium"').replace("bazaar.open", TOPICS[protocol]).replace("/open", f"/{protocol}")
    bare = "true" if protocol == "debezium-bare" else "false"
    (schemas / FEED / "feed.toml").write_text(
        feed.replace("max_batch_size = 16", f"enable_tidb_extension = true\ndebezium_disable_schema = {bare}")
    )
    return schemas


SEED = 3  # of a history that leaves zero dates
LONG = [pytest.param(protocol, 2, marks=pytest.mark.long) for protocol in TOPICS]


@pytest.mark.parametrize(("protocol", "hours"), [("debezium-bare", 1), *LONG])
def test_every_table_equals_the_truth_at_every_hour(protocol: str, hours: int, tmp_path: Path) -> None:
    archive = open_store(str(tmp_path / "archive"))
    at = {"hours": hours, "ddl_span_hours": float(hours), "crashes": (20.1 * hours, 29.85 * hours)}
    made = bazaar.Bazaar(tmp_path, generate(archive, [protocol], seed=SEED, rows_per_hour=600 // hours, **at))
    workload = Carried(**{f.name: getattr(made.workload, f.name) for f in fields(Workload)})
    zeros = 0
    with Lake.of(load_feed(schemas_for(made, protocol), FEED, made.variables)) as lake:
        for hour in workload.hours:
            done = run_hour(lake, hour)
            assert done.compacted is not None
            assert done.decoded.record.rejected == {}
            found = compare(lake, workload, protocol, hour)
            assert len(found) >= 6
            assert {t: d for t, d in found.items() if d} == {}
            zeros += sum(
                str(v).startswith("0000") for t in made.workload.truth(protocol, hour).values() for r in t["rows"] for v in r.values()
            )
    assert zeros > 0

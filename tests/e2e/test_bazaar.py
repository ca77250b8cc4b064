"""Our own small workload through the whole line, in every protocol, on a real S3 server: every table equals the truth at every hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.stranger import ran
from tests.conftest import WORKERS, FreshUri
from tests.e2e import bazaar
from tests.lake.versioned import documents
from tidelake.config.feed import load_feed
from tidelake.demo.generate import generate
from tidelake.demo.play import FEEDS, compare
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake
from tidelake.run import run_hour

# All statements are in so many hours, and one more hour brings the end of the delivery. Always run: one process, with three protocols;
# e2e/test_shop.py compares more hours of bazaar-open's with a truth, read by Spark's workers.
CASES = [(feed, hours, who) for feed in FEEDS for hours in (1, 2) for who in WORKERS]
SAMPLE = {("bazaar-craft", 1, "this process"), ("bazaar-avro", 1, "this process"), ("bazaar-canal", 1, "this process")}


@pytest.mark.parametrize(
    ("feed", "hours", "workers"),
    [pytest.param(*case, marks=() if case in SAMPLE else pytest.mark.long) for case in CASES],
    indirect=["workers"],
)
@pytest.mark.usefixtures("workers")
def test_every_table_equals_the_truth_at_every_hour(feed: str, hours: int, s3: FreshUri, tmp_path: Path) -> None:
    uri, at = s3("bazaar"), {"hours": hours, "ddl_span_hours": float(hours), "crashes": (20.1 * hours, 29.85 * hours)}
    workload = generate(open_store(f"{uri}/archive"), [FEEDS[feed]], rows_per_hour=600 // hours, **at)
    variables = {
        "TIDELAKE_ARCHIVE": f"{uri}/archive",
        "TIDELAKE_LAKE": f"{uri}/lake",
        "TIDELAKE_CATALOG": f"jdbc:sqlite:{tmp_path / 'catalog.db'}",
    }
    with Lake.of(load_feed(bazaar.schemas_for(workload, tmp_path), feed, variables)) as lake:
        for hour in workload.hours:
            done = run_hour(lake, hour)
            assert done.compacted is not None
            found = compare(lake, workload, FEEDS[feed], hour)
            assert len(found) >= (5 if feed == "bazaar-avro" else 6)  # an Avro feed's truth leaves out the table without a key
            assert {t: d for t, d in found.items() if d} == {}
    named = documents(open_store(f"{uri}/lake"))
    assert {"lake.json", f"leases/{feed}.json"} < named.keys()
    assert [key for key, names_its_form in named.items() if not names_its_form] == []
    code, said = ran(f"{uri}/lake", feed=feed)
    assert (code, said[0]) == (0, f"{feed}: as certified"), said
    assert f"  checked: {len(workload.hours)} certificates" in said

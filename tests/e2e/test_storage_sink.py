"""The storage sink through the line: CSV and Canal-JSON files without Kafka; every table equals the truth at every hour."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e import bazaar
from tests.e2e.sink_files import SinkFiles
from tidelake.config.feed import load_feed
from tidelake.demo.delivery import Delivery
from tidelake.demo.generate import Workload
from tidelake.demo.history import HOUR_MS, History
from tidelake.demo.play import compare
from tidelake.errors import StorageError
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake
from tidelake.run import land, run_hour
from tidelake.tso import end_ts, from_ms

FEED = "bazaar-sink"
OPTIONS = {"csv": "include_commit_ts = true\noutput_old_value = true", "canal-json": "enable_tidb_extension = true"}
FORMS = {"csv": "csv", "canal-json": "json"}

pytestmark = pytest.mark.usefixtures("small_hours")


class ByHours(Delivery):
    """M of an hour is its last TSO."""

    def resolved(self, hour: datetime) -> int:
        """Of the hour."""
        return end_ts(hour)


def schemas_for(made: bazaar.Bazaar, protocol: str) -> Path:
    """The open feed's folder as one of the sink."""
    schemas = bazaar.schemas_for(made.workload, made.folder)
    (schemas / "bazaar-open").rename(schemas / FEED)
    _, _, columns = (schemas / FEED / "feed.toml").read_text().partition("# The column holds")
    (schemas / FEED / "feed.toml").write_text(
        f"""protocol = "{protocol}"
topics = ["/bazaar[.].*/"]
[options]
{OPTIONS[protocol]}
[source]
uri = "${{TIDELAKE_ARCHIVE}}"
layout = "storage-sink"
[watermark]
from = "metadata"
[lake]
uri = "${{TIDELAKE_LAKE}}"
catalog = "${{TIDELAKE_CATALOG}}"
# The column holds{columns}"""
    )
    return schemas


@pytest.mark.parametrize("protocol", ["csv", pytest.param("canal-json", marks=pytest.mark.long)])
def test_every_table_equals_the_truth_at_every_hour(protocol: str, tmp_path: Path) -> None:
    history = History(hours=2, rows_per_hour=300, ddl_span_hours=2.0)
    made = bazaar.Bazaar(tmp_path, Workload(history, {protocol: ByHours(marks=True)}))
    sink = SinkFiles(open_store(str(tmp_path / "archive")), history, FORMS[protocol], history.start_ms + HOUR_MS + 90_000)
    assert sink.write() > 100
    with Lake.of(load_feed(schemas_for(made, protocol), FEED, made.variables)) as lake:
        for hour in made.workload.hours[:2]:
            sink.checkpoint(end_ts(hour) - 1)
            with pytest.raises(StorageError, match="HOUR_OPEN"):
                land(lake, hour)
            sink.checkpoint(from_ms(int((hour + timedelta(hours=1)).timestamp() * 1000)))
            done = run_hour(lake, hour)
            assert done.compacted is not None
            assert done.decoded.record.rejected == {}
            staged = done.ordered.staged
            assert staged is not None
            assert sum(c.duplicates for c in staged.counts.values()) > 0  # the restart wrote rows of both hours again
            found = compare(lake, made.workload, protocol, hour)
            assert len(found) >= 6
            assert {t: d for t, d in found.items() if d} == {}

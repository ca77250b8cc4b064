"""Simple through the line: rows wait for the message that brings their table's schema, across partitions and hours."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import bazaar
from tidelake.config.feed import load_feed
from tidelake.decode.record import read_record
from tidelake.demo.generate import Workload, generate
from tidelake.demo.play import compare
from tidelake.errors import OrderError
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake
from tidelake.run import decode, land, order, run_hour
from tidelake.tso import format_hour

FEED = "bazaar-simple"
PROTOCOL = "simple-json"
Record = dict[str, Any]

pytestmark = pytest.mark.usefixtures("small_hours")


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workload, Path]:
    """Two hours, in which only partition 0 gets BOOTSTRAP messages."""
    folder = tmp_path_factory.mktemp("simple")
    archive = open_store(str(folder / "archive"))
    return generate(archive, [PROTOCOL], hours=2, rows_per_hour=300, ddl_span_hours=2.0, crashes=(40.2, 59.7)), folder


def spoilt(workload: tuple[Workload, Path], folder: Path) -> bazaar.Bazaar:
    """A copy of the workload and its feed, to be changed."""
    made = bazaar.copy(bazaar.Bazaar(workload[1], workload[0]), folder / "bazaar")
    schemas = bazaar.schemas_for(made.workload, made.folder)
    feed = (schemas / "bazaar-open" / "feed.toml").read_text()
    (schemas / "bazaar-open").rename(schemas / FEED)
    feed = feed.replace('"open"', f'"{PROTOCOL}"').replace("bazaar.open", "bazaar.simple").replace("/open", f"/{PROTOCOL}")
    (schemas / FEED / "feed.toml").write_text(feed.replace("max_batch_size = 16", "") + "\n[policy]\nwait_hours = 1\n")
    return made


@contextmanager
def lake_of(made: bazaar.Bazaar, wait_hours: int = 1) -> Iterator[Lake]:
    """The feed's lake."""
    file = made.folder / "schemas" / FEED / "feed.toml"
    file.write_text(file.read_text().replace("wait_hours = 1\n", f"wait_hours = {wait_hours}\n"))
    with Lake.of(load_feed(made.folder / "schemas", FEED, made.variables)) as lake:
        yield lake


def sources(made: bazaar.Bazaar, hour: str, partition: int) -> list[Path]:
    """The hour's objects of a partition, by offset."""
    date, _, number = hour.partition("T")
    folder = made.folder / "archive" / PROTOCOL / "bazaar.simple" / f"dt={date}" / f"hr={number}"
    return sorted(folder.glob(f"bazaar.simple+{partition}+*"))


def replaced(path: Path, which: Callable[[Record], bool], value: bytes) -> bytes | None:
    """Give the first such message of an object another value; what it had, None if there is none."""
    found: list[bytes] = []

    def change(records: list[Record]) -> None:
        for record in records:
            old = base64.b64decode(record["value"])
            if not found and which(json.loads(old)):
                found.append(old)
                record["value"] = base64.b64encode(value).decode()

    bazaar.edit_jsonl(path, change)
    return found[0] if found else None


def without_bootstrap(made: bazaar.Bazaar, hour: str, table: str) -> bytes:
    """Take the first BOOTSTRAP of a table out of the hour, a watermark of long ago comes in its place."""
    watermark = b'{"version":1,"type":"WATERMARK","commitTs":1,"buildTs":1}'
    for path in sources(made, hour, 0):
        taken = replaced(path, lambda m: m["type"] == "BOOTSTRAP" and m["tableSchema"]["table"] == table, watermark)
        if taken is not None:
            return taken
    raise AssertionError(f"no BOOTSTRAP of {table}")


def test_rows_of_other_partitions_get_the_schema_that_only_one_partition_brings(workload: tuple[Workload, Path], tmp_path: Path) -> None:
    made = spoilt(workload, tmp_path)
    with lake_of(made) as lake:
        for moment in made.workload.hours[:2]:  # the third brings the end of the delivery, of which every protocol has the same
            done = run_hour(lake, moment)
            assert done.compacted is not None
            assert done.decoded.record.rejected == {}
            found = compare(lake, made.workload, PROTOCOL, moment)
            assert len(found) >= 6
            assert {t: d for t, d in found.items() if d} == {}


def test_rows_wait_for_a_schema_of_the_next_hour_and_hold_the_resolved_ts_below_them(
    workload: tuple[Workload, Path], tmp_path: Path
) -> None:
    made = spoilt(workload, tmp_path)
    first, second, *_ = made.workload.hours
    late = without_bootstrap(made, format_hour(first), "bids")
    assert replaced(sources(made, format_hour(second), 0)[0], lambda m: m["type"] == "WATERMARK", late)
    with lake_of(made, 5) as lake:
        done = run_hour(lake, first)
        waiting = done.decoded.record.waiting
        assert [(w.database, w.table) for w in waiting] == [("bazaar", "bids")]
        assert done.decoded.record.rejected == {"NO_TABLE_SCHEMA": waiting[0].rows}
        staged = done.ordered.staged
        assert staged is not None
        record = read_record(lake.store, FEED, format_hour(first))
        assert record is not None
        marks = [m.resolved_ts for ps in record.watermarks.values() for m in ps.values()]
        assert staged.cut.resolved_ts < min(marks)
        assert staged.cut.open_hours == [format_hour(first)]
        assert not staged.cut.incomplete
        later = run_hour(lake, second)
        assert later.decoded.again == (format_hour(first),)
        assert {t: d for t, d in compare(lake, made.workload, PROTOCOL, second).items() if d} == {}
        cleared = read_record(lake.store, FEED, format_hour(first))
        assert cleared is not None
        assert (cleared.waiting, cleared.rejected) == ([], {})


def test_a_row_that_waited_too_long_blocks_until_its_loss_is_accepted(
    workload: tuple[Workload, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = spoilt(workload, tmp_path)
    for name, value in made.variables.items():
        monkeypatch.setenv(name, value)
    first, second, *_ = made.workload.hours
    without_bootstrap(made, format_hour(first), "bids")
    with lake_of(made) as lake:
        run_hour(lake, first)
        for stage in (land, decode):
            stage(lake, second)
        with pytest.raises(OrderError, match=r"NO_TABLE_SCHEMA: schema version \d+ of bazaar.bids has not come yet") as raised:
            order(lake, second)
        assert raised.value.code == "UNDECIDED"
    assert made.run("quarantine", "accept", "--feed", FEED, "--all", "--reason", "a test") == 0
    with lake_of(made) as lake:
        staged = order(lake, second).staged
        assert staged is not None
        assert staged.cut.incomplete
        assert len(staged.cut.accepted) > 0

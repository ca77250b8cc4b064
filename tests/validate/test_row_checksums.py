"""Row checksums on their way through the lake: policy in the worker, the column of older lakes, counts, certificate and report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.decode.landed_file import landed_file
from tests.lake import lakes
from tests.lake.histories import Message, feeder, publish, resolved, row, row_schema, rows_of
from tests.protocols import both_paths
from tests.protocols import simple_messages as simple
from tidelake.config.lake_paths import SYSTEM, certificates, events_table, seq_of
from tidelake.config.options import SinkOptions
from tidelake.decode.landed_source import DecodeJob, LandedReader
from tidelake.history.event import EVENT
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.events import ensure_events
from tidelake.lake.opened import Lake
from tidelake.lake.owner import OWNER
from tidelake.spark.worker_secrets import NONE
from tidelake.validate.quality.evidence import first_row
from tidelake.validate.report import hour_facts, write_report

KF = row_schema("id bigint", "f float")
SQL = "CREATE TABLE d.k (id BIGINT PRIMARY KEY, f FLOAT)"
SCHEMA = simple.table_schema([simple.column("id")], [simple.index("id", primary=True)])


def simple_row(number: int) -> both_paths.Message:
    return simple.json_row(data={"id": "7"}, checksum={"version": 2, "corrupted": False, "current": number, "previous": 0})


@pytest.mark.parametrize(("refuse", "second"), [(False, ("row", "mismatch", None)), (True, ("rejected", None, "CHECKSUM"))])
def test_a_worker_marks_or_refuses_a_row_that_does_not_add_up(
    tmp_path: Path, refuse: bool, second: tuple[str, str | None, str | None]
) -> None:
    right = crc32((7).to_bytes(8, "little"))
    messages = both_paths.batch([simple.json_schema_message(SCHEMA), simple_row(right), simple_row(5), simple_row(right)])
    pq.write_table(pa.Table.from_batches([messages]), tmp_path / "o.parquet")
    options = SinkOptions(enable_row_checksum=True)
    objects = [landed_file(tmp_path / "o.parquet")]
    job = DecodeJob(lake_uri=str(tmp_path), feed="shop", objects=objects, protocol="simple-json", options=options, refuse_mismatches=refuse)
    events = [e for b in LandedReader(job).rows(["o.parquet"], NONE) for e in b.to_pylist() if e["kind"] != "row_schema"]
    assert [(e["kind"], e["checksum"], e["error_code"]) for e in events] == [
        *(("bootstrap", None, None), ("row", "verified", None)),
        *(second, ("row", "verified", None)),
    ]
    assert [e["offset"] for e in events] == [0, 1, 2, 3]
    raw = messages.column("value")[2].as_py() if refuse else None
    assert events[2]["raw_value"] == raw
    assert events[2]["error"] == (f"the row's checksum is {right}, expected 5, which came with it" if refuse else None)


def test_the_events_of_an_older_lake_get_the_column(tmp_path: Path) -> None:
    catalog, feed = lakes.catalog(tmp_path), lakes.feed(tmp_path)
    today = ensure_events(catalog, feed)
    catalog.drop(today.identifier, feed.name)
    older = [c for c in today.columns() if c.name != "checksum"]
    partition = (("hour", "identity"), ("kind", "identity"))
    made = catalog.create(events_table(feed.name), older, partition=partition, properties={OWNER: feed.name})
    rows = pa.Table.from_pylist([{"hour": "2026-01-05T10", "kind": "row", "op": "insert"}], pa.schema([("hour", pa.string()), *EVENT]))
    catalog.append(made.identifier, rows.drop_columns("checksum"))
    grown = ensure_events(catalog, feed)
    assert [c.name for c in grown.columns()] == [*(c.name for c in older), "checksum"]
    assert {c.name for c in grown.columns()} == {"hour", *EVENT.names}
    assert grown.scan({}, ["op", "checksum"], grown.main).read_all().to_pylist() == [{"op": "insert", "checksum": None}]
    assert ensure_events(catalog, feed).main == grown.main  # once
    assert made.identifier.startswith(SYSTEM)


def said(message: Message, checksum: str) -> Message:
    return replace(message, event=replace(message.event, checksum=checksum))


@pytest.fixture
def published(tmp_path: Path) -> Iterator[tuple[Lake, str]]:
    """A Craft feed's hour with rows of every verdict, as if Craft carried checksums."""
    made = feeder(tmp_path, SQL, protocol="craft")
    (tmp_path / "lake").mkdir()
    rows = [
        said(row(0, "insert", 10, KF, ("1", "1.5")), "verified"),
        said(row(0, "insert", 10, KF, ("2", "2.5")), "mismatch"),
        said(row(0, "insert", 10, KF, ("2", "2.5")), "mismatch"),  # a repeat
        said(row(0, "insert", 11, KF, ("3", "3.5")), "unverifiable"),
        row(0, "insert", 12, KF, ("4", "4.5")),
        said(row(0, "insert", 99, KF, ("5", "5.5")), "mismatch"),  # of a later window
    ]
    with Lake.of(made.feed) as lake:
        hour = made.add(lake, [*rows, *resolved(50)])
        assert publish(lake, hour) is not None
        yield lake, hour


@pytest.mark.usefixtures("small_hours")
def test_verdicts_are_counted_by_table_and_stand_in_certificate_and_report(published: tuple[Lake, str]) -> None:
    lake, hour = published
    assert len(rows_of(lake, "d.k")) == 4  # they warn, and nothing is lost
    (seq,) = [seq_of(o.key) for o in lake.store.objects(certificates(lake.feed.name))]
    counts = read_certificate(lake.store, lake.feed.name, seq)["rows"]["d.k"]
    assert (counts["checksums"], counts["untrusted"]) == ({"verified": 1, "mismatch": 2, "unverifiable": 1}, ["f"])
    facts = hour_facts(lake, hour)
    assert (facts.tables["d.k"].checksums, facts.tables["d.k"].untrusted) == (counts["checksums"], ["f"])
    (check,) = [c for c in facts.checks if c.rule == "rows match their checksums"]
    assert (check.success, check.severity, check.observed) == (False, "warning", "1 do, 2 do not, 1 cannot be checked")
    assert check.result is not None
    assert first_row(check.result) == "id=2 at t[0]@1"
    assert len(check.result.partial_unexpected_index_list) == 1  # the repeat is no change
    assert 'checksum = "quarantine" under [policy]' in check.remedy
    assert "2 row events arrived damaged" in Path(write_report(lake, hour)).read_text()

"""What workers make of a landed object: rows that are not in the archive are rejected, those in files are fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli import feeds
from tests.decode.landed_file import landed_file
from tests.protocols.both_paths import batch
from tests.protocols.claim_messages import LOCATION, STUB, envelope, row
from tests.protocols.json_messages import open_message
from tidelake.config.feed import load_feed
from tidelake.config.options import SinkOptions
from tidelake.decode import landed_source
from tidelake.decode.landed_hour import decode_job
from tidelake.decode.landed_source import DecodeJob, LandedReader, context_of
from tidelake.decode.record import decoder_id
from tidelake.spark.worker_secrets import NONE


def events(folder: Path, **job: Any) -> list[dict[str, Any]]:
    """Of an object with a row, a row in a file, and a row of which only the handle was sent."""
    (folder / "lake").mkdir()
    messages = batch([row(7), STUB, row(8, None, ohk=True)])
    pq.write_table(pa.Table.from_batches([messages]), folder / "lake" / "1.parquet")
    options = SinkOptions(large_message_handle_option="claim-check")
    objects = [landed_file(folder / "lake" / "1.parquet")]
    reader = LandedReader(DecodeJob(lake_uri=str(folder / "lake"), feed="shop", objects=objects, protocol="open", options=options, **job))
    rows = [e for b in reader.rows(["1.parquet"], NONE) for e in b.to_pylist() if e["kind"] != "row_schema"]
    return sorted(rows, key=lambda e: int(e["offset"]))


def test_rows_that_are_not_in_the_message_are_rejected_with_the_key_to_set(tmp_path: Path) -> None:
    whole, claim, handle = events(tmp_path)
    assert (whole["kind"], whole["after"]) == ("row", [b"7", b"long"])
    assert (claim["kind"], claim["error_code"], claim["raw_key"], claim["ordinal"]) == ("rejected", "CLAIM_CHECK", STUB[0], 0)
    assert claim["error"] == (
        f"the row is in the claim-check file {LOCATION}; set [source] claim_check in feed.toml to the location of such files"
    )
    assert (handle["kind"], handle["error_code"]) == ("rejected", "HANDLE_ONLY")


def test_a_row_in_a_file_is_fetched_and_has_the_message_s_coordinates(tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "d2f1.json").write_bytes(envelope(row()))
    _, claim, handle = events(tmp_path, claim_check=str(tmp_path / "claims"))
    assert (claim["kind"], claim["after"], claim["claim_check"]) == ("row", [b"1", b"long"], None)
    assert [claim[name] for name in ("topic", "partition", "offset", "ordinal", "timestamp_ms")] == ["t", 0, 1, 0, 1]
    assert (handle["kind"], handle["error_code"]) == ("rejected", "HANDLE_ONLY")


def test_a_feed_may_accept_rows_of_which_only_the_handle_was_sent(tmp_path: Path) -> None:
    _, claim, handle = events(tmp_path, handle_only="accept")
    assert (claim["kind"], claim["error_code"]) == ("rejected", "CLAIM_CHECK")
    assert (handle["kind"], handle["handle_only"], handle["after"]) == ("row", True, [b"8"])


def test_workers_keep_the_avro_schemas_that_they_meet_and_keeping_changes_no_decoder(tmp_path: Path) -> None:
    text = feeds.FEED.replace('"open"', '"avro"', 1).replace(
        "[lake]", '[options]\navro_enable_watermark = true\n[avro]\nschemas = "a.json"\n[lake]'
    )
    feeds.write(tmp_path, feed=text)
    feed = load_feed(tmp_path, "shop", expand=False)
    (feed.folder / "a.json").write_text('{"1": "{}"}')
    before, lake = decoder_id(feed), str(tmp_path / "lake")
    job = decode_job(feed.model_copy(update={"lake": feed.lake.model_copy(update={"uri": lake})}), [])
    (feed.folder / "a.json").unlink()  # workers on other machines do not have it
    schema = context_of(DecodeJob.model_validate_json(job.model_dump_json())).avro_schema
    assert schema is not None
    assert (schema(1), (tmp_path / "lake" / "schemas" / "shop" / "avro" / "1.avsc").read_text()) == ("{}", "{}")
    assert decoder_id(feed) == before


def test_hours_are_decoded_again_once_the_files_place_or_the_policy_is_said(tmp_path: Path) -> None:
    feeds.write(tmp_path / "a")
    feeds.write(tmp_path / "b", feed=feeds.FEED.replace("[source]", '[source]\nclaim_check = "/claims"'))
    feeds.write(tmp_path / "c", feed=feeds.FEED + '\n[policy]\nhandle_only = "accept"\n')
    assert len({decoder_id(load_feed(tmp_path / name, "shop", expand=False)) for name in "abc"}) == 3


def test_statements_alone_are_read_where_nothing_else_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    query = "ALTER TABLE t RENAME COLUMN v TO w"
    sent = batch([row(7), open_message(({"ts": 9, "scm": "db", "tbl": "t", "t": 2}, {"q": query, "t": 1})), row(8)])
    pq.write_table(pa.Table.from_batches([sent]), tmp_path / "lake" / "1.parquet")
    where = {"lake_uri": str(tmp_path / "lake"), "feed": "shop", "objects": [landed_file(tmp_path / "lake" / "1.parquet")]}
    job = DecodeJob.model_validate(where | {"protocol": "open", "options": SinkOptions(), "statements_only": True})
    found = [e for b in LandedReader(job).rows(["1.parquet"], NONE) for e in b.to_pylist()]
    assert [(e["kind"], e["commit_ts"], e["database"], e["ddl"], e["offset"]) for e in found] == [("ddl", 9, "db", query, 1)]


def test_large_messages_are_read_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landed_source, "BATCH_BYTES", 20_000)
    messages = batch([(b"k%d" % n, b"%d" % n + b"x" * 1_900) for n in range(100)])
    pq.write_table(pa.Table.from_batches([messages]), tmp_path / "1.parquet", use_dictionary=False)
    read = list(landed_source._messages(pq.ParquetFile(tmp_path / "1.parquet")))
    assert pa.Table.from_batches(read).equals(pa.Table.from_batches([messages]))
    assert max(b.num_rows for b in read) < 12
    assert max(b.get_total_buffer_size() for b in read) < 2 * 20_000  # of the batch that Parquet's reader made, not of the slice

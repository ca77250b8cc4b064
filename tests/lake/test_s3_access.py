"""Workers ask S3 as their driver does."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.datasource import InputPartition

from tests.conftest import FreshUri
from tests.lake.landed_file import landed_file
from tidelake import storage
from tidelake.event import MESSAGE
from tidelake.lake import s3_access
from tidelake.lake.source import DecodeJob, LandedReader
from tidelake.options import SinkOptions
from tidelake.storage import open_store

OF_A_KEY = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_REGION": "eu-north-1"}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A process that knows no S3."""
    for name in (*s3_access._PLACE, *s3_access._KEY):
        monkeypatch.setenv(name, "to be restored")
        monkeypatch.delenv(name)
    storage.reset()
    yield monkeypatch
    storage.reset()


def test_a_key_comes_with_its_own_token_or_none_and_the_rest_stays(bare: pytest.MonkeyPatch) -> None:
    assert s3_access.given() == "{}"
    for name, value in OF_A_KEY.items():
        bare.setenv(name, value)
    assert json.loads(s3_access.given()) == OF_A_KEY
    text = s3_access.given()
    bare.setenv("AWS_ACCESS_KEY_ID", "another")
    bare.setenv("AWS_SESSION_TOKEN", "of the other")
    bare.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    s3_access.take(text)
    kept = {name: os.environ.get(name) for name in (*OF_A_KEY, "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL")}
    assert kept == OF_A_KEY | {"AWS_SESSION_TOKEN": None, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}


def test_a_driver_without_a_key_leaves_the_worker_s(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("AWS_ACCESS_KEY_ID", "own")
    bare.setenv("AWS_SESSION_TOKEN", "of the own")
    for text in ("", json.dumps({"AWS_REGION": "eu-north-1"})):
        s3_access.take(text)
    assert [os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_REGION")] == ["own", "of the own", "eu-north-1"]


def test_a_worker_that_knows_no_s3_reads_what_the_driver_can(s3: FreshUri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, text = s3("lake"), s3_access.given()
    message = {"topic": "t", "partition": 0, "offset": 7, "timestamp_ms": 1, "key": b"", "value": b"no message of TiCDC"}
    pq.write_table(pa.Table.from_pylist([message], schema=MESSAGE), tmp_path / "1.parquet")
    open_store(lake).upload("1.parquet", tmp_path / "1.parquet")
    for name in json.loads(text):
        monkeypatch.delenv(name)
    storage.reset()
    job = DecodeJob(lake_uri=lake, feed="shop", objects=[landed_file(tmp_path / "1.parquet")], protocol="open", options=SinkOptions())
    read = LandedReader(job, s3=text).read(InputPartition(["1.parquet"]))
    assert [(e["kind"], e["offset"]) for batch in read for e in batch.to_pylist()] == [("rejected", 7)]

"""Secrets on their way to Spark's workers: files that no one else reads, nothing in what a client asks of a Connect server."""

from __future__ import annotations

import os
import pickle
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.conftest import FreshUri
from tests.decode.landed_file import landed_file
from tests.lake import lakes
from tests.spark.connect_requests import recorder
from tidelake.compact.fold_source import FoldJob, FoldReader
from tidelake.config.lake_config import LakeConfig
from tidelake.config.options import SinkOptions
from tidelake.config.policy import ColumnPolicy, Policy
from tidelake.decode.event_files import place
from tidelake.decode.landed_source import DecodeJob, LandedReader
from tidelake.errors import ConfigError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import EVENT, MESSAGE
from tidelake.io import storage
from tidelake.io.storage import open_store
from tidelake.order.arrow import staged_by_workers
from tidelake.order.arrow.delete_source import DeletesJob, place_deletes
from tidelake.order.arrow.deletes import DeleteRules
from tidelake.order.arrow.rows_reader import OrderJob
from tidelake.spark import worker_secrets
from tidelake.spark.lake_settings import LakeSettings, lake_settings
from tidelake.spark.part_reader import PartTask
from tidelake.spark.run_parts import SparkWorkers
from tidelake.spark.session import spark_session
from tidelake.spark.worker_secrets import Handed, Secrets, handed, handed_over, of_environment, read, take_s3
from tidelake.wire.masks import mark

OF_A_KEY = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hidden-from-plans", "AWS_REGION": "eu-north-1"}
KEY = "a key of these tests, long enough"
BIGINT = MysqlType.parse("bigint")
SECRETS = Secrets(s3=OF_A_KEY, mask_key=KEY)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A process that knows no S3 and no Spark server."""
    own = ("TIDELAKE_SPARK_SERVER", "TIDELAKE_SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")  # PySpark sets the last and leaves it
    for name in (*worker_secrets._S3_PLACE, *worker_secrets._S3_KEY, *own):
        monkeypatch.setenv(name, "to be restored")
        monkeypatch.delenv(name)
    storage.reset()
    yield monkeypatch
    storage.reset()


def test_a_key_comes_with_its_own_token_or_none_and_the_rest_stays(bare: pytest.MonkeyPatch) -> None:
    assert of_environment("") == Secrets()
    for name, value in OF_A_KEY.items():
        bare.setenv(name, value)
    given = of_environment("").s3
    assert given == OF_A_KEY
    bare.setenv("AWS_ACCESS_KEY_ID", "another")
    bare.setenv("AWS_SESSION_TOKEN", "of the other")
    bare.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    take_s3(given)
    kept = {name: os.environ.get(name) for name in (*OF_A_KEY, "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL")}
    assert kept == OF_A_KEY | {"AWS_SESSION_TOKEN": None, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}


def test_a_driver_without_a_key_leaves_the_worker_s(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("AWS_ACCESS_KEY_ID", "own")
    bare.setenv("AWS_SESSION_TOKEN", "of the own")
    for variables in ({}, {"AWS_REGION": "eu-north-1"}):
        take_s3(variables)
    assert [os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_REGION")] == ["own", "of the own", "eu-north-1"]


def test_a_worker_that_knows_no_s3_reads_what_the_driver_can(s3: FreshUri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, given = s3("lake"), of_environment("")
    message = {"topic": "t", "partition": 0, "offset": 7, "timestamp_ms": 1, "key": b"", "value": b"no message of TiCDC"}
    pq.write_table(pa.Table.from_pylist([message], schema=MESSAGE), tmp_path / "1.parquet")
    open_store(lake).upload("1.parquet", tmp_path / "1.parquet")
    for name in given.s3:
        monkeypatch.delenv(name)
    storage.reset()
    job = DecodeJob(lake_uri=lake, feed="shop", objects=[landed_file(tmp_path / "1.parquet")], protocol="open", options=SinkOptions())
    found = PartTask(LandedReader(job), Handed("", given))([pa.RecordBatch.from_pydict({"id": [0]})])
    assert [(e["kind"], e["offset"]) for batch in found for e in batch.to_pylist()] == [("rejected", 7)]


def test_secrets_stand_in_a_file_of_the_owner_alone_until_the_end(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        with handed_over(SECRETS, tmp_path) as place, handed_over(Secrets(mask_key="another"), tmp_path) as other:
            (path,) = [p for p in tmp_path.iterdir() if f"file:{p}" == place]
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert (read(place), read(other)) == (SECRETS, Secrets(mask_key="another")), "the second leaves the first, which lives"
            assert KEY not in place
    finally:
        os.umask(umask)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match=r"a worker does not find .* which holds its secrets") as error:
        read(place)
    assert error.value.code == "SECRETS"


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "tidelake-handed-x"
    left.write_text(SECRETS.model_dump_json())
    (tmp_path / "another-program-s").write_text("stays")
    with handed_over(SECRETS, tmp_path) as place:
        assert sorted(f"file:{p}" for p in tmp_path.iterdir()) == sorted([place, f"file:{tmp_path}/another-program-s"])


def test_nothing_is_written_where_nothing_is_secret(tmp_path: Path) -> None:
    with handed_over(Secrets(), tmp_path) as place:
        assert (place, read(place), list(tmp_path.iterdir())) == ("", Secrets(), [])


def test_workers_of_a_server_elsewhere_have_them_in_their_environment(bare: pytest.MonkeyPatch) -> None:
    for name, value in (OF_A_KEY | {"PEOPLE_MASK_KEY": KEY, "OTHER_MASK_KEY": "another key, long enough"}).items():
        bare.setenv(name, value)
    place = worker_secrets.elsewhere(KEY)
    assert place == f"environment:{mark('hash', KEY.encode())}"
    assert read(place) == SECRETS
    assert read(worker_secrets.elsewhere("")) == Secrets(s3=OF_A_KEY)
    bare.delenv("PEOPLE_MASK_KEY")
    assert read(place).mask_key == ""


def test_representations_hold_no_secret() -> None:
    shown = [
        repr(SECRETS),
        str(SECRETS),
        repr(Handed("file:x", SECRETS)),
        repr(LakeSettings(warehouse="w", spark={}, iceberg={}, worker=SECRETS)),
    ]
    assert [text for text in shown if KEY in text or "hidden-from-plans" in text] == []


@pytest.mark.parametrize("server", ["of this host", "elsewhere"])
def test_no_request_to_a_connect_server_but_of_its_catalog_s_settings_holds_a_secret(
    bare: pytest.MonkeyPatch, tmp_path: Path, server: str
) -> None:
    """Spark writes the plans of all requests into its event log, with functions, options and settings in them."""
    for name, value in OF_A_KEY.items():
        bare.setenv(name, value)
    feed = lakes.feed(tmp_path, columns={"d.k": {"v": ColumnPolicy(mask="hash")}}, policy=Policy(mask_key=KEY, mask_at="order"))
    with recorder(EVENT) as recorded:
        bare.setenv("TIDELAKE_SPARK_REMOTE", recorded.url)
        if server == "of this host":
            bare.setenv("TIDELAKE_SPARK_SERVER", str(tmp_path))
            bare.setattr("tidelake.spark.session.shared_server", recorded.shared)
        with spark_session(lake_settings(feed), "requests") as spark:
            where = handed(spark).place
            assert where.startswith("file:" if server == "of this host" else "environment:")
            if server == "of this host":
                assert read(where) == SECRETS
            _ask_all(spark)
    assert len(recorded.plans) >= 8
    assert sum(where.encode() in plan for plan in recorded.plans) >= 4, "options and functions name the place"
    assert [secret for secret in (KEY, "hidden-from-plans") for plan in recorded.plans if secret.encode() in plan] == []
    assert KEY.encode() not in b"".join(recorded.settings)


@pytest.mark.parametrize("writes", [False, True])
def test_an_application_that_would_write_down_the_catalog_s_secrets_is_refused(
    bare: pytest.MonkeyPatch, tmp_path: Path, writes: bool
) -> None:
    for name, value in OF_A_KEY.items():
        bare.setenv(name, value)
    settings = lake_settings(lakes.feed(tmp_path, lake=LakeConfig(uri="s3://b/lake", catalog=f"jdbc:sqlite:{tmp_path / 'catalog.db'}")))
    with recorder(EVENT) as recorded, ExitStack() as opened:
        bare.setenv("TIDELAKE_SPARK_REMOTE", recorded.url)
        recorded.values["spark.eventLog.enabled"] = str(writes).lower()
        if writes:
            said = r"would write spark\.sql\.catalog\.lake\.s3\.secret-access-key into its event log"
            with pytest.raises(ConfigError, match=said) as error:
                opened.enter_context(spark_session(settings, "refused"))
            assert error.value.exit_code == 2
        else:
            opened.enter_context(spark_session(settings, "taken"))
        assert (b"hidden-from-plans" in b"".join(recorded.settings)) is not writes
        assert b"hidden-from-plans" not in b"".join(recorded.plans)


def _ask_all(spark: SparkSession) -> None:
    """Whatever the stages ask of Spark that workers need secrets for."""
    job = DecodeJob(lake_uri="s3://b/lake", feed="shop", objects=[], protocol="open", options=SinkOptions())
    workers = SparkWorkers(spark)
    events = workers.rows(LandedReader(job, place("s3://b/lake/events", pa.schema([]), "2026-01-05T10", [["x"]])))
    order = OrderJob(
        events="s3://b/lake/events", parts=[["x"]], after_ts=0, until_ts=1, tables=[], tasks=[[0]], again=[], aside=[], steps=[]
    )
    found = [events, workers.rows(FoldReader(FoldJob(tables={}, parts=[]))), staged_by_workers._run(workers, order)]
    assert found == [[], [], ({}, {})]
    rules = DeleteRules(after_ts=0, until_ts=1, applied_at_ms=None, resolved_at_ms=1, born=())
    deletes = DeletesJob(events="s3://b/lake/events", parts=[], again=[], rules=rules, store="s3://b/lake", folder="runs/", tasks=1)
    assert place_deletes(workers, deletes) == []


def test_functions_take_secrets_along_only_in_a_driver_of_this_process() -> None:
    assert KEY.encode() in pickle.dumps(Handed("file:x", SECRETS))
    assert KEY.encode() not in pickle.dumps(Handed("file:x"))

"""What goes wrong below a lake is told by its cause, with what to do, and without a secret."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from tests.lake import cheap, lakes
from tidelake.errors import StorageError
from tidelake.lake.causes import named_causes
from tidelake.lake.opened import Lake

SECRET = "S3cr3t"
TRACE = """: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
Caused by: java.io.IOException: {cause}
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""


class JavaError(Py4JJavaError):  # type: ignore[misc]
    """As Py4J raises it, without a JVM."""

    def __init__(self, cause: str) -> None:
        Exception.__init__(self)
        self.text = "An error occurred while calling o1469.append.\n" + TRACE.format(cause=cause)

    def __str__(self) -> str:
        return self.text


JavaError.__module__ = Py4JJavaError.__module__


def told(error: Exception, warehouse: str = "/") -> StorageError:
    with pytest.raises(StorageError) as caught, named_causes("jdbc:sqlite:/c.db", warehouse):
        raise error
    assert caught.value.__cause__ is error
    return caught.value


@pytest.mark.parametrize(
    ("catalog", "place", "why"),
    [
        (f"jdbc:postgresql://u:{SECRET}@127.0.0.1:1/db?user=u", "jdbc:postgresql://127.0.0.1:1/db", "Connection refused"),
        ("http://127.0.0.1:1/rest", "http://127.0.0.1:1/rest", "Connection refused"),
        ("glue://us-east-1", "glue://us-east-1", "http://127.0.0.1:1/"),
    ],
)
def test_a_catalog_that_cannot_be_reached_is_named_with_what_to_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, catalog: str, place: str, why: str
) -> None:
    for name, value in {"AWS_ENDPOINT_URL_GLUE": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}.items():
        monkeypatch.setenv(name, value)
    feed = lakes.feed(tmp_path, lake={"uri": str(tmp_path / "lake"), "catalog": catalog})
    with pytest.raises(StorageError) as error, Lake.of(feed):
        pass
    said = str(error.value)
    assert said.startswith(f"CATALOG: the catalog {place}: ")
    assert (why in said, SECRET in said, error.value.exit_code) == (True, False, 1)
    wanted = {
        "jdbc": "check that its server is running and reachable from here, and the login in lake.catalog; then",
        "http": "check that its server is running and reachable from here, and the login in lake.catalog or [lake.rest]; then",
        "glue": "check AWS's login and region, its rights in Glue",
    }
    assert wanted[place.partition(":")[0]] in said


def test_a_file_that_is_no_catalog_is_named(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "catalog.db").write_bytes(b"not a database" * 100)
    said = f"CATALOG: the catalog jdbc:sqlite:{tmp_path}/lake/catalog.db: file is not a database"
    with pytest.raises(StorageError, match=said), Lake.of(lakes.feed(tmp_path)):
        pass


def test_a_table_s_lost_metadata_is_named_with_table_and_file(tmp_path: Path) -> None:
    with Lake.of(lakes.feed(tmp_path)) as lake:
        cheap.publish(lake, None, 0)
        file = lake.catalog.load("d.k").table.metadata_location.removeprefix("file://")
    Path(file).rename(f"{file}.away")
    said = f"^FILE_LOST: table d.k: a file is missing: {file}; restore it from a backup"
    with pytest.raises(StorageError, match=said), Lake.of(lakes.feed(tmp_path)) as lake:
        lake.catalog.load("d.k")


def test_a_table_s_lost_data_is_named(tmp_path: Path) -> None:
    with Lake.of(lakes.feed(tmp_path)) as lake:
        cheap.publish(lake, None, 0)
    for file in (tmp_path / "lake" / "warehouse" / "d").rglob("*.parquet"):
        file.unlink()
    said = r"^FILE_LOST: a table of the lake: a file is missing: .*\.parquet"
    with pytest.raises(StorageError, match=said), Lake.of(lakes.feed(tmp_path)) as lake:
        lakes.contents(lake.catalog, "d.k")


def test_a_full_disk_inside_spark_is_named_with_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    error = told(JavaError("No space left on device"))
    assert (error.code, error.exit_code) == ("DISK_FULL", 1)
    assert error.message.startswith(f"No space left on device: {tmp_path} has ")
    assert "SPARK_LOCAL_DIRS" in error.remedy
    assert told(RuntimeError("[Errno 28] No space left on device: '/spill/1'")).message == "No space left on device: /spill/1"
    assert told(OSError(errno.ENOSPC, "No space left on device", "/out/x")).message == "No space left on device: /out/x"


@pytest.mark.parametrize(
    ("cause", "code", "said"),
    [
        ("Cannot create a staging folder", "SPARK", "Spark: IOException: Cannot create a staging folder"),
        ("java.lang.OutOfMemoryError: Java heap space", "MEMORY", "Spark ran out of memory"),
    ],
)
def test_other_errors_of_spark_are_told_by_the_last_cause(cause: str, code: str, said: str) -> None:
    error = told(JavaError(cause))
    assert (error.code, error.message) == (code, said)


@pytest.mark.parametrize("error", [ValueError("x"), StorageError("x", code="Y"), KeyboardInterrupt()])
def test_other_errors_are_left_as_they_are(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, named_causes("jdbc:sqlite:/c.db", "/"):
        raise error
    assert caught.value is error

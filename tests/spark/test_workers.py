"""What Spark does around the tasks of a worker is cheap: it finds no archive to read again, little to look at for garbage, and no delay."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from tidelake.spark.worker_secrets import NONE
from tidelake.spark.workers import all_cores, worker

CODE = """
import gc, sys
from zipimport import zipimporter
import in_zip
from tidelake.spark.worker_secrets import NONE
from tidelake.spark.workers import worker

def archives():
    return sum(isinstance(f, zipimporter) for f in sys.path_importer_cache.values())

before = archives()
with worker(NONE):
    pass
print(before > 0, archives(), gc.get_freeze_count() > 10_000)
frozen = gc.get_freeze_count()
with worker(NONE):
    left = [[] for _ in range(1000)]
print(gc.get_freeze_count() <= frozen)
with worker(NONE):
    import in_zip.more
print(gc.get_freeze_count() > frozen + 10_000)
print(in_zip.more.VALUE)
"""


@pytest.mark.parametrize("kept", ["1", ""])
def test_a_kept_worker_forgets_finders_of_archives_and_freezes_what_was_imported(tmp_path: Path, kept: str) -> None:
    """Also what a later task imports. In a process that Spark does not keep, nothing is touched. An archive still gives its modules."""
    archive = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("in_zip/__init__.py", "")
        file.writestr("in_zip/more.py", "VALUE = 7\nLISTS = [[] for _ in range(20_000)]")
    environment = {"PYTHONPATH": str(archive)} | ({"SPARK_REUSE_WORKER": kept} if kept else {})
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    first, _, rest = done.stdout.partition("\n")
    before, archives, frozen = first.split()
    assert (before, rest) == ("True", f"True\n{bool(kept)}\n7\n")
    assert (int(archives) == 0, frozen) == (bool(kept), str(bool(kept)))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the option")
@pytest.mark.parametrize("kept", [True, False])
def test_what_spark_sent_to_a_kept_worker_is_acknowledged_at_once(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if kept:
        monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    monkeypatch.setattr("tidelake.spark.workers.settle", lambda: None)  # it would change this process
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)  # as after some answers
        with worker(NONE):
            found = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)
    assert bool(found) == kept


def test_the_only_task_of_a_job_may_use_all_cores_and_gives_them_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = pa.cpu_count()
    monkeypatch.setattr(os, "sched_getaffinity" if sys.platform == "linux" else "cpu_count", lambda *_: 3 if _ == () else range(3))
    try:
        pa.set_cpu_count(1)  # as in a worker
        with all_cores():
            found = pa.cpu_count()
        assert (found, pa.cpu_count()) == (3, 1)
    finally:
        pa.set_cpu_count(before)

"""The process that reads pages for Airflow's web server: what it keeps, what a page's process is given, and how both end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pages.lakes import ELEVEN, ORDERS, shop
from tidelake.airflow import kept_reader
from tidelake.airflow.kept_reader import KeptReader
from tidelake.errors import StorageError

# Page `X` does X; every other page says what its process is.
STAND_IN = """
import json, os, signal, sys, time, types

def page_at(schemas, path, feeds, airflow):
    if path == "hangs":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
        while True:
            time.sleep(600)
    if path == "breaks":
        raise ImportError("no <tide>\\nat all")
    if path == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    said = {"environment": dict(os.environ), "process": os.getpid(), "kept": os.getppid()}
    return types.SimpleNamespace(status=200, html=json.dumps(said))

pages = sys.modules["tidelake.pages.page"] = types.ModuleType("tidelake.pages.page")
pages.page_at = page_at
from tidelake.pages import reader

def told(door, page, fork=reader._fork):
    with open(os.environ["STARTED"], "a") as file:
        file.write(f"{os.getpid()}\\n")
    fork(door, page)

reader._fork, reader._LATER = told, ()
reader.main(reader.socket.socket(fileno=int(sys.argv[1])))
"""
# Every page's process says what it imported, and how many threads and clients it found.
WATCHED = """
import json, os, sys
from tidelake.io.storage import aws_client
from tidelake.pages import reader

def page_at(*given, page_at=reader.page_at):
    threads = [open(f"/proc/{os.getppid()}/task/{n}/comm").read().strip() for n in os.listdir(f"/proc/{os.getppid()}/task")]
    before, clients = set(sys.modules), aws_client.cache_info().currsize
    found = page_at(*given)
    assert found.status == 200, given
    return found._replace(html=json.dumps({"new": sorted(set(sys.modules) - before), "threads": threads, "clients": clients}))

reader.page_at = page_at
reader.main(reader.socket.socket(fileno=int(sys.argv[1])))
"""
HEAVY = ("tidelake", "pyiceberg.catalog", "pyiceberg.io", "pyiceberg.table", "pyarrow", "sqlalchemy", "boto")
SERVER = """
import sys
from tests.airflow.test_kept_reader import read, stand_in
print(read(stand_in(sys.argv[1]), "page")["kept"], flush=True)
sys.stdin.read()
"""


def stand_in(folder: str, script: str = STAND_IN) -> KeptReader:
    """A reader with the pages of a script."""
    made = KeptReader()
    made.command = (sys.executable, "-P", "-c", script)
    os.environ["STARTED"] = str(Path(folder) / "started")
    return made


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeptReader]:
    monkeypatch.setenv("STARTED", "")
    made = stand_in(str(tmp_path))
    yield made
    made.close()


def asked(reader: KeptReader, path: str, seconds: float = 60, folder: Path = Path(), **environment: str) -> dict[str, Any]:
    """The answer for a page."""
    request = {"schemas": str(folder), "path": path, "feeds": ["shop"], "home": "/", "dag": "/dags/{feed}", "environment": environment}
    return reader.read(request, dict(os.environ), seconds)


def read(reader: KeptReader, path: str, **how: Any) -> dict[str, Any]:
    """What a page says."""
    found: dict[str, Any] = json.loads(asked(reader, path, **how)["content"])
    return found


def ends(pid: int) -> None:
    """Wait until a process has ended."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([watched], [], [], 60)[0], f"process {pid} runs"
    finally:
        os.close(watched)


def test_each_page_has_a_process_of_its_own_which_sees_its_environment_alone(reader: KeptReader) -> None:
    first, second = read(reader, "page", TIDELAKE_LAKE="s3://one", SECRET="one"), read(reader, "page", TIDELAKE_LAKE="s3://two")
    assert first["environment"] == {"TIDELAKE_LAKE": "s3://one", "SECRET": "one"}
    assert second["environment"] == {"TIDELAKE_LAKE": "s3://two"}
    assert first["kept"] == second["kept"] not in (first["process"], second["process"], os.getpid())
    assert first["process"] != second["process"]


def test_a_process_that_was_killed_is_started_again_with_the_next_page(reader: KeptReader) -> None:
    killed = read(reader, "page")["kept"]
    os.kill(killed, signal.SIGKILL)
    ends(killed)
    assert read(reader, "page")["kept"] != killed


def test_a_page_that_hangs_is_given_up_and_its_process_is_gone(reader: KeptReader, tmp_path: Path) -> None:
    kept = read(reader, "page")["kept"]
    with pytest.raises(StorageError, match=r"^STORAGE: no answer within 0\.05 s; check that the object store is running$"):
        read(reader, "hangs", seconds=0.05)
    started = (tmp_path / "started").read_text().split()
    assert len(started) == 2
    ends(int(started[-1]))
    assert read(reader, "page")["kept"] == kept, "the process that is kept goes on"


def test_a_kept_process_that_does_not_fork_is_given_up_and_replaced(reader: KeptReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_reader, "START_SECONDS", 0.05)
    stopped = read(reader, "page")["kept"]
    os.kill(stopped, signal.SIGSTOP)
    with pytest.raises(StorageError, match="no answer within 0"):
        read(reader, "page", seconds=0.05)
    ends(stopped)
    monkeypatch.setattr(kept_reader, "START_SECONDS", 60)
    assert read(reader, "page")["kept"] != stopped


def test_a_page_that_breaks_says_so_in_a_line(reader: KeptReader) -> None:
    says = "STORAGE: the reader broke: ImportError: no <tide>\\nat all; see the web server's log"
    assert asked(reader, "breaks") == {"error": says}


def test_a_page_whose_process_dies_says_so(reader: KeptReader) -> None:
    with pytest.raises(StorageError, match="the reader ended without an answer; reload the page"):
        read(reader, "dies")


def test_a_process_that_cannot_start_says_so(reader: KeptReader) -> None:
    reader.command = (sys.executable, "-c", "import sys; sys.exit(1)")
    for _ in range(2):
        with pytest.raises(StorageError, match="the reader ended without an answer"):
            read(reader, "page")


def test_the_kept_process_ends_with_the_web_server_however_that_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        kept = int(server.stdout.readline())
        os.kill(kept, 0)
        server.kill()
    ends(kept)


def test_a_page_imports_nothing_and_starts_without_threads_and_clients(reader: KeptReader, tmp_path: Path) -> None:
    shop(tmp_path)
    reader.command = stand_in(str(tmp_path), WATCHED).command
    for path in ("index.html", "shop/index.html", f"shop/{ELEVEN}.html", f"shop/tables/{ORDERS}.html"):
        found = read(reader, path, folder=tmp_path / "schemas")
        assert [name for name in found["new"] if name.startswith(HEAVY)] == []
        assert found["clients"] == 0
        others = [name for name in found["threads"] if name != "jemalloc_bg_thd"]  # which knows that processes fork
        assert len(others) == 1, found["threads"]

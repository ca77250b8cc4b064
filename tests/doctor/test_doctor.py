"""`tidelake doctor`: what is wrong with a host or with the places of a feed, and how to mend it."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections import namedtuple
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.cli import feeds
from tests.cli.calls import Called, call
from tidelake.doctor import feeds as doctor_feeds
from tidelake.doctor import host
from tidelake.io import kafka
from tidelake.spark import java

CATALOGED = f'{feeds.FEED}catalog = "${{TIDELAKE_CATALOG}}"\n'
ARCHIVE = 'uri = "${TIDELAKE_ARCHIVE}/open"\nlayout = "aiven-jsonl"'


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A feed whose places are folders."""
    for name in [name for name in os.environ if name.startswith("TIDELAKE_")]:
        monkeypatch.delenv(name)
    feeds.write(tmp_path / "schemas", feed=CATALOGED)
    (tmp_path / "archive" / "open").mkdir(parents=True)
    (tmp_path / "archive" / "open" / "shop-0-0.jsonl").touch()
    monkeypatch.setenv("TIDELAKE_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("TIDELAKE_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDELAKE_CATALOG", f"jdbc:sqlite:{tmp_path / 'catalog.db'}")
    monkeypatch.setattr(host, "cached_jars", lambda folder: ["a.jar"])
    monkeypatch.setattr(host, "DISK_BYTES", 1)


def doctor(tmp_path: Path) -> Called:
    return call("doctor", "--schemas", tmp_path / "schemas")


def wrong(done: Called, mark: str = "PROBLEM") -> list[str]:
    """The lines of this kind, without the mark."""
    return [line.removeprefix(mark).strip() for line in done.out.splitlines() if line.startswith(mark)]


def test_a_healthy_host_has_no_problem(tmp_path: Path) -> None:
    done = doctor(tmp_path)
    assert (done.code, wrong(done)) == (0, [])
    assert done.out.splitlines()[-4:] == [
        f"ok       shop: {tmp_path}/archive/open: answers",
        f"ok       shop: {tmp_path}/lake: can be written, keeps to conditional puts, has the same time",
        f"ok       shop: jdbc:sqlite:{tmp_path}/catalog.db: answers; nothing of the feed is there yet",
        "9 checks: 0 problems, 0 warnings",
    ]
    assert [p for p in (tmp_path / "lake").iterdir() if p.is_file()] == [], "the probe is removed"


@pytest.mark.parametrize("folder", ["open", "opn"], ids=["empty", "misspelt"])
def test_an_archive_without_objects_is_a_warning(tmp_path: Path, folder: str) -> None:
    (tmp_path / "archive" / "open" / "shop-0-0.jsonl").unlink()
    (tmp_path / "schemas" / "shop" / "feed.toml").write_text(CATALOGED.replace("/open", f"/{folder}"))
    done = doctor(tmp_path)
    assert (done.code, wrong(done), done.out.splitlines()[-1]) == (0, [], "9 checks: 0 problems, 1 warning")
    assert wrong(done, "warning") == [
        f"shop: {tmp_path}/archive/{folder}: answers; nothing of the feed is there yet; "
        "if the archiver has written objects already, check source.uri in feed.toml"
    ]


def test_json_has_every_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDELAKE_CATALOG")
    done = call("doctor", "--schemas", tmp_path / "schemas", "--feed", "shop", "--json")
    said = json.loads(done.out)
    assert (done.code, said["problems"], len(said["checks"])) == (1, 1, 7)
    assert said["checks"][-1] == {
        "subject": "shop: variables",
        "found": "TIDELAKE_CATALOG not set",
        "state": "problem",
        "remedy": "set what the feed.toml names",
    }


def test_a_feed_that_does_not_exist_is_wrong_use(tmp_path: Path) -> None:
    done = call("doctor", "--schemas", tmp_path / "schemas", "--feed", "shp")
    assert (done.code, done.out) == (2, "")
    assert "no feed 'shp' in" in done.err


def test_a_host_without_java_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "_bundled_java", lambda: None)
    done = doctor(tmp_path)
    assert done.code == 1
    assert wrong(done) == ["java: Spark needs Java 17 or newer, none was found; install one, or `pip install 'tidelake[java]'`"]


def test_packages_that_do_not_fit_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "requires", lambda name: ["pyarrow==1.0", "no-such-package>=2", "absent; extra == 'msk'"])
    monkeypatch.setattr(host, "version", lambda name, known=host.version: "26.0.1" if name == "pyarrow" else known(name))
    (said,) = wrong(doctor(tmp_path))
    assert said.startswith("packages: pyarrow 26.0.1 is installed, not ==1.0; no-such-package is not installed; install the versions")


def test_too_little_memory_and_disk_and_missing_jars_are_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setenv("TIDELAKE_DRIVER_MEMORY", "5000g")
    monkeypatch.setattr(host, "DISK_BYTES", 10 << 30)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(1, 1, 3 << 30))
    monkeypatch.setattr(host, "cached_jars", lambda folder: [])
    done = doctor(tmp_path)
    said = wrong(done, "warning")
    assert (done.code, [line.partition(":")[0] for line in said]) == (0, ["spark jars", "memory", "disk"])
    assert "Spark's driver may take 5,000.0 GiB" in said[1]
    assert "3.0 GiB free" in said[2]
    assert "more than 10.0 GiB" in said[2]


@pytest.mark.parametrize(("text", "size"), [("2g", 2 << 30), ("512m", 512 << 20), ("1T", 1 << 40), ("700", 700 << 20)])
def test_sizes_of_spark(text: str, size: int) -> None:
    assert host._size(text) == size


def test_a_clock_that_differs_from_the_store_s_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_feeds, "probe_conditional_puts", lambda store: int((time.time() - 7200) * 1000))
    (said,) = wrong(doctor(tmp_path))
    assert said == f"shop: {tmp_path}/lake: its clock and this host's are 7,200 s apart; synchronise this host's clock (NTP)"


def test_a_lake_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file")
    (said,) = wrong(doctor(tmp_path))
    assert said.startswith(f"shop: {tmp_path}/lake: the store is not writable: ")


def test_a_catalog_that_does_not_answer_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELAKE_CATALOG", "jdbc:postgresql://127.0.0.1:9/catalog?user=keeper&password=harbour-pass")
    done = doctor(tmp_path)
    (said,) = wrong(done)
    assert said.startswith("shop: jdbc:postgresql://127.0.0.1:9/catalog: the catalog jdbc:postgresql://127.0.0.1:9/catalog: ")
    assert "harbour-pass" not in done.out


def test_brokers_that_do_not_answer_are_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "ANSWER_SECONDS", 0.5)
    (tmp_path / "schemas" / "shop" / "feed.toml").write_text(CATALOGED.replace(ARCHIVE, 'kind = "kafka"\nuri = "127.0.0.1:1"'))
    (said,) = wrong(doctor(tmp_path))
    assert said.startswith("shop: kafka://127.0.0.1:1: ")


@pytest.fixture
def registry() -> Iterator[tuple[str, list[int]]]:
    """A server that answers every request with the status in the list."""
    status = [404]

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status[0])
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", status
        server.shutdown()
        thread.join()


def test_a_registry_answers_if_it_says_that_it_has_no_such_schema(tmp_path: Path, registry: tuple[str, list[int]]) -> None:
    url, status = registry
    text = (
        CATALOGED.replace('protocol = "open"', 'protocol = "avro"')
        + f'\n[avro]\nschemas = "{url}"\n[watermark]\nfrom = "checkpoints"\nuri = "{tmp_path}/checkpoints"\n'
    )
    (tmp_path / "schemas" / "shop" / "feed.toml").write_text(text)
    assert f"ok       shop: {url}: answers" in doctor(tmp_path).out
    status[0] = 401
    assert wrong(doctor(tmp_path)) == [f"shop: {url}: {url} answers 401 Unauthorized; check its address and credentials"]

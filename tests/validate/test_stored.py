"""The stored report on stdout, for the page in Airflow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tidelake.config.lake_paths import report_key
from tidelake.io.storage import open_store

FEED = """protocol = "open"
topics = ["t"]
partitions = 1
[source]
uri = "/x"
layout = "aiven-jsonl"
[lake]
uri = "${LAKE}"
"""
HOUR = "2026-01-05T10"


def stored(folder: Path, *arguments: str, lake: str | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tidelake.validate.quality.stored", str(folder / "schemas"), *arguments]
    environment = {"PATH": "/usr/bin:/bin"} | ({"LAKE": lake} if lake else {})
    return subprocess.run(command, check=False, capture_output=True, timeout=60, env=environment)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schemas" / "shop").mkdir(parents=True)
    (tmp_path / "schemas" / "shop" / "feed.toml").write_text(FEED)
    return tmp_path


def test_a_stored_page_comes_out_byte_by_byte_and_a_missing_one_is_nothing(folder: Path) -> None:
    page = "<p>¼\r\n</p>".encode()
    open_store(str(folder / "lake")).write(report_key("shop", HOUR), page)
    found, missing = (stored(folder, "shop", hour, lake=str(folder / "lake")) for hour in (HOUR, "2026-01-05T11"))
    assert (found.returncode, found.stdout, found.stderr) == (0, page, b"")
    assert (missing.returncode, missing.stdout, missing.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("feed", "hour", "lake", "code", "said"),
    [
        ("other", HOUR, "/x", 2, b"error: CONFIG: no feed 'other' in "),
        ("shop", "10", "/x", 2, b"error: CONFIG: not an hour: '10'"),
        ("shop", HOUR, None, 2, b"the environment has no LAKE"),
        ("shop", HOUR, "ftp://u:hunter2@h/x", 2, b"lake: uri: ftp:// is not read"),
    ],
)
def test_an_error_is_a_line_on_stderr_and_an_exit_code(
    folder: Path, feed: str, hour: str, lake: str | None, code: int, said: bytes
) -> None:
    done = stored(folder, feed, hour, lake=lake)
    assert (done.returncode, done.stdout) == (code, b"")
    assert said in done.stderr
    assert b"hunter2" not in done.stderr
    assert b"Traceback" not in done.stderr

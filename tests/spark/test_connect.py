"""The keeper of a shared Spark Connect server ends its own server, and touches nothing beside it (docs/ownership.md)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidelake.spark import connect


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])


def test_the_keeper_ends_the_server_it_started_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, other = sleeper(), sleeper()
    (tmp_path / "notes.txt").write_text("somebody's")
    monkeypatch.setattr(connect, "_launch", lambda port, token: server)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        assert connect.keep(tmp_path, idle_seconds=0) == 0
        assert server.poll() == -signal.SIGTERM
        assert other.poll() is None
        assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "used"]
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for process in (server, other):
            process.kill()
            process.wait()

"""The shared Spark Connect server: who starts it, who ends it, and what stays beside it (docs/ownership.md)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tidelake.spark import connect, connect_keeper
from tidelake.spark.connect import MOST_SESSIONS, shared_server
from tidelake.spark.connect_keeper import RETIRED_SECONDS, ServerState, keep, read_state, state_file, used_file


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ServerState]]:
    """The servers that clients started; each is a port that answers."""
    states: list[ServerState] = []
    with ExitStack() as stack:

        def start(folder: Path) -> ServerState:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            state = ServerState(port=server.getsockname()[1], remote=f"sc://{len(states)}", pid=1)
            state_file(folder).write_text(state.model_dump_json())
            used_file(folder, state).touch()
            states.append(state)
            return state

        monkeypatch.setattr(connect, "_start", start)
        yield states


def unused_for(folder: Path, state: ServerState, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(used_file(folder, state), (moment, moment))


def test_the_keeper_ends_the_server_it_started_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, other = sleeper(), sleeper()
    (tmp_path / "notes.txt").write_text("somebody's")
    monkeypatch.setattr(connect_keeper, "_launch", lambda port, token: server)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        assert keep(tmp_path, idle_seconds=0) == 0
        assert server.poll() == -signal.SIGTERM
        assert other.poll() is None
        assert sorted(p.name for p in tmp_path.iterdir()) == ["lock", "notes.txt"]
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for process in (server, other):
            process.kill()
            process.wait()


def test_clients_share_a_server_until_it_has_served_its_sessions(tmp_path: Path, started: list[ServerState]) -> None:
    remotes = []
    for _ in range(2 * MOST_SESSIONS + 1):
        with shared_server(tmp_path) as remote:
            remotes.append(remote)
    assert remotes == ["sc://0"] * MOST_SESSIONS + ["sc://1"] * MOST_SESSIONS + ["sc://2"]
    assert read_state(tmp_path) == started[2], "the next client finds the newest"


def test_a_replaced_server_ends_when_its_clients_are_done_and_leaves_the_newest(tmp_path: Path, started: list[ServerState]) -> None:
    old, newest = (connect._start(tmp_path) for _ in range(2))
    unused_for(tmp_path, old, RETIRED_SECONDS - 5)
    assert not connect_keeper._is_done(tmp_path, old, idle_seconds=600), "a client may still beat"
    for state in (old, newest):
        unused_for(tmp_path, state, RETIRED_SECONDS + 5)
    assert connect_keeper._is_done(tmp_path, old, idle_seconds=600)
    assert not connect_keeper._is_done(tmp_path, newest, idle_seconds=600)
    assert read_state(tmp_path) == newest


def test_a_client_that_ends_after_its_server_leaves_no_file(tmp_path: Path, started: list[ServerState]) -> None:
    with shared_server(tmp_path):
        used_file(tmp_path, started[0]).unlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lock", "server.json"]

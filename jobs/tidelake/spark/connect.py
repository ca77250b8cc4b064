"""One Spark Connect server for the stages of a host: the first stage that needs it starts it (connect_keeper.py).

TIDELAKE_SPARK_SERVER names its folder, which holds a lock, the connection data for clients (mode 0600), the secrets that clients hand to
workers (worker_secrets), and for each server a file that clients touch while they work.

A server keeps a Python process of about 40 MB for every session that it served. So after MOST_SESSIONS the next client starts another
one, and the old one ends when its clients are done.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidelake.errors import StorageError
from tidelake.spark.connect_keeper import BEAT, ServerState, lock, read_state, state_file, used_file

MOST_SESSIONS = 20
START_SECONDS = 180.0


@contextmanager
def shared_server(folder: Path) -> Iterator[str]:
    """Yield the server's URL for SparkSession.builder.remote and keep the server running. Raises StorageError with the end of its log."""
    folder.mkdir(parents=True, exist_ok=True)
    with lock(folder):
        state = read_state(folder)
        if state is None or not _take_session(used_file(folder, state)):
            state = _start(folder)
            _take_session(used_file(folder, state))
    used = used_file(folder, state)
    stop = threading.Event()
    beat = threading.Thread(target=_beat, args=(used, stop), daemon=True, name="spark-connect-beat")
    beat.start()
    try:
        yield state.remote
    finally:
        stop.set()
        beat.join()
        _touch(used)


def runs(folder: Path) -> bool:
    """Return whether the server of this folder answers. It may end soon: `shared_server` keeps it."""
    return read_state(folder) is not None


def _take_session(used: Path) -> bool:
    """Count a session, one byte each. Returns False if the server has served as many as it may."""
    with used.open("ab") as file:
        if file.tell() >= MOST_SESSIONS:
            return False
        file.write(b".")
    return True


def _beat(used: Path, stop: threading.Event) -> None:
    while not stop.wait(BEAT):
        _touch(used)


def _touch(used: Path) -> None:
    """Mark the server as used. The file of a server that was killed stays away."""
    if used.exists():
        used.touch()


def _start(folder: Path) -> ServerState:
    state_file(folder).unlink(missing_ok=True)
    with (folder / "log").open("ab") as log:
        command = [sys.executable, "-m", "tidelake.spark.connect_keeper", str(folder)]
        keeper = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and keeper.poll() is None:
        state = read_state(folder)
        if state is not None:
            return state
        time.sleep(0.2)
    tail = (folder / "log").read_text(errors="replace")[-1000:]
    raise StorageError(f"the Spark Connect server did not come up; its log ends: {tail}", remedy=f"see {folder / 'log'}")

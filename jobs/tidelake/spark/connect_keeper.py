"""Runs the Spark Connect server of a folder and ends it: `python -m tidelake.spark.connect_keeper FOLDER` (connect.py starts it).

The server listens on loopback only and requires a token. It ends after IDLE_SECONDS without use. When another server has replaced it in
the folder, it ends as soon as no client has touched its file for RETIRED_SECONDS.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tidelake.spark.worker_secrets import sweep

IDLE_SECONDS = 600.0
BEAT = 5.0  # seconds between two signs of life of a client
RETIRED_SECONDS = 3 * BEAT
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # name of the variable


class ServerState(BaseModel):
    """Connection data of a server. pid: of its keeper."""

    model_config = ConfigDict(frozen=True)

    port: int
    remote: str = Field(repr=False)
    pid: int


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: one process at a time starts a server, takes a session of it, or ends it."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def state_file(folder: Path) -> Path:
    """Return the file with the connection data of the newest server."""
    return folder / "server.json"


def used_file(folder: Path, state: ServerState) -> Path:
    """Return the file that clients of a server touch while they work. It has one byte for each session."""
    return folder / f"used-{state.port}"


def read_state(folder: Path) -> ServerState | None:
    """Return the connection data of the folder's server, None if there is none that answers."""
    state = _written(folder)
    return state if state and _answers(state.port) else None


def keep(folder: Path, idle_seconds: float) -> int:
    """Run a server until it was unused for idle_seconds, or is replaced and done. Returns its exit code."""
    token, port = secrets.token_urlsafe(32), _free_port()
    server = _launch(port, token)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.terminate())
    state = ServerState(port=port, remote=f"sc://localhost:{port}/;token={token}", pid=os.getpid())
    used = used_file(folder, state)
    used.write_bytes(b"")
    part = folder / "server.json.part"
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    part.write_text(state.model_dump_json())
    part.replace(state_file(folder))
    while server.poll() is None:
        time.sleep(1)
        if _is_done(folder, state, idle_seconds):
            server.terminate()
            server.wait()
    used.unlink(missing_ok=True)
    sweep(folder)
    return server.returncode if server.returncode > 0 else 0


def _is_done(folder: Path, state: ServerState, idle_seconds: float) -> bool:
    """Whether nobody uses the server any more; then no client finds it. The lock is asked for only then, because a client holds it while
    it waits for a server to start.
    """
    if not _unused(folder, state, idle_seconds):
        return False
    with lock(folder):
        done = _unused(folder, state, idle_seconds)
        if done and _written(folder) == state:
            state_file(folder).unlink()
    return done


def _unused(folder: Path, state: ServerState, idle_seconds: float) -> bool:
    longest = idle_seconds if _written(folder) == state else RETIRED_SECONDS
    return time.time() - used_file(folder, state).stat().st_mtime > longest


def _written(folder: Path) -> ServerState | None:
    try:
        return ServerState.model_validate_json(state_file(folder).read_bytes())
    except (OSError, ValidationError):
        return None


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _launch(port: int, token: str) -> subprocess.Popen[bytes]:
    import pyspark

    from tidelake.spark.application import prepare_environment, static_settings

    prepare_environment()
    settings = static_settings() | {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port)}
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = [text for key, value in settings.items() for text in ("--conf", f"{key}={value}")]
    return subprocess.Popen([str(submit), "--class", _CLASS, *options, "spark-internal"], env=os.environ | {_TOKEN: token})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(keep(Path(sys.argv[1]), float(os.environ.get("TIDELAKE_SPARK_IDLE", IDLE_SECONDS))))

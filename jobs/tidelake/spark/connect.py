"""One Spark Connect server for the stages of a host. The first stage that needs it starts it; it ends after IDLE_SECONDS without use.

It listens on loopback only and requires a token. TIDELAKE_SPARK_SERVER names its folder, which holds a lock, the connection data for
clients (mode 0600), the secrets that clients hand to workers (worker_secrets), and a file that clients touch while they work. `python -m
tidelake.spark.connect FOLDER` is the keeper: it runs the server and ends it.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidelake.errors import StorageError
from tidelake.spark.worker_secrets import sweep

IDLE_SECONDS = 600.0
START_SECONDS = 180.0
_BEAT = 5.0
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # name of the variable


@contextmanager
def shared_server(folder: Path) -> Iterator[str]:
    """Yield the server's URL for SparkSession.builder.remote and keep the server running. Raises StorageError with the end of its log."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / "used").touch()
        remote = _running(folder) or _start(folder)
    stop = threading.Event()
    beat = threading.Thread(target=_beat, args=(folder / "used", stop), daemon=True, name="spark-connect-beat")
    beat.start()
    try:
        yield remote
    finally:
        stop.set()
        beat.join()
        (folder / "used").touch()


def runs(folder: Path) -> bool:
    """Return whether the server of this folder answers. It may end soon: `shared_server` keeps it."""
    return _running(folder) is not None


def _beat(used: Path, stop: threading.Event) -> None:
    while not stop.wait(_BEAT):
        used.touch()


def _running(folder: Path) -> str | None:
    try:
        known = json.loads((folder / "server.json").read_text())
    except (OSError, ValueError):
        return None
    return str(known["remote"]) if _answers(known["port"]) else None


def _start(folder: Path) -> str:
    (folder / "server.json").unlink(missing_ok=True)
    with (folder / "log").open("ab") as log:
        command = [sys.executable, "-m", "tidelake.spark.connect", str(folder)]
        keeper = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and keeper.poll() is None:
        remote = _running(folder)
        if remote is not None:
            return remote
        time.sleep(0.2)
    tail = (folder / "log").read_text(errors="replace")[-1000:]
    raise StorageError(f"the Spark Connect server did not come up; its log ends: {tail}", remedy=f"see {folder / 'log'}")


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def keep(folder: Path, idle_seconds: float) -> int:
    """Run the server until it was unused for idle_seconds. Returns its exit code."""
    token, port = secrets.token_urlsafe(32), _free_port()
    server = _launch(port, token)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.terminate())
    state = folder / "server.json"
    part = folder / "server.json.part"
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    part.write_text(json.dumps({"port": port, "remote": f"sc://localhost:{port}/;token={token}", "pid": os.getpid()}))
    part.replace(state)
    used = folder / "used"
    used.touch()
    while server.poll() is None:
        time.sleep(1)
        if time.time() - used.stat().st_mtime > idle_seconds:
            state.unlink(missing_ok=True)
            server.terminate()
            server.wait()
    sweep(folder)
    return server.returncode if server.returncode > 0 else 0


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

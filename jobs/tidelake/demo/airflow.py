"""Runs Airflow on the demo lake, on loopback only: `python -m tidelake.demo.airflow`, in a checkout. Ctrl-C stops everything.

It starts the same parts as `airflow standalone`, but separately, because standalone's two log servers listen on all interfaces and have no
setting for it. Airflow runs as a program and is never imported: the package does not depend on it.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tidelake.config.feed import feed_names
from tidelake.demo.play import FEEDS, demo_lake, interrupt, make_archives, write_variables
from tidelake.errors import ConfigError, TidelakeError
from tidelake.io.storage import open_store

HOST = "127.0.0.1"
COMPONENTS = {
    "api-server": ["api-server"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}
START_SECONDS, STOP_SECONDS = 240, 20
POOL, SLOTS = "tidelake_spark", 2
_MARK = "TIDELAKE_AIRFLOW"  # in the environment of every child process, so that stop() finds them all
_LOG_TAIL = 2_000


class Airflow:
    """Airflow with its home in a folder and the DAGs of a checkout: `with Airflow(home, checkout, port) as airflow: …`"""

    def __init__(self, home: Path, checkout: Path, port: int, settings: Mapping[str, str] | None = None) -> None:
        self.home = home.resolve()
        self.url = f"http://{HOST}:{port}"
        self._mark = secrets.token_hex(8)
        self.environment = dict(os.environ) | self._settings(checkout.resolve(), port) | dict(settings or {})
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start all parts and wait until they are healthy. Raises ConfigError with the end of a log."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.run("db", "migrate")
        self.run("pools", "set", POOL, str(SLOTS), "tasks that start Spark: docs/how-to/pools.md")
        for name, arguments in COMPONENTS.items():
            with self._log(name).open("wb") as log:
                self._processes[name] = subprocess.Popen(
                    self._command(*arguments),
                    env=self.environment,
                    cwd=self.home,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        deadline = time.monotonic() + START_SECONDS
        while not self.is_healthy():
            self.check()
            if time.monotonic() > deadline:
                raise ConfigError(f"Airflow was not healthy within {START_SECONDS} s", remedy=f"see the logs in {self.home}")
            time.sleep(0.5)

    def stop(self) -> None:
        """Stop all child processes, including tasks and their Spark server."""
        deadline = time.monotonic() + STOP_SECONDS
        number = signal.SIGTERM
        while left := self._marked():
            for pid in left:
                _send(pid, number)
            while self._marked() and time.monotonic() < deadline:
                time.sleep(0.2)
            number = signal.SIGKILL
        for process in self._processes.values():
            process.wait()
        self._processes.clear()

    def run(self, *arguments: str) -> str:
        """Run an `airflow` command and return its output. Raises ConfigError with the end of the output if it fails."""
        done = subprocess.run(
            self._command(*arguments),
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=START_SECONDS,
        )
        if done.returncode:
            raise ConfigError(f"airflow {' '.join(arguments)} failed: {(done.stdout + done.stderr)[-_LOG_TAIL:]}")
        return done.stdout

    def check(self) -> None:
        """Raise ConfigError if a part has ended."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                tail = self._log(name).read_text(errors="replace")[-_LOG_TAIL:]
                raise ConfigError(f"Airflow's {name} ended with status {process.returncode}; its log ends with:\n{tail}")

    def is_healthy(self) -> bool:
        """Whether all parts report that they are healthy."""
        try:
            with urllib.request.urlopen(f"{self.url}/api/v2/monitor/health", timeout=5) as answer:
                found: dict[str, Any] = json.load(answer)
        except (OSError, ValueError):
            return False
        return all(found.get(part, {}).get("status") == "healthy" for part in ("metadatabase", "scheduler", "dag_processor", "triggerer"))

    @property
    def password(self) -> str:
        """Return the password of the user admin, which Airflow generated at its first start."""
        file = self.home / "simple_auth_manager_passwords.json.generated"
        return str(json.loads(file.read_text())["admin"])

    def _settings(self, checkout: Path, port: int) -> dict[str, str]:
        return {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__HOST": HOST,
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),  # Airflow's own default is so short that it warns
            "AIRFLOW__CORE__DAGS_FOLDER": str(checkout / "dags"),
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",  # runs of a paused DAG stay queued
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": str(max(2, os.cpu_count() or 2)),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home / 'airflow.db'}",
            "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",  # the demo's archives get no new hours
            "TIDELAKE_POOL": POOL,
            "SPT_NOENV": "1",  # process titles must not overwrite the environment, which has the mark
            "TIDELAKE_SCHEMAS": str(checkout / "schemas"),
            _MARK: self._mark,
        }

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-P", "-m", "airflow", *arguments]

    def _log(self, name: str) -> Path:
        return self.home / f"{name}.log"

    def _marked(self) -> list[int]:
        if not Path("/proc/self/environ").exists():
            return [p.pid for p in self._processes.values() if p.poll() is None]
        mark = f"{_MARK}={self._mark}".encode()
        return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if mark in _environment(path)]


def main(arguments: Sequence[str]) -> int:
    """Run until Ctrl-C or SIGTERM. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tidelake.demo.airflow", description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path(".tidelake/demo"), help="the demo lake; kept if it exists")
    parser.add_argument("--port", type=int, default=8080, help="of Airflow's web server, on 127.0.0.1")
    flags = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        _serve(Path.cwd(), flags.dir, flags.port)
    except KeyboardInterrupt:
        return 0
    except TidelakeError as e:
        _say(f"error: {e}")
        return e.exit_code
    return 1


def _serve(checkout: Path, folder: Path, port: int) -> None:
    if not (checkout / "dags").is_dir() or not set(FEEDS) <= set(feed_names(checkout / "schemas")):
        raise ConfigError(f"{checkout} has no dags/ and demo feeds", remedy="run it in a checkout of Tidelake")
    if not is_free(port):
        raise ConfigError(f"port {port} of {HOST} is taken", remedy="give another one with --port")
    with demo_lake(folder, fresh=False) as variables:
        if not any(open_store(os.environ["TIDELAKE_ARCHIVE"]).folders()):
            _say("making the archives of four changefeeds")
            make_archives(hours=3, rows_per_hour=2000)
        _say("starting Airflow, which takes half a minute")
        with Airflow(checkout / ".airflow", checkout, port) as airflow:
            script = write_variables(folder, variables | {"TIDELAKE_SCHEMAS": str(checkout / "schemas")})
            _say(_WELCOME.format(url=airflow.url, password=airflow.password, script=script))
            while True:
                airflow.check()
                time.sleep(1)


_WELCOME = """Airflow is ready: {url}
  log in as admin, password {password}
  trigger a feed's DAG with hour 2026-01-05T10, or bring in all of the demo's hours by the command
    AIRFLOW_HOME=.airflow .venv/bin/airflow backfill create --dag-id tidelake_bazaar-open \\
      --from-date 2026-01-05T10 --to-date 2026-01-05T13 --max-active-runs 1
  no run starts by its schedule, because the demo's archives get no new hours
  the command line sees the same lake, in another terminal:
    source {script}
    .venv/bin/tidelake status
  Ctrl-C ends Airflow and the S3 server; the lake stays"""


def is_free(port: int) -> bool:
    """Whether nothing listens on a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _environment(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\0")
    except OSError:  # the process ended, or belongs to another user
        return []


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

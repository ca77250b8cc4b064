"""A Spark standalone cluster of our own: a master and worker processes on loopback, from pyspark's jars.

with Cluster(folder, workers=2) as cluster:
    subprocess.run(…, env=os.environ | cluster.driver)
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Self

from tidelake.spark.java import ensure_java

START_SECONDS = 120
STOP_SECONDS = 20
EXECUTOR = {"spark.executor.cores": "1", "spark.executor.memory": "640m", "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1"}

_HOST = "127.0.0.1"
_PACKAGE = Path(find_spec("pyspark").origin).parent  # type: ignore[union-attr, arg-type]
_SOURCES = Path(find_spec("tidelake").origin).parents[1]  # type: ignore[union-attr, arg-type]
_DEPLOY = "org.apache.spark.deploy"
_JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Cluster:
    """Every worker has one core, for one executor, and an environment that knows no object store and another time zone."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self._workers = workers
        self._processes: list[subprocess.Popen[str]] = []
        self.url = ""

    def __enter__(self) -> Self:
        ensure_java()
        for name in ("conf", "events", "driver/temp"):
            (self.folder / name).mkdir(parents=True)
        try:
            self.url = self._run("master.Master", r"Starting Spark master at (spark://\S+)", "--webui-port", "0")
            with ThreadPoolExecutor(self._workers) as pool:
                list(pool.map(self._start_worker, range(self._workers)))
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    @property
    def driver(self) -> dict[str, str]:
        """What a driver needs in its environment. Its temporary files are under /proc/self, so that no other process finds them there."""
        settings = EXECUTOR | {
            "spark.cores.max": str(self._workers),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{START_SECONDS}s",
            "spark.locality.wait": "0",
            "spark.sql.shuffle.partitions": "4",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.dir": (self.folder / "events").as_uri(),
        }
        return {
            "PYTHONPATH": str(_SOURCES),
            "TIDELAKE_SPARK_MASTER": self.url,
            "TIDELAKE_SPARK_CONF": "\n".join(f"{k}={v}" for k, v in settings.items()),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": _HOST,
            "TMPDIR": "/proc/self/cwd/temp",
        }

    @property
    def home(self) -> Path:
        """The folder to start a driver in."""
        return self.folder / "driver"

    def executors(self) -> list[int]:
        """How many executors each worker has started."""
        return [len(list(self._work(n).glob("app-*/*"))) for n in range(self._workers)]

    def left_in(self, folder: str) -> list[Path]:
        """What is in this folder of any executor's own."""
        return [path for n in range(self._workers) for path in self._work(n).glob(f"app-*/*/{folder}/**/*")]

    def log(self) -> Path:
        """The event log of the one application."""
        (log,) = (self.folder / "events").iterdir()
        return log

    def tasks(self) -> dict[str, int]:
        """Tasks that ended well, by executor."""
        events: list[dict[str, Any]] = [json.loads(line) for line in self.log().read_text().splitlines()]
        ends = (e for e in events if e["Event"] == "SparkListenerTaskEnd" and e["Task End Reason"]["Reason"] == "Success")
        return dict(Counter(e["Task Info"]["Executor ID"] for e in ends))

    def _work(self, number: int) -> Path:
        return self.folder / f"work-{number}"

    def _start_worker(self, number: int) -> None:
        where = ("--work-dir", str(self._work(number)), "--webui-port", "0", "--cores", "1", "--memory", "1g")
        self._run("worker.Worker", r"Successfully registered with master (\S+)", *where, self.url)

    def _run(self, program: str, ready: str, *arguments: str) -> str:
        """Start a process and wait until its log says that it is ready; what it says. Raises RuntimeError with the log's end."""
        command = [_java(), *_JAVA, "-cp", f"{_PACKAGE / 'jars'}/*", f"{_DEPLOY}.{program}", "--host", _HOST, "--port", "0", *arguments]
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        process = subprocess.Popen(command, env=self._environment(), cwd=self.folder, start_new_session=True, **streams)
        self._processes.append(process)
        said: SimpleQueue[str | None] = SimpleQueue()
        Thread(target=_read, args=(process, said), daemon=True).start()
        lines: list[str] = []
        with suppress(Empty):
            while (line := said.get(timeout=START_SECONDS)) is not None:
                lines.append(line)
                if found := re.search(ready, line):
                    return found[1]
        raise RuntimeError(f"{program} does not start:\n{''.join(lines)[-2000:]}")

    def _environment(self) -> dict[str, str]:
        """Of this process's, nothing of Tidelake, AWS or Spark: another machine would not have it."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TIDELAKE_", "AWS_", "SPARK_", "PYSPARK_"))}
        own = {"SPARK_HOME": str(_PACKAGE), "SPARK_CONF_DIR": str(self.folder / "conf"), "SPARK_LOCAL_IP": _HOST}
        own |= {"TZ": "Asia/Tokyo", "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_DIRS": str(self.folder / "scratch")}
        return kept | own | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(_SOURCES)}

    def _stop(self) -> None:
        """End all processes; a worker ends its executors, which are of its group."""
        for process in reversed(self._processes):
            _signal(process, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
            _signal(process, signal.SIGKILL)
            process.wait()
        self._processes.clear()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _read(process: subprocess.Popen[str], said: SimpleQueue[str | None]) -> None:
    """All that a process says, to its end: a full pipe would stop it."""
    with process, process.stdout:  # type: ignore[union-attr]
        for line in process.stdout:  # type: ignore[union-attr]
            said.put(line)
    said.put(None)


def _signal(process: subprocess.Popen[str], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return

"""A Spark standalone cluster of our own: a master and worker processes on loopback, from pyspark's jars.

with Cluster(folder, workers=2) as cluster:
    subprocess.run(…, env=os.environ | cluster.driver)
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.io.ivy_jars import java
from tests.spark import event_log
from tests.spark.processes import Processes, elsewhere

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
        self._processes = Processes()
        self.url = ""

    def __enter__(self) -> Self:
        for name in ("conf", "events", "driver/temp"):
            (self.folder / name).mkdir(parents=True)
        try:
            self.url = self._run("master.Master", r"Starting Spark master at (spark://\S+)", "--webui-port", "0")
            with ThreadPoolExecutor(self._workers) as pool:
                list(pool.map(self._start_worker, range(self._workers)))
        except BaseException:
            self._processes.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._processes.stop()

    @property
    def driver(self) -> dict[str, str]:
        """What a driver needs in its environment. Its temporary files are under /proc/self, so that no other process finds them there."""
        settings = EXECUTOR | {"spark.cores.max": str(self._workers)} | event_log.settings(self.events)
        return {
            "PYTHONPATH": str(_SOURCES),
            "TIDELAKE_SPARK_MASTER": self.url,
            "TIDELAKE_SPARK_CONF": "\n".join(f"{k}={v}" for k, v in settings.items()),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": _HOST,
            "TMPDIR": "/proc/self/cwd/temp",
        }

    @property
    def events(self) -> Path:
        """The folder of the event log."""
        return self.folder / "events"

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

    def _work(self, number: int) -> Path:
        return self.folder / f"work-{number}"

    def _start_worker(self, number: int) -> None:
        where = ("--work-dir", str(self._work(number)), "--webui-port", "0", "--cores", "1", "--memory", "1g")
        self._run("worker.Worker", r"Successfully registered with master (\S+)", *where, self.url)

    def _run(self, program: str, ready: str, *arguments: str) -> str:
        command = [java(), *_JAVA, "-cp", f"{_PACKAGE / 'jars'}/*", f"{_DEPLOY}.{program}", "--host", _HOST, "--port", "0", *arguments]
        return self._processes.start(command, ready, self._environment(), self.folder)

    def _environment(self) -> dict[str, str]:
        own = {"SPARK_HOME": str(_PACKAGE), "SPARK_CONF_DIR": str(self.folder / "conf"), "SPARK_LOCAL_IP": _HOST}
        own |= {"SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_DIRS": str(self.folder / "scratch")}
        return elsewhere() | own | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(_SOURCES)}

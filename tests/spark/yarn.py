"""YARN of our own: a resource manager and a node manager on loopback, from the jars of Hadoop's own tests, with local folders for HDFS.

with Yarn(folder) as yarn:
    subprocess.run(…, env=os.environ | {"HADOOP_CONF_DIR": str(yarn.conf)})
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from xml.sax.saxutils import escape

from tests.io.ivy_jars import ivy_jars, java
from tests.spark.processes import Processes, elsewhere

VERSION = "3.4.2"  # that of the client which pyspark 4.1 brings
JARS = (
    *(f"org.apache.hadoop:hadoop-client-{part}:{VERSION}" for part in ("minicluster", "api", "runtime")),
    "org.bouncycastle:bcprov-jdk18on:1.78.1",
    "org.bouncycastle:bcpkix-jdk18on:1.78.1",
    "javax.xml.bind:jaxb-api:2.3.1",
    "com.sun.xml.bind:jaxb-impl:2.3.9",
    "org.slf4j:slf4j-reload4j:1.7.36",
)

_HOST = "127.0.0.1"
_JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--add-opens=java.base/java.lang=ALL-UNNAMED")
_SERVER = "org.apache.hadoop.yarn.server"
_LOG = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %c{1}: %m%n
"""
_QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": 100,
    "yarn.scheduler.capacity.maximum-am-resource-percent": 0.5,
}


class Yarn:
    """The node's environment knows no object store, no Python packages and another time zone. conf: the folder HADOOP_CONF_DIR."""

    def __init__(self, folder: Path) -> None:
        self.conf, self.node = folder / "conf", folder / "node"
        self._processes = Processes()

    def __enter__(self) -> Self:
        self.conf.mkdir(parents=True)
        self.node.mkdir()
        (self.conf / "log4j.properties").write_text(_LOG)
        self._write("core-site", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": self.node / "temp"})
        self._write("capacity-scheduler", _QUEUES)
        self._write("yarn-site", dict(self._settings()))
        try:
            self._start("resourcemanager.ResourceManager", "(Transitioned to active) state")
            self._start("nodemanager.NodeManager", r"Registered with ResourceManager as (\S+)")
        except BaseException:
            self._processes.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._processes.stop()

    def containers(self) -> list[str]:
        """What each container of the one application said, and the script that started it; the first is the application master's."""
        found = sorted((self.node / "logs").glob("application_*/container_*"))
        return ["".join(path.read_text() for path in sorted(folder.iterdir())) for folder in found]

    def _settings(self) -> Iterator[tuple[str, object]]:
        yield "yarn.resourcemanager.hostname", _HOST
        for name in ("", "scheduler.", "resource-tracker.", "admin.", "webapp."):
            yield f"yarn.resourcemanager.{name}address", f"{_HOST}:{_free_port()}"
        yield "yarn.nodemanager.hostname", _HOST
        for name in ("", "localizer.", "webapp."):
            yield f"yarn.nodemanager.{name}address", f"{_HOST}:0"
        yield "yarn.nodemanager.local-dirs", self.node / "local"
        yield "yarn.nodemanager.log-dirs", self.node / "logs"
        yield "yarn.nodemanager.resource.memory-mb", 32 << 10  # which no process takes
        yield "yarn.nodemanager.resource.cpu-vcores", 8
        yield "yarn.nodemanager.vmem-check-enabled", "false"  # a JVM reserves more than it takes
        yield "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", 100

    def _write(self, name: str, settings: Mapping[str, object]) -> None:
        lines = (f"<property><name>{k}</name><value>{escape(str(v))}</value></property>" for k, v in settings.items())
        (self.conf / f"{name}.xml").write_text("\n".join(["<configuration>", *lines, "</configuration>"]))

    def _start(self, program: str, ready: str) -> None:
        path = f"{self.conf}:{ivy_jars(f'yarn-{VERSION}', JARS)}/*"
        environment = {"JAVA_HOME": _java_home()} | elsewhere()  # containers start $JAVA_HOME/bin/java
        self._processes.start([java(), *_JAVA, "-cp", path, f"{_SERVER}.{program}"], ready, environment, self.node)


def _java_home() -> str:
    found = shutil.which(java())
    return str(Path(os.path.realpath(str(found))).parents[1])


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((_HOST, 0))
        return int(free.getsockname()[1])

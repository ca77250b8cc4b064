"""One Spark session for all stages of an hour: local, on a cluster, or a thin client of a Spark Connect server.

TIDELAKE_SPARK_MASTER   spark.master, default local[*]; a cluster's master needs the jars and the tidelake wheel in its image
TIDELAKE_SPARK_REMOTE   sc://host:port: be a client of that Spark Connect server instead
TIDELAKE_SPARK_SERVER   a folder: share the Spark Connect server of this host that is kept there (lake.connect)
TIDELAKE_SPARK_CONF     further settings, one `key=value` a line
TIDELAKE_DRIVER_MEMORY  default 2g
TIDELAKE_IVY            where Ivy keeps the jars, default ~/.cache/tidelake/ivy
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tidelake.lake.connect import shared_server
from tidelake.lake.java import ensure_java
from tidelake.lake.settings import LakeSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.postgresql:postgresql:42.7.8",
)

_kept: list[SparkSession] = []
_JAVA = "-XX:+UseSerialGC -Duser.timezone=UTC"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

# For an application that ends before compiled code would pay: interpreted plans, and the JVM's quick compiler alone (it would halve
# its code cache, which Spark fills). Measured on hours of 2,000 row events: 38 CPU seconds of the JVM instead of 92.
_BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
_BRIEF = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

# Runtime settings: every session needs them, a Spark Connect client sets them on its own session.
_RUNTIME = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.v2.bucketing.enabled": "true",  # snapshot and changelog share their buckets: the fold needs no shuffle
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
}


def static_settings(*, brief: bool = False) -> dict[str, str]:
    """What a Spark application must be started with; brief: for little data."""
    ivy = ivy_folder()
    java = f"{_BRIEF_JAVA} {_JAVA}" if brief else _JAVA
    settings = {
        "spark.master": os.environ.get("TIDELAKE_SPARK_MASTER") or "local[*]",
        "spark.driver.memory": os.environ.get("TIDELAKE_DRIVER_MEMORY") or "2g",
        "spark.driver.extraJavaOptions": f"{java} -Dlog4j2.configurationFile={_LOGGING.as_uri()}",
        "spark.sql.extensions": _EXTENSIONS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.jars.ivy": str(ivy),
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 2)),
        "spark.python.worker.faulthandler.enabled": "true",
    }
    jars = cached_jars(ivy)
    local = settings["spark.master"].startswith("local")
    settings |= {"spark.driver.extraClassPath": ":".join(jars)} if jars and local else {"spark.jars.packages": ",".join(PACKAGES)}
    lines = os.environ.get("TIDELAKE_SPARK_CONF", "").splitlines()
    settings |= _RUNTIME | (_BRIEF if brief else {})
    return settings | {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines) if key.strip()}


def ivy_folder() -> Path:
    """Ivy's cache."""
    return Path(os.environ.get("TIDELAKE_IVY", Path.home() / ".cache" / "tidelake" / "ivy"))


def fetch_jars() -> None:
    """Let Spark fetch the packages, by starting a session that needs them."""
    with keep("tidelake setup", brief=True):
        pass


def cached_jars(ivy: Path) -> list[str]:
    """The packages' jars in Ivy's cache, [] unless all are there. On the class path they spare a resolve per session."""
    wanted = [ivy / "jars" / f"{group}_{name}-{version}.jar" for group, name, version in (p.split(":") for p in PACKAGES)]
    return [str(path) for path in wanted] if all(path.is_file() for path in wanted) else []


@contextmanager
def spark_session(lake: LakeSettings, name: str) -> Iterator[SparkSession]:
    """A session that sees the lake as catalog `lake`; stopped at the end unless its application was there before."""
    with _remote() as remote:
        spark = _connect(remote) if remote else _kept[-1].newSession() if _kept else _start(name)  # a session knows one lake
        for key, value in (_RUNTIME | lake.spark).items():
            spark.conf.set(key, value)
        from tidelake.lake.source import LandedSource

        spark.dataSource.register(LandedSource)
        try:
            yield spark
        finally:
            if remote or not _kept:
                spark.stop()


@contextmanager
def _remote() -> Iterator[str | None]:
    """The URL of a Spark Connect server, None to run Spark in this process."""
    folder = os.environ.get("TIDELAKE_SPARK_SERVER")
    if not folder:
        yield os.environ.get("TIDELAKE_SPARK_REMOTE")
        return
    with shared_server(Path(folder)) as remote:
        yield remote


@contextmanager
def keep(name: str, *, brief: bool = False) -> Iterator[None]:
    """Start an application whose sessions the lakes opened meanwhile use instead of their own; stopped at the end.

    brief: tuned for little data and a short life."""
    _kept.append(_start(name, brief))
    try:
        yield
    finally:
        _kept.pop().stop()


def _start(name: str, brief: bool = False) -> SparkSession:
    from pyspark.sql import SparkSession

    logging.getLogger("py4j").setLevel(logging.ERROR)
    builder = SparkSession.builder.appName(name).config("spark.sql.extensions", _EXTENSIONS)
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit started the JVM: master, memory and jars are its affair
        return builder.getOrCreate()
    prepare_environment()
    for key, value in static_settings(brief=brief).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def prepare_environment() -> None:
    """What the JVM and its Python workers need to find."""
    ensure_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers run this Python, not the first python3 of the PATH


def _connect(remote: str) -> SparkSession:
    from pyspark.sql import SparkSession

    spark: SparkSession = SparkSession.builder.remote(remote).create()
    return spark

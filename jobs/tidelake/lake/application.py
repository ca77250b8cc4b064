"""What a Spark application is started with. One of its own, or the Spark Connect server that the stages of a host share.

TIDELAKE_SPARK_MASTER   spark.master, default local[*]; a cluster's master needs the jars and the tidelake wheel in its image
TIDELAKE_SPARK_REMOTE   sc://host:port: be a client of that Spark Connect server instead
TIDELAKE_SPARK_SERVER   a folder: share the Spark Connect server of this host that is kept there (lake.connect)
TIDELAKE_SPARK_CONF     further settings, one `key=value` a line
TIDELAKE_DRIVER_MEMORY  default 2g
TIDELAKE_IVY            where Ivy keeps the jars, default ~/.cache/tidelake/ivy
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tidelake.lake.java import ensure_java

PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.postgresql:postgresql:42.7.8",
)

# The code that Spark makes of a table's casts is longer than what the JVM compiles unless it is told to: order took twice the CPU time.
_EVERYWHERE = "-XX:-DontCompileHugeMethods -Duser.timezone=UTC"
_JAVA = f"-XX:+UseSerialGC {_EVERYWHERE}"
_LOGGING = Path(__file__).with_name("log4j2.properties")
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

# For an application that ends before compiled code would pay: interpreted plans, and the JVM's quick compiler alone (it would halve
# its code cache, which Spark fills). Measured on hours of 2,000 row events: 38 CPU seconds of the JVM instead of 92.
_BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
_BRIEF = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

# Runtime settings: every session needs them, a Spark Connect client sets them on its own session.
RUNTIME = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.v2.bucketing.enabled": "true",  # snapshot and changelog share their buckets: the fold needs no shuffle
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.optimizer.windowGroupLimitThreshold": "-1",  # copies are rare: limiting groups before numbering them is one pass more
}


def static_settings(*, brief: bool = False) -> dict[str, str]:
    """What a Spark application must be started with; brief: for little data."""
    ivy = ivy_folder()
    java = f"{_BRIEF_JAVA} {_JAVA}" if brief else _JAVA
    settings = {
        "spark.master": os.environ.get("TIDELAKE_SPARK_MASTER") or "local[*]",
        "spark.driver.memory": os.environ.get("TIDELAKE_DRIVER_MEMORY") or "2g",
        "spark.driver.extraJavaOptions": f"{java} -Dlog4j2.configurationFile={_LOGGING.as_uri()}",
        "spark.executor.extraJavaOptions": _EVERYWHERE,
        "spark.sql.extensions": EXTENSIONS,
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
    settings |= RUNTIME | (_BRIEF if brief else {})
    return settings | {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines) if key.strip()}


def ivy_folder() -> Path:
    """Ivy's cache."""
    return Path(os.environ.get("TIDELAKE_IVY", Path.home() / ".cache" / "tidelake" / "ivy"))


def cached_jars(ivy: Path) -> list[str]:
    """The packages' jars in Ivy's cache, [] unless all are there. On the class path they spare a resolve per session."""
    wanted = [ivy / "jars" / f"{group}_{name}-{version}.jar" for group, name, version in (p.split(":") for p in PACKAGES)]
    return [str(path) for path in wanted] if all(path.is_file() for path in wanted) else []


def prepare_environment() -> None:
    """What the JVM and its Python workers need to find."""
    ensure_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers run this Python, not the first python3 of the PATH

"""What a Spark application is started with. One of its own, or the Spark Connect server that the stages of a host share.

TIDELAKE_SPARK_MASTER   spark.master, default local[*]; what a cluster needs: docs/cluster.md
TIDELAKE_SPARK_REMOTE   sc://host:port: be a client of that Spark Connect server instead
TIDELAKE_SPARK_SERVER   a folder: share the Spark Connect server of this host that is kept there (spark.connect)
TIDELAKE_SPARK_CONF     further settings, one `key=value` a line
TIDELAKE_DRIVER_MEMORY  default 2g
TIDELAKE_IVY            where Ivy keeps the jars, default ~/.cache/tidelake/ivy
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tidelake.config.lake_paths import CATALOG
from tidelake.spark.java import ensure_java

PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.postgresql:postgresql:42.7.8",
)

# The code that Spark makes of a table's casts is longer than what the JVM compiles unless it is told to: order took twice the CPU time.
# A quarter of the CPU time went into compiling it, half of that into inlining what is hardly called; with less of it order of 2,000,000 row
# events takes 34 CPU seconds instead of 39, and the code is as quick.
_EVERYWHERE = "-XX:-DontCompileHugeMethods -XX:MaxInlineLevel=5 -XX:FreqInlineSize=100 -XX:InlineSmallCode=1000 -Duser.timezone=UTC"
_JAVA = f"-XX:+UseSerialGC {_EVERYWHERE}"
_EXECUTOR_JAVA = "spark.executor.extraJavaOptions"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_IVY_SETTINGS = Path(__file__).with_name("ivysettings.xml")  # Spark's own would ask a second repository
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

# For an application that ends before compiled code would pay: interpreted plans, and the JVM's quick compiler alone (it would halve
# its code cache, which Spark fills). Measured on hours of 2,000 row events: 38 CPU seconds of the JVM instead of 92.
_BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
_BRIEF = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

# Of the catalog's settings, what a session sets for its lake or else unsets. Spark hides in its event log what jobs know of settings that
# the application began with, by their names; others it writes down.
SECRETS = tuple(f"spark.sql.catalog.{CATALOG}.{name}" for name in ("jdbc.password", "s3.secret-access-key", "s3.session-token"))

# Runtime settings: every session needs them, a Spark Connect client sets them on its own session.
RUNTIME = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),  # rows of the shuffle may be megabytes each (order/arrow/arrow_staging.py)
    "spark.sql.inMemoryColumnarStorage.batchSize": "2000",  # rows that are read or passed over together (order/packs.py)
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # of files for ourselves: the default loses that it is an instant
    "spark.sql.optimizer.windowGroupLimitThreshold": "-1",  # copies are rare: limiting groups before numbering them is one pass more
}


def static_settings(*, brief: bool = False) -> dict[str, str]:
    """What a Spark application must be started with; brief: for little data."""
    ivy, given = ivy_folder(), _given()
    java = f"{_BRIEF_JAVA} {_JAVA}" if brief else _JAVA
    settings = {
        "spark.master": _master(),
        "spark.driver.memory": os.environ.get("TIDELAKE_DRIVER_MEMORY") or "2g",
        "spark.driver.extraJavaOptions": f"{java} -Dlog4j2.configurationFile={_LOGGING.as_uri()}",
        _EXECUTOR_JAVA: _EVERYWHERE,
        "spark.sql.extensions": EXTENSIONS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.jars.ivy": str(ivy),
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.hadoop.fs.permissions.umask-mode": f"{_umask():03o}",  # of files in local lakes; Hadoop's own default is 022
    }
    settings |= _jars(cached_jars(ivy), is_local(_master()))
    if is_local(_master()):  # the cores of a cluster are not those of this machine; there Spark's default is, and it joins small partitions
        settings |= {"spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 2))}
    if (more := given.get(_EXECUTOR_JAVA)) is not None:
        given[_EXECUTOR_JAVA] = f"{_EVERYWHERE} {more}"
    return settings | dict.fromkeys(SECRETS, "none") | RUNTIME | (_BRIEF if brief else {}) | given


def is_local(master: str) -> bool:
    """Whether driver and executors are one process. `local-cluster[…]` has executors of its own."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def _master() -> str:
    return _given().get("spark.master") or os.environ.get("TIDELAKE_SPARK_MASTER") or "local[*]"


def _given() -> dict[str, str]:
    lines = (line.partition("=") for line in os.environ.get("TIDELAKE_SPARK_CONF", "").splitlines())
    return {key.strip(): value.strip() for key, _, value in lines if key.strip()}


def _jars(cached: list[str], local: bool) -> dict[str, str]:
    """Executors fetch `spark.jars` from the driver; a class path is a process's own."""
    if not cached:
        return {"spark.jars.packages": ",".join(PACKAGES), "spark.jars.ivySettings": str(_IVY_SETTINGS)}
    return {"spark.driver.extraClassPath": ":".join(cached)} if local else {"spark.jars": ",".join(cached)}


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    found = os.umask(0o077)
    os.umask(found)
    return found


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
    if not is_local(_master()):  # executors must reach the driver, so its address is not the loopback's; their Python may be elsewhere
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        return
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers run this Python, not the first python3 of the PATH

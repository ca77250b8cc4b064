"""Settings to start a Spark application: one of a process's own, or the Spark Connect server that the stages of a host share.

TIDELAKE_SPARK_MASTER   spark.master, default local[*]; requirements of a cluster: docs/cluster.md
TIDELAKE_SPARK_REMOTE   sc://host:port: be a client of that Spark Connect server instead
TIDELAKE_SPARK_SERVER   a folder: share this host's Spark Connect server whose state is there (spark.connect)
TIDELAKE_SPARK_CONF     further settings, one `key=value` a line
TIDELAKE_DRIVER_MEMORY  default 2g
TIDELAKE_IVY            Ivy's cache of the jars, default ~/.cache/tidelake/ivy
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tidelake.config.lake_paths import CATALOG
from tidelake.spark.class_archive import java_options
from tidelake.spark.java import ensure_java

PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.postgresql:postgresql:42.7.8",
)

# Spark's generated code may be longer than what the JVM compiles by default. With less inlining of rarely called code, a session starts
# with 4.2 CPU seconds of the JVM instead of 4.8.
_EVERYWHERE = "-XX:-DontCompileHugeMethods -XX:MaxInlineLevel=5 -XX:FreqInlineSize=100 -XX:InlineSmallCode=1000 -Duser.timezone=UTC"
_JAVA = f"-XX:+UseSerialGC {_EVERYWHERE}"
_EXECUTOR_JAVA = "spark.executor.extraJavaOptions"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_IVY_SETTINGS = Path(__file__).with_name("ivysettings.xml")  # Spark's default settings ask a second repository
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

# For an application that ends before compilation pays off: interpreted plans, and only the JVM's quick compiler (which would halve
# its code cache, which Spark fills). A session starts with 2.9 CPU seconds of the JVM instead of 4.2.
_BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
_BRIEF = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

# The secret settings of the catalog; a session sets or unsets them for its lake. Spark's event log hides, by name, values of settings that
# the application was started with; it writes others. Spark's own names for that lack a REST catalog's `credential`.
_SECRET_NAMES = ("jdbc.password", "s3.secret-access-key", "s3.session-token", "token", "credential")
SECRETS = tuple(f"spark.sql.catalog.{CATALOG}.{name}" for name in _SECRET_NAMES)
REDACTION = "spark.redaction.regex"
HIDDEN = "(?i)secret|password|token|access[.]?key|credential"

# Runtime settings that every session needs; a Spark Connect client sets them on its own session.
RUNTIME = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),  # rows of order's shuffle may be megabytes each
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # for Tidelake's own files: the default loses that it is an instant
    "spark.sql.optimizer.windowGroupLimitThreshold": "-1",  # copies are rare: limiting groups before numbering them costs a pass
}


def static_settings(*, brief: bool = False, java: str | None = None) -> dict[str, str]:
    """Return the settings that a Spark application is started with.

    Args:
        brief: Tune it for little data.
        java: More options for the driver's JVM; by default those that use the archive of classes, if there is one.
    """
    ivy, given = ivy_folder(), _given()
    java = f"{_BRIEF_JAVA if brief else ''} {_JAVA}{java_options(cached_jars(ivy)) if java is None else f' {java}'}".strip()
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
        "spark.hadoop.fs.permissions.umask-mode": f"{_umask():03o}",  # for files in local lakes; Hadoop's default is 022
    }
    settings |= _jars(cached_jars(ivy), is_local(_master()))
    if is_local(_master()):  # a cluster has other cores than this machine: there Spark's default holds, and Spark joins small partitions
        settings |= {"spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 2))}
    if (more := given.get(_EXECUTOR_JAVA)) is not None:
        given[_EXECUTOR_JAVA] = f"{_EVERYWHERE} {more}"
    return settings | dict.fromkeys(SECRETS, "none") | {REDACTION: HIDDEN} | RUNTIME | (_BRIEF if brief else {}) | given


def is_local(master: str) -> bool:
    """Return whether driver and executors are one process. `local-cluster[…]` has separate executors."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def _master() -> str:
    return _given().get("spark.master") or os.environ.get("TIDELAKE_SPARK_MASTER") or "local[*]"


def _given() -> dict[str, str]:
    lines = (line.partition("=") for line in os.environ.get("TIDELAKE_SPARK_CONF", "").splitlines())
    return {key.strip(): value.strip() for key, _, value in lines if key.strip()}


def _jars(cached: list[str], local: bool) -> dict[str, str]:
    """Return the settings for the jars: `spark.jars` is fetched by executors from the driver, a class path is local to a process."""
    if not cached:
        return {"spark.jars.packages": ",".join(PACKAGES), "spark.jars.ivySettings": str(_IVY_SETTINGS)}
    return {"spark.driver.extraClassPath": ":".join(cached)} if local else {"spark.jars": ",".join(cached)}


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    found = os.umask(0o077)
    os.umask(found)
    return found


def ivy_folder() -> Path:
    """Return the folder of Ivy's cache."""
    return Path(os.environ.get("TIDELAKE_IVY", Path.home() / ".cache" / "tidelake" / "ivy"))


def cached_jars(ivy: Path) -> list[str]:
    """Return the packages' jars in Ivy's cache, [] unless all are there. On the class path they avoid a resolution per session."""
    wanted = [ivy / "jars" / f"{group}_{name}-{version}.jar" for group, name, version in (p.split(":") for p in PACKAGES)]
    return [str(path) for path in wanted] if all(path.is_file() for path in wanted) else []


def prepare_environment() -> None:
    """Set the environment that the JVM and its Python workers need."""
    ensure_java()
    if not is_local(_master()):  # executors must reach the driver, so its address is not loopback; their Python may be elsewhere
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        return
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers run this Python, not the first python3 of the PATH

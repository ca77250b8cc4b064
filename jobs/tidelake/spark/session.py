"""One Spark session for all stages of an hour: local, on a cluster, or a client of a Spark Connect server (spark.application)."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from tidelake.errors import ConfigError
from tidelake.spark.application import EXTENSIONS, HIDDEN, REDACTION, RUNTIME, SECRETS, prepare_environment, static_settings
from tidelake.spark.connect import runs, shared_server
from tidelake.spark.lake_settings import LakeSettings
from tidelake.spark.worker_secrets import elsewhere, handed_over, keep_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # the variable that spark-submit sets
_SPARKS_OWN = "(?i)secret|password|token|access[.]?key"  # Spark's default of REDACTION
_kept: list[SparkSession] = []


@contextmanager
def spark_session(lake: LakeSettings, name: str, *, brief: bool = False) -> Iterator[SparkSession]:
    """Yield a session that sees the lake as catalog `lake`. Stop it at the end unless its application existed before.

    Args:
        lake: Settings of the lake's catalog.
        name: Name of the application.
        brief: Tune an application started here for little data. Start it here even if the stages of this host share a server, unless
            the server runs: one stage alone needs no server.

    Raises:
        ConfigError: SECRETS where Spark's event log would hold secrets of the catalog.
    """
    with _remote(brief) as remote, _handed_over(lake, remote) as place:
        spark = _connect(remote) if remote else _kept[-1].newSession() if _kept else _start(name, brief)  # one session per lake
        try:
            _refuse_to_be_written_down(spark, lake)
            _set_up(spark, lake, place)
            yield spark
        finally:
            if remote or not _kept:
                spark.stop()


def _set_up(spark: SparkSession, lake: LakeSettings, place: str) -> None:
    """Set the session's settings. place: location of its workers' secrets."""
    keep_place(spark, place)
    for key, value in (RUNTIME | lake.spark).items():
        spark.conf.set(key, value)
    for key in set(SECRETS) - set(lake.spark):
        spark.conf.unset(key)


def _handed_over(lake: LakeSettings, remote: str | None) -> AbstractContextManager[str]:
    """Yield the location of the secrets that workers need and a plan must not contain."""
    folder = os.environ.get("TIDELAKE_SPARK_SERVER")
    if remote and not folder:
        return nullcontext(elsewhere(lake.worker.mask_key))
    return handed_over(lake.worker, Path(folder) if remote and folder else None)


def _refuse_to_be_written_down(spark: SparkSession, lake: LakeSettings) -> None:
    """Raise ConfigError (SECRETS) if Spark's event log would hold secrets of the catalog."""
    secrets = [key for key in SECRETS if key in lake.spark]
    if not secrets or spark.conf.get("spark.eventLog.enabled", "false") != "true":
        return
    began_with = {r["key"] for r in spark.sql("SET").collect()}  # a Connect server does not return the values, not even by conf.get
    hidden = re.compile(spark.conf.get(REDACTION, None) or _SPARKS_OWN)
    if exposed := [key for key in secrets if key not in began_with or not hidden.search(key)]:
        raise ConfigError(
            f"this Spark application would write {exposed[0]} into its event log: only settings given at its start are hidden",
            code="SECRETS",
            remedy=f"start it with {', '.join(f'{key}=none' for key in SECRETS)}, and {REDACTION}={HIDDEN} (docs/cluster.md), "
            "or without spark.eventLog.enabled",
        )


@contextmanager
def _remote(brief: bool) -> Iterator[str | None]:
    """Yield the URL of a Spark Connect server, None to run Spark in this process."""
    folder = os.environ.get("TIDELAKE_SPARK_SERVER")
    if not folder:
        yield os.environ.get("TIDELAKE_SPARK_REMOTE")
        return
    if brief and not runs(Path(folder)):
        yield None
        return
    with shared_server(Path(folder)) as remote:
        yield remote


@contextmanager
def keep(name: str, *, brief: bool = False) -> Iterator[None]:
    """Start an application that all lakes opened in the block share; stop it at the end.

    Args:
        name: Name of the application.
        brief: Tune it for little data and a short life.
    """
    _kept.append(_start(name, brief))
    try:
        yield
    finally:
        _kept.pop().stop()


def is_up() -> bool:
    """Return whether a JVM is there before a session is asked for: in a block of `keep`, and where spark-submit runs this process."""
    return bool(_kept) or _SUBMITTED in os.environ


def _start(name: str, brief: bool = False, java: str | None = None) -> SparkSession:
    from pyspark.sql import SparkSession

    logging.getLogger("py4j").setLevel(logging.ERROR)
    builder = SparkSession.builder.appName(name).config("spark.sql.extensions", EXTENSIONS)
    if _SUBMITTED in os.environ:  # spark-submit started the JVM and sets master, memory and jars
        return builder.getOrCreate()
    prepare_environment()
    for key, value in static_settings(brief=brief, java=java).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _connect(remote: str) -> SparkSession:
    from pyspark.sql import SparkSession

    spark: SparkSession = SparkSession.builder.remote(remote).create()
    return spark


def first_classes(java: str, seconds: float) -> None:
    """Start an application with more options for its JVM, run a job in a worker, and wait up to so many seconds for the JVM to end."""
    from pyspark import SparkContext

    spark = _start("tidelake setup", brief=True, java=java)
    spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id long").repartition(2).collect()
    gateway = SparkContext._gateway
    spark.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(seconds)


def fetch_jars() -> None:
    """Make Spark download its packages, by starting a session that needs them."""
    with keep("tidelake setup", brief=True):
        pass

"""Tables at a TSO and row versions as Spark frames, for notebooks and jobs.

    from pathlib import Path

    from tidelake.config.feed import load_feed
    from tidelake.query.frames import asof, scd2

    shop = load_feed(Path("schemas"), "shop")
    asof(spark, shop, "shopdb.orders", at="2026-01-05T11:30:00Z").groupBy("status").count().show()
    scd2(spark, shop, "shopdb.orders").where("NOT _current").show()

The session needs Iceberg's runtime on its class path. The feed's catalog is added to the session as `lake`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelake.config.feed import Feed
from tidelake.errors import ConfigError
from tidelake.lake.opened import Lake
from tidelake.query.asof import frame_asof
from tidelake.query.scd2 import scd2_frame
from tidelake.spark.application import RUNTIME
from tidelake.tso import last_of, parse_moment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def asof(spark: SparkSession, feed: Feed, table: str, ts: int | None = None, at: str | None = None) -> DataFrame:
    """Return a table as it was at a TSO or a time; by default at the newest cut.

    Args:
        spark: Session with Iceberg's runtime on its class path.
        feed: The feed.
        table: Name at that time, db.table.
        ts: A TSO.
        at: An ISO time, instead of ts.

    Returns:
        The source's columns in the lake's types, in table order.

    Raises:
        ConfigError: UNKNOWN_TABLE; the message has the times at which the name existed.
        StorageError: NOT_PUBLISHED, NOT_RETAINED.
    """
    with Lake.of(feed) as lake:
        return frame_asof(lake, table, _moment(ts, at), _knowing(spark, lake))


def scd2(spark: SparkSession, feed: Feed, table: str, ts: int | None = None, at: str | None = None) -> DataFrame:
    """Return the versions of a table's rows up to a TSO or a time; by default up to the newest cut.

    Args:
        spark: Session with Iceberg's runtime on its class path.
        feed: The feed.
        table: Name at that time, db.table.
        ts: A TSO.
        at: An ISO time, instead of ts.

    Returns:
        One row per version, with the columns that tidelake.query.scd2.scd2_frame lists.

    Raises:
        ConfigError: NO_KEY, UNKNOWN_TABLE.
        StorageError: NOT_PUBLISHED, NOT_RETAINED.
    """
    with Lake.of(feed) as lake:
        return scd2_frame(lake, table, _moment(ts, at), _knowing(spark, lake))[0]


def _moment(ts: int | None, at: str | None) -> int | None:
    if ts is not None and at is not None:
        raise ConfigError("ts and at exclude each other", remedy="give one of them")
    return last_of(parse_moment(at)) if at is not None else ts


def _knowing(spark: SparkSession, lake: Lake) -> SparkSession:
    """Add the feed's catalog to the session."""
    for key, value in (RUNTIME | lake.settings.spark).items():
        spark.conf.set(key, value)
    return spark

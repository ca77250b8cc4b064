"""Tables of the past as Spark frames, for notebooks and jobs of one's own.

    from tidelake.feed import load_feed
    from tidelake.lake.frames import asof, scd2

    shop = load_feed("schemas", "shop")
    asof(spark, shop, "shopdb.orders", at="2026-01-05T11:30:00Z").groupBy("status").count().show()
    scd2(spark, shop, "shopdb.orders").where("NOT _current").show()

The session needs Iceberg's runtime on its class path; the feed's catalog is made known to it as `lake`.
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
    """The table that bore the name (`db.table`) at a TSO or ISO time, as it stood then; default: at the newest cut.

    Columns: the source's, in the lake's types and in table order. Raises ConfigError (UNKNOWN_TABLE, with the lives of the name),
    StorageError (NOT_PUBLISHED).
    """
    with Lake.of(feed) as lake:
        return frame_asof(lake, table, _moment(ts, at), _knowing(spark, lake))


def scd2(spark: SparkSession, feed: Feed, table: str, ts: int | None = None, at: str | None = None) -> DataFrame:
    """The versions of the table's rows up to a TSO or ISO time, as query.scd2 says. Raises ConfigError (NO_KEY, UNKNOWN_TABLE)."""
    with Lake.of(feed) as lake:
        return scd2_frame(lake, table, _moment(ts, at), _knowing(spark, lake))[0]


def _moment(ts: int | None, at: str | None) -> int | None:
    if ts is not None and at is not None:
        raise ConfigError("ts and at say the same", remedy="give one of them")
    return last_of(parse_moment(at)) if at is not None else ts


def _knowing(spark: SparkSession, lake: Lake) -> SparkSession:
    """The session with the feed's catalog."""
    for key, value in (RUNTIME | lake.settings.spark).items():
        spark.conf.set(key, value)
    return spark

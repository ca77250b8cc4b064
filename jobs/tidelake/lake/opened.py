"""A feed's opened lake: its store, its catalog and its Spark session."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidelake.config.feed import Feed
from tidelake.io.lease import hold
from tidelake.io.storage import Store, open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.causes import named_causes
from tidelake.lake.identity import check_identity, establish
from tidelake.lake.namespaces import refuse_other_namespace
from tidelake.spark.lake_settings import LakeSettings, lake_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidelake.spark.run_parts import Workers

BRIEF_BYTES = 16 << 20  # of messages; below it, Spark spends more time compiling queries than running them


@dataclass(slots=True)
class Lake:
    """A feed's opened lake. Use it as `with Lake.of(feed) as lake: …`; Spark starts when a stage first needs it.

    Attributes:
        feed: The feed's settings.
        store: The object store of the lake.
        settings: Settings of the catalog and of Spark.
        catalog: The Iceberg catalog.
        landed_bytes: Bytes of the hours landed here before Spark started. A small number selects an application tuned for little data.
        brief: Select such an application in any case.
    """

    feed: Feed
    store: Store
    settings: LakeSettings
    catalog: LakeCatalog
    landed_bytes: int = 0
    brief: bool = False
    _settled: bool = field(default=False, repr=False)
    _spark: SparkSession | None = field(default=None, repr=False)
    _session: ExitStack = field(default_factory=ExitStack, repr=False)

    @classmethod
    @contextmanager
    def of(cls, feed: Feed) -> Iterator[Lake]:
        """Open the feed's lake. On exit, stop the Spark session that it started.

        Raises:
            ConfigError: WRONG_CATALOG, WRONG_LAKE.
        """
        settings = lake_settings(feed)
        store, catalog = open_store(feed.lake.uri), LakeCatalog(settings)
        lake = cls(feed=feed, store=store, settings=settings, catalog=catalog)
        with named_causes(settings.place, settings.warehouse):
            check_identity(feed, store, settings, catalog)
            try:
                yield lake
            finally:
                lake._session.close()

    @property
    def spark(self) -> SparkSession:
        """Return the Spark session; the first call starts it."""
        if self._spark is None:
            from tidelake.spark.session import spark_session

            logging.getLogger("tidelake.spark").info("starting")
            brief = self.brief or 0 < self.landed_bytes <= BRIEF_BYTES
            self._spark = self._session.enter_context(spark_session(self.settings, f"tidelake {self.feed.name}", brief=brief))
        return self._spark

    def workers(self, sizes: Iterable[int]) -> Workers:
        """Return what reads files of these sizes, in bytes: this process if they are small and no JVM runs yet, else Spark's workers."""
        from tidelake.spark.run_parts import SparkWorkers, ThisProcess, is_small
        from tidelake.spark.session import is_up

        if self._spark is None and not is_up() and is_small(sizes):
            return ThisProcess(self.settings.worker)
        return SparkWorkers(self.spark)

    @contextmanager
    def hold(self, work: str, *, anyhow: bool = False) -> Iterator[int]:
        """Hold the feed's lease during the block and yield its fence number.

        The first hold also records the lake's identity and checks that the feed still writes to the namespaces of its cuts.

        Args:
            work: What the run does; the lease shows it to other runs.
            anyhow: Skip the record and the check.

        Raises:
            ConfigError: NAMESPACE_CHANGED, WRONG_CATALOG, unless `anyhow`.
            LeaseError: The lease is not free in time, or was lost.
        """
        with hold(self.store, self.feed.name, work) as fence:
            if not self._settled and not anyhow:
                establish(self.feed, self.store, self.settings, self.catalog)
                refuse_other_namespace(self.feed, self.store, self.catalog)
                self._settled = True
            yield fence

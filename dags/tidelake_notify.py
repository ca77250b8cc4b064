"""The DAG that notifies people of all feeds of `schemas/`."""

from __future__ import annotations

from collections.abc import Iterator

from tidelake.airflow.notify_dag import notify_dag
from tidelake.airflow.stage import schemas_folder
from tidelake.config.feed import Feed, feed_names, load_feed
from tidelake.errors import ConfigError

SCHEMAS = schemas_folder()


def feeds() -> Iterator[Feed]:
    """Yield the feeds whose files are right."""
    for name in feed_names(SCHEMAS):
        try:
            yield load_feed(SCHEMAS, name, expand=False)
        except ConfigError:
            continue  # tidelake_broken_feeds.py reports it


notify_dag(feeds(), SCHEMAS)

"""Defines no DAG. The import of this file fails while a feed.toml is wrong: Airflow shows the error, and the DAGs of other feeds keep
running.

Airflow drops all DAGs of a file that fails to import, so tidelake_feeds.py must not fail.
"""

from __future__ import annotations

from tidelake.airflow.notify_classes import mistakes
from tidelake.airflow.stage import schemas_folder
from tidelake.config.feed import feed_names, load_feed
from tidelake.errors import ConfigError


def problems() -> list[str]:
    """Return one sentence for each file that is wrong."""
    found, schemas = [], schemas_folder()
    for name in feed_names(schemas):
        try:
            errors = mistakes(load_feed(schemas, name, expand=False))  # of [[notify]]; the feed's DAGs are there all the same
        except ConfigError as e:
            errors = [e]
        found += ["; ".join(filter(None, (e.message, e.remedy))) for e in errors]  # the error below brings the code
    return found


if found := problems():
    raise ConfigError("\n".join(found), remedy="`tidelake check` reports the same")

"""No DAG is here: this file fails to import while a feed.toml is wrong, so that Airflow shows the error and the other feeds run on.

A file that fails to import loses all its DAGs, so it must not be tidelake_feeds.py that fails.
"""

from __future__ import annotations

from tidelake_stage import schemas_folder

from tidelake.config.feed import feed_names, load_feed
from tidelake.errors import ConfigError


def problems() -> list[str]:
    """What is wrong with which file, a sentence each."""
    found, schemas = [], schemas_folder(__file__)
    for name in feed_names(schemas):
        try:
            load_feed(schemas, name, expand=False)
        except ConfigError as e:
            found.append(str(e))
    return found


if found := problems():
    raise ConfigError("\n".join(found), remedy="`tidelake check` says the same")

"""Makes the DAGs of all feeds of a folder. Parsing reads that folder and nothing else."""

from __future__ import annotations

import logging
from pathlib import Path

from airflow.sdk import DAG

from tidelake.airflow.feed_dag import feed_dag
from tidelake.airflow.maintenance_dag import maintenance_dag
from tidelake.airflow.notify_classes import mistakes
from tidelake.airflow.notify_dag import notify_dag
from tidelake.airflow.stage import schemas_folder
from tidelake.config.feed import Feed, existing_feeds, load_feed
from tidelake.errors import ConfigError

log = logging.getLogger(__name__)


def tidelake_dags(schemas: str | Path | None = None, *, notify: str = "tidelake_notify") -> list[DAG]:
    """Make an hourly DAG and a maintenance DAG for each feed, and one DAG that sends the notifications of all of them.

    Airflow registers them under the file that calls this.

    A feed whose feed.toml is wrong is left out with a warning, because Airflow drops all DAGs of a file that fails to import.
    tidelake_dag_errors, called in another file, makes it an import error.

    Args:
        schemas: Folder of the feeds. Default: TIDELAKE_SCHEMAS, else `schemas/` beside Airflow's folder of DAGs.
        notify: Id of the DAG that sends notifications. A second call, for another folder, needs another one.

    Raises:
        ConfigError: The folder has no feeds.
    """
    folder = _folder(schemas)
    feeds, errors = _feeds(folder)
    for error in errors:
        log.warning("a feed is left out: %s", error)
    dags = [make(feed, folder) for feed in feeds for make in (feed_dag, maintenance_dag)]
    told = notify_dag(feeds, folder, notify)
    return [*dags, told] if told else dags


def tidelake_dag_errors(schemas: str | Path | None = None) -> None:
    """Fail the import of the file that calls this while a feed.toml or a notifier in it is wrong, so that Airflow shows the error. It makes
    no DAG.

    Args:
        schemas: As for tidelake_dags.

    Raises:
        ConfigError: The folder has no feeds, or some of them are wrong.
    """
    feeds, errors = _feeds(_folder(schemas))
    errors += [_sentence(e) for feed in feeds for e in mistakes(feed)]
    if errors:
        raise ConfigError("\n".join(errors), remedy="`tidelake check` reports the same")


def _folder(schemas: str | Path | None) -> Path:
    """Return the absolute folder of the feeds."""
    return (Path(schemas) if schemas else schemas_folder()).resolve()


def _feeds(folder: Path) -> tuple[list[Feed], list[str]]:
    """Return the feeds that can be read, and one sentence for each of the others. Raises ConfigError if there are no feeds."""
    feeds, errors = [], []
    for name in existing_feeds(folder):
        try:
            feeds.append(load_feed(folder, name, expand=False))
        except ConfigError as e:
            errors.append(_sentence(e))
    return feeds, errors


def _sentence(error: ConfigError) -> str:
    """Return an error without its code, which the error of all brings."""
    return "; ".join(filter(None, (error.message, error.remedy)))

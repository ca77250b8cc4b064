"""Environment variables for a stage's child process from Airflow connections. Nothing of them is printed or stored.

tidelake_s3 (or the connection that TIDELAKE_AWS_CONN_ID names), type aws: endpoint, region and credentials of the object store.
tidelake, any type: its extra, a JSON object, has the variables that feed.toml names as `${NAME}` and that the environment lacks. The stages
are not given those of [[notify]].
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from tidelake.config.feed import Feed, unset_variables
from tidelake.errors import ConfigError

VARIABLES = "tidelake"
S3 = "tidelake_s3"
_SPARK = ("TIDELAKE_SPARK_SERVER", "TIDELAKE_SPARK_REMOTE", "TIDELAKE_SPARK_MASTER")


def given(feed: Feed) -> dict[str, str]:
    """Return the variables that connections provide for a feed's stages. Raises ConfigError if a named connection does not exist."""
    return _variables(feed.model_copy(update={"notify": ()})) | _aws()


def given_to_notifiers(feed: Feed) -> dict[str, str]:
    """Return the variables that the connection `tidelake` provides for a feed and its notifiers."""
    return _variables(feed)


def stage_environment(connected: Mapping[str, str]) -> dict[str, str]:
    """Return a child's environment: this process's without Airflow's own settings and secrets, plus the variables of connections.

    The child's output is unbuffered. The stages of a host share a Spark Connect server below AIRFLOW_HOME unless the environment sets where
    Spark is.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW_", "_AIRFLOW_"))}
    environment = inherited | {"PYTHONUNBUFFERED": "1", "COLUMNS": "200", **connected}
    if not any(environment.get(name) for name in _SPARK):
        home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
        environment["TIDELAKE_SPARK_SERVER"] = str(home / "tidelake-spark")
    return environment


def _variables(feed: Feed) -> dict[str, str]:
    wanted = unset_variables(feed, os.environ)
    connection = _connection(VARIABLES) if wanted else None
    extra = connection.extra_dejson if connection else {}
    return {name: str(extra[name]) for name in wanted if name in extra}


def _aws() -> dict[str, str]:
    named = os.environ.get("TIDELAKE_AWS_CONN_ID")
    if _connection(named or S3) is None:
        if named:
            raise ConfigError(f"there is no Airflow connection {named!r}, which TIDELAKE_AWS_CONN_ID names", remedy="add it, or unset that")
        return {}
    from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook

    hook = AwsBaseHook(aws_conn_id=named or S3, client_type="s3")
    credentials = hook.get_credentials()
    found = {
        "AWS_ACCESS_KEY_ID": credentials.access_key,
        "AWS_SECRET_ACCESS_KEY": credentials.secret_key,
        "AWS_SESSION_TOKEN": credentials.token,
        "AWS_REGION": hook.region_name,
        "AWS_ENDPOINT_URL_S3": hook.conn_config.get_service_endpoint_url("s3"),
    }
    return {name: value for name, value in found.items() if value}


def _connection(conn_id: str) -> Any:
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        return None

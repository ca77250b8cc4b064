"""Environment variables for a stage's child process from Airflow connections. Nothing of them is printed or stored.

tidelake, any type: its extra, a JSON object, has the variables that feed.toml names as `${NAME}` and that the environment lacks. The stages
are not given those of [[notify]]. Of type tidelake: also endpoint (host), access key (login, password) and region of the object store.
tidelake_s3, type aws: endpoint, region and credentials of the object store, if `tidelake` has no endpoint and no access key.
TIDELAKE_AWS_CONN_ID names another connection of type aws, which comes before both.
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


def given(feed: Feed, conn_id: str = VARIABLES) -> dict[str, str]:
    """Return the variables that connections provide for a feed's stages. conn_id: of the connection of type tidelake.

    Raises ConfigError if a named connection does not exist.
    """
    connection = _connection(conn_id)
    return _variables(feed.model_copy(update={"notify": ()}), connection) | _object_store(connection)


def given_to_notifiers(feed: Feed) -> dict[str, str]:
    """Return the variables that the connection `tidelake` provides for a feed and its notifiers."""
    return _variables(feed, _connection(VARIABLES))


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


def _variables(feed: Feed, connection: Any) -> dict[str, str]:
    extra = connection.extra_dejson if connection else {}
    return {name: str(extra[name]) for name in unset_variables(feed, os.environ) if extra.get(name)}


def _object_store(connection: Any) -> dict[str, str]:
    named = os.environ.get("TIDELAKE_AWS_CONN_ID")
    if not named:
        return _own_s3(connection) or _aws(S3) or {}
    found = _aws(named)
    if found is None:
        raise ConfigError(f"there is no Airflow connection {named!r}, which TIDELAKE_AWS_CONN_ID names", remedy="add it, or unset that")
    return found


def _own_s3(connection: Any) -> dict[str, str]:
    """Return what a connection of type tidelake says of the object store; nothing if it has neither endpoint nor access key."""
    if connection is None or connection.conn_type != "tidelake" or not (connection.host or connection.login):
        return {}
    found = {
        "AWS_ACCESS_KEY_ID": connection.login,
        "AWS_SECRET_ACCESS_KEY": connection.password,
        "AWS_REGION": connection.extra_dejson.get("AWS_REGION"),
        "AWS_ENDPOINT_URL_S3": connection.host,
    }
    return {name: str(value) for name, value in found.items() if value}


def _aws(conn_id: str) -> dict[str, str] | None:
    """Return what a connection of type aws says of the object store, None if there is no such connection."""
    if _connection(conn_id) is None:
        return None
    from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook

    hook = AwsBaseHook(aws_conn_id=conn_id, client_type="s3")
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

"""What Airflow learns of the package through the entry point `apache_airflow_provider`: the connection type and its form.

The plugin has an entry point of its own (`airflow.plugins`): Airflow reads plugins of providers only if it does not load providers lazily,
and reports a plugin that it finds twice as an error.
"""

from __future__ import annotations

from typing import Any

TEXT = {"type": ["string", "null"]}
SECRET = TEXT | {"format": "password"}
FIELDS = {  # names of variables, because the connection's extra holds the variables of feed.toml
    "TIDELAKE_LAKE": {"label": "Lake", "schema": TEXT, "description": "URI of the lake, for ${TIDELAKE_LAKE} in feed.toml."},
    "TIDELAKE_CATALOG": {"label": "Catalog", "schema": SECRET, "description": "URI of the catalog, for ${TIDELAKE_CATALOG} in feed.toml."},
    "TIDELAKE_ARCHIVE": {"label": "Archive", "schema": TEXT, "description": "URI of the archive, for ${TIDELAKE_ARCHIVE} in feed.toml."},
    "AWS_REGION": {"label": "Region", "schema": TEXT, "description": "Region of the object store."},
}
FORM = {
    "hidden-fields": ["schema"],
    "relabeling": {"host": "Endpoint", "login": "Access key id", "password": "Secret access key"},
    "placeholders": {
        "host": "https://s3.example:9000; empty for AWS",
        "port": "0: without it, Airflow 3.3.1 and 3.3.2 refuse Test connection",  # apache/airflow#73298; not used
        "extra": '{"VARIABLE": "value"}: other variables that feed.toml names as ${VARIABLE}',
    },
}


def get_provider_info() -> dict[str, Any]:
    """Return what `airflow providers get tidelake --full` shows."""
    return {
        "package-name": "tidelake",
        "name": "Tidelake",
        "description": "TiCDC and Canal changes from Kafka archives into Iceberg tables.",
        "connection-types": [
            {
                "connection-type": "tidelake",
                "hook-class-name": "tidelake.airflow.hook.TidelakeHook",
                "hook-name": "Tidelake",
                "conn-fields": FIELDS,
                "ui-field-behaviour": FORM,
            }
        ],
    }

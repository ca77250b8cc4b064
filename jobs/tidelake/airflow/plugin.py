"""The plugin that Airflow finds through the entry point `airflow.plugins`. Every Airflow process imports this module; only the web server
builds the app.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk.plugins_manager import AirflowPlugin


class TidelakePlugin(AirflowPlugin):
    """Adds the page of quality reports to Airflow."""

    name = "tidelake"

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]  # Airflow's is a class attribute
        """Return the page's app with its URL prefix."""
        from tidelake.airflow.quality import quality_app
        from tidelake.airflow.stage import QUALITY_PREFIX

        return [{"app": quality_app(), "url_prefix": QUALITY_PREFIX, "name": "Tidelake quality reports"}]

"""The plugin that Airflow finds through the entry point `airflow.plugins`. Every Airflow process imports this module; only the web server
builds the app.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk.plugins_manager import AirflowPlugin


class TidelakePlugin(AirflowPlugin):
    """Adds the quality pages to Airflow, with an entry of its menu."""

    name = "tidelake"

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]  # Airflow's is a class attribute
        """Return the page's app with its URL prefix."""
        from tidelake.airflow.quality import quality_app
        from tidelake.airflow.stage import WEB_PREFIX

        return [{"app": quality_app(), "url_prefix": WEB_PREFIX, "name": "Tidelake quality pages"}]

    @property
    def external_views(self) -> list[dict[str, Any]]:  # type: ignore[override]  # Airflow's is a class attribute
        """Return the entry of the menu Browse. It has no `url_route`: Airflow would show the pages in a frame that links cannot leave, and
        the pages link to DAGs. Without a category, Airflow 3.3 makes a button of it that leads nowhere.
        """
        from tidelake.airflow.stage import quality_url

        return [{"name": "Tidelake", "href": quality_url("index.html"), "destination": "nav", "category": "browse"}]

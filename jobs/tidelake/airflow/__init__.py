"""Airflow's side of Tidelake: DAGs, operators, pages. It needs the extra `airflow`, and the rest of the package does not import it.

A file in Airflow's folder of DAGs makes the DAGs of all feeds:

    from tidelake.airflow import tidelake_dags
    tidelake_dags()

A second file becomes an import error in Airflow while a feed.toml is wrong, and the DAGs of the first file keep running:

    from tidelake.airflow import tidelake_dag_errors
    tidelake_dag_errors()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelake.airflow.factory import tidelake_dag_errors, tidelake_dags

__all__ = ["tidelake_dag_errors", "tidelake_dags"]


def __getattr__(name: str) -> Any:
    """Import the factory when it is used: every Airflow process imports this package, most for the plugin alone."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tidelake.airflow import factory

    return getattr(factory, name)

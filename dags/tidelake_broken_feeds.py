"""Defines no DAG. The import of this file fails while a feed.toml is wrong: Airflow shows the error, and the DAGs of other feeds keep
running.

Airflow drops all DAGs of a file that fails to import, so tidelake_feeds.py must not fail.
"""

from tidelake.airflow import tidelake_dag_errors

tidelake_dag_errors()

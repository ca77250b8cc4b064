"""The DAGs of all feeds: an hourly one and one for maintenance each."""

from tidelake.airflow import tidelake_dags

tidelake_dags()

"""The DAGs of all feeds: an hourly one and one for maintenance each, and one that notifies people of all of them."""

from tidelake.airflow import tidelake_dags

tidelake_dags()

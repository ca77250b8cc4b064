"""Airflow's side of Tidelake: its operators and pages. It needs the extra `airflow`; the rest of the package does not import it."""

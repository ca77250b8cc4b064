"""Spark: the application, its session, its workers, and the base classes of Tidelake's data sources."""

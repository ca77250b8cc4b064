"""Spark: the application, its session, its workers, and the frame of our data sources."""

"""Ordering with Spark SQL."""

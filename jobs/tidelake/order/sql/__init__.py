"""Ordering by Spark SQL."""

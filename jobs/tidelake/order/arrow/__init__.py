"""Ordering by Spark's Python workers, in Arrow."""

"""Ordering in Arrow, in Spark's Python workers."""

"""Compiled readers of SQL and CSV dumps."""

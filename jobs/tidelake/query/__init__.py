"""Queries of published tables: state at a TSO, changes, row versions, differences, status."""

"""Folds of a table's files in workers: what to read, in which units, and as which columns. lake.columns does the work on Arrow columns."""

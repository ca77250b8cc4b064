"""The executable specification in plain Python: events, DDL, incarnations of tables, windows, and the order of changes."""

"""The executable specification, in plain Python: events, DDL, the lives of tables, windows, and the order of changes."""

"""Full exports of a database: which files there are, at which TSO, and what their rows are as canonical text (docs/seed.md).

Dumpling's formats are described by pingcap/tidb, dumpling/export and pkg/dumpformat; read, not copied.
"""

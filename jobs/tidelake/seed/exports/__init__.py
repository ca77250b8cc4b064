"""Full exports of a database: their files, their TSO, and their rows as canonical text (docs/seed.md).

The sources of Dumpling's formats are pingcap/tidb, dumpling/export and pkg/dumpformat; read, not copied.
"""

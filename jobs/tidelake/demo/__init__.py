"""Workload generator of the demo, the tests and the benchmarks: a simulated upstream, its changefeeds and their archives.

bazaar (tables, DDL plan) and makers (values) ← upstream (rows, transactions) ← history (commits in time, true contents)
← replicator (messages as TiCDC delivers them, through a sink's encoder) ← archive (objects as the S3 connectors write them)
← generate (all of it). A seed determines everything. The encoders are written from docs/reference/protocols.md, not from our decoders;
with model.SourceTable and model.SourceChange they encode any row:
`OpenEncoder().rows([SourceChange(table, ts, "insert", None, row)])`.
"""

"""The archiver, for sites without one: topics become canonical Parquet by hour, every offset once (docs/archiver.md).

    topics ──a few readers, by turns──▶ hours of each partition ──▶ event store ──uploader──▶ <topic>/hour=…/partition=…/….parquet

The archive itself records where to resume: after the last offset in the names of a partition's objects.
"""

"""The archiver for people who have none: topics → canonical Parquet by hour, every offset once (docs/archiver.md).

    topics ──a few readers, by turns──▶ hours of each partition ──▶ event store ──uploader──▶ <topic>/hour=…/partition=…/….parquet

The archive itself says where to go on: behind the last offset in the names of a partition's objects.
"""

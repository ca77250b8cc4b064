"""Tidelake: TiCDC and Canal changes from Kafka archives into Iceberg tables, complete, in order, and provably so."""

from importlib.metadata import version

__version__ = version("tidelake")

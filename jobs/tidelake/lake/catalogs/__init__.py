"""Clients of the catalogs that can hold a lake, behind `lake.catalog`."""

"""Doors to the outside: object stores, Kafka, MySQL, DuckDB, JSON documents, leases."""

"""Access to external systems: object stores, Kafka, MySQL, DuckDB, JSON documents, leases."""

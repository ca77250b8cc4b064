"""Checks a lake by its certificates, from its files alone: no catalog, no Spark (docs/reference/certificate.md)."""

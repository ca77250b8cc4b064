"""Metrics of feeds, read from the lake: for Prometheus, and for what takes OTLP."""

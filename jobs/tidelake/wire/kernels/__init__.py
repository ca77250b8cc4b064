"""Compiled loops and column builders that all wire formats share."""

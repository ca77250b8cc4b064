"""Shared code of archive layouts: the shape of a layout, file codecs, and readers of rows, lines and containers."""

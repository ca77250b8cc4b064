"""Shared code of archive layouts: declaration of a layout, file codecs, and readers of rows, lines and containers."""

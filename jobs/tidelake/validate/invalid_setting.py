"""The line of feed.toml that lets values pass which do not fit their type."""

from __future__ import annotations

import re

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def setting(table: str, column: str, value: str) -> str:
    """Return the line of feed.toml that lets a column's values pass."""
    name = column if _BARE.fullmatch(column) else quoted(column)
    return f'[columns.{quoted(table)}.{name}] invalid_values = "{value}"'


def quoted(text: str) -> str:
    """Return a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

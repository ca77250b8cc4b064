"""The line of feed.toml that lets values of a column pass."""

from __future__ import annotations

import re
from typing import Literal

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def setting(table: str, column: str, value: str, key: Literal["invalid_values", "zero_date"] = "invalid_values") -> str:
    """Return the line of feed.toml that lets a column's values pass."""
    name = column if _BARE.fullmatch(column) else quoted(column)
    return f'[columns.{quoted(table)}.{name}] {key} = "{value}"'


def quoted(text: str) -> str:
    """Return a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

"""Names and strings in Spark SQL."""

from __future__ import annotations


def quote(name: str) -> str:
    """Return a column name quoted for SQL."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a string literal for SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

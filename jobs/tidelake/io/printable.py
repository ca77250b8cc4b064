r"""Escape text from outside (names, values, server messages) for terminals and logs. No other module escapes unprintable characters.

A character that does not print by itself (control characters, including line ends and ESC, marks that reorder or hide text, spaces of no
width, surrogates) is written as Python writes it: `\n`, `\x1b`, `\u202e`. Such a text cannot leave its line, colour it, move the cursor, or
look like another text. Escaping a text twice changes nothing more.
"""

from __future__ import annotations

import json
from typing import Any

_INDENT = "    "


def printable(text: str) -> str:
    """Return the text in one line of printable characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """Return a text of several lines. All lines but the first are indented, so that none looks like a line of Tidelake."""
    return f"\n{_INDENT}".join(printable(line) for line in text.expandtabs(4).rstrip("\n").split("\n"))


def printable_json(value: Any, indent: int | None = None) -> str:
    """Return the value as JSON, with unprintable characters escaped as JSON does."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return "\n".join(line if line.isprintable() else "".join(map(_json, line)) for line in text.split("\n"))


def _json(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]

"""Text from outside (names, values, messages of servers) as terminals and logs get it. Nothing else escapes what does not print.

A character that does not print by itself (control characters, line ends and ESC among them, marks that reorder or hide text, spaces of
no width, surrogates) is written as Python writes it: `\\n`, `\\x1b`, `\\u202e`. So a text cannot leave its line, colour it, move the
cursor, or look like another text. What is escaped stays as it is when it is escaped again.
"""

from __future__ import annotations

import json
from typing import Any

_INDENT = "    "


def printable(text: str) -> str:
    """The text in one line of characters that print."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """A text that may have several lines: those after the first are indented, so that none of them looks like a line of ours."""
    return f"\n{_INDENT}".join(printable(line) for line in text.expandtabs(4).rstrip("\n").split("\n"))


def printable_json(value: Any, indent: int | None = None) -> str:
    """The value as JSON, in which characters that do not print are escaped as JSON does."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return "\n".join(line if line.isprintable() else "".join(map(_json, line)) for line in text.split("\n"))


def _json(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]

"""Writes suggested expectations as the TOML of a file of expectations/, with a comment at each that says what was seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from tidelake.io.printable import printable
from tidelake.validate.suggest.rules import Suggested


def as_toml(heading: Sequence[str], rules: Sequence[Suggested], remarks: Sequence[str] = ()) -> str:
    """Return the file. heading: lines of comment at its top; remarks: lines of comment at its end."""
    parts = ["\n".join(map(_comment, heading)), *map(_rule, rules)]
    return "\n\n".join([*parts, *(["\n".join(map(_comment, remarks))] if remarks else [])]) + "\n"


def _rule(r: Suggested) -> str:
    members = {"type": r.type, **r.arguments, "severity": "warning"}
    return "\n".join(["[[expect]]", _comment(r.seen), *(f"{name} = {_value(v)}" for name, v in members.items())])


def _comment(line: str) -> str:
    return f"# {printable(line)}"


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{"".join(map(_character, value))}"'
        case int() | float():
            return repr(value)
        case date():
            return value.isoformat()
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case Mapping():
            return "{" + ", ".join(f"{_value(str(k))} = {_value(v)}" for k, v in value.items()) + "}"
    raise TypeError(f"no TOML for {value!r}")


def _character(c: str) -> str:
    """A character of a TOML string. What does not print by itself is escaped, so that a reader sees it."""
    if c in '"\\':
        return f"\\{c}"
    return c if c.isprintable() else f"\\U{ord(c):08X}"

"""Table names as users write them and as file names. No other module parses `db.table` or makes a path from a name.

Written: `db.table`. A part that holds a dot, a backquote or a comma, or begins or ends with a space, is enclosed in backquotes, as in
MySQL; a backquote within is doubled (`` `a.b`.orders ``). Other parts may be enclosed in backquotes, too.

Files: `db.table`. In each part letters, digits, `_`, `$` and `-` (but not first) stay; all other characters become `%XX` of their UTF-8
bytes, as in URLs (`a%2Eb.orders`). Different names give different files, no file has a `/` or begins with a dot, and the name can be read
back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from tidelake.errors import ConfigError

FILE_BYTES = 255  # longest file name that file systems accept
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_QUOTED = re.compile(r"[.`,]|^\s|\s$|^$")
_UNSAFE = re.compile(r"^-|[^\w$-]")
_HOW = "write it db.table, a part with a dot in backquotes: '`a.b`.c'"


class TableName(NamedTuple):
    """A table's database and name. `str` of it is what `parse` reads."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{_quoted(self.database)}.{_quoted(self.table)}"


def written(database: str, table: str) -> str:
    """Return `db.table`, with backquotes around parts that need them."""
    return str(TableName(database, table))


def parse(text: str) -> TableName:
    """Return the table that a text names. Raises ConfigError (TABLE_NAME)."""
    found = parse_several(text)
    if len(found) != 1:
        raise _wrong(text, "names several tables")
    return found[0]


def parse_several(text: str) -> list[TableName]:
    """Return the tables that a text names, separated by commas. Raises ConfigError (TABLE_NAME)."""
    out, at, parts = [], 0, list[str]()
    while True:
        part = _PART.match(text, at)
        if part is None:
            raise _wrong(text, "has an empty part or an unpaired backquote")
        bare, comma, _ = (part[2] or "").partition(",")
        parts.append(bare.strip() if part[1] is None else part[1].replace("``", "`"))
        at = part.end() if not comma else part.start() + len(bare)
        after = text[at : at + 1]
        if after not in ("", ".", ","):
            raise _wrong(text, "has something between a backquote and the next dot")
        if after != ".":
            out.append(_table(text, parts))
            parts = []
        if not after:
            return out
        at += 1 if after == "." else 1 + len(text[at + 1 :]) - len(text[at + 1 :].lstrip())


def same(text: str) -> str:
    """Return a table name in the form that `written` gives it. Raises ConfigError (TABLE_NAME)."""
    return str(parse(text))


def by_table(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by table name, in the form that `written` gives. Raises ValueError for an invalid name, or one table named twice."""
    try:
        named = {same(table): section for table, section in sections.items()}
    except ConfigError as e:
        raise ValueError(f"{e.message}; {e.remedy}") from e
    if len(named) < len(sections):
        raise ValueError("one table is named twice")
    return named


def file_part(name: str) -> str:
    """Return a name as part of a file name."""
    return _UNSAFE.sub(lambda found: _escaped(found[0]), name)


def file_stem(database: str, table: str) -> str:
    """Return a table's name as a file name without extension."""
    return f"{file_part(database)}.{file_part(table)}"


def of_file_stem(stem: str) -> TableName | None:
    """Return the table whose name a file has, None for other files. Further dots, which `file_stem` never writes, belong to the table."""
    database, _, table = stem.partition(".")
    if not database or not table:
        return None
    return TableName(unquote(database, errors="surrogatepass"), unquote(table, errors="surrogatepass"))


def _table(text: str, parts: list[str]) -> TableName:
    if len(parts) == 2 and all(parts):
        return TableName(*parts)
    if len(parts) > 2:
        either = (str(TableName(".".join(parts[:n]), ".".join(parts[n:]))) for n in range(1, len(parts)))
        raise ConfigError(f"{text!r} can be read in several ways", code="TABLE_NAME", remedy=f"write {' or '.join(either)}")
    raise _wrong(text, "has no database or no table")


def _wrong(text: str, what: str) -> ConfigError:
    return ConfigError(f"{text!r} names no table: it {what}", code="TABLE_NAME", remedy=_HOW)


def _quoted(part: str) -> str:
    return f"`{part.replace('`', '``')}`" if _QUOTED.search(part) else part


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode(errors="surrogatepass"))

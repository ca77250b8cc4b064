"""Names of tables as people write them, and as names of files. Nothing else takes `db.table` apart or makes a path of a name.

Written: `db.table`. A part that holds a dot, a backquote or a comma, or begins or ends with a space, stands in backquotes, as in MySQL: a
backquote within is doubled (`` `a.b`.orders ``). Parts without any of these may stand in backquotes, too.

Files: `db.table`, each part with letters, digits, `_`, `$` and `-` (but not first) as they are and all else as `%XX` of its UTF-8
bytes, as in URLs (`a%2Eb.orders`). No two names give one file, no file has a `/` or begins with a point, and the name can be told from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from tidelake.errors import ConfigError

FILE_BYTES = 255  # what file systems take of one name
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_QUOTED = re.compile(r"[.`,]|^\s|\s$|^$")
_UNSAFE = re.compile(r"^-|[^\w$-]")
_HOW = "write it db.table, a part with a dot in backquotes: '`a.b`.c'"


class TableName(NamedTuple):
    """A table's database and name. Its text is what `parse` reads."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{_quoted(self.database)}.{_quoted(self.table)}"


def written(database: str, table: str) -> str:
    """`db.table`, the parts in backquotes where they need it."""
    return str(TableName(database, table))


def parse(text: str) -> TableName:
    """The table that a text names. Raises ConfigError (TABLE_NAME)."""
    found = parse_several(text)
    if len(found) != 1:
        raise _wrong(text, "names several tables")
    return found[0]


def parse_several(text: str) -> list[TableName]:
    """The tables that a text names, separated by commas. Raises ConfigError (TABLE_NAME)."""
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
    """The text that `written` gives for the table that this one names. Raises ConfigError (TABLE_NAME)."""
    return str(parse(text))


def by_table(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the name that `written` gives for each table. Raises ValueError for a name that is none, or one table named twice."""
    try:
        named = {same(table): section for table, section in sections.items()}
    except ConfigError as e:
        raise ValueError(f"{e.message}; {e.remedy}") from e
    if len(named) < len(sections):
        raise ValueError("one table is named twice")
    return named


def file_part(name: str) -> str:
    """A name as part of a file's name."""
    return _UNSAFE.sub(lambda found: _escaped(found[0]), name)


def file_stem(database: str, table: str) -> str:
    """A table's name as the name of a file, without an ending."""
    return f"{file_part(database)}.{file_part(table)}"


def of_file_stem(stem: str) -> TableName | None:
    """The table whose name a file bears, None where it is no table's. Further dots, which `file_stem` never writes, are the table's."""
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

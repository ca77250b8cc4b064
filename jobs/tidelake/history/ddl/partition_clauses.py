"""Parses PARTITION BY … as far as a row's own columns determine its partition (docs/reference/protocols.md 1.8).

    PARTITION BY RANGE (id) | RANGE (YEAR(d)) | RANGE (TO_DAYS(d)) | RANGE COLUMNS (a, d) | LIST (id) | LIST COLUMNS (a, d) | HASH (id)
    PARTITION BY [LINEAR] KEY [ALGORITHM = n] (id, a)

Others (other functions, LINEAR HASH, subpartitions) are None: a statement that empties one of their partitions is not followed. Which
partition of KEY a row is in depends on the server; only TiDB's rule is followed, and TiDB ignores LINEAR and ALGORITHM.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta
from itertools import takewhile

from tidelake.history.ddl.changes import PRIMARY, Partition, Partitioning
from tidelake.history.ddl.tokens import END, Cursor, Token

_DAY_ZERO = 719528  # TO_DAYS('1970-01-01')
FUNCTIONS = ("YEAR", "TO_DAYS")  # functions that RANGE can use
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?: (\d{2}:\d{2}:\d{2}(?:\.\d*?[1-9])?)(?:\.?0*))?")
_MOST_PARTITIONS = 8192  # limit of TiDB and MySQL


def partitioning(cursor: Cursor) -> Partitioning | None:
    """Parse what follows PARTITION BY, to the end."""
    found = _by_columns(cursor)
    known = found if cursor.next is END else None
    cursor.at = len(cursor.tokens)
    return known


def _by_columns(cursor: Cursor) -> Partitioning | None:
    if cursor.skip("LINEAR", "KEY") or cursor.skip("KEY"):
        return _by_key(cursor)
    kind = cursor.take().upper
    if kind not in ("RANGE", "LIST", "HASH"):
        return None
    several = cursor.skip("COLUMNS")
    inner = cursor.parenthesised()
    function = inner[0].upper if len(inner) == 4 and inner[1].upper == "(" else ""
    named = [inner[2:3]] if function else _split(inner)
    if not all(len(n) == 1 and n[0].kind in ("word", "name") for n in named) or (len(named) > 1 and not several):
        return None
    if not named or (function and (kind != "RANGE" or function not in FUNCTIONS)):
        return None
    found = _numbered(cursor) if kind == "HASH" else _listed(cursor)
    column, *others = (n[0].text for n in named)
    made = Partitioning(kind=kind.lower(), column=column, function=function, partitions=found, others=tuple(others))
    return made if found else None


def _by_key(cursor: Cursor) -> Partitioning | None:
    if cursor.skip("ALGORITHM", "="):
        cursor.take()
    columns = _split(cursor.parenthesised())
    if not all(len(c) == 1 and c[0].kind in ("word", "name") for c in columns):
        return None
    found = _numbered(cursor)
    first, *others = [c[0].text for c in columns] or [PRIMARY]
    return Partitioning(kind="key", column=first, partitions=found, others=tuple(others)) if found else None


def definitions(cursor: Cursor) -> tuple[Partition, ...]:
    """Parse `(PARTITION p VALUES …, …)`."""
    cursor.expect("(")
    out: list[Partition] = []
    while True:
        cursor.expect("PARTITION")
        out.append(_definition(cursor))
        cursor.skip_clause()
        if not cursor.skip(","):
            cursor.expect(")")
            return tuple(out)


def first_day(function: str, number: str) -> str | None:
    """Return the first date for which YEAR or TO_DAYS is at least this number; None beyond the calendar."""
    try:
        n = int(number)
        day = date(n, 1, 1) if function == "YEAR" else date(1970, 1, 1) + timedelta(days=n - _DAY_ZERO)
    except (ValueError, OverflowError):
        return None
    return day.isoformat()


def names(cursor: Cursor) -> tuple[str, ...]:
    """Parse `p, q`; () for ALL."""
    if cursor.skip("ALL"):
        return ()
    out = [cursor.identifier()]
    while cursor.skip(","):
        out.append(cursor.identifier())
    return tuple(out)


def partition_count(cursor: Cursor) -> int:
    """Parse a number of partitions, up to the next clause; 0 if none is written."""
    count = min(int(cursor.take().text), _MOST_PARTITIONS) if cursor.next.text.isdecimal() else 0
    cursor.skip_clause()
    return count


def numbered(names: Iterable[str], first: int = 0) -> tuple[Partition, ...]:
    """Return partitions of HASH or KEY: the value of each is its remainder. first: the place of the first one."""
    return tuple(Partition(name=name, values=(str(n),)) for n, name in enumerate(names, first))


def _numbered(cursor: Cursor) -> tuple[Partition, ...]:
    if cursor.skip("PARTITIONS") and cursor.next.text.isdigit():
        count = min(int(cursor.take().text), _MOST_PARTITIONS)
        named = [f"p{n}" for n in range(count)]
        if cursor.next.upper == "(":
            named = [p.name for p in definitions(cursor)]
        return numbered(named) if len(named) == count else ()
    return numbered([p.name for p in definitions(cursor)] if cursor.next.upper == "(" else ["p0"])


def _listed(cursor: Cursor) -> tuple[Partition, ...]:
    if cursor.skip("PARTITIONS"):
        cursor.take()
    return definitions(cursor) if cursor.next.upper == "(" else ()


def _definition(cursor: Cursor) -> Partition:
    name = cursor.identifier()
    if not cursor.skip("VALUES"):
        return Partition(name=name, known=False)
    if cursor.skip("LESS", "THAN"):
        if cursor.skip("MAXVALUE"):
            return Partition(name=name)
        written = list(takewhile(lambda part: not _is(part, "MAXVALUE"), _split(cursor.parenthesised())))
        bounds = [b for part in written if (b := _bound(part)) is not None]
        if len(bounds) < len(written):
            return Partition(name=name, known=False)
        return Partition(name=name, below=bounds[0] if bounds else None, then=tuple(bounds[1:]))
    cursor.skip("IN")
    inner = cursor.parenthesised() if cursor.next.upper == "(" else []
    parts = _split(inner)
    if parts and parts[0] and parts[0][0].upper == "(":
        return _tuples(name, parts)
    values = [_bound(p) for p in parts if not _is(p, "NULL")]
    plain = tuple(v for v in values if v is not None)
    return Partition(name=name, values=plain, null=len(values) < len(parts), known=bool(parts) and len(plain) == len(values))


def _tuples(name: str, parts: list[list[Token]]) -> Partition:
    """A partition of LIST COLUMNS: `(1, 'a'), (2, NULL)`."""
    rows = [[None if _is(cell, "NULL") else (_bound(cell),) for cell in _split(part[1:-1])] for part in parts]
    if any(cell == (None,) for row in rows for cell in row):
        return Partition(name=name, known=False)
    return Partition(name=name, tuples=tuple(tuple(cell[0] if cell else None for cell in row) for row in rows))


def _is(tokens: list[Token], word: str) -> bool:
    return [t.upper for t in tokens] == [word]


def _split(tokens: list[Token]) -> list[list[Token]]:
    """Split at the commas that are in no parentheses."""
    out: list[list[Token]] = [[]]
    depth = 0
    for t in tokens:
        depth += {"(": 1, ")": -1}.get(t.upper, 0)
        if t.upper == "," and not depth:
            out.append([])
        else:
            out[-1].append(t)
    return [] if tokens == [] else out


def _bound(tokens: list[Token]) -> str | None:
    """A plain value as canonical text, YEAR('…') and TO_DAYS('…') as their number; None for other expressions."""
    tokens = [t for t in tokens if t.kind != "introducer" and t.upper != "+"]
    called = tokens[0].upper if len(tokens) == 4 and tokens[1].upper == "(" else ""
    value = _plain(tokens[2:3] if called else tokens)
    if value is None or not called:
        return value
    if called not in FUNCTIONS or not _DATE.fullmatch(value):
        return None
    day = date.fromisoformat(value[:10])
    return str(day.year if called == "YEAR" else (day - date(1970, 1, 1)).days + _DAY_ZERO)


def _plain(tokens: list[Token]) -> str | None:
    sign = "-" if tokens and tokens[0].upper == "-" else ""
    rest = tokens[1:] if sign else tokens
    if len(rest) != 1 or rest[0].kind not in ("number", "string"):
        return None
    if rest[0].text.isdecimal() and rest[0].text.isascii():
        return sign + rest[0].text
    found = _DATE.fullmatch(rest[0].text) if rest[0].kind == "string" and not sign else None
    if found is None:
        return None
    try:
        date.fromisoformat(found[1])
    except ValueError:
        return None
    return found[1] if found[2] in (None, "00:00:00") else f"{found[1]} {found[2]}"

"""Statements that Alibaba Canal sends without the mark of DDL, in JSON and in protobuf alike (docs/reference/protocols.md 5.6).

Beside rows: the text of the statement that made them, in front of them, if the binlog holds it (MariaDB's annotate events, which are on by
default, and MySQL's rows query events). Such a statement has no database.

Instead of a mark: Canal up to 1.1.4 marks statements on tables only. CREATE DATABASE, DROP DATABASE and those that its SQL parser does not
understand come as QUERY, mostly with their database.
"""

from __future__ import annotations

import re

XA_ROLLED_BACK = "XAROLLBACK: rows that came before were taken back"

# Statements that never make rows, whatever precedes the first word: blanks, comments, the opening of a comment that MySQL or MariaDB runs
_NO_ROWS = re.compile(
    r"(?:\s|/\*M?!\d*|/\*(?!M?!).*?\*/|--\s[^\n]*\n|#[^\n]*\n)*(?:ALTER|DROP|RENAME|TRUNCATE)\b", re.IGNORECASE | re.DOTALL
)


def stands_beside_rows(database: str | None, statement: str) -> bool:
    """Whether a statement without the mark of DDL only repeats what rows say."""
    return not database and not _NO_ROWS.match(statement)

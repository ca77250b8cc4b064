"""How much a failed rule shows of the rows that break it."""

from __future__ import annotations

MOST_ROWS = 10  # rows of a rule
MOST_COLUMNS = 10  # columns of a table that show values which do not fit their type
MOST_CHARACTERS = 120  # characters of a value

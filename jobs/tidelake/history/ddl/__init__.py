"""DDL statements: text → changes (`parse`), scripts → statements (`statements`)."""

from tidelake.history.ddl.statement import parse
from tidelake.history.ddl.tokens import statements

__all__ = ["parse", "statements"]

"""DDL statements: text → changes (`parse`), scripts → statements (`statements`)."""

from tidelake.ddl.statement import parse
from tidelake.ddl.tokens import statements

__all__ = ["parse", "statements"]

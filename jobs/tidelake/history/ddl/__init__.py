"""DDL statements: text → changes (statement.parse), scripts → statements (tokens.statements), and MySQL's column types."""

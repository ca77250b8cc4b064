"""DDL statements: parsing text into changes (statement.parse), splitting scripts (tokens.statements), and MySQL's column types."""

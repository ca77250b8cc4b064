"""Single values: MySQL's type codes, and cells as Debezium, Canal and plain JSON write them."""

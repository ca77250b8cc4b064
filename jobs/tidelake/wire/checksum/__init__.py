"""TiDB's row checksums, computed over decoded columns."""

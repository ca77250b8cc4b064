"""The lake: Iceberg's catalog and tables, cuts and their documents, names and ownership."""

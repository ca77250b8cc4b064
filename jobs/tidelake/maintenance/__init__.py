"""Maintenance: small files, old cuts, orphans, old changelogs, and redo."""

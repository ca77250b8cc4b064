"""Questions about published tables: as of a TSO, changes, versions, differences, status."""

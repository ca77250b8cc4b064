"""Suggests expectations for a table from its published rows and the changes of its last hours."""

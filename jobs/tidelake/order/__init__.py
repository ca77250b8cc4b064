"""Order: events of a window become typed, deduplicated, ordered changelogs."""

"""The order stage: turns events into typed, deduplicated, ordered changelogs."""

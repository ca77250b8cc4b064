"""Changes that a producer sent again, in feeds without commit ts (docs/offsets.md, Repeats)."""

"""Seed: loads a full export as a feed's first cut."""
